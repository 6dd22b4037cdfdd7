"""Writes scaler_deepspeed.txt: the scales that DeepSpeed's dynamic loss scaler goes through for given overflows.

Without ZeRO (stage 0) FP16_Optimizer itself changes the scale. It has no hysteresis and never refuses to continue. The
names of these cases begin with stage0.

Run with any Python that has PyTorch and DeepSpeed:  python make_golden_scaler.py [commit of DeepSpeed]

Each line of the file is a word and its values. Runs of equal values are written value:count.

  case NAME             begins a case
  options               initial_scale window hysteresis consecutive_hysteresis min_scale
  never_fails           of stage 0, without values
  overflows             0 or 1 of each iteration
  scales                the scale after each iteration, in decimals that read back exactly
  fails_at              the iteration at which DeepSpeed refuses to go on, or -1; its overflow is the last of the case
"""

import itertools
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from deepspeed.runtime.fp16.fused_optimizer import FP16_Optimizer
from deepspeed.runtime.fp16.loss_scaler import CreateLossScaler

ITERATIONS = 4000


def runs(values) -> str:
    return " ".join(f"{value}:{len(list(group))}" for value, group in itertools.groupby(values))


def rare(seed: int, one_in: int):
    draw = random.Random(seed)
    return lambda iteration, scale: draw.randrange(one_in) == 0


def bursts(seed: int):
    """Overflows in runs of 1 to 6 with gaps of 1 to 60 between them."""
    draw = random.Random(seed)
    ends = [0]
    while ends[-1] < ITERATIONS:
        ends.append(ends[-1] + (draw.randint(1, 60) if len(ends) % 2 else draw.randint(1, 6)))
    return lambda iteration, scale: sum(end <= iteration for end in ends) % 2 == 0


def above(limit: float):
    """As in training: whatever is scaled beyond the limit overflows."""
    return lambda iteration, scale: scale > limit


def drifting(iteration: int, scale: float) -> bool:
    """The limit falls from 2^20 to 2^4 and rises again, as gradients grow and shrink."""
    share = abs(iteration - ITERATIONS // 2) / (ITERATIONS // 2)
    return scale > 2.0 ** (4 + 16 * share)


def always(iteration: int, scale: float) -> bool:
    return True


def never(iteration: int, scale: float) -> bool:
    return False


# name, overflow pattern, (init_scale, scale_window, delayed_shift, consecutive_hysteresis, min_scale)
CASES = [
    ("defaults_rare", rare(1, 700), (2.0**16, 1000, 2, False, 1.0)),
    ("no_hysteresis_bursts", bursts(2), (2.0**32, 20, 1, False, 2.0**-40)),
    ("hysteresis_2_bursts", bursts(3), (2.0**32, 20, 2, False, 2.0**-40)),
    ("hysteresis_3_bursts_consecutive", bursts(4), (2.0**24, 25, 3, True, 1.0)),
    ("hysteresis_4_rare", rare(5, 40), (2.0**16, 50, 4, False, 0.25)),
    ("hysteresis_4_rare_consecutive", rare(6, 40), (2.0**16, 50, 4, True, 0.25)),
    ("window_1", rare(7, 2), (2.0**10, 1, 2, False, 2.0**-60)),
    ("edge_of_range", above(2.0**13), (2.0**32, 100, 2, False, 1.0)),
    ("edge_of_range_no_hysteresis", above(3000.0), (2.0**16, 30, 1, False, 1.0)),
    ("drifting_limit", drifting, (2.0**16, 40, 2, False, 1.0)),
    ("drifting_limit_consecutive", drifting, (2.0**16, 40, 2, True, 1.0)),
    ("minimum_not_a_power", above(50.0), (2.0**12, 10, 1, False, 48.0)),
    ("never", never, (1.0, 250, 2, False, 1.0)),
    ("always_hysteresis_2", always, (2.0**16, 1000, 2, False, 1.0)),
    ("always_hysteresis_3_consecutive", always, (2.0**8, 1000, 3, True, 1.0)),
    ("starts_at_minimum", rare(8, 100), (1.0, 500, 2, False, 1.0)),
]

STAGE0_CASES = [  # (init_scale, scale_window, min_scale)
    ("stage0_bursts", bursts(9), (2.0**32, 20, 2.0**-40)),
    ("stage0_drifting_limit", drifting, (2.0**16, 40, 1.0)),
    ("stage0_always", always, (2.0**8, 1000, 4.0)),
    ("stage0_minimum_not_a_power", above(50.0), (2.0**12, 10, 48.0)),
]


def stage0_lines(name, overflow_at, settings) -> list[str]:
    initial_scale, window, min_scale = settings
    config = SimpleNamespace(dynamic_loss_scale=True, cur_scale=initial_scale, scale_window=window, scale_factor=2.0,
                             min_loss_scale=min_scale, cur_iter=0, last_overflow_iter=-1)
    optimizer = SimpleNamespace(loss_scale_config=config, verbose=False)
    overflows, scales = [], []
    for iteration in range(ITERATIONS):
        overflows.append(int(overflow_at(iteration, config.cur_scale)))
        FP16_Optimizer._update_scale(optimizer, bool(overflows[-1]))
        scales.append(repr(float(config.cur_scale)))
    return [
        f"case {name}",
        f"options {initial_scale!r} {window} 1 0 {min_scale!r}",
        "never_fails",
        f"overflows {runs(overflows)}",
        f"scales {runs(scales)}",
        "fails_at -1",
    ]


def case_lines(name, overflow_at, settings) -> list[str]:
    initial_scale, window, hysteresis, consecutive, min_scale = settings
    scaler = CreateLossScaler(
        torch.half,
        static_loss_scale=1.0,
        dynamic_scaling=True,
        dynamic_loss_args={
            "init_scale": initial_scale,
            "scale_window": window,
            "delayed_shift": hysteresis,
            "consecutive_hysteresis": consecutive,
            "min_scale": min_scale,
        },
    )
    overflows, scales, fails_at = [], [], -1
    for iteration in range(ITERATIONS):
        overflow = overflow_at(iteration, scaler.loss_scale)
        overflows.append(int(overflow))
        try:
            scaler.update_scale(overflow)
        except Exception:
            fails_at = iteration
            break
        scales.append(repr(float(scaler.loss_scale)))
    return [
        f"case {name}",
        f"options {initial_scale!r} {window} {hysteresis} {int(consecutive)} {min_scale!r}",
        f"overflows {runs(overflows)}",
        f"scales {runs(scales)}",
        f"fails_at {fails_at}",
    ]


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else "unknown"
    lines = [f"# made by make_golden_scaler.py with deepspeed/runtime/fp16/loss_scaler.py of commit {commit}"]
    for case in CASES:
        lines += case_lines(*case)
    for case in STAGE0_CASES:
        lines += stage0_lines(*case)
    Path(__file__).with_name("scaler_deepspeed.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""Writes optimizers.txt: what reference implementations make of one small tensor in a few steps of every optimizer.

Run with any Python that has PyTorch:  python make_golden_zero.py

AdamW, Adam, Adagrad and SGD are torch.optim's (no foreach, no fused kernel), in fp32 and in fp64. The others are
written out below, in fp64. Lion is program 2 of Chen et al., "Symbolic discovery of optimization algorithms", 2023.
LAMB is algorithm 2 of You et al., "Large batch optimization for deep learning", 2020, with bounds of the trust ratio.
DeepSpeed's FusedLamb (csrc/lamb/fused_lamb_cuda_kernel.cu) takes the trust ratio of an update without bias correction.
Its step is lr * sqrt(1 - beta2^t) / (1 - beta1^t), or lr with bias_correction false. Cases with `ema_decay` have a
further state, `ema`: for torch's optimizers the average of an AveragedModel.

Every line is a name followed by numbers in hexadecimal floating point, which is exact. All cases share `initial` and
`grads` (steps, numel). A case has its options, the parameter after every step, and the states after the last step.
"""

from functools import partial
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

NUMEL, STEPS = 24, 8

ADAM = dict(lr=3e-3, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1)
LAMB = dict(lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.01, min_coeff=0.01, max_coeff=10.0)
SGD = dict(lr=1e-2, weight_decay=0.05, momentum=0.0, dampening=0.0, nesterov=0.0)
TORCH_CASES = {
    "adamw": ADAM,
    "adam": ADAM,
    "adagrad": dict(lr=1e-2, lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.1, eps=1e-10),
    "sgd": SGD,
    "sgd_momentum": SGD | dict(momentum=0.9, dampening=0.25),
    "sgd_nesterov": SGD | dict(momentum=0.9, nesterov=1.0),
    "adamw_ema": ADAM | dict(ema_decay=0.9),
    "sgd_ema": SGD | dict(ema_decay=0.75),
}
OWN_CASES = {
    "lion": dict(lr=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1),
    "lamb": LAMB,
    "lamb_bounded": LAMB | dict(max_coeff=0.5),
    "lamb_from_zero": LAMB,  # from a zero parameter, whose first trust ratio is 1
    "lamb_step_size": LAMB,
    "lamb_uncorrected": LAMB,
    "lamb_ema": LAMB | dict(ema_decay=0.9),
}
STATES = ["exp_avg", "exp_avg_sq", "momentum_buffer", "sum"]


def line(name: str, values) -> str:
    return " ".join([name, *(float(v).hex() for v in torch.as_tensor(values, dtype=torch.float64).flatten())])


def torch_optimizer(case: str, options: dict, param: torch.nn.Parameter) -> torch.optim.Optimizer:
    o = {name: value for name, value in options.items() if name != "ema_decay"}
    if "beta1" in o:
        o["betas"] = (o.pop("beta1"), o.pop("beta2"))
    if case.startswith("sgd"):
        return torch.optim.SGD([param], **(o | dict(nesterov=bool(o["nesterov"]))), foreach=False, fused=False)
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}[case.removesuffix("_ema")]
    return kind([param], **o, foreach=False, fused=False)


def run_torch(case: str, options: dict, initial: torch.Tensor, grads: torch.Tensor):
    param = torch.nn.Parameter(initial.clone())
    optimizer = torch_optimizer(case, options, param)
    module = torch.nn.ParameterList([param])
    average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(options.get("ema_decay", 0)))
    path = []
    for grad in grads:
        param.grad = grad.clone()
        optimizer.step()
        average.update_parameters(module)
        path.append(param.detach().clone())
    state = optimizer.state[param]
    states = {name: state[name] for name in STATES if torch.is_tensor(state.get(name))}
    if "ema_decay" in options:
        states["ema"] = average.module[0].detach()
    return torch.stack(path), states


def lion_step(o: dict, t: int, p: torch.Tensor, g: torch.Tensor, s: dict) -> torch.Tensor:
    c = o["beta1"] * s["exp_avg"] + (1 - o["beta1"]) * g
    s["exp_avg"] = o["beta2"] * s["exp_avg"] + (1 - o["beta2"]) * g
    return p - o["lr"] * (torch.sign(c) + o["weight_decay"] * p)


def lamb_step(o: dict, t: int, p: torch.Tensor, g: torch.Tensor, s: dict) -> torch.Tensor:
    s["exp_avg"] = o["beta1"] * s["exp_avg"] + (1 - o["beta1"]) * g
    s["exp_avg_sq"] = o["beta2"] * s["exp_avg_sq"] + (1 - o["beta2"]) * g * g
    m = s["exp_avg"] / (1 - o["beta1"] ** t)
    v = s["exp_avg_sq"] / (1 - o["beta2"] ** t)
    u = m / (v.sqrt() + o["eps"]) + o["weight_decay"] * p
    weight_norm, update_norm = float(p.norm()), float(u.norm())
    ratio = 1.0
    if weight_norm > 0 and update_norm > 0:
        ratio = min(max(weight_norm / update_norm, o["min_coeff"]), o["max_coeff"])
    return p - o["lr"] * ratio * u


def fused_lamb_step(o: dict, t: int, p: torch.Tensor, g: torch.Tensor, s: dict, corrected: bool) -> torch.Tensor:
    s["exp_avg"] = o["beta1"] * s["exp_avg"] + (1 - o["beta1"]) * g
    s["exp_avg_sq"] = o["beta2"] * s["exp_avg_sq"] + (1 - o["beta2"]) * g * g
    update = s["exp_avg"] / (s["exp_avg_sq"].sqrt() + o["eps"]) + o["weight_decay"] * p
    w_l2, u_l2 = float(p.norm()), float(update.norm())
    coeff = 1.0 if w_l2 == 0 or u_l2 == 0 else min(max(w_l2 / u_l2, o["min_coeff"]), o["max_coeff"])
    step_size = o["lr"] * ((1 - o["beta2"] ** t) ** 0.5 / (1 - o["beta1"] ** t) if corrected else 1.0)
    return p - step_size * coeff * update


OWN_STEPS = {
    "lion": lion_step,
    "lamb_step_size": partial(fused_lamb_step, corrected=True),
    "lamb_uncorrected": partial(fused_lamb_step, corrected=False),
}


def run_own(case: str, options: dict, initial: torch.Tensor, grads: torch.Tensor):
    step = OWN_STEPS.get(case, lamb_step)
    names = ["exp_avg"] if case == "lion" else ["exp_avg", "exp_avg_sq"]
    states = {name: torch.zeros(NUMEL, dtype=torch.float64) for name in names}
    param, path = initial.clone(), []
    for t, grad in enumerate(grads, 1):
        param = step(options, t, param, grad, states)
        path.append(param)
        if "ema_decay" in options:
            decay = 0 if t == 1 else options["ema_decay"]
            states["ema"] = decay * states.get("ema", 0) + (1 - decay) * param
    return torch.stack(path), states


def main() -> None:
    generator = torch.Generator().manual_seed(7)
    initial = torch.randn(NUMEL, generator=generator)
    # Magnitudes from 1e-6 to 10, so that eps, decay and both moments matter somewhere.
    grads = torch.randn(STEPS, NUMEL, generator=generator) * torch.logspace(-6, 1, NUMEL)
    lines = [line("initial", initial), line("grads", grads)]
    for case, options in (TORCH_CASES | OWN_CASES).items():
        lines += [line(f"{case}.{name}", [value]) for name, value in options.items()]
        start = torch.zeros(NUMEL) if case == "lamb_from_zero" else initial
        run = run_torch if case in TORCH_CASES else run_own
        if case in TORCH_CASES:
            lines.append(line(f"{case}.path_fp32", run(case, options, start, grads)[0]))
        path, states = run(case, options, start.double(), grads.double())
        lines.append(line(f"{case}.path_fp64", path))
        lines += [line(f"{case}.{name}", value) for name, value in states.items()]
    Path(__file__).with_name("optimizers.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""Writes adamw_torch.txt: what torch.optim.AdamW (fp32, no foreach, no fused kernel) makes of a small tensor.

Run with any Python that has PyTorch:  python make_golden_zero.py
Every line is a name followed by numbers in hexadecimal floating point, which is exact.
"""

from pathlib import Path

import torch

NUMEL, STEPS = 48, 12
LR, BETAS, EPS, WEIGHT_DECAY = 3e-3, (0.9, 0.95), 1e-8, 0.1


def line(name: str, values: torch.Tensor) -> str:
    return " ".join([name, *(float(v).hex() for v in values.flatten())])


def main() -> None:
    generator = torch.Generator().manual_seed(7)
    param = torch.nn.Parameter(torch.randn(NUMEL, generator=generator))
    # Magnitudes from 1e-6 to 10, so that eps, decay and both moments matter somewhere.
    grads = torch.randn(STEPS, NUMEL, generator=generator) * torch.logspace(-6, 1, NUMEL)
    lines = [line("options", torch.tensor([LR, *BETAS, EPS, WEIGHT_DECAY], dtype=torch.float64))]
    lines += [line("initial", param.data), line("grads", grads)]
    optimizer = torch.optim.AdamW([param], lr=LR, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, foreach=False)
    for grad in grads:
        param.grad = grad.clone()
        optimizer.step()
    state = optimizer.state[param]
    lines += [line("param", param.data), line("exp_avg", state["exp_avg"]), line("exp_avg_sq", state["exp_avg_sq"])]
    Path(__file__).with_name("adamw_torch.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

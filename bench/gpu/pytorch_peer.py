"""The trainings of zerofleet_gpu_bench with PyTorch: `pytorch_peer.py --config gpt2 --micro-batch 16 --leaves 4`,
JSON lines.

PyTorch's fastest recipe for the same arithmetic: torch.compile, scaled_dot_product_attention, parameters and
activations in bf16, fused AdamW on a fp32 master copy. Autograd sums the gradients of a step's micro-batches in bf16,
and they are clipped to norm 1. The networks of the Hugging Face families are written out here, so torch is the only
requirement. A large product and a copy are measured first, in the same way as in the core.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocab: int
    length: int
    llama: bool  # rotary positions, RMSNorm, SwiGLU, no biases; else as GPT-2

    @property
    def head_dim(self):
        return self.hidden // self.heads


# Same as bench/gpu/configs.cc of the native core.
SHAPES = {
    "gpt2": Shape(12, 768, 12, 12, 3072, 50257, 1024, False),
    "gpt2-xl": Shape(48, 1600, 25, 25, 6400, 50257, 1024, False),
    "llama-1b": Shape(16, 2048, 32, 8, 8192, 128256, 1024, True),
    "llama-1b-4096": Shape(16, 2048, 32, 8, 8192, 128256, 4096, True),
    "gpt2-tiny": Shape(2, 64, 2, 2, 128, 161, 32, False),
    "llama-tiny": Shape(2, 64, 2, 1, 128, 160, 32, True),
}


def rotations(shape, device):
    frequencies = 500000.0 ** (-torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim)
    angles = torch.outer(torch.arange(shape.length, device=device), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        kv_size = shape.kv_heads * shape.head_dim
        self.sizes = (shape.hidden, kv_size, kv_size)
        self.qkv = nn.Linear(shape.hidden, sum(self.sizes), bias=not shape.llama)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=not shape.llama)

    def forward(self, x, angles):
        batch, length, _ = x.shape
        query, key, value = (
            part.view(batch, length, -1, self.shape.head_dim).transpose(1, 2)
            for part in self.qkv(x).split(self.sizes, dim=-1)
        )
        if angles is not None:
            query, key = rotate(query, *angles), rotate(key, *angles)
        grouped = self.shape.kv_heads < self.shape.heads
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=grouped)
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gated = shape.llama
        self.inner = nn.Linear(shape.hidden, shape.inner * (2 if self.gated else 1), bias=not shape.llama)
        self.outer = nn.Linear(shape.inner, shape.hidden, bias=not shape.llama)

    def forward(self, x):
        y = self.inner(x)
        if not self.gated:
            return self.outer(F.gelu(y, approximate="tanh"))
        gate, up = y.chunk(2, dim=-1)
        return self.outer(F.silu(gate) * up)


def norm_of(shape):
    return nn.RMSNorm(shape.hidden, eps=1e-5) if shape.llama else nn.LayerNorm(shape.hidden, eps=1e-5)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm1, self.attention = norm_of(shape), Attention(shape)
        self.norm2, self.mlp = norm_of(shape), Mlp(shape)

    def forward(self, x, angles):
        x = x + self.attention(self.norm1(x), angles)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    """Model whose head is tied to the embedding, in both families."""

    def __init__(self, shape, device):
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.positions = None if shape.llama else nn.Embedding(shape.length, shape.hidden)
        self.angles = rotations(shape, device) if shape.llama else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = norm_of(shape)
        for param in self.parameters():
            if param.dim() > 1:
                nn.init.normal_(param, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, self.angles)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Clock:
    """Device seconds of a call, synchronized before and after."""

    def __init__(self, device):
        self.wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def seconds(self, work, rounds):
        found = []
        for _ in range(rounds):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            found.append(time.perf_counter() - start)
        return found


def measure_floors(device, clock):
    n, copied = (8192, 1 << 31) if device == "cuda" else (64, 1 << 20)
    a, b = (torch.rand(n, n, device=device).mul_(2).sub_(1).bfloat16() for _ in range(2))
    source = torch.zeros(copied, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    product, copy = (clock.seconds(work, 12)[5:] for work in (lambda: a @ b, lambda: target.copy_(source)))
    return {
        "part": "peer_floors",
        "operations_per_second": 2 * n**3 / statistics.median(product),
        "copy_bytes_per_second": 2 * copied / statistics.median(copy),
    }


class Training:
    def __init__(self, shape, args):
        self.shape, self.args = shape, args
        with torch.device(args.device):
            self.model = Model(shape, args.device).bfloat16()
        self.loss = torch.compile(self.model) if args.compile else self.model
        self.masters = [nn.Parameter(param.detach().float()) for param in self.model.parameters()]
        self.optimizer = torch.optim.AdamW(self.masters, lr=3e-4, weight_decay=0.1, fused=True)
        self.losses = []

    def step(self):
        total = 0.0
        for _ in range(self.args.leaves):
            size = (self.args.micro_batch, self.shape.length + 1)
            tokens = torch.randint(self.shape.vocab, size, device=self.args.device)
            loss = self.loss(tokens[:, :-1], tokens[:, 1:]) / self.args.leaves
            loss.backward()
            total += loss.detach()
        for param, master in zip(self.model.parameters(), self.masters):
            master.grad = param.grad.float()
            param.grad = None
        nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_copy_(list(self.model.parameters()), self.masters)
        self.losses.append(total)

    def report(self, seconds):
        tokens = self.args.leaves * self.args.micro_batch * self.shape.length
        return {
            "part": "peer",
            "config": self.args.config,
            "name": f"PyTorch {torch.__version__}",
            "compiled": self.args.compile,
            "params": sum(param.numel() for param in self.masters),
            "micro_batch": self.args.micro_batch,
            "leaves": self.args.leaves,
            "tokens_per_second": tokens / statistics.median(seconds),
            "step_seconds": seconds,
            "losses": [float(loss) for loss in self.losses],
            # What tensors take, as the core's figure is what its arrays take; the allocator has reserved more of the
            # device.
            "peak_bytes": torch.cuda.max_memory_allocated() if self.args.device == "cuda" else None,
            "reserved_bytes": torch.cuda.max_memory_reserved() if self.args.device == "cuda" else None,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--config", choices=SHAPES, required=True)
    parser.add_argument("--micro-batch", type=int, required=True)
    parser.add_argument("--leaves", type=int, default=4, help="micro-batches of a step")
    parser.add_argument("--warmup-steps", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    args = parser.parse_args()
    torch.manual_seed(1)
    clock = Clock(args.device)
    print(json.dumps(measure_floors(args.device, clock)), flush=True)
    if args.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    training = Training(SHAPES[args.config], args)
    clock.seconds(training.step, args.warmup_steps)
    print(json.dumps(training.report(clock.seconds(training.step, args.steps))), flush=True)


if __name__ == "__main__":
    main()

"""The training of bench/train.ts with PyTorch: `pytorch_train.py --config gpt2 --threads 2 ...`, one JSON line.

The usual recipe of mixed precision: parameters, activations and gradients in bf16, a fp32 master copy with fused AdamW.
Autograd sums the gradients of a step's micro-batches, and they are clipped to norm 1.0. The networks of the Hugging
Face families are written out here, so only torch takes memory. Tokens are random. With --adapter RANK the model is
frozen, and LoRA adapters over all matrices of the layers are trained. Matrices with the same input share one product
with it.
"""

import argparse
import json
import re
import statistics
import time
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocab: int
    llama: bool  # rotary positions, RMSNorm, SwiGLU, no biases, untied; else as GPT-2
    length: int
    micro_batch: int

    @property
    def head_dim(self):
        return self.hidden // self.heads


SHAPES = {
    "gpt2": Shape(12, 768, 12, 12, 3072, 50257, False, 256, 2),
    "llama-small": Shape(8, 512, 8, 4, 1408, 32000, True, 256, 4),
    "llama-tiny": Shape(4, 256, 8, 8, 704, 256, True, 128, 16),
}


def rotations(shape):
    frequencies = 10000.0 ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
    angles = torch.outer(torch.arange(shape.length), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Adapted(nn.Module):
    """A frozen matrix, or several side by side, each with an adapter of its own."""

    def __init__(self, base, sizes, rank, scale=2.0):
        super().__init__()
        self.base, self.rank, self.scale = base, rank, scale
        self.down = nn.Linear(base.in_features, rank * len(sizes), bias=False)
        self.ups = nn.ModuleList(nn.Linear(rank, size, bias=False) for size in sizes)

    def forward(self, x):
        lows = self.down(x).split(self.rank, dim=-1)
        added = [up(low) for up, low in zip(self.ups, lows)]
        return self.base(x) + (added[0] if len(added) == 1 else torch.cat(added, dim=-1)) * self.scale


def adapt(model, rank):
    """Freezes the model and puts adapters over the matrices of its layers."""
    model.requires_grad_(False)
    for layer in model.layers:
        attention, mlp = layer.attention, layer.mlp
        inner = mlp.inner.out_features
        attention.qkv = Adapted(attention.qkv, attention.sizes if attention.shape.llama
            else (sum(attention.sizes),), rank)
        attention.out = Adapted(attention.out, (attention.out.out_features,), rank)
        mlp.inner = Adapted(mlp.inner, (inner // 2, inner // 2) if mlp.gated else (inner,), rank)
        mlp.outer = Adapted(mlp.outer, (mlp.outer.out_features,), rank)


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
        heads = (part.view(batch, length, -1, self.shape.head_dim).transpose(1, 2)
                 for part in self.qkv(x).split(self.sizes, dim=-1))
        query, key, value = heads
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
    def __init__(self, shape, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.positions = None if shape.llama else nn.Embedding(1024, shape.hidden)
        self.angles = rotations(shape) if shape.llama else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = norm_of(shape)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        if not shape.llama:
            self.head.weight = self.tokens.weight
        for param in self.parameters():
            if param.dim() > 1:
                nn.init.normal_(param, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = checkpoint(layer, x, self.angles, use_reentrant=False) if self.checkpointing else layer(x, self.angles)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def train_step(model, masters, optimizer, leaves, shape, micro_batch):
    for _ in range(leaves):
        tokens = torch.randint(shape.vocab, (micro_batch, shape.length + 1))
        (model(tokens[:, :-1], tokens[:, 1:]) / leaves).backward()
    trained = [param for param in model.parameters() if param.requires_grad]
    for param, master in zip(trained, masters):
        master.grad = param.grad.float()
        param.grad = None
    torch.nn.utils.clip_grad_norm_(masters, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for param, master in zip(trained, masters):
            param.copy_(master)


def memory(field):
    """Bytes of a field of /proc/self/status."""
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(field + r":\s+(\d+) kB", status.read())[1]) * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", choices=SHAPES, default="llama-tiny")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--micro-batch", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--length", type=int, help="tokens of a sequence")
    parser.add_argument("--leaves", type=int, default=4, help="micro-batches of a step")
    parser.add_argument("--warmup-steps", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--activation-checkpointing", action="store_true")
    parser.add_argument("--adapter", type=int, help="rank of adapters over a frozen model")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    start_rss_bytes = memory("VmRSS")
    shape = SHAPES[args.config]
    shape = replace(shape, length=args.length or shape.length, layers=args.layers or shape.layers)
    micro_batch = args.micro_batch or shape.micro_batch
    model = Model(shape, args.activation_checkpointing)
    if args.adapter:
        adapt(model, args.adapter)
    model.bfloat16()
    masters = [nn.Parameter(param.detach().float()) for param in model.parameters() if param.requires_grad]
    optimizer = torch.optim.AdamW(masters, lr=3e-4, weight_decay=0.1, fused=True)
    seconds = []
    for _ in range(args.warmup_steps + args.steps):
        start = time.perf_counter()
        train_step(model, masters, optimizer, args.leaves, shape, micro_batch)
        seconds.append(time.perf_counter() - start)
    tokens = args.leaves * micro_batch * shape.length
    print(json.dumps({
        "name": f"pytorch {torch.__version__}",
        "params": sum(master.numel() for master in masters),
        "tokens_per_s": round(tokens / statistics.median(seconds[args.warmup_steps:]), 1),
        "peak_rss_bytes": memory("VmHWM"),
        "start_rss_bytes": start_rss_bytes,
    }))


if __name__ == "__main__":
    main()

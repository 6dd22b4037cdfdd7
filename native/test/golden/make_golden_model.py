"""Writes the golden files of the model: what PyTorch and transformers compute for small Llama models.

    pip install torch transformers numpy
    python native/test/golden/make_golden_model.py [directory]

Each case is a pair of files. NAME.txt has one entry per line:
    number KEY VALUE
    tensor KEY TYPE BYTE_OFFSET NUM_ELEMENTS      TYPE: f32, bf16, u16 or i32
and NAME.bin holds the tensors, little endian, one after the other.

Cases:
  gqa_untied, mha_tied  one pass: parameters that bf16 can represent, tokens, targets (some ignored), the loss sum and
                        every gradient in float32. For each gradient also the distances of PyTorch's own passes in
                        bf16, in fp16, and in fp16 with a loss scale from its float32 pass.
  curve                 200 steps of AdamW in float32: initial parameters, the tokens of each step, losses and gradient
                        norms.
"""

import copy
import math
import pathlib
import sys

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

IGNORED = -100
LOSS_SCALE = 1024.0


class GoldenFile:
    def __init__(self, directory, name):
        self.stem = pathlib.Path(directory) / name
        self.lines = []
        self.data = bytearray()

    def number(self, key, value):
        self.lines.append(f"number {key} {value!r}")

    def tensor(self, key, array):
        kinds = {"float32": "f32", "uint16": "u16", "int32": "i32"}
        self._append(key, kinds[str(array.dtype)], array.tobytes(), array.size)

    def bf16_tensor(self, key, tensor):
        bits = tensor.detach().to(torch.bfloat16).contiguous().view(torch.int16).numpy()
        self._append(key, "bf16", bits.tobytes(), bits.size)

    def _append(self, key, kind, data, count):
        self.lines.append(f"tensor {key} {kind} {len(self.data)} {count}")
        self.data += data

    def write(self):
        self.stem.with_suffix(".txt").write_text("\n".join(self.lines) + "\n")
        self.stem.with_suffix(".bin").write_bytes(bytes(self.data))


def config(hidden, intermediate, layers, heads, kv_heads, vocab, tied, theta=10000.0):
    return LlamaConfig(
        hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv_heads, vocab_size=vocab, max_position_embeddings=256, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": theta}, tie_word_embeddings=tied,
        attn_implementation="eager")


def write_config(golden, cfg, theta=10000.0):
    for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                "vocab_size", "max_position_embeddings"):
        golden.number(key, getattr(cfg, key))
    golden.number("norm_eps", cfg.rms_norm_eps)
    golden.number("head_dim", cfg.hidden_size // cfg.num_attention_heads)
    golden.number("rope_theta", theta)
    golden.number("tie_word_embeddings", int(cfg.tie_word_embeddings))


def loss_sum(model, tokens, targets):
    logits = model(input_ids=tokens, use_cache=False).logits.float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED,
        reduction="sum")


def gradients(model, tokens, targets, grad_scale):
    model.zero_grad()
    loss = loss_sum(model, tokens, targets)
    (loss * grad_scale).backward()
    return loss.item(), {name: p.grad.float().clone() for name, p in model.named_parameters()}


def half(model):
    """A copy in fp16 as from_pretrained(dtype=torch.float16) makes it: rotary frequencies stay float32."""
    halved = copy.deepcopy(model).half()
    halved.model.rotary_emb.inv_freq = model.model.rotary_emb.inv_freq.clone()
    return halved


def errors(actual, expected, loss_scale=1.0):
    """|actual / loss_scale - expected| over |expected|, per gradient."""
    return {key: ((actual[key] / loss_scale - expected[key]).norm() / expected[key].norm()).item() for key in expected}


def one_pass(directory, name, cfg, theta, batch, length, seed):
    torch.manual_seed(seed)
    model = LlamaForCausalLM(cfg).float()
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.3 if parameter.dim() == 1 else 0.15
            noise = torch.randn_like(parameter) * spread
            parameter.copy_((noise + (1.0 if parameter.dim() == 1 else 0.0)).to(torch.bfloat16).float())
    tokens = torch.randint(cfg.vocab_size, (batch, length))
    targets = torch.randint(cfg.vocab_size, (batch, length))
    targets[torch.rand(batch, length) < 0.1] = IGNORED
    grad_scale = 1.0 / (batch * length)
    loss, grads = gradients(model, tokens, targets, grad_scale)
    loss_fp16, grads_fp16 = gradients(half(model), tokens, targets, grad_scale)
    _, grads_scaled = gradients(half(model), tokens, targets, grad_scale * LOSS_SCALE)
    loss_bf16, grads_bf16 = gradients(model.to(torch.bfloat16), tokens, targets, grad_scale)
    off = {"bf16_error.": errors(grads_bf16, grads), "fp16_error.": errors(grads_fp16, grads),
           "fp16_scaled_error.": errors(grads_scaled, grads, LOSS_SCALE)}

    golden = GoldenFile(directory, name)
    write_config(golden, cfg, theta)
    golden.number("batch", batch)
    golden.number("length", length)
    golden.number("grad_scale", grad_scale)
    golden.number("loss_sum", loss)
    golden.number("loss_sum_bf16", loss_bf16)
    golden.number("loss_sum_fp16", loss_fp16)
    golden.number("loss_scale", LOSS_SCALE)
    golden.tensor("tokens", tokens.numpy().astype(np.int32))
    golden.tensor("targets", targets.numpy().astype(np.int32))
    for key, parameter in model.named_parameters():
        golden.bf16_tensor("param." + key, parameter)
        golden.tensor("grad." + key, grads[key].numpy())
        for kind, of in off.items():
            golden.number(kind + key, of[key])
    golden.write()


def curve_tokens(vocab, steps, batch, length, seed):
    """Sequences that follow a random second-order rule nine times out of ten, so that there is something to learn."""
    rng = np.random.default_rng(seed)
    rule = rng.integers(vocab, size=(vocab, vocab))
    tokens = np.zeros((steps, batch, length + 1), dtype=np.uint16)
    tokens[:, :, :2] = rng.integers(vocab, size=(steps, batch, 2))
    for i in range(2, length + 1):
        follow = rule[tokens[:, :, i - 2], tokens[:, :, i - 1]]
        tokens[:, :, i] = np.where(rng.random((steps, batch)) < 0.9, follow, rng.integers(vocab, size=(steps, batch)))
    return tokens


def curve(directory, seed):
    steps, batch, length, warmup, peak_lr, min_lr = 200, 8, 16, 20, 1e-2, 1e-3
    cfg = config(hidden=32, intermediate=64, layers=2, heads=2, kv_heads=1, vocab=16, tied=False)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(cfg).float()
    tokens = curve_tokens(cfg.vocab_size, steps, batch, length, seed)

    golden = GoldenFile(directory, "curve")
    write_config(golden, cfg)
    for key, value in {"steps": steps, "batch": batch, "length": length, "warmup_steps": warmup, "peak_lr": peak_lr,
                       "min_lr": min_lr, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
                       "gradient_clipping": 1.0}.items():
        golden.number(key, value)
    golden.tensor("tokens", tokens)  # (steps, batch, length + 1): inputs are the first `length`, targets the last
    for key, parameter in model.named_parameters():
        golden.tensor("param." + key, parameter.detach().numpy().copy())

    decay = [p for p in model.parameters() if p.dim() > 1]
    no_decay = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}],
                                  lr=peak_lr, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for step in range(steps):
        progress = (step - warmup) / (steps - warmup)
        lr = peak_lr * (step + 1) / warmup if step < warmup else \
            min_lr + 0.5 * (peak_lr - min_lr) * (1 + math.cos(math.pi * progress))
        for group in optimizer.param_groups:
            group["lr"] = lr
        rows = torch.from_numpy(tokens[step].astype(np.int64))
        optimizer.zero_grad()
        loss = loss_sum(model, rows[:, :-1], rows[:, 1:]) / (batch * length)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    golden.tensor("losses", np.array(losses, dtype=np.float32))
    golden.tensor("grad_norms", np.array(norms, dtype=np.float32))
    golden.write()
    print(f"curve: loss {losses[0]:.4f} to {losses[-1]:.4f}")


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    untied = config(hidden=48, intermediate=88, layers=2, heads=6, kv_heads=2, vocab=61, tied=False, theta=500.0)
    one_pass(directory, "gqa_untied", untied, 500.0, batch=2, length=70, seed=1)
    tied = config(hidden=32, intermediate=56, layers=1, heads=2, kv_heads=2, vocab=40, tied=True)
    one_pass(directory, "mha_tied", tied, 10000.0, batch=3, length=17, seed=2)
    curve(directory, seed=3)


if __name__ == "__main__":
    main()

"""Writes rope_scaling.txt and load_balancing.txt: small numbers that transformers computes, for the tests of kernels.

Run with any Python that has PyTorch and transformers:  python make_golden_kernels.py

Each line of a file is a word and its values, in decimals that read back to the same fp32.

  rope_scaling.txt
    case NAME         begins a case
    base              head_dim rope_theta
    scaling           type factor low_freq_factor high_freq_factor original_max_position_embeddings beta_fast beta_slow
                      attention_factor truncate mscale mscale_all_dim, as in kernels/attention/rope_frequencies.h
    frequencies       (head_dim / 2) of ROPE_INIT_FUNCTIONS
    attention_factor  what cos and sin are multiplied by
    positions         up to the end of the longer context
    cosine, sine      (positions · head_dim / 2) of LlamaRotaryEmbedding
  load_balancing.txt
    case NAME         begins a case
    sizes             layers tokens experts experts_per_token
    logits            (layers · tokens · experts) of the routers
    lengths           of the sequences that the tokens are, where the attention mask leaves out what follows
    experts           (layers · tokens · experts_per_token) that MixtralTopKRouter's rule chooses, best first
    weights           of them
    loss              of load_balancing_loss_func
    gradient          of loss with respect to the logits
"""

from pathlib import Path

import torch
import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

HERE = Path(__file__).parent
DEFAULTS = {
    "factor": 1.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "attention_factor": 0.0,
    "truncate": True,
    "mscale": 0.0,
    "mscale_all_dim": 0.0,
}
LONGROPE = {"factor": 4.0, "short_factor": [1.0, 1.02, 1.05, 1.3, 1.7, 2.1], "long_factor": [1.1, 1.9, 4.5, 12.0, 31.7, 64.2]}
ROPE_CASES = {
    "linear": (64, 10000.0, "linear", {"factor": 4.0}),
    "linear_odd_factor": (10, 500000.0, "linear", {"factor": 2.7}),
    "llama3": (
        128,
        500000.0,
        "llama3",
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
    "llama3_small": (
        16,
        10000.0,
        "llama3",
        {
            "factor": 32.0,
            "low_freq_factor": 1.5,
            "high_freq_factor": 6.0,
            "original_max_position_embeddings": 128,
        },
    ),
    "yarn": (128, 1000000.0, "yarn", {"factor": 4.0, "original_max_position_embeddings": 32768}),
    "yarn_not_truncated": (
        64,
        10000.0,
        "yarn",
        {"factor": 16.0, "original_max_position_embeddings": 4096, "truncate": False},
    ),
    "yarn_attention_factor": (
        32,
        10000.0,
        "yarn",
        {
            "factor": 2.5,
            "original_max_position_embeddings": 100,
            "beta_fast": 20.0,
            "beta_slow": 2.0,
            "attention_factor": 1.25,
        },
    ),
    # as DeepSeek-V3 has it, and two different scales
    "yarn_mscale": (
        64,
        10000.0,
        "yarn",
        {"factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0},
    ),
    "yarn_two_mscales": (
        16,
        10000.0,
        "yarn",
        {"factor": 4.0, "original_max_position_embeddings": 64, "mscale": 0.707, "mscale_all_dim": 0.3, "truncate": False},
    ),
    "longrope_short": (12, 10000.0, "longrope", {**LONGROPE, "original_max_position_embeddings": 64, "length": 64}),
    "longrope_long": (12, 10000.0, "longrope", {**LONGROPE, "original_max_position_embeddings": 64, "length": 65, "attention_factor": 1.19}),
    "longrope_by_lengths": (12, 500.0, "longrope", {**LONGROPE, "original_max_position_embeddings": 4096, "length": 4097, "factor": 32.0}),
    "yarn_short": (16, 10000.0, "yarn", {"factor": 8.0, "original_max_position_embeddings": 4}),
}

ROUTER_CASES = {  # layers, tokens, experts, experts per token, lengths of the sequences where some have padding
    "top2_of_4": (2, 6, 4, 2),
    "top1_of_3": (1, 5, 3, 1),
    "all_of_2": (3, 2, 2, 2),
    "top3_of_8": (2, 4, 8, 3),
    "padded_top2_of_4": (2, 18, 4, 2, [6, 1, 4]),
    "padded_top1_of_5": (3, 8, 5, 1, [3, 0]),
}


def words(values) -> str:
    return " ".join(f"{value:.9g}" for value in values)


def flat(parts) -> list:
    return [value for part in parts for value in part.detach().flatten().tolist()]


def header(out) -> None:
    torch_version = torch.__version__.split("+")[0]
    versions = f"transformers {transformers.__version__}, torch {torch_version}"
    out.write(f"# made by make_golden_kernels.py with {versions}\n")


def write_rope(out) -> None:
    header(out)
    for name, (head_dim, theta, kind, given) in ROPE_CASES.items():
        config = LlamaConfig(
            hidden_size=2 * head_dim,
            num_attention_heads=2,
            head_dim=head_dim,
            max_position_embeddings=65536,
            rope_parameters={"rope_type": kind, "rope_theta": theta, **given},
        )
        length = given.get("length")
        frequencies, attention_factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=length)
        values = {**DEFAULTS, **given}
        out.write(f"case {name}\nbase {head_dim} {theta:.9g}\n")
        out.write(f"scaling {kind} {words(float(values[key]) for key in DEFAULTS)}\n")
        for key in ("short_factor", "long_factor"):
            if key in given:
                out.write(f"{key} {words(given[key])}\n")
        out.write(f"frequencies {words(frequencies.tolist())}\nattention_factor {attention_factor:.9g}\n")
        original = given.get("original_max_position_embeddings", 1024)
        positions = [0, 1, length // 2, length - 1] if length else [0, 1, original, int(original * given["factor"]) - 1]
        both = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.tensor([positions]))
        cosine, sine = (flat(each[0, :, : head_dim // 2]) for each in both)
        out.write(f"positions {words(positions)}\ncosine {words(cosine)}\nsine {words(sine)}\n")


def write_load_balancing(out) -> None:
    header(out)
    for name, (layers, tokens, experts, chosen, *padded) in ROUTER_CASES.items():
        torch.manual_seed(layers * 100 + experts)
        logits = tuple((1.5 * torch.randn(tokens, experts)).requires_grad_() for _ in range(layers))
        probs = [torch.softmax(each, -1, dtype=torch.float) for each in logits]
        top = [torch.topk(each, chosen, dim=-1) for each in probs]
        mask = None
        if padded:
            lengths = torch.tensor(padded[0])
            mask = (torch.arange(tokens // len(lengths)) < lengths[:, None]).float()
        loss = load_balancing_loss_func(logits, experts, chosen, mask)
        loss.backward()
        out.write(f"case {name}\nsizes {layers} {tokens} {experts} {chosen}\nlogits {words(flat(logits))}\n")
        if padded:
            out.write(f"lengths {words(padded[0])}\n")
        out.write(f"experts {words(flat(each.indices for each in top))}\n")
        weights = [each.values / each.values.sum(-1, keepdim=True) for each in top]
        out.write(f"weights {words(flat(weights))}\nloss {loss.item():.9g}\n")
        out.write(f"gradient {words(flat(each.grad for each in logits))}\n")


if __name__ == "__main__":
    with open(HERE / "rope_scaling.txt", "w") as file:
        write_rope(file)
    with open(HERE / "load_balancing.txt", "w") as file:
        write_load_balancing(file)

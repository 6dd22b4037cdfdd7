"""Writes the golden files of long sequences: what transformers computes in float64 beyond 8,192 positions.

    npm run build
    pip install torch transformers numpy
    python native/test/golden/make_golden_long.py [directory]

Each case is a pair of files as make_golden_families.py describes them: a Llama of one layer, a sequence of 16,384
tokens and the one after it, the sum of the losses, every gradient, and the logits after some tokens.

Cases:
  long          plain rotary positions
  long_yarn     YaRN from 4,096 positions
  long_window   Mistral with a window of 5,000 keys
  long_longrope Phi-3, whose long factors hold for more than 4,096 positions
"""

import pathlib
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Phi3Config

from make_golden_families import write_architecture
from make_golden_model import GoldenFile

LENGTH = 16_384
ORIGINAL = 4_096
ROWS = (8_191, 8_192, 12_345, LENGTH - 1)
SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 72, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": LENGTH, "rms_norm_eps": 1e-5,
    "attn_implementation": "sdpa", "pad_token_id": None}
THETA = 10_000.0
PAIRS = 8  # of rotated elements

CASES = {
    "long": LlamaConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": THETA}),
    "long_yarn": LlamaConfig(**SIZES, rope_parameters={"rope_type": "yarn", "rope_theta": THETA, "factor": 4.0,
        "original_max_position_embeddings": ORIGINAL}),
    "long_window": MistralConfig(**SIZES, sliding_window=5_000,
        rope_parameters={"rope_type": "default", "rope_theta": THETA}),
    "long_longrope": Phi3Config(**SIZES, original_max_position_embeddings=ORIGINAL, rope_parameters={
        "rope_type": "longrope", "rope_theta": THETA, "short_factor": [1.0] * PAIRS,
        "long_factor": [1.0 + pair / 2 for pair in range(PAIRS)], "original_max_position_embeddings": ORIGINAL}),
}


def write_case(directory, name, config):
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            centre = 1.0 if parameter.dim() == 1 else 0.0
            parameter.copy_((centre + torch.randn_like(parameter) * 0.3).to(torch.bfloat16).float())
    # The loss depends on angles to about float32, in which transformers has them.
    model = model.double()
    tokens = np.random.default_rng(7).integers(config.vocab_size, size=LENGTH + 1).astype(np.uint16)
    ids = torch.from_numpy(tokens.astype(np.int64))
    logits = model(input_ids=ids[None, :-1], use_cache=False).logits[0]
    loss = torch.nn.functional.cross_entropy(logits, ids[1:], reduction="sum")
    (loss / LENGTH).backward()

    golden = GoldenFile(directory, name)
    write_architecture(golden, config)
    golden.number("batch", 1)
    golden.number("length", LENGTH)
    golden.number("grad_scale", 1 / LENGTH)
    golden.number("long_loss_sum", loss.item())
    golden.tensor("tokens", tokens)
    golden.tensor("rows", np.array(ROWS, dtype=np.int32))
    golden.tensor("logits", logits[list(ROWS)].detach().float().numpy().copy())
    for key, parameter in model.named_parameters():
        golden.bf16_tensor("param." + key, parameter.float())
        golden.tensor("grad." + key, parameter.grad.float().numpy().copy())
    golden.write()


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for name, config in CASES.items():
        write_case(directory, name, config)


if __name__ == "__main__":
    main()

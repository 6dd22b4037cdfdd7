"""Makes the model folder beside this file: a small Llama with random bf16 weights, in shards, as transformers writes it.

    python make.py            (transformers 5.18, torch 2.13)
"""

import json
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

FOLDER = Path(__file__).parent / "model"

config = LlamaConfig(
    hidden_size=48,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    vocab_size=256,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    rope_parameters={"rope_type": "default", "rope_theta": 50000.0},
    bos_token_id=1,
    eos_token_id=2,
)
torch.manual_seed(0)
model = LlamaForCausalLM(config).to(torch.bfloat16)
for name, parameter in model.named_parameters():
    # Norms are ones when they are new; other values show that they were read.
    if name.endswith("norm.weight"):
        torch.nn.init.normal_(parameter, mean=1.0, std=0.1)
model.save_pretrained(FOLDER, max_shard_size="60KB")

# A tokenizer of single bytes, only to be carried along.
tokens = {chr(0x100 + byte): byte for byte in range(256)}
tokenizer = {"version": "1.0", "model": {"type": "BPE", "vocab": tokens, "merges": []}}
(FOLDER / "tokenizer.json").write_text(json.dumps(tokenizer))
(FOLDER / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 128}))

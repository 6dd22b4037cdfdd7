"""Writes models.json: for a small model of each family, the config.json that transformers writes and the names and
shapes of the tensors in its model.safetensors. Needs torch, transformers and safetensors; run it in this folder.

    python make.py
"""

import json
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors import safe_open
from transformers import AutoModelForCausalLM

DECODER = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16, "rope_theta": 500000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}

MODELS = {
    "gpt2": transformers.GPT2Config(vocab_size=96, n_positions=64, n_embd=32, n_layer=2, n_head=4),
    "gpt2-untied-gelu": transformers.GPT2Config(
        vocab_size=96, n_positions=64, n_embd=32, n_layer=1, n_head=4, n_inner=80, activation_function="gelu",
        resid_pdrop=0.0, tie_word_embeddings=False),
    "llama": transformers.LlamaConfig(**DECODER),
    "llama-biases-llama3-tied": transformers.LlamaConfig(
        **DECODER, attention_bias=True, mlp_bias=True, head_dim=16, tie_word_embeddings=True, rope_parameters=LLAMA3),
    "mistral": transformers.MistralConfig(**DECODER, sliding_window=16),
    "qwen2": transformers.Qwen2Config(
        **DECODER, use_sliding_window=True, sliding_window=16, max_window_layers=1, rope_parameters=YARN),
    "qwen3": transformers.Qwen3Config(**DECODER, head_dim=16, tie_word_embeddings=True),
    "qwen3-biases": transformers.Qwen3Config(**DECODER, head_dim=16, attention_bias=True),
    "smollm3": transformers.SmolLM3Config(
        **{**DECODER, "num_hidden_layers": 4}, use_sliding_window=True, sliding_window=16, pad_token_id=None),
    "granite": transformers.GraniteConfig(
        **DECODER, attention_multiplier=0.125, embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0),
    "olmo2": transformers.Olmo2Config(**DECODER, pad_token_id=None),
    "olmo3": transformers.Olmo3Config(
        **{**DECODER, "num_hidden_layers": 4}, sliding_window=16, pad_token_id=None,
        rope_parameters={"full_attention": {**YARN, "rope_theta": 500000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0}}),
    "phi3": transformers.Phi3Config(**DECODER, sliding_window=16, pad_token_id=None),
    "phi3-longrope-tied": transformers.Phi3Config(
        **DECODER, original_max_position_embeddings=16, tie_word_embeddings=True, pad_token_id=None,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
                         "short_factor": [1.0, 1.1, 1.2], "long_factor": [1.0, 2.5, 4.0],
                         "original_max_position_embeddings": 16}),
    "glm4": transformers.Glm4Config(**DECODER, head_dim=16, pad_token_id=None),
    "glm4-plain-yarn-tied": transformers.Glm4Config(
        **DECODER, head_dim=16, attention_bias=False, tie_word_embeddings=True, pad_token_id=None,
        rope_parameters={**YARN, "partial_rotary_factor": 0.75}),
    "qwen3-moe": transformers.Qwen3MoeConfig(
        **DECODER, head_dim=16, moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True),
    "gemma3": transformers.Gemma3TextConfig(
        **{**DECODER, "num_hidden_layers": 6}, head_dim=16, sliding_window=16, query_pre_attn_scalar=16,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}),
    "gemma2": transformers.Gemma2Config(**DECODER, head_dim=16, sliding_window=16, query_pre_attn_scalar=16),
    "mixtral": transformers.MixtralConfig(**DECODER, num_local_experts=4, output_router_logits=True),
}


def saved(config):
    """The config.json and the tensors of a saved model, in the order in which its modules have them."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(Path(folder) / "model.safetensors", "pt") as file:
            tensors = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}
        return json.loads((Path(folder) / "config.json").read_text()), tensors


def main():
    models = []
    for name, config in MODELS.items():
        document, tensors = saved(config)
        models.append(f'{json.dumps(name)}: {{"config": {lines(document)},\n"tensors": {lines(tensors)}}}')
    Path("models.json").write_text("{" + ",\n".join(models) + "}\n")


def lines(table):
    """JSON with one entry a line."""
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items()) + "\n}"


main()

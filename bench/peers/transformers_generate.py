"""The answers of bench/serve.ts with transformers: `transformers_generate.py --config gpt2 --threads 2 ...`, one JSON line.

One batch of random prompts of one length, weights in bf16, the most likely token each time, with the key-value cache that `generate` has by default.
The time of the first token is that of a call that draws one; tokens per second are of the others. `products_ms`: all products with the model's
matrices for one more token of each request, and nothing else, by the library, which chooses its tiles by the number of rows.
"""

import argparse
import json
import statistics
import time

import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig
from transformers.pytorch_utils import Conv1D

CONFIGS = {
    "gpt2": lambda: GPT2Config(vocab_size=50257),
    "llama-small": lambda: LlamaConfig(
        vocab_size=32000, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=2048),
    "llama-tiny": lambda: LlamaConfig(
        vocab_size=256, hidden_size=256, intermediate_size=704, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=8, max_position_embeddings=2048),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", choices=CONFIGS, required=True)
    for name in ("threads", "requests", "prompt", "tokens", "rounds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(CONFIGS[args.config](), dtype=torch.bfloat16).eval()
    vocab = model.config.vocab_size

    def seconds(tokens):
        prompt = torch.randint(0, vocab, (args.requests, args.prompt))
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, min_new_tokens=tokens,
                           max_new_tokens=tokens, pad_token_id=0, eos_token_id=None)
        return time.perf_counter() - start

    linears = [module for module in model.modules() if isinstance(module, (torch.nn.Linear, Conv1D))]

    def products():
        rows = [torch.randn(args.requests, module.weight.shape[0 if isinstance(module, Conv1D) else 1]).bfloat16() for module in linears]
        start = time.perf_counter()
        with torch.inference_mode():
            for module, x in zip(linears, rows):
                module(x)
        return time.perf_counter() - start

    seconds(2)
    products()
    first = statistics.median(seconds(1) for _ in range(args.rounds))
    whole = statistics.median(seconds(args.tokens) for _ in range(args.rounds))
    print(json.dumps({
        "tokens_per_s": round(args.requests * (args.tokens - 1) / (whole - first), 1),
        "first_token_ms": round(first * 1000, 1),
        "products_ms": round(statistics.median(products() for _ in range(20 * args.rounds)) * 1000, 3),
    }))


main()

"""The fine-tuning of bench/finetune.ts with TRL and PEFT: `trl_finetune.py --config llama-small --objective sft ...`;
its last line is JSON.

A model with random weights in fp32, LoRA over all linear layers, completions alone are learned, a batch is padded to
its longest row. Words of the texts are numbers, which a tokenizer of whole words maps to tokens. Activations are kept,
which is faster than TRL's default.
"""

import argparse
import json
import os
import tempfile
import time

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

WARMUP_STEPS = 1
SHAPES = {
    "llama-small": dict(hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4, vocab=32000),
    "llama-tiny": dict(hidden_size=256, intermediate_size=704, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8, vocab=256),
}


class Clock(TrainerCallback):
    """The times at which steps end."""

    def __init__(self):
        self.times = []

    def on_step_end(self, *args, **kwargs):
        self.times.append(time.perf_counter())


def tokenizer_of(vocab):
    words = {str(number): number for number in range(vocab)} | {"<end>": vocab, "<pad>": vocab + 1}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>")


def text(tokens):
    return "".join(f" {token}" for token in tokens)


def model_of(config, threads):
    """Returns a model with random weights that computes with so many threads, and the number of its words."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(threads)
    shape = dict(SHAPES[config])
    vocab = shape.pop("vocab")
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocab + 2, max_position_embeddings=2048, **shape)), vocab


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", choices=SHAPES, required=True)
    parser.add_argument("--objective", choices=("sft", "dpo"), required=True)
    parser.add_argument("--file", required=True)
    for name in ("threads", "steps", "limit", "rows", "micro-batch", "rank"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    model, vocab = model_of(args.config, args.threads)
    with open(args.file, encoding="utf8") as file:
        units = json.load(file)
    rows = [{"prompt": text(unit[0]["prompt"]), "completion": text(unit[0]["completion"])} for unit in units]
    if args.objective == "dpo":
        rows = [{"prompt": text(chosen["prompt"]), "chosen": text(chosen["completion"]), "rejected": text(rejected["completion"])}
                for chosen, rejected in units]
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = dict(
            output_dir=folder, per_device_train_batch_size=args.micro_batch,
                gradient_accumulation_steps=args.rows // args.micro_batch,
            max_steps=args.steps + WARMUP_STEPS, max_length=args.limit, gradient_checkpointing=False, use_cpu=True,
                bf16=False,
            report_to=[], save_strategy="no", disable_tqdm=True, learning_rate=3e-4)
        kind, config = (SFTTrainer, SFTConfig) if args.objective == "sft" else (DPOTrainer, DPOConfig)
        trainer = kind(
            model=model, args=config(**settings), train_dataset=Dataset.from_list(rows),
                processing_class=tokenizer_of(vocab),
            peft_config=LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear",
                task_type="CAUSAL_LM"),
            callbacks=[clock])
        trainer.train()
    seconds = clock.times[-1] - clock.times[WARMUP_STEPS - 1]
    # All rows are read once, in the warm-up and the measured steps together.
    tokens = sum(len(each["prompt"]) + len(each["completion"]) - 1 for unit in units for each in unit) * args.rows / len(units)
    print(json.dumps({"useful_tokens_per_s": tokens * args.steps / seconds}))


if __name__ == "__main__":
    main()

"""Makes what the recipes read from the Hugging Face hub, as folders below the working directory: `prepare.py FOLDER`.

The tokenizer is trained on the texts here, the model has random weights, and the datasets have the columns of those
that the recipes name.
"""

import json
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MODEL = "Qwen/Qwen3.5-9B-Base"
SUFFIX = " Provide a numerical answer without units, written inside \\boxed{}."
DIGITS = "0123456789"


def conversation(question, answer):
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def question(number):
    return f"Name a digit for the list {number}."


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_datasets(root):
    draw = random.Random(0)
    taught = [conversation(question(i) + SUFFIX, f"\\boxed{{{draw.choice(DIGITS)}}}") for i in range(512)]
    write_lines(root / "HuggingFaceH4/no_robots/train.jsonl", taught)
    write_lines(root / "HuggingFaceH4/no_robots/test.jsonl", taught[:32])

    math = root / "openai/gsm8k"
    problems = [{"question": question(i), "answer": "It is so.\n#### 7"} for i in range(256)]
    files = []
    for split, rows in {"train": problems[8:], "test": problems[:8]}.items():
        write_lines(math / f"{split}.jsonl", rows)
        files.append(f"  - split: {split}\n    path: {split}.jsonl\n")
    (math / "README.md").write_text("---\nconfigs:\n- config_name: main\n  data_files:\n" + "".join(files) + "---\n")

    pairs = []
    # The recipe takes 1024 of the test.
    for i in range(96 + 1024):
        asked = f"\n\nHuman: {question(i)}\n\nAssistant: "
        pairs.append({"chosen": asked + "\\boxed{3}", "rejected": asked + f"\\boxed{{{draw.choice('12456')}}}"})
    for split, rows in {"train": pairs[:96], "test": pairs[96:]}.items():
        write_lines(root / f"Anthropic/hh-rlhf/{split}.jsonl", rows)


def write_model(folder):
    text = [question(i) + SUFFIX + "\n\nUser: Assistant: \\boxed{" + DIGITS + "}" for i in range(99)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=448,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer.get_vocab()),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=0,
    )
    model = LlamaForCausalLM(config)
    # Adapters change the layers alone, so logits need a range that they can use.
    for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
        torch.nn.init.normal_(layer.weight, std=0.5)
    model.to(torch.bfloat16).save_pretrained(folder)


root = Path(sys.argv[1])
write_datasets(root)
write_model(root / MODEL)

"""Writes completions.json: prompts with completions, with the ids and the learned tokens of TRL's SFTTrainer.

    python worker/tasks/data/golden/make_golden_completions.py

Needs trl 1.13 with datasets and accelerate, transformers and tokenizers. The tokenizers, and the template with
generation tags, are those of chats.json.
"""
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

from datasets import Dataset
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast
from trl import SFTTrainer
from trl.trainer import sft_trainer

HERE = Path(__file__).parent
CHATS = json.loads((HERE / "chats.json").read_text())

TEMPLATES = {
    "tagged": CHATS["templates"]["chatml"],
    "chatml": """{% for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}""",
    "spaces": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %} {{ message['content'] | trim }} {{ eos_token }}
{%- else %}[INST] {{ message['content'] | trim }} [/INST]{% endif %}{% endfor %}""",
}


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


TEXTS = [
    {"prompt": "The lazy answer", "completion": " jumps over the lazy dog."},
    {"prompt": "def f(x):", "completion": "\n    return x + 1\n\n\nprint(f(41))"},
    {"prompt": "Die Grüße kamen über die Straße;" + " 世界" * 9, "completion": " und 🌍 auch."},
    {"prompt": "", "completion": "Hello, how are you?"},
]
ANSWERS = [
    {"prompt": [user("What is the answer?")], "completion": [assistant("The answer is 42.")]},
    {
        "prompt": [{"role": "system", "content": "You are a fox."}, user("Hello"), assistant("I am fine."), user("世界 🌍")],
        "completion": [assistant("Grüße aus der Straße 🌍!")],
    },
]
TURNS = [
    {
        "prompt": [user("Hello"), assistant("Hello, how are you?"), user("I am fine.")],
        "completion": [assistant("The answer is 42."), user("What?"), assistant("  def f(x):\n    return x + 1")],
    },
]
# Rows, their templates, and whether only the assistant's turns of a completion are learned.
CASES = {
    "texts": (TEXTS, ["chatml"], False),
    "answers": (ANSWERS, ["chatml", "spaces"], False),
    "turns": (ANSWERS + TURNS, ["tagged"], True),
}


def refuse(warning):
    """The golden file has only prompts whose tokens are the first of the whole text."""
    raise SystemExit(warning)


def prepared(rows, tokenizer, assistant_only):
    args = SimpleNamespace(
        dataset_num_proc=None,
        dataset_text_field="text",
        assistant_only_loss=assistant_only,
        max_length=None,
        truncation_mode="keep_start",
        use_liger_kernel=False,
        shuffle_dataset=False,
    )
    itself = SimpleNamespace(_tokenizer=tokenizer, chat_template=None, completion_only_loss=True)
    made = SFTTrainer._prepare_dataset(itself, Dataset.from_list(rows), tokenizer, args, False, None, "train")
    return [{"ids": row["input_ids"], "learned": [int(label != -100) for label in row["labels"]]} for row in made]


def main():
    sft_trainer.logger.warning = refuse
    results = []
    for source in CHATS["tokenizers"]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            Tokenizer.from_str(json.dumps(source["tokenizer"])).save(str(path))
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), **source["config"])
        for case, (rows, templates, assistant_only) in CASES.items():
            for template in templates:
                tokenizer.chat_template = TEMPLATES[template]
                documents = prepared(rows, tokenizer, assistant_only)
                results.append({"tokenizer": source["name"], "template": template, "case": case, "documents": documents})
    golden = {"templates": TEMPLATES, "lines": {case: rows for case, (rows, _, _) in CASES.items()}, "results": results}
    target = HERE / "completions.json"
    target.write_text(json.dumps(golden, ensure_ascii=True) + "\n")
    print(target, target.stat().st_size, "bytes")


main()

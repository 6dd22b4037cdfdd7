"""Writes preferences.json: preference data with the ids and completion masks of TRL's DPOTrainer and KTOTrainer.

    python worker/tasks/data/golden/make_golden_preferences.py

Needs trl 1.13 with datasets and accelerate, transformers and tokenizers. The tokenizers are those of chats.json.
"""
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

from datasets import IterableDataset
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast
from trl import DPOTrainer, KTOTrainer
from trl.trainer import dpo_trainer, kto_trainer
from trl.trainer.dpo_trainer import DataCollatorForPreference
from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

HERE = Path(__file__).parent

TEMPLATES = {
    "chatml": """{% for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}""",
    "llama": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %} {{ message['content'] | trim }} {{ eos_token }}
{%- else %}[INST] {{ message['content'] | trim }} [/INST]{% endif %}{% endfor %}""",
}


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


MESSAGES = [
    {"prompt": [user("What is the answer?")], "chosen": [assistant("The answer is 42.")], "rejected": [assistant("I am fine.")]},
    {
        "prompt": [{"role": "system", "content": "You are a fox."}, user("Hello"), assistant("Hello, how are you?"), user("世界 🌍")],
        "chosen": [assistant("Grüße aus der Straße 🌍!")],
        "rejected": [assistant("x"), user("y"), assistant("  def f(x):\n    return x + 1")],
    },
    {
        "prompt": [user("The quick brown fox jumps over the lazy dog. " * 3)],
        "chosen": [assistant("12345 times, isn't it? " * 3)],
        "rejected": [assistant("")],
    },
]
IMPLICIT = [
    {"chosen": each["prompt"] + each["chosen"], "rejected": each["prompt"] + each["rejected"]} for each in MESSAGES
]
TEXTS = [
    {"prompt": "The lazy answer", "chosen": " jumps over the lazy dog.", "rejected": " fox"},
    {"prompt": "def f(x):", "chosen": "\n    return x + 1\n", "rejected": "\n    return x\n\n\nprint(f(41))"},
    {"prompt": "Die Grüße kamen über die Straße;" + " 世界" * 9, "chosen": " und 🌍 auch.", "rejected": ""},
]
LABELLED = [{"prompt": each["prompt"], "completion": each["chosen"], "label": i % 2 == 0} for i, each in enumerate(TEXTS)]

CASES = {
    "messages": (DPOTrainer, MESSAGES),
    "messages without a prompt": (DPOTrainer, IMPLICIT),
    "texts": (DPOTrainer, TEXTS),
    "labelled texts": (KTOTrainer, LABELLED),
    "unpaired messages": (KTOTrainer, MESSAGES),
}
# Inputs and the last target; the second one cuts completions and leaves units out.
MAX_LENGTHS = [1001, 40]


def prepared(trainer, lines, tokenizer, max_length):
    """Returns the units that the trainer keeps, each a list of (ids, mask, label)."""
    dataset = IterableDataset.from_generator(lambda: iter(lines))
    args = SimpleNamespace(dataset_num_proc=None, max_length=max_length, truncation_mode="keep_start")
    itself = SimpleNamespace(_tokenizer=tokenizer, calculate_KL=False)
    made = trainer._prepare_dataset(itself, dataset, tokenizer, args, "train")
    return [list(sequences(trainer, row, max_length)) for row in made]


def sequences(trainer, row, max_length):
    if trainer is DPOTrainer:
        batch = DataCollatorForPreference(pad_token_id=0, max_length=max_length)([row])
    else:
        batch = DataCollatorForUnpairedPreference(pad_token_id=0, max_length=max_length)([row])
    for ids, mask, present in zip(batch["input_ids"], batch["completion_mask"], batch["attention_mask"]):
        count = int(present.sum())
        yield {"ids": ids[:count].tolist(), "mask": mask[:count].tolist(), **({"label": row["label"]} if "label" in row else {})}


def refuse(warning):
    """The golden file has only prompts whose tokens are the first of the whole text: otherwise TRL's ids are not
    those of a text."""
    raise SystemExit(warning)


def main():
    dpo_trainer.logger.warning = kto_trainer.logger.warning = refuse
    results = []
    for source in json.loads((HERE / "chats.json").read_text())["tokenizers"]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            Tokenizer.from_str(json.dumps(source["tokenizer"])).save(str(path))
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), **source["config"])
        for template, text in TEMPLATES.items():
            tokenizer.chat_template = text
            for case, (trainer, lines) in CASES.items():
                for max_length in MAX_LENGTHS:
                    units = prepared(trainer, lines, tokenizer, max_length)
                    results.append(
                        {"tokenizer": source["name"], "template": template, "case": case, "max_length": max_length, "units": units}
                    )
    golden = {"templates": TEMPLATES, "lines": {case: lines for case, (_, lines) in CASES.items()}, "results": results}
    target = HERE / "preferences.json"
    target.write_text(json.dumps(golden, ensure_ascii=True) + "\n")
    print(target, target.stat().st_size, "bytes")


main()

"""Loads a model folder with its tokenizer in transformers. Reports the number of assistant tokens in chats, the mean
loss of these and of all tokens, and the greedy continuation of a prompt.

    python check_chats.py FOLDER CHATS.jsonl PROMPT
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, chats, prompt = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)

learned, every = [], []
for line in Path(chats).read_text().splitlines():
    messages = json.loads(line)["messages"]
    chat = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
    tokens = torch.tensor(chat["input_ids"])
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    losses = torch.nn.functional.cross_entropy(logits[:-1], tokens[1:], reduction="none")
    learned.append(losses[torch.tensor(chat["assistant_masks"][1:]) == 1])
    every.append(losses)

start = tokenizer(prompt, return_tensors="pt")
with torch.no_grad():
    after = model.generate(**start, do_sample=False, max_new_tokens=40)[0, start["input_ids"].shape[1] :]
learned, every = torch.cat(learned), torch.cat(every)
print(
    json.dumps(
        {
            "targets": len(learned),
            "loss": learned.mean().item(),
            "loss_of_all": every.mean().item(),
            "completion": tokenizer.decode(after, skip_special_tokens=True),
        }
    )
)

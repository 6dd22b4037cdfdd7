"""Loads a model folder with transformers; reports missing, unexpected and misshapen tensors, and the loss of a text.

    python check.py FOLDER
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM

model, info = AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True, local_files_only=True)
tokens = torch.arange(32).unsqueeze(0)
with torch.no_grad():
    loss = model(input_ids=tokens, labels=tokens).loss
problems = {kind: sorted(map(str, info[kind])) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")}
print(json.dumps({**problems, "dtype": str(model.dtype), "loss": loss.item()}))

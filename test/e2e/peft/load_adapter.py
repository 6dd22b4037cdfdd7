"""Loads a PEFT folder over its base, and the merged model; prints how far their logits are apart, as JSON.

    python load_adapter.py BASE PEFT MERGED
"""

import json
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

base, adapter, merged = sys.argv[1:]
tokens = torch.arange(60).reshape(2, 30)
with torch.no_grad():
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    expected = PeftModel.from_pretrained(model, adapter).eval()(input_ids=tokens).logits
    got = AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32).eval()(input_ids=tokens).logits
print(json.dumps({"difference": (got - expected).abs().max().item(), "size": expected.abs().max().item()}))

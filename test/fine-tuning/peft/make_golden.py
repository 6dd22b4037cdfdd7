"""Writes adapters over the model of test/e2e/hf-llama, each as a folder of PEFT beside this file, and the losses of a
text under them, in float64, as losses.json. PEFT takes `norm` for every module whose name ends so. The factors are
random: those of a new adapter would leave the model unchanged.

    python make_golden.py            (peft 0.21, transformers 5.18, torch 2.13)
"""

import json
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

HERE = Path(__file__).parent
BASE = HERE.parent.parent / "e2e" / "hf-llama" / "model"
TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the epoch of"
LENGTH = 32

ADAPTERS = {
    "lora": LoraConfig(r=4, lora_alpha=12, target_modules=["q_proj", "down_proj"], modules_to_save=["norm"]),
    "rslora": LoraConfig(r=3, lora_alpha=5, target_modules="all-linear", use_rslora=True, lora_dropout=0.1),
    "dora": LoraConfig(r=2, lora_alpha=4, target_modules=r".*\.mlp\..*_proj", use_dora=True),
}

tokens = torch.tensor(list(TEXT.encode()))
count = (len(tokens) - 1) // LENGTH
inputs = tokens[: count * LENGTH].reshape(count, LENGTH)
targets = tokens[1 : count * LENGTH + 1].reshape(count, LENGTH)


def loss_of(model):
    with torch.no_grad():
        logits = model.double()(input_ids=inputs).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()


def base():
    return AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32, local_files_only=True)


losses = {"base": loss_of(base())}
for at, (name, config) in enumerate(ADAPTERS.items()):
    torch.manual_seed(at)
    config.task_type = "CAUSAL_LM"
    model = get_peft_model(base(), config)
    for parameter_name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if "lora_magnitude_vector" in parameter_name:
            parameter.data.mul_(torch.empty_like(parameter).uniform_(0.8, 1.25))
        elif "lora_" in parameter_name:
            torch.nn.init.normal_(parameter, std=0.1)
        else:
            parameter.data.add_(0.01 * torch.randn_like(parameter))
    model.save_pretrained(HERE / name)
    (HERE / name / "README.md").unlink()
    path = HERE / name / "adapter_config.json"
    document = json.loads(path.read_text())
    document |= {"base_model_name_or_path": "hf-llama", "target_modules": sorted(document["target_modules"])}
    path.write_text(json.dumps(document, indent=2) + "\n")
    (HERE / name / "adapter_model.safetensors").chmod(0o644)
    losses[name] = loss_of(model.eval())
(HERE / "losses.json").write_text(json.dumps({"text": TEXT, "length": LENGTH, "losses": losses}, indent=2) + "\n")

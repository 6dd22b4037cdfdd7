"""Writes models.json: for the small models of each family, the config.json that transformers writes and the names and
shapes of the tensors in its model.safetensors. Needs torch, transformers and safetensors; run it in this folder.

    python make.py
"""

import json
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from families import config_of, models


def saved(config):
    """The config.json and the tensors of a saved model, in the order in which its modules have them."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(Path(folder) / "model.safetensors", "pt") as file:
            tensors = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}
        return json.loads((Path(folder) / "config.json").read_text()), tensors


def main():
    written = []
    for name, (family, fields) in {**models("models"), **models("shapes")}.items():
        document, tensors = saved(config_of(family, fields))
        written.append(f'{json.dumps(name)}: {{"config": {lines(document)},\n"tensors": {lines(tensors)}}}')
    Path("models.json").write_text("{" + ",\n".join(written) + "}\n")


def lines(table):
    """JSON with one entry a line."""
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items()) + "\n}"


main()

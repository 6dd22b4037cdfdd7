"""Writes the golden files of adapters: what peft computes over small random models of transformers.

    pip install torch transformers peft numpy
    python native/test/golden/make_golden_adapters.py [directory] [case ...]

Each case is a pair of files as make_golden_families.py describes them. A and B of its adapters are both random. It has
the gradients of trained parameters only: the factors, DoRA's magnitudes, and modules_to_save. The experts of Mixtral
are one tensor in transformers, over which peft has no DoRA, so that case writes out peft's formula. With a
"quantization" the file has the original matrices of the layers, and peft computes with them as make_golden_quantize.py
restores them.
"""

import copy
import re

import numpy as np
import torch
from peft import LoraConfig, get_peft_model

from make_golden_families import (BATCH, FAMILIES, LENGTH, MIN_MARGIN, MOE_BATCH, MOE_LENGTH, as_saved, bf16_errors,
                                  gradients, margin, model_of, randomise, saved_parameters, write_architecture,
                                  write_cases, write_words)
from make_golden_model import IGNORED, GoldenFile
from make_golden_quantize import quantized

ADAPTERS = {name: settings for family in FAMILIES.values() for name, settings in family.get("adapters", {}).items()}


def settings_of(name):
    """The model of a case, the settings of peft, and the format of the quantized base or None."""
    settings = ADAPTERS[name]
    settings = {**ADAPTERS.get(settings.get("like"), {}), **settings}
    own = {key: settings.pop(key, None) for key in ("model", "like", "quantization")}
    return own["model"], settings, own["quantization"]


def plain(name):
    """The name in files of the model and in peft's: without the wrappers."""
    for wrapper in ("base_model.model.", ".default", ".base_layer", ".modules_to_save"):
        name = name.replace(wrapper, "")
    return name


def quantize_layers(model, format_name):
    """Every matrix of a layer becomes what is restored of it, in the layout in which it is stored."""
    for key, parameter in model.named_parameters():
        if parameter.dim() == 2 and re.search(r"\.\d+\.", key):
            restored = quantized(format_name, parameter.detach().numpy())[3]
            parameter.data = torch.from_numpy(restored).reshape(parameter.shape).clone()


def adapted(base, settings, seed, format_name=None):
    """The model, and its own parameters before they were quantized."""
    torch.manual_seed(seed)
    model = model_of(base)
    randomise(model)
    given = {key: parameter.detach().clone() for key, parameter in model.named_parameters()}
    if format_name:
        quantize_layers(model, format_name)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                randomise_adapter(name, parameter)
    return model, given


def randomise_adapter(name, parameter):
    """A magnitude is around its first value."""
    noise = torch.randn_like(parameter) * 0.2
    value = parameter * (1 + noise) if "magnitude" in name else noise
    parameter.copy_(value.to(torch.bfloat16).float())


def one_case(directory, name, seed):
    base, settings, format_name = settings_of(name)
    model, tokens = over_experts(base, settings, seed) if base == "mixtral" else over_modules(base, settings, seed, format_name)
    cfg = model.config
    targets = torch.randint(cfg.vocab_size, tokens.shape)
    targets[torch.rand(tokens.shape) < 0.1] = IGNORED
    grad_scale = 1.0 / tokens.numel()
    names = [key for key, _ in model.named_parameters()]
    with torch.no_grad():
        logits = model(input_ids=tokens[:1], use_cache=False).logits[0, -1]
    loss, _, grads = gradients(model, tokens, targets, grad_scale)
    off = bf16_errors(model, tokens, targets, grad_scale, grads)

    golden = GoldenFile(directory, name)
    write_architecture(golden, cfg)
    rank, alpha = settings["r"], settings["lora_alpha"]
    numbers = {"batch": tokens.shape[0], "length": tokens.shape[1],
               "grad_scale": grad_scale, "loss_sum": loss, "adapter.rank": rank,
               "adapter.scale": alpha / (rank ** 0.5 if settings.get("use_rslora") else rank)}
    for key, value in numbers.items():
        golden.number(key, value)
    write_words(golden, {"adapter." + key: ",".join(settings[key]) for key in ("target_modules", "modules_to_save") if key in settings})
    if settings.get("use_dora"):
        write_words(golden, {"adapter.type": "dora"})
    if format_name:
        write_words(golden, {"quantization": format_name})
    golden.tensor("tokens", tokens.numpy().astype(np.int32))
    golden.tensor("targets", targets.numpy().astype(np.int32))
    golden.tensor("logits", logits.numpy().copy())
    for key, parameter in model.all_parameters():
        if ".original_module." not in key:
            value = model.given.get(plain(key), parameter)
            for name_in_files, part in as_saved(cfg.model_type, plain(key), value):
                golden.bf16_tensor("param." + name_in_files, part)
    for key in names:
        golden.tensor("grad." + plain(key), grads[key].numpy())
        golden.number("bf16_error." + plain(key), off[key])
    golden.write()


def over_modules(base, settings, seed, format_name):
    model = TrainedOnly(*adapted(base, settings, seed, format_name))
    return model, torch.randint(model.config.vocab_size, (BATCH, LENGTH))


def over_experts(base, settings, seed):
    """A model with adapters, and tokens of which its routers choose clearly."""
    while True:
        torch.manual_seed(seed)
        model = model_of(base)
        randomise(model)
        model = WrittenOut(model, settings["r"], settings["lora_alpha"] / settings["r"], settings["target_modules"])
        tokens = torch.randint(model.config.vocab_size, (MOE_BATCH, MOE_LENGTH))
        if margin(model, tokens) > MIN_MARGIN:
            return model, tokens
        seed += 1


class WrittenOut(torch.nn.Module):
    """DoRA over the matrices of any model: W is replaced by m · (W + scale · B A) / |W + scale · B A|, whose norm has
    no gradient."""

    def __init__(self, base, rank, scale, targets):
        super().__init__()
        self.base, self.scale, self.given = base.requires_grad_(False), scale, {}
        self.trained = torch.nn.ParameterDict()
        with torch.no_grad():
            for key, weight in self.base_parts():
                module = key.removesuffix(".weight")
                if weight.dim() != 2 or module.split(".")[-1] not in targets:
                    continue
                shapes = {"lora_A": torch.zeros(rank, weight.shape[1]), "lora_B": torch.zeros(weight.shape[0], rank),
                          "lora_magnitude_vector": weight.norm(dim=1)}
                for part, value in shapes.items():
                    parameter = torch.nn.Parameter(value.clone())
                    randomise_adapter(part, parameter)
                    self.trained[f"{module}.{part}.weight".replace(".", "/")] = parameter

    def base_parts(self):
        return list(saved_parameters(self.base))

    def named_parameters(self, *args, **kwargs):
        return [(key.replace("/", "."), parameter) for key, parameter in self.trained.items()]

    def all_parameters(self):
        return self.base_parts() + self.named_parameters()

    def adapted(self, key, weight):
        parts = [self.trained[f"{key.removesuffix('.weight')}.{part}.weight".replace(".", "/")]
                 for part in ("lora_A", "lora_B", "lora_magnitude_vector")] if self.has(key) else None
        if parts is None:
            return weight
        down, up, magnitude = parts
        direction = weight + self.scale * up @ down
        return direction * (magnitude / direction.norm(dim=1).detach())[:, None]

    def has(self, key):
        return f"{key.removesuffix('.weight')}.lora_A.weight".replace(".", "/") in self.trained

    def forward(self, **kwargs):
        def weight(name, parameter):
            parts = as_saved(self.base.config.model_type, name, parameter)
            return torch.cat([self.adapted(*part) for part in parts]).view_as(parameter)

        weights = {name: weight(name, parameter)
                   for name, parameter in self.base.named_parameters()}
        return torch.func.functional_call(self.base, weights, kwargs=kwargs)

    def set_attn_implementation(self, attention):
        self.base.set_attn_implementation(attention)

    @property
    def config(self):
        return self.base.config


class TrainedOnly:
    """The model as make_golden_families.py uses one, with the parameters that are trained."""

    def __init__(self, model, given):
        self.model, self.given = model, given

    def named_parameters(self):
        return [(key, parameter) for key, parameter in self.model.named_parameters() if parameter.requires_grad]

    def all_parameters(self):
        return self.model.named_parameters()

    def named_modules(self):
        return self.model.named_modules()

    def set_attn_implementation(self, attention):
        self.model.base_model.model.set_attn_implementation(attention)

    def to(self, dtype):
        self.model.to(dtype)
        return self

    def __call__(self, **kwargs):
        return self.model(**kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["model"], name)

    def __deepcopy__(self, memo):
        return TrainedOnly(copy.deepcopy(self.model, memo), self.given)


if __name__ == "__main__":
    write_cases(ADAPTERS, one_case)

"""Writes the golden files of adapters: what peft computes over small random models of transformers.

    pip install torch transformers peft numpy
    python native/test/golden/make_golden_adapters.py [directory] [case ...]

Each case is a pair of files as make_golden_families.py describes them, with adapters whose A and B are both random, and the
gradients of what is trained only: of the factors, and of modules_to_save. With a "quantization" peft computes over the matrices of
layers as make_golden_quantize.py restores them; the file has them as they were.
"""

import copy
import re

import numpy as np
import torch
from peft import LoraConfig, get_peft_model

from make_golden_families import BATCH, CASES, LENGTH, bf16_errors, gradients, randomise, write_cases, write_gpt2, write_llama_like, write_words
from make_golden_model import IGNORED, GoldenFile
from make_golden_quantize import quantized

ALL_LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {
    "lora_llama": ("llama_llama3", {"r": 5, "lora_alpha": 7, "target_modules": ALL_LINEAR}),
    "lora_gpt2": ("gpt2_tied", {"r": 4, "lora_alpha": 6, "use_rslora": True, "target_modules": ["c_attn", "mlp.c_proj", "c_fc"],
                                "modules_to_save": ["ln_f", "ln_1"], "fan_in_fan_out": True}),
    "lora_qwen3": ("qwen3", {"r": 16, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj", "down_proj"]}),
}
QUANTIZED = {"qlora_llama_nf4": ("lora_llama", "nf4"), "qlora_gpt2_int8": ("lora_gpt2", "int8")}
ADAPTERS |= {name: ADAPTERS[like] for name, (like, _) in QUANTIZED.items()}


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
    model = CASES[base]().float().eval()
    randomise(model)
    given = {key: parameter.detach().clone() for key, parameter in model.named_parameters()}
    if format_name:
        quantize_layers(model, format_name)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.copy_((torch.randn_like(parameter) * 0.2).to(torch.bfloat16).float())
    return model, given


def one_case(directory, name, seed):
    base, settings = ADAPTERS[name]
    format_name = QUANTIZED.get(name, (None, None))[1]
    model, given = adapted(base, settings, seed, format_name)
    cfg = model.config
    tokens = torch.randint(cfg.vocab_size, (BATCH, LENGTH))
    targets = torch.randint(cfg.vocab_size, tokens.shape)
    targets[torch.rand(tokens.shape) < 0.1] = IGNORED
    grad_scale = 1.0 / tokens.numel()
    names = [key for key, parameter in model.named_parameters() if parameter.requires_grad]
    with torch.no_grad():
        logits = model(input_ids=tokens[:1], use_cache=False).logits[0, -1]
    only = TrainedOnly(model)
    loss, _, grads = gradients(only, tokens, targets, grad_scale)
    off = bf16_errors(only, tokens, targets, grad_scale, grads)

    golden = GoldenFile(directory, name)
    (write_gpt2 if cfg.model_type == "gpt2" else write_llama_like)(golden, cfg)
    rank, alpha = settings["r"], settings["lora_alpha"]
    numbers = {"vocab_size": cfg.vocab_size, "tie_word_embeddings": int(cfg.tie_word_embeddings), "batch": BATCH, "length": LENGTH,
               "grad_scale": grad_scale, "loss_sum": loss, "adapter.rank": rank,
               "adapter.scale": alpha / (rank ** 0.5 if settings.get("use_rslora") else rank)}
    for key, value in numbers.items():
        golden.number(key, value)
    write_words(golden, {"adapter." + key: ",".join(settings[key]) for key in ("target_modules", "modules_to_save") if key in settings})
    if format_name:
        write_words(golden, {"quantization": format_name})
    golden.tensor("tokens", tokens.numpy().astype(np.int32))
    golden.tensor("targets", targets.numpy().astype(np.int32))
    golden.tensor("logits", logits.numpy().copy())
    for key, parameter in model.named_parameters():
        if ".original_module." not in key:
            golden.bf16_tensor("param." + plain(key), given.get(plain(key), parameter))
    for key in names:
        golden.tensor("grad." + plain(key), grads[key].numpy())
        golden.number("bf16_error." + plain(key), off[key])
    golden.write()


class TrainedOnly:
    """The model as make_golden_families.py uses one, with the parameters that are trained."""

    def __init__(self, model):
        self.model = model

    def named_parameters(self):
        return [(key, parameter) for key, parameter in self.model.named_parameters() if parameter.requires_grad]

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
        return TrainedOnly(copy.deepcopy(self.model, memo))


if __name__ == "__main__":
    write_cases(ADAPTERS, one_case)

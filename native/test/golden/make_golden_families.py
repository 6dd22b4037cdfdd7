"""Writes the golden files of the model families: what transformers computes for one small random model of each.

    npm run build
    pip install torch transformers numpy
    python native/test/golden/make_golden_families.py [directory] [case ...]

Each case is a pair of files as make_golden_model.py describes them, with one more kind of line:
    word KEY VALUE

They hold the architecture that job-document/ reads from the model's config.json, parameters that bf16 can represent,
tokens, and targets, some of which are ignored. The results are the logits after the first sequence, the loss sum, the
auxiliary loss of experts, and every gradient in float32. Names and shapes are those that save_pretrained writes. For
each gradient they also have the distance of PyTorch's own bf16 passes from its float32 pass: the larger one of its
attentions "eager" and "sdpa". Rotary frequencies stay float32 in all passes.
"""

import copy
import json
import pathlib
import subprocess
import sys
import zlib

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from make_golden_model import IGNORED, GoldenFile, errors, loss_sum

sys.path.append(str(pathlib.Path(__file__).parents[3] / "job-document" / "testing" / "hf"))
from families import FAMILIES, config_of, models  # noqa: E402

ARCHITECTURE_OF = pathlib.Path(__file__).parent / "architecture_of.mjs"
BATCH, LENGTH = 2, 41
MOE_BATCH, MOE_LENGTH = 1, 13
MIN_MARGIN = 0.05  # between the logits of the last expert that is chosen and of the first that is not
MODELS = models("models")


def model_of(name):
    """The model of a name, in which nothing is dropped. Several eps and kernels are not those of its family."""
    family, fields = MODELS[name]
    config = config_of(family, {"vocab_size": 45, **fields}, rms_norm_eps=1e-6)
    config._attn_implementation = config._experts_implementation = "eager"
    return AutoModelForCausalLM.from_config(config).float().eval()


def write_words(golden, words):
    for key, value in words.items():
        golden.lines.append(f"word {key} {value}")


def write_architecture(golden, cfg):
    """The architecture that the product reads from the config.json which transformers writes."""
    config = cfg.to_json_string().encode()
    output = subprocess.run(["node", ARCHITECTURE_OF], input=config, stdout=subprocess.PIPE, check=True).stdout
    write_fields(golden, "", json.loads(output))


def write_fields(golden, prefix, fields):
    for key, value in fields.items():
        if isinstance(value, dict):
            write_fields(golden, f"{prefix}{key}.", value)
        elif isinstance(value, str):
            write_words(golden, {prefix + key: value})
        elif isinstance(value, list):
            if any(value):  # windows of layers, factors of frequencies
                whole = all(isinstance(each, int) for each in value)
                golden.tensor(prefix + key, np.array(value, dtype=np.int32 if whole else np.float32))
        elif value is not None:
            golden.number(prefix + key, int(value) if isinstance(value, bool) else value)


def randomise(model):
    """Parameters that bf16 can represent: norms around one, or with their offset; biases and matrices around zero."""
    has_offset = model.config.model_type.startswith("gemma")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = parameter.dim() == 1 and not name.endswith("bias")
            noise = torch.randn_like(parameter) * (0.3 if is_norm else 0.15)
            parameter.copy_((noise + (1.0 if is_norm and not has_offset else 0.0)).to(torch.bfloat16).float())


def in_bf16(model):
    """A copy in bf16 as from_pretrained(dtype=torch.bfloat16) makes it: rotary frequencies stay float32."""
    rounded = copy.deepcopy(model).to(torch.bfloat16)
    for name, module in model.named_modules():
        if name.endswith("rotary_emb"):
            for key, frequencies in module.named_buffers():  # one for each type of layer in some families
                setattr(rounded.get_submodule(name), key, frequencies.clone())
    return rounded


# Module of experts, and names of the matrices of one, in files of a model_type.
QWEN = ("mlp", "gate_proj", "up_proj", "down_proj")
EXPERT_NAMES = {"mixtral": ("block_sparse_moe", "w1", "w3", "w2"), "qwen2_moe": QWEN, "qwen3_moe": QWEN}


def in_files(model_type, name):
    """The name of a parameter in files; save_pretrained renames it."""
    return name.replace("lm_head.", "embed_out.") if model_type == "gpt_neox" else name


def as_saved(model_type, name, tensor):
    """Names and parts of a parameter in the files that save_pretrained writes; it takes experts apart."""
    module, gate_name, up_name, down_name = EXPERT_NAMES.get(model_type, ("mlp", "", "", ""))
    if ".mlp.experts." not in name:
        yield in_files(model_type, name).replace(".mlp.gate.", f".{module}.gate."), tensor
        return
    for expert, values in enumerate(tensor):
        prefix = name.split(".mlp.")[0] + f".{module}.experts.{expert}."
        if name.endswith("down_proj"):
            yield f"{prefix}{down_name}.weight", values
        else:
            gate, up = values.chunk(2)
            yield f"{prefix}{gate_name}.weight", gate
            yield f"{prefix}{up_name}.weight", up


def saved_parameters(model):
    """Names, parts and parameters of a model as its files have them."""
    for name, parameter in model.named_parameters():
        yield from as_saved(model.config.model_type, name, parameter)


def gradients(model, tokens, targets, grad_scale):
    """The loss sum, the auxiliary loss, and gradients of grad_scale * the one + the other."""
    model.zero_grad()
    loss, aux = loss_sum(model, tokens, targets), torch.zeros(())
    if getattr(model.config, "output_router_logits", False):
        aux = model.config.router_aux_loss_coef * model(input_ids=tokens, use_cache=False).aux_loss
    (loss * grad_scale + aux).backward()
    grads = {key: part.float().clone() for name, p in model.named_parameters()
             for key, part in as_saved(model.config.model_type, name, p.grad)}
    return loss.item(), aux.item(), grads


def bf16_errors(model, tokens, targets, grad_scale, expected):
    worst = {}
    for attention in ("eager", "sdpa"):
        rounded = in_bf16(model)
        rounded.set_attn_implementation(attention)
        *_, grads = gradients(rounded, tokens, targets, grad_scale)
        off = errors(grads, expected)
        for key in expected:  # an expert that no token chooses has a gradient of zeros
            worst[key] = max(off[key] if expected[key].norm() > 0 else 0.0, worst.get(key, 0.0))
    return worst


def margin(model, tokens):
    """How clear the choice of experts is; in bf16 a choice that is not may be another one, for PyTorch and for us."""
    if model.config.model_type not in EXPERT_NAMES:
        return float("inf")
    with torch.no_grad():
        logits = torch.stack(model(input_ids=tokens, use_cache=False).router_logits)
    best, chosen = logits.sort(descending=True).values, model.config.num_experts_per_tok
    return (best[..., chosen - 1] - best[..., chosen]).min().item()


def random_case(name, seed):
    """A model and tokens for it, of which routers choose clearly."""
    while True:
        torch.manual_seed(seed)
        model = model_of(name)
        randomise(model)
        batch, length = (MOE_BATCH, MOE_LENGTH) if model.config.model_type in EXPERT_NAMES else (BATCH, LENGTH)
        tokens = torch.randint(model.config.vocab_size, (batch, length))
        if margin(model, tokens) > MIN_MARGIN:
            return model, tokens
        seed += 1


def one_pass(directory, name, seed):
    model, tokens = random_case(name, seed)
    cfg = model.config
    targets = torch.randint(cfg.vocab_size, tokens.shape)
    targets[torch.rand(tokens.shape) < 0.1] = IGNORED
    grad_scale = 1.0 / tokens.numel()
    loss, aux, grads = gradients(model, tokens, targets, grad_scale)
    off = bf16_errors(model, tokens, targets, grad_scale, grads)
    with torch.no_grad():
        logits = model(input_ids=tokens[:1], use_cache=False).logits[0, -1]

    golden = GoldenFile(directory, name)
    write_architecture(golden, cfg)
    golden.number("batch", tokens.shape[0])
    golden.number("length", tokens.shape[1])
    golden.number("grad_scale", grad_scale)
    golden.number("loss_sum", loss)
    golden.number("aux_loss", aux)
    golden.tensor("tokens", tokens.numpy().astype(np.int32))
    golden.tensor("targets", targets.numpy().astype(np.int32))
    golden.tensor("logits", logits.numpy().copy())
    # A greedy answer. With a cache transformers 5.18 forgets the tokens before the one at which
    # longrope's factors change.
    model.generation_config.eos_token_id = None
    answer = model.generate(tokens[:1, :10], max_new_tokens=20, do_sample=False, use_cache=False, output_logits=True,
                            return_dict_in_generate=True)
    golden.tensor("generated", answer.sequences[0].numpy().astype(np.int32))
    golden.tensor("generated_log_probs", torch.cat(answer.logits).log_softmax(-1).max(-1).values.numpy())
    for key, parameter in saved_parameters(model):
        golden.bf16_tensor("param." + key, parameter)
        golden.tensor("grad." + key, grads[key].numpy())
    for key, value in off.items():
        golden.number("bf16_error." + key, value)
    golden.write()


def write_cases(cases, write):
    """Calls write(directory, name, seed) for the cases that the command line names, or for all."""
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    for name in cases:
        if not sys.argv[2:] or name in sys.argv[2:]:
            write(directory, name, seed=zlib.crc32(name.encode()))


if __name__ == "__main__":
    write_cases(MODELS, one_pass)

"""Makes the files beside it with the real torch.save: python make_golden.py

Good ones with what must be read from them (golden.json), and hostile ones, which torch.load would run without
weights_only. None of them is ever loaded here or there.

universal.tar is a checkpoint in DeepSpeed's universal layout, with the config.json of its model. The script writes the
layout itself, because installing DeepSpeed needs CUDA. Its sources are deepspeed/checkpoint/ds_to_universal.py, which
writes the layout, and universal_checkpoint.py, which reads it:
  <tag>_universal/zero/<parameter>/{fp32,exp_avg,exp_avg_sq}.pt   torch.save({'param': tensor of the whole shape, ...})
  <tag>_universal/zero/<parameter>/step.pt                        torch.save(number, or a tensor of one element)
  <tag>_universal/zero/optimizer_state.pt                         param_groups and the state of the loss scaler
  <tag>_universal/mp_rank_00_model_states.pt                      the module's 16-bit weights, counters and the like
  latest_universal                                                the name of the folder
With ZeRO stage 3 the tensors come as they are, without a dict, and flat.
"""

import collections
import io
import json
import os
import tarfile
from pathlib import Path

import torch

HERE = Path(__file__).parent


def raw(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes().hex() if flat.numel() else ""


def good():
    torch.manual_seed(1)
    base = torch.arange(12, dtype=torch.float32) / 7
    shared = base[2:8].reshape(2, 3)
    linear = torch.nn.Linear(3, 2)
    files = {
        "dict": {"param": torch.randn(3, 5), "cat_dim": 0},
        "bare": torch.randn(2, 1, 3),
        "half": {"param": torch.randn(4).half()},
        "bfloat16": {"param": torch.randn(2, 2).bfloat16()},
        "scalar_float": torch.tensor(7.0),
        "scalar_long": torch.tensor(123456789012, dtype=torch.int64),
        "view": {"param": shared, "base": base},
        "parameter": {"param": torch.nn.Parameter(torch.ones(2, 2))},
        "state_dict": {"module": linear.state_dict(), "param_shapes": [collections.OrderedDict(w=torch.Size([2, 3]))]},
        "empty": {"param": torch.zeros(0, 3)},
        "strided": {"param": torch.randn(3, 5).t()},
        "plain": {"list": [1, -5, 70000, 2**40, 1.5, True, None, "é", (1, 2, 3, 4), ()], 3: "key"},
    }
    golden = {}
    for name, value in files.items():
        torch.save(value, HERE / f"{name}.pt")
        tensors = value if isinstance(value, dict) else {"": value}
        golden[name] = {
            key: {"shape": list(tensor.shape), "hex": raw(tensor)}
            for key, tensor in tensors.items()
            if isinstance(tensor, torch.Tensor)
        }
    torch.save({"param": base}, HERE / "protocol4.pt", pickle_protocol=4)
    golden["protocol4"] = {"param": {"shape": [12], "hex": raw(base)}}
    (HERE / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


class Calls:
    """Pickled as a call of any function."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


class Plain:
    pass


def hostile():
    marker = "touch ZEROFLEET_WAS_HERE"
    plain = Plain()
    plain.x = 1
    torch.save({"param": torch.zeros(2), "x": Calls(os.system, marker)}, HERE / "hostile_system.pt")
    torch.save({"param": torch.zeros(2), "x": Calls(eval, "1")}, HERE / "hostile_eval.pt")
    torch.save({"param": torch.zeros(2), "x": Calls(getattr, "a", "upper")}, HERE / "hostile_getattr.pt", pickle_protocol=4)
    torch.save({"param": torch.zeros(2), "x": plain}, HERE / "hostile_object.pt")
    torch.save({"param": torch.zeros(2), "x": Calls(torch.load, "x.pt")}, HERE / "hostile_torch.pt")
    torch.save({"param": torch.zeros(2), "x": b"bytes"}, HERE / "hostile_bytes.pt")
    torch.save({"param": torch.zeros(2)}, HERE / "hostile_legacy.pt", _use_new_zipfile_serialization=False)


CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 256,
    "tie_word_embeddings": True,
}
LAYER = {
    "self_attn.q_proj.weight": (16, 16),
    "self_attn.k_proj.weight": (8, 16),
    "self_attn.v_proj.weight": (8, 16),
    "self_attn.o_proj.weight": (16, 16),
    "mlp.gate_proj.weight": (32, 16),
    "mlp.up_proj.weight": (32, 16),
    "mlp.down_proj.weight": (16, 32),
    "input_layernorm.weight": (16,),
    "post_attention_layernorm.weight": (16,),
}
SHAPES = {
    "model.embed_tokens.weight": (256, 16),
    **{f"model.layers.0.{name}": shape for name, shape in LAYER.items()},
    "model.norm.weight": (16,),
}


def universal():
    torch.manual_seed(2)
    folder = "global_step12_universal"
    with tarfile.open(HERE / "universal.tar", "w", format=tarfile.USTAR_FORMAT) as archive:

        def add(name, data):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))

        def save(name, value):
            buffer = io.BytesIO()
            torch.save(value, buffer)
            add(f"{folder}/{name}", buffer.getvalue())

        add("config.json", json.dumps(CONFIG).encode())
        add("latest_universal", folder.encode())
        for name, shape in SHAPES.items():
            weights = 0.02 * torch.randn(shape)
            save(f"zero/{name}/fp32.pt", {"param": weights, "cat_dim": 0})
            save(f"zero/{name}/exp_avg.pt", {"param": 1e-3 * torch.randn(shape), "cat_dim": 0})
            save(f"zero/{name}/exp_avg_sq.pt", {"param": 1e-6 * torch.rand(shape), "cat_dim": 0})
            save(f"zero/{name}/step.pt", torch.tensor(12.0))
        groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "params": [0]}]
        save("zero/optimizer_state.pt", {"param_groups": groups, "ds_version": "0.16.0", "clip_grad": 1.0})
        save("mp_rank_00_model_states.pt", {"module": {}, "global_steps": 12, "ds_version": "0.16.0"})


if __name__ == "__main__":
    good()
    hostile()
    universal()

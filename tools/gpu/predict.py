#!/usr/bin/env python3
"""Predicts the time of each kernel and of whole steps by arithmetic, before any GPU has run them:
bench/results/predicted-*.json.

`python3 tools/gpu/predict.py` writes the files, `--check` fails if they are out of date. The cases are those that the
benchmark itself lists. A kernel takes the longer of its operations over a share of the matrix peak and its bytes over a
share of the memory bandwidth, and a launch.
"""

import argparse
import fnmatch
import json
import subprocess
import sys

from machine import ROOT
from results import COMMITTED, write_atomically

CHIPS = {
    "h200": {"name": "NVIDIA H200", "operations_per_second": 989e12, "bytes_per_second": 4.8e12,
             "source": "NVIDIA's data sheet of the H200 SXM: bf16 without sparsity, HBM3e"},
    "h100": {"name": "NVIDIA H100 80GB HBM3", "operations_per_second": 989e12, "bytes_per_second": 3.35e12,
             "source": "NVIDIA's data sheet of the H100 SXM: bf16 without sparsity, HBM3"},
}
LAUNCH_MICROSECONDS = 3
# Measured over predicted, or the reverse, from which on a kernel is marked.
OUTLIER_FACTOR = 1.5

PRODUCTS = ("qkv.*", "attention_out.*", "mlp_in*", "mlp_out*", "head.*")
# The first rule that matches: share of the matrix peak, share of the bandwidth, bytes moved over those that have to be
# (traffic), and microseconds beside both.
RULES = (
    (("mlp_in_nf4.*", "mlp_in_int8.*"), {"matrix": 0.70, "memory": 0.80, "beside": 8,
                                         "why": "as other products; the weight is dequantized before: 5 µs and a launch"}),
    (("quantize_*",), {"memory": 0.20, "why": "a thread reads 64 neighbouring elements, twice"}),
    (PRODUCTS, {"matrix": 0.70, "memory": 0.80,
                "why": "8192³ products of random bf16 values by cuBLASLt ran at 0.78 to 0.81 of 989 TFLOP/s on an H100 and an H200; "
                       "a tenth less for tiles that do not fill the last wave"}),
    (("attention.*",), {"memory": 0.80, "why": "its shares of the matrix peak are under `attention`"}),
    (("cross_entropy",), {"memory": 0.80, "traffic": 10 / 6, "why": "logits are read twice: 4 + 4 + 2 bytes"}),
    (("embedding.backward",), {"memory": 0.40, "beside": 800, "why": "rows in the order of tokens, which the host sorts in each run: 50 ns a token"}),
    (("embedding.forward",), {"memory": 0.60, "why": "rows in the order of tokens"}),
    (("grad_norm",), {"memory": 0.80, "beside": 30, "why": "results are copied to the host"}),
    (("block_hash",), {"memory": 0.50, "beside": 30, "why": "integer multiplications; results are copied to the host"}),
    (("moe_*",), {"memory": 0.40, "beside": 10, "why": "several short kernels"}),
    (("*",), {"memory": 0.80, "why": "a copy ran at 0.90 of the bandwidth on an H100 and an H200; a tenth less"}),
)
# Shares of the matrix peak by the length of sequences, at a width of 64.
ATTENTION = {
    "own": {1024: {"attention.forward": 0.18, "attention.backward": 0.13}, 4096: {"attention.forward": 0.23, "attention.backward": 0.16}},
    "cudnn": {1024: {"attention.forward": 0.29, "attention.backward": 0.28}, 4096: {"attention.forward": 0.37, "attention.backward": 0.33}},
    "source": "Shah et al., FlashAttention-3 (arXiv:2407.08608), figures 5 and 6, H100, width 64. Forward, causal: FlashAttention-2 229 "
              "(T 1024) and 284 TFLOP/s (T 4096), cuDNN 288 and 363. Backward without a mask, T 1024: FlashAttention-2 238, cuDNN 348",
    "why": "our kernels use mma.sync as FlashAttention-2 does: 0.8 of its forward; of its backward 0.8 for the mask and two thirds of that, "
           "because 183 bytes of shared memory are read for an instruction. cuDNN: its forward, 0.8 of its backward for the mask, and beside "
           "it the gradients of the scores in 16 bits, which its backward with equal bits writes and reads. The backward at T 4096 is "
           "assumed to gain as much as the forward",
}
# Bytes of a gradient after its product, for each leaf: cast 4 + 2, fold 2 + 4 + 4. Weights of layers leave the product
# in 16 bits, which saves the cast; an eighth of them crosses borders of buckets, which costs half of that.
GRADIENT_BYTES, SAVED_BYTES = 16, 6 * 15 / 16


def rule_of(op):
    return next(rule for patterns, rule in RULES if any(fnmatch.fnmatch(op, pattern) for pattern in patterns))


def seconds_of(chip, op, operations, num_bytes, share=None):
    """Seconds, and which limit is reached."""
    rule = rule_of(op)
    compute = operations / (chip["operations_per_second"] * (share or rule.get("matrix", 1)))
    memory = num_bytes * rule.get("traffic", 1) / (chip["bytes_per_second"] * rule["memory"])
    seconds = max(compute, memory) + (LAUNCH_MICROSECONDS + rule.get("beside", 0)) * 1e-6
    return seconds, "compute" if compute > memory else "memory"


def sizes_of(case):
    return [int(size) for size in case["shape"].split(" × ")]


class Config:
    """The cases of a configuration, and the seconds of each."""

    def __init__(self, chip, training, cases, attention="cudnn"):
        self.chip, self.training = chip, training
        self.cases = {case["op"]: case for case in cases if case["config"] == training["config"]}
        shares = ATTENTION[attention]
        self.shares = shares.get(training["sequence_length"], shares[1024])
        self.attention = attention

    def case(self, op):
        """Seconds and limit."""
        if op == "loss_head":
            return self.head(), "its parts"
        case = self.cases[op]
        seconds, limit = seconds_of(self.chip, op, case["operations"], case["bytes"], self.shares.get(op))
        if op == "attention.backward" and self.attention == "cudnn":
            seconds += self.score_gradients() / (self.chip["bytes_per_second"] * rule_of(op)["memory"])
        return seconds, limit

    def score_gradients(self):
        """Bytes of the gradients of all scores, written and read in 16 bits."""
        batch, length, heads, _ = sizes_of(self.cases["attention.backward"])
        return 2 * 2 * batch * heads * length * length

    def head(self):
        """The head is its products and the loss: the forward for as many rows at a time as there are logits, the
        backward for more."""
        rows, hidden, vocab = sizes_of(self.cases["loss_head"])
        forward, dw = self.cases["head.forward"], self.cases["head.dw"]
        logit_rows, rows_at_once = sizes_of(self.cases["cross_entropy"])[0], sizes_of(dw)[0]
        weight, part = 2 * hidden * vocab, logit_rows / sizes_of(forward)[0]
        product = seconds_of(self.chip, "head.forward", part * forward["operations"], weight + part * (forward["bytes"] - weight))[0]
        # Sums of earlier chunks are read, too.
        weight_gradient = seconds_of(self.chip, "head.dw", dw["operations"], dw["bytes"] + 2 * weight)[0]
        return (rows / logit_rows * (product + self.case("cross_entropy")[0])
                + rows / rows_at_once * (self.case("head.dx")[0] + weight_gradient))

    def kernels(self):
        for op, case in self.cases.items():
            seconds, limit = self.case(op)
            yield {"config": case["config"], "op": op, "shape": case["shape"], "operations": case["operations"], "bytes": case["bytes"],
                   "limit": limit, "microseconds": round(seconds * 1e6, 1)}

    def times(self):
        """How often a step runs each of the cases."""
        leaves, layers = self.training["leaves"], self.training["layers"]
        gpt2 = self.training["family"] == "gpt2"
        norm = "layernorm" if gpt2 else "rmsnorm"
        layer = {f"{product}.{way}": 1 for product in ("qkv", "attention_out", "mlp_in", "mlp_out") for way in ("forward", "dx", "dw")}
        layer |= {"attention.forward": 1, "attention.backward": 1}
        if gpt2:
            del layer["mlp_in.forward"], layer["mlp_out.dx"]
            # A bias for 9 D columns; the case has 4 D.
            layer |= {"mlp_in_gelu.forward": 1, "mlp_out_gelu.dx": 1, "bias_gradient": 9 / 4}
        else:
            layer |= {"swiglu.forward": 1, "swiglu.backward": 1, "rope": 2}
        times = {op: leaves * layers * count for op, count in layer.items()}
        norms = leaves * (2 * layers + 1)
        return times | {f"{norm}.forward": norms, f"{norm}.backward": norms, "embedding.forward": leaves, "loss_head": leaves}

    def parts(self):
        """Seconds of a step by what they are for. What the host does beside the device is not among them."""
        params, leaves = self.training["params"], self.training["leaves"]
        parts = [{"op": op, "times": count, "seconds": count * self.case(op)[0]} for op, count in self.times().items()]
        # Of the embedding's gradient only what the device does: the host sorts while it computes.
        embedding = self.case("embedding.backward")[0] - rule_of("embedding.backward")["beside"] * 1e-6
        parts.append({"op": "embedding.backward", "times": leaves, "seconds": leaves * embedding})

        def passes(op, times, bytes_each):
            seconds = times * params * bytes_each / (self.chip["bytes_per_second"] * rule_of(op)["memory"])
            parts.append({"op": op, "times": times, "bytes_per_parameter": bytes_each, "seconds": seconds})

        _, hidden, vocab = sizes_of(self.cases["loss_head"])
        passes("cast and fold", leaves, round(GRADIENT_BYTES - SAVED_BYTES * (1 - hidden * vocab / params), 2))
        passes("grad_norm", 1, 4)
        passes("adamw", 1, 30)
        return parts

    def step(self):
        parts = self.parts()
        seconds = sum(part["seconds"] for part in parts)
        rate = self.training["tokens_per_step"] / seconds
        share = self.training["operations_per_token"] * rate / self.chip["operations_per_second"]
        rounded = [{**part, "times": round(part["times"], 2), "seconds": round(part["seconds"], 6)} for part in parts]
        return {"seconds": round(seconds, 6), "tokens_per_second": round(rate), "share_of_data_sheet_peak": round(share, 3), "parts": rounded}


def predictions(key, lines):
    """lines: what `zerofleet_gpu_bench cases` prints."""
    chip = CHIPS[key]
    trainings = [line for line in lines if line["part"] == "training"]
    cases = [line for line in lines if line["part"] == "case"]
    kernels, steps = [], []
    for training in trainings:
        sizes = {name: value for name, value in training.items() if name != "part"}
        with_cudnn, without = Config(chip, training, cases), Config(chip, training, cases, attention="own")
        kernels += with_cudnn.kernels()
        without_parts = {name: value for name, value in without.step().items() if name != "parts"}
        steps.append({**sizes, **with_cudnn.step(), "without_cudnn": without_parts})
    rules = [{"ops": list(patterns), **rule} for patterns, rule in RULES]
    return {"chip": chip, "launch_microseconds": LAUNCH_MICROSECONDS, "outlier_factor": OUTLIER_FACTOR, "rules": rules,
            "attention": ATTENTION, "kernels": kernels, "trainings": steps}


def committed_for(name):
    """Predictions for a GPU by its name, or None."""
    key = next((key for key, chip in CHIPS.items() if chip["name"] == name), None)
    return json.loads(file_of(key).read_text(encoding="utf-8")) if key else None


def file_of(key):
    return COMMITTED / f"predicted-{key}.json"


def add_predictions(lines, found):
    """Adds to measurements what was predicted, and how many times as long they took."""
    kernels = {(each["config"], each["op"]): each for each in (found or {}).get("kernels", [])}
    trainings = {each["config"]: each for each in (found or {}).get("trainings", [])}
    for line in lines:
        if line["part"] == "kernel" and "microseconds" in line and (line["config"], line["op"]) in kernels:
            line["predicted_microseconds"] = kernels[line["config"], line["op"]]["microseconds"]
            ratio = line["microseconds"] / line["predicted_microseconds"]
        elif line["part"] == "train" and "tokens_per_second" in line and line["config"] in trainings:
            line["predicted_tokens_per_second"] = trainings[line["config"]]["tokens_per_second"]
            ratio = line["predicted_tokens_per_second"] / line["tokens_per_second"]
        else:
            continue
        line["times_predicted"] = round(ratio, 3)
        line["outlier"] = not 1 / OUTLIER_FACTOR <= ratio <= OUTLIER_FACTOR


def text_of(found):
    """JSON with a line for each entry of its lists."""
    parts = []
    for name, value in found.items():
        entries = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in value) if isinstance(value, list) else None
        parts.append(f" {json.dumps(name)}: " + (f"[\n{entries}\n ]" if entries else json.dumps(value, ensure_ascii=False)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    program = ROOT / "native" / "build" / "zerofleet_emulated_gpu_bench"
    parser.add_argument("--program", default=program, help="the benchmark; its build for the emulated device, npm run test:deep -- native")
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    options = parser.parse_args()
    done = subprocess.run([options.program, "cases", "--size", "full"], stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for key in CHIPS:
        text = text_of(predictions(key, lines))
        if not options.check:
            write_atomically(file_of(key), text)
        elif not file_of(key).exists() or file_of(key).read_text(encoding="utf-8") != text:
            sys.exit(f"{file_of(key)} is out of date: run python3 tools/gpu/predict.py")


if __name__ == "__main__":
    main()

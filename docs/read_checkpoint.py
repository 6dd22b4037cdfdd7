"""Reads a checkpoint and verifies its digest, as docs/checkpoints.md describes them: `python read_checkpoint.py
FOLDER`.

It needs numpy, safetensors and xxhash, and nothing of zerofleet.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import xxhash
from safetensors import safe_open

BLOCK = 4096
STATES = ["master", "exp_avg", "exp_avg_sq", "momentum_buffer", "sum", "ema"]


def owners(blocks, bucket, ranks):
    """Which of the ranks owns each block of a part"""
    buckets = []
    for end in range(blocks, 0, -bucket):
        size, first = min(bucket, end), (blocks - end) % ranks
        counts = [size // ranks + ((rank - first) % ranks < size % ranks) for rank in range(ranks)]
        buckets.append(np.repeat(np.arange(ranks), counts))
    return np.concatenate(buckets[::-1])


def ranks_of_elements(manifest):
    """parameter -> the rank that owns each of its elements"""
    sharding, parts, found = manifest["sharding"], {}, {}
    for param in manifest["params"]:
        parts.setdefault((param["frozen"], param["base"], param["expert_set"]), []).append(param)
    for (*_, expert_set), params in parts.items():
        first, step = (0, 1) if expert_set is None else (expert_set, sharding["expert_sets"])
        ranks = np.arange(first, manifest["world_size"], step)
        blocks = [-(-param["numel"] // BLOCK) for param in params]
        owner = ranks[owners(sum(blocks), sharding["bucket_blocks"], len(ranks))]
        for param, of_param in zip(params, np.split(owner, np.cumsum(blocks))):
            found[param["name"]] = np.repeat(of_param, BLOCK)[: param["numel"]]
    return found


def read_checkpoint(folder):
    """The manifest, and (state, parameter) -> flat array"""
    text = (folder / "MANIFEST.json").read_bytes()
    assert text[-66:-2].decode() == hashlib.sha256(text[:-66]).hexdigest(), "the manifest was changed"
    manifest = json.loads(text)
    ranks = ranks_of_elements(manifest)
    arrays = {}
    for rank, shard in enumerate(manifest["shards"]):
        data = (folder / shard["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == shard["sha256"], f"{shard['file']} was changed"
        with safe_open(folder / shard["file"], framework="numpy") as file:
            for name in file.keys():
                state, param = name.split("/", 1)
                array = arrays.setdefault((state, param), np.full(len(ranks[param]), np.nan, "<f4"))
                array[ranks[param] == rank] = file.get_tensor(name)
    return manifest, arrays


def digest(manifest, arrays):
    total = first = 0
    for param in manifest["params"]:
        blocks = -(-param["numel"] // BLOCK)
        for number, state in enumerate(STATES):
            if (state, param["name"]) in arrays:
                padded = np.pad(arrays[state, param["name"]], (0, blocks * BLOCK - param["numel"]))
                for block, values in enumerate(padded.reshape(blocks, BLOCK)):
                    total += xxhash.xxh3_128_intdigest(values.tobytes(), seed=number << 56 | first + block)
        first += blocks
    return f"{total % 2**128:032x}"


if __name__ == "__main__":
    manifest, arrays = read_checkpoint(Path(sys.argv[1]))
    print(json.dumps({"digest": digest(manifest, arrays), "recorded": manifest["state_digest"], "arrays": len(arrays)}))

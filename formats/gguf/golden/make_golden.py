"""Writes q8_0.json: blocks of 32 numbers as the package gguf quantizes them. pip install gguf numpy"""

import base64
import json
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, quants

BLOCK = 32
rng = np.random.default_rng(7)


def blocks():
    """Usual weights, zeros, one large element, halves between two steps, subnormal scales, and large numbers"""
    yield from rng.standard_normal((24, BLOCK)) * 0.02
    yield np.zeros(BLOCK)
    yield np.where(np.arange(BLOCK) == 5, -3.0, 1e-9)
    yield (np.arange(BLOCK) - 15.5) * (127 / 127)
    yield np.concatenate([[127.0], np.arange(BLOCK - 1) - 14.5])
    yield rng.standard_normal(BLOCK) * 1e-6
    yield rng.standard_normal(BLOCK) * 1e-9
    yield rng.standard_normal(BLOCK) * 1e5


values = np.concatenate(list(blocks())).astype("<f4")
quantized = quants.quantize(values.reshape(-1, BLOCK), GGMLQuantizationType.Q8_0)
fields = {
    "values": base64.b64encode(values.tobytes()).decode(),
    "q8_0": base64.b64encode(quantized.tobytes()).decode(),
}
Path(__file__).with_name("q8_0.json").write_text(json.dumps(fields, indent=1) + "\n")

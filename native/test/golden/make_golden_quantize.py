"""Writes quantize.txt: quantized matrices by a reference in numpy, for the tests of kernels/quantize.

Run with any Python that has numpy:  python make_golden_quantize.py

Every operation is done in float64 and then rounded to float32, which is the correctly rounded result for sums, products
and quotients of float32. The reference shares nothing with the kernels but the definition in
kernels/quantize/formulas/blocks.h. Nearest levels are found by distances, the smallest first.

The script also derives the levels of NF4 from the quantiles of the normal distribution, as the paper does. It fails if
a level differs by more than 1e-6. Where bitsandbytes is installed, it compares the codes of random blocks with its own.

One line per fact, each a word followed by values:
  case NAME     begins a case
  levels        of the 16 codes (only in the case "levels")
  matrix        format rows cols
  values        (rows · cols), decimals that read back to the same fp32; or
  generated     a seed: value i is that of generated() below
  scales        the code of each block
  groups        offset and step of each group
  codes         (rows · cols)
  restored      (rows · cols); or, for generated values, checksums of codes and of the bits of restored values in fp32,
                bf16 and fp16:
  checksums     each Σ (i + 1) · word_i mod 2^32
"""

from pathlib import Path
from statistics import NormalDist

import numpy as np

BLOCK, GROUP = 64, 256
LEVELS = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    dtype=np.float32,
)


def constructed_levels() -> np.ndarray:
    """Appendix E: 2^k + 1 quantiles of N(0, 1), 8 steps above zero and 7 below with one zero, divided by the
    largest."""
    outermost = ((1 - 1 / 32) + (1 - 1 / 30)) / 2
    quantile = NormalDist().inv_cdf
    above = [quantile(p) for p in np.linspace(outermost, 0.5, 9)[:-1]]
    below = [-quantile(p) for p in np.linspace(outermost, 0.5, 8)[:-1]]
    levels = np.array(sorted([*above, 0.0, *below]))
    return levels / levels.max()


@np.errstate(over="ignore")  # 127 · (the largest float32 / 127) rounds to infinity
def fp32(x):
    return np.float32(np.float64(x))


def of_fp32(x):
    return np.float64(fp32(x))


def nf4_codes(quotients: np.ndarray) -> np.ndarray:
    """The nearest level; of two equally near ones the lower."""
    between = of_fp32(of_fp32(LEVELS[:-1]) + of_fp32(LEVELS[1:])) / 2  # midpoints are numbers of float32, too
    return np.searchsorted(between, quotients, side="left")


def int8_codes(quotients: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(quotients, -127.0, 127.0)).astype(int)  # rint: ties to even


def quotients_of(values: np.ndarray, scale: np.float64) -> np.ndarray:
    return of_fp32(values / scale) if scale > 0 else np.zeros_like(values)


def blocks_of(values: np.ndarray) -> list[np.ndarray]:
    return [row[begin : begin + BLOCK] for row in values for begin in range(0, len(row), BLOCK)]


def quantized_scales(scales: np.ndarray):
    """Codes, groups and what is restored of them."""
    codes, groups, restored = [], [], []
    for begin in range(0, len(scales), GROUP):
        group = scales[begin : begin + GROUP]
        total = np.float64(0)
        for scale in group:
            total += scale
        offset = of_fp32(total / len(group))
        step = of_fp32(np.abs(of_fp32(group - offset)).max() / 127.0)
        of_group = int8_codes(quotients_of(of_fp32(group - offset), step))
        codes.extend(of_group)
        groups.append((fp32(offset), fp32(step)))
        restored.extend(np.maximum(of_fp32(offset + of_fp32(of_group * step)), 0.0))
    return codes, groups, restored


def quantized(format_name: str, values: np.ndarray):
    values = of_fp32(values)
    blocks = blocks_of(values)
    magnitudes = np.array([np.abs(block).max() for block in blocks])
    scales = magnitudes if format_name == "nf4" else of_fp32(magnitudes / 127.0)
    scale_codes, groups, restored_scales = quantized_scales(scales)
    codes, restored = [], []
    for block, scale in zip(blocks, restored_scales):
        quotients = quotients_of(block, scale)
        of_block = nf4_codes(quotients) if format_name == "nf4" else int8_codes(quotients)
        levels = of_fp32(LEVELS)[of_block] if format_name == "nf4" else of_block
        codes.extend(int(code) for code in of_block)
        restored.extend(fp32(levels * scale))
    return scale_codes, groups, codes, np.array(restored, dtype=np.float32)


def bf16_bits(values: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint32).astype(np.uint64)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def checksum(words) -> int:
    words = np.asarray(words).astype(np.int64).astype(np.uint64)
    return int(np.sum((np.arange(len(words), dtype=np.uint64) + 1) * words) & np.uint64(0xFFFFFFFF))


def generated(seed: int, rows: int, cols: int) -> np.ndarray:
    """Small integers times powers of two by an integer hash; one in 4096 is 64 times as large."""
    h = (np.arange(rows * cols, dtype=np.uint64) + np.uint64(seed)) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)
    h = (h ^ (h >> np.uint64(15))) * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(13)
    size = np.where(h >> np.uint64(20) == 0, 64.0, 1.0)
    values = ((h % np.uint64(4001)).astype(np.float64) - 2000.0) * size / 32768.0
    return values.reshape(rows, cols)


def text(values) -> str:
    return " ".join(repr(float(value)) if isinstance(value, (float, np.floating)) else str(int(value)) for value in values)


def case(name: str, format_name: str, values: np.ndarray, seed: int | None = None) -> list[str]:
    scale_codes, groups, codes, restored = quantized(format_name, values)
    lines = [f"case {name}", f"matrix {format_name} {values.shape[0]} {values.shape[1]}"]
    lines.append(f"values {text(np.float32(values).reshape(-1))}" if seed is None else f"generated {seed}")
    lines += [f"scales {text(scale_codes)}", f"groups {text(value for group in groups for value in group)}"]
    if seed is None:
        return [*lines, f"codes {text(codes)}", f"restored {text(restored)}"]
    fp16 = restored.astype(np.float16).view(np.uint16)
    sums = [checksum(codes), checksum(restored.view(np.uint32)), checksum(bf16_bits(restored)), checksum(fp16)]
    return [*lines, f"checksums {text(sums)}"]


def compare_with_bitsandbytes() -> str:
    try:
        import bitsandbytes.functional as library
        import torch
    except ImportError:
        return "comparison with bitsandbytes: skipped, it is not installed"
    values = np.random.default_rng(5).normal(size=(64, BLOCK)).astype(np.float32)
    differences = 0
    for block in values:  # one block alone has an exact scale here, as with compress_statistics=False there
        packed, state = library.quantize_4bit(torch.from_numpy(block), blocksize=BLOCK, quant_type="nf4")
        restored = library.dequantize_4bit(packed, state).numpy()
        differences += int((restored != quantized("nf4", block[None])[3]).sum())
    assert differences <= values.size // 1000, differences
    return f"comparison with bitsandbytes: {differences} of {values.size} elements differ"


def main() -> None:
    assert np.abs(constructed_levels() - LEVELS).max() < 1e-6, constructed_levels() - LEVELS
    midpoints = (LEVELS[:-1] + LEVELS[1:]) / np.float32(2)
    ties = np.concatenate([[1.0], midpoints, np.nextafter(midpoints, np.float32(2)), np.nextafter(midpoints,
        np.float32(-2))])
    halves = np.concatenate([[127.0], np.arange(-126.5, 127.0)[::9], [-127.0, 126.5]])
    random = np.random.default_rng(3)
    mixed = random.normal(size=(3, 200)).astype(np.float32)  # blocks at the ends of rows have 8 elements
    mixed[1, 64:128] = 0
    mixed[2, 10] = 40
    extreme = np.zeros((4, 70), dtype=np.float32)
    extreme[0, :4] = [3.4028234663852886e38, -3.4028234663852886e38, 1e38, 1.0]
    extreme[2, :5] = [1e-3, -1e-3, 5e-4, -0.0, 1e-45]
    extreme[3, 66] = 1e30
    tiny = np.array([[1e-45, -1e-45, 0.0, 3e-45], [1e-38, -1e-38, 5e-39, 1.2e-38]], dtype=np.float32)
    lines = ["case levels", f"levels {text(LEVELS)}"]
    lines += case("nf4_levels", "nf4", LEVELS[None])
    lines += case("nf4_ties", "nf4", np.float32(ties)[None])
    lines += case("int8_ties", "int8", np.float32(halves)[None])
    for name in ("nf4", "int8"):
        lines += case(f"{name}_mixed", name, mixed)
        lines += case(f"{name}_zeros", name, np.zeros((2, 65), dtype=np.float32))
        lines += case(f"{name}_extreme", name, extreme)
        lines += case(f"{name}_tiny", name, tiny)
        lines += case(f"{name}_one", name, np.array([[-0.3]], dtype=np.float32))
        lines += case(f"{name}_groups", name, generated(7, 5, 8000), 7)  # 625 blocks
        lines += case(f"{name}_odd_rows", name, generated(11, 301, 97), 11)  # 602 blocks, half of them of 33 elements
    note = compare_with_bitsandbytes()
    head = f"# made by make_golden_quantize.py; {note}"
    Path(__file__).with_name("quantize.txt").write_text("\n".join([head, *lines]) + "\n")
    print(note)


if __name__ == "__main__":
    main()

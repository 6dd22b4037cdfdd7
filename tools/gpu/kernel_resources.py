#!/usr/bin/env python3
"""Registers, spills, shared memory and blocks per multiprocessor of each kernel, from a build of the preset `cuda`.

`python3 tools/gpu/kernel_resources.py native/build-cuda` writes kernel-resources.json into the build folder and prints
it as Markdown. It fails if a kernel spills registers that is not among MAY_SPILL. Needs no GPU: the figures are ptxas',
the blocks follow from CUDA's documented limits, the threads of a block from the sources' __launch_bounds__.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from machine import ROOT

# Of a multiprocessor, by compute capability (CUDA programming guide, technical specifications).
SHARED_KIB = {80: 164, 86: 100, 87: 164, 89: 100, 90: 228}
WARPS = {80: 64, 86: 48, 87: 48, 89: 48, 90: 64}
BLOCKS = {80: 32, 86: 16, 87: 16, 89: 24, 90: 32}
REGISTERS = 65536  # in four parts, one for each of its schedulers, in units of 256 to a warp
RESERVED_SHARED = 1024  # of each block, by CUDA
SHARED_UNIT = 128

# These may spill: attention without tensor cores, which computes fp32 and widths that those cannot.
MAY_SPILL = re.compile(r"plain_(forward|key|query)_kernel\b")

ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)\w*'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
STATIC_SHARED = re.compile(r"(\d+) bytes smem")


def read_log(text):
    """A dictionary for each kernel and architecture in an output of ptxas -v."""
    kernels = []
    for line in text.splitlines():
        if found := ENTRY.search(line):
            kernels.append({"symbol": found[1], "arch": int(found[2])})
        elif found := SPILLS.search(line):
            kernels[-1].update(zip(("stack_bytes", "spill_store_bytes", "spill_load_bytes"), map(int, found.groups())))
        elif found := USED.search(line):
            shared = STATIC_SHARED.search(line)
            kernels[-1].update(registers=int(found[1]), shared_bytes=int(shared[1]) if shared else 0)
    return kernels


def readable(demangled):
    """`void zerofleet::cuda::(anonymous namespace)::f<zerofleet::bf16, 64>(…)` → `f<bf16, 64>`"""
    text = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::|zerofleet::|cuda::|cudnn::|^void ", "", demangled)
    text = re.sub(r"\((bool|int)\)", "", text).replace("> >", ">>")
    depth = 0
    for at, char in enumerate(text):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "(" and depth == 0:
            return text[:at]
    return text


def demangle(symbols):
    done = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    return [readable(line) for line in done.stdout.splitlines()]


def source_threads():
    """Threads of a block by kernel's name: its __launch_bounds__, a constant of the sources."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "native" / "kernels").rglob("*/cuda/*")))
    constants = {}
    for names in re.findall(r"constexpr int (k\w+ = [^;{]+);", text):
        for name, value in re.findall(r"(k\w+) = ([\w *+/]+)", names):
            constants[name] = value
    def value_of(expression):
        return eval(re.sub(r"k\w+", lambda name: str(value_of(constants[name[0]])), expression))  # pylint: disable=eval-used
    bounds = re.findall(r"__launch_bounds__\((k\w+)(?:, [^()]+(?:\([^()]*\)[^()]*)?)?\)\s+(\w+)\(", text)
    return {kernel: value_of(constant) for constant, kernel in bounds}


def dynamic_shared(build):
    """Bytes of dynamic shared memory by kernel's name, if they do not depend on a call's shape. They are arguments of
    the function in native/kernels/common/cuda/dynamic_shared.cuh, in the symbols of the build's objects."""
    symbols = subprocess.run(["nm", "-C", *sorted(build.rglob("*.cu.o"))], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"allow_dynamic_shared<&\((.*)\), (\d+)ul>\(", symbols)
    if not found:
        raise SystemExit(f"{build} has no launch with dynamic shared memory: the name of its function must have changed")
    return {readable(kernel): int(num_bytes) for kernel, num_bytes in found}


def blocks_per_multiprocessor(arch, threads, registers, shared_bytes):
    """The number of blocks that a multiprocessor has room for; None for an architecture that is not in the tables."""
    if arch not in WARPS:
        return None
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // 256) * 256
    by_registers = REGISTERS // 4 // of_a_warp * 4 // warps
    of_a_block = -(-(shared_bytes + RESERVED_SHARED) // SHARED_UNIT) * SHARED_UNIT
    return min(by_registers, WARPS[arch] // warps, BLOCKS[arch], SHARED_KIB[arch] * 1024 // of_a_block)


def measure(build):
    """All kernels of a build, sorted by name and architecture."""
    kernels = [kernel for log in sorted(build.rglob("*.ptxas")) for kernel in read_log(log.read_text(encoding="utf-8"))]
    if not kernels:
        raise SystemExit(f"{build} has no output of ptxas: it must be a build of the preset cuda (cmake --build --preset cuda)")
    names = demangle([kernel.pop("symbol") for kernel in kernels])
    threads, dynamic = source_threads(), dynamic_shared(build)
    if unknown := dynamic.keys() - names:
        raise SystemExit(f"{build} has launches of kernels that ptxas did not report: {', '.join(sorted(unknown))}")
    for kernel, name in zip(kernels, names):
        kernel["kernel"] = name
        kernel["threads"] = threads[name.partition("<")[0]]
        kernel["dynamic_shared_bytes"] = dynamic.get(name, 0)
        kernel["may_spill"] = bool(MAY_SPILL.match(name))
        shared = kernel["shared_bytes"] + kernel["dynamic_shared_bytes"]
        kernel["blocks_per_multiprocessor"] = blocks_per_multiprocessor(
            kernel["arch"], kernel["threads"], kernel["registers"], shared)
    return sorted(kernels, key=lambda kernel: (kernel["kernel"], kernel["arch"]))


def as_markdown(kernels):
    lines = ["| kernel | sm | registers | spilled bytes, stores / loads | threads | shared bytes | blocks per SM |", "|---|---|---|---|---|---|---|"]
    for k in kernels:
        spilled = f"{k['spill_store_bytes']} / {k['spill_load_bytes']}"
        shared = k["shared_bytes"] + k["dynamic_shared_bytes"]
        lines.append(f"| `{k['kernel']}` | {k['arch']} | {k['registers']} | {spilled} | {k['threads']} | {shared} | "
                     f"{k['blocks_per_multiprocessor']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path, help="a build folder of the preset cuda")
    build = parser.parse_args().build
    kernels = measure(build)
    (build / "kernel-resources.json").write_text(json.dumps(kernels, indent=1) + "\n", encoding="utf-8")
    print(as_markdown(kernels))
    spilling = [kernel for kernel in kernels if kernel["spill_store_bytes"] + kernel["spill_load_bytes"] > 0]
    faults = [kernel for kernel in spilling if not kernel["may_spill"]]
    for kernel in faults:
        print(f"{kernel['kernel']} spills registers for sm_{kernel['arch']}: {kernel['spill_store_bytes']} bytes of stores, "
              f"{kernel['spill_load_bytes']} bytes of loads", file=sys.stderr)
    print(f"{len(kernels)} kernels, {len(spilling)} spill, {len(faults)} of these may not", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

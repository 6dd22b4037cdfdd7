#!/usr/bin/env python3
"""Builds the native core for the GPU of this machine, and tests and measures it there: `npm run gpu:check`.

Needs g++, CMake, make or ninja, CUDA's nvcc and Python 3.9, but neither Node.js nor a network. Without a GPU the
emulated device takes its place, which shows that the check itself works. Every stage can be run alone; results of one
day and commit meet in one file. See docs/gpu.md and bench/results/README.md.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from machine import ROOT, commit, describe
from report import print_step, print_summary
from results import COMMITTED, Result
from stages import STAGES, Check
from steps import FAILED, PASSED, SIGNALS, TIMED_OUT, Stopped


def read_options(args):
    parser = argparse.ArgumentParser(prog="gpu:check", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--stage", default="all", help="some of " + ",".join(STAGES) + ", or all")
    parser.add_argument("--deadline", type=int, metavar="SECONDS", help="ends before: steps that are not expected to fit are not run")
    parser.add_argument("--continue", dest="resume", action="store_true", help="not again what an earlier call has passed")
    parser.add_argument("--build-folder", type=Path, default=ROOT / "native" / "build-gpu")
    parser.add_argument("--out", type=Path, help="folder of the result; $OUT, else bench/results, or the build folder without a GPU")
    parser.add_argument("--commit", help="of the sources, where git does not know it")
    parser.add_argument("--jobs", type=int, help="of the compiler at once; all cores")
    parser.add_argument("--limit", type=int, help="seconds for each step, in place of its own limit")
    parser.add_argument("--config", type=lambda text: text.split(","), help="of the benchmarks, e.g. gpt2,llama-1b")
    parser.add_argument("--tiny", action="store_true", help="benchmarks at sizes that only show that they run")
    parser.add_argument("--emulated", action="store_true", help="the emulated device although there is a GPU")
    parser.add_argument("--peer", help="a Python with torch, or none; this Python")
    parser.add_argument("--cmake", action="append", default=[], help="another option for CMake, as --cmake=-DNAME=VALUE")
    options = parser.parse_args(args)
    options.started = time.monotonic()
    options.build_folder = options.build_folder.resolve()
    options.stages = list(STAGES) if options.stage == "all" else options.stage.split(",")
    unknown = [stage for stage in options.stages if stage not in STAGES]
    if unknown:
        parser.error(f"unknown stage {unknown[0]}; there are {', '.join(STAGES)}")
    return options


def folder_of(options, gpu):
    if options.out or os.environ.get("OUT"):
        return options.out or Path(os.environ["OUT"])
    return COMMITTED if gpu else options.build_folder


def run_stages(check):
    """Records each step as soon as it has ended. What an incomplete build left of an earlier one is not measured."""
    for stage in check.options.stages:
        print(stage, flush=True)
        statuses = set()
        for step in STAGES[stage](check):
            check.result.record(stage, step)
            print_step(step)
            statuses.add(step["status"])
        if stage == "build" and statuses != {PASSED}:
            print("the build is not complete: no other stage is run")
            return


def main():
    options = read_options(sys.argv[1:])
    check = Check(options, describe())
    device = check.gpu["name"] if check.gpu else "emulated"
    check.result = Result(folder_of(options, check.gpu), check.build, device, options.commit or commit(), check.machine)
    if check.machine["cublaslt"] is None and check.gpu:
        print("cuBLASLt was not found: products run on a kernel without tensor cores, and shares of the peak mean nothing")
    if check.machine["cudnn"] is None and check.gpu:
        print("cuDNN was not found: attention runs on our own kernels")
    SIGNALS.install()
    stopped = None
    try:
        run_stages(check)
    except Stopped as signal:
        stopped = signal
    print_summary(check.result.content, check.result.recorded, STAGES)
    print(f"result: {check.result.file}")
    if stopped:
        print(f"stopped by {stopped}: the steps behind are missing")
    failed = [step for step in check.result.recorded if step["status"] in (FAILED, TIMED_OUT)]
    sys.exit(1 if failed or stopped else 0)


if __name__ == "__main__":
    main()

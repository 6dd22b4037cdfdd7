#!/usr/bin/env python3
"""Builds the native core for the GPU of this machine, and tests and measures it there: `npm run gpu:check`.

Needs g++, CMake, make or ninja, CUDA's nvcc and Python 3.9, but neither Node.js nor a network. Without a GPU the emulated
device takes its place, which shows that the check itself works. Every stage can be run alone; results of one day and
commit meet in one file. See docs/gpu.md and bench/results/README.md.
"""

import argparse
import datetime
import json
import re
import sys
from pathlib import Path

from machine import ROOT, commit, describe
from stages import STAGES, Check
from steps import FAILED, NOT_RUN, TIMED_OUT

FORMAT = 1
MARKS = {FAILED: "FAILED", TIMED_OUT: "FAILED (time)", NOT_RUN: "NOT RUN"}


def read_options(args):
    parser = argparse.ArgumentParser(prog="gpu:check", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--stage", default="all", help="some of " + ",".join(STAGES) + ", or all")
    parser.add_argument("--build-folder", type=Path, default=ROOT / "native" / "build-gpu")
    parser.add_argument("--out", type=Path, help="folder of the result; bench/results, or the build folder without a GPU")
    parser.add_argument("--jobs", type=int, help="of the compiler at once; all cores")
    parser.add_argument("--limit", type=int, help="seconds for each step, in place of its own limit")
    parser.add_argument("--config", type=lambda text: text.split(","), help="of the benchmarks, e.g. gpt2,llama-1b")
    parser.add_argument("--tiny", action="store_true", help="benchmarks at sizes that only show that they run")
    parser.add_argument("--emulated", action="store_true", help="the emulated device although there is a GPU")
    parser.add_argument("--peer", help="a Python with torch, or none; this Python")
    parser.add_argument("--cmake", action="append", default=[], help="another option for CMake, as --cmake=-DNAME=VALUE")
    options = parser.parse_args(args)
    options.build_folder = options.build_folder.resolve()
    options.stages = list(STAGES) if options.stage == "all" else options.stage.split(",")
    unknown = [stage for stage in options.stages if stage not in STAGES]
    if unknown:
        parser.error(f"unknown stage {unknown[0]}; there are {', '.join(STAGES)}")
    return options


def result_file(folder, device, head):
    """Result file of this device, day and commit; the next free name if the file belongs to another commit."""
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    name = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    for number in range(1, 1000):
        file = folder / f"{name}-{day}{'' if number == 1 else f'-{number}'}.json"
        if not file.exists() or json.loads(file.read_text(encoding="utf-8"))["commit"] == head:
            return file, day
    raise SystemExit(f"{folder} is full of results of this day")


def merged(file, day, head, check):
    """Results of earlier calls in the file, with this machine's description."""
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"stages": {}}
    return {
        "format": FORMAT,
        "date": day,
        "commit": head,
        "device": check.gpu["name"] if check.gpu else "emulated",
        "machine": check.machine,
        "stages": earlier["stages"],
    }


def print_summary(result, stages):
    print(f"\n{result['device']}, {result['date']}, commit {result['commit']}")
    for stage in STAGES:
        if stage not in result["stages"]:
            print(f"  NOT RUN        {stage}: not asked for")
        for step in result["stages"].get(stage, []):
            note = step.get("why") or ""
            if "cases" in step:
                counts = step["cases"]
                note = f"{counts['passed']} cases passed, {counts['failed']} failed, {counts['skipped']} left out" + (note and f"; {note}")
            earlier = "" if stage in stages else " (an earlier call)"
            print(f"  {MARKS.get(step['status'], 'ok'):14} {stage}: {step['name']}{note and ': ' + note}{earlier}")
    if result["device"] == "emulated":
        print("There was no GPU: the emulated device took its place, and nothing here says anything of speed.")


def main():
    options = read_options(sys.argv[1:])
    head = commit()
    check = Check(options, describe())
    folder = options.out or (ROOT / "bench" / "results" if check.gpu else options.build_folder)
    folder.mkdir(parents=True, exist_ok=True)
    file, day = result_file(folder, check.gpu["name"] if check.gpu else "emulated", head)
    result = merged(file, day, head, check)
    if check.machine["cublaslt"] is None and check.gpu:
        print("cuBLASLt was not found: products run on a kernel without tensor cores, and shares of the peak mean nothing")
    for stage in options.stages:
        print(stage, flush=True)
        result["stages"][stage] = STAGES[stage](check)
        # Written after each stage, so that results survive if a later stage crashes the machine.
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print_summary(result, options.stages)
    print(f"result: {file}")
    failed = [step for stage in options.stages for step in result["stages"][stage] if step["status"] in (FAILED, TIMED_OUT)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

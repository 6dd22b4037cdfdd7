#!/usr/bin/env python3
"""Writes a result's row into the table of bench/results/README.md: `python3 tools/gpu/table.py
bench/results/FILE.json`.

A row of the same GPU, day and commit is replaced.
"""

import argparse
import json
from pathlib import Path

from results import COMMITTED

HEADER = "| GPU | date | commit | what was run |"
EMPTY = "| none | | | |"


def counted(steps):
    """Summary of a stage's result."""
    by_status = {}
    for step in steps:
        by_status.setdefault(step["status"], []).append(step["name"])
    cases = [f"{step['name']}: {step['cases']['passed']} passed, {step['cases']['failed']} failed" for step in steps if "cases" in step]
    words = cases or [f"{len(by_status.get('passed', []))} of {len(steps)} steps passed"]
    for status in ("failed", "timed_out", "not_run"):
        if status in by_status:
            words.append(f"{status.replace('_', ' ')}: {', '.join(by_status[status])}")
    return "; ".join(words)


def speeds(steps):
    """Trainings compared with PyTorch, by configuration."""
    found = {}
    for step in steps:
        for line in step.get("measurements", []):
            if line["part"] in ("train", "peer") and "tokens_per_second" in line:
                found.setdefault(line["config"], {})[line["part"]] = line
    words = []
    for config, lines in found.items():
        if "train" not in lines:
            continue
        share = lines["train"]["matrix_peak_share_with_attention"]
        text = f"{config} {lines['train']['tokens_per_second']:.0f} tokens/s ({100 * share:.0f} % of the matrix peak)"
        words.append(text + (f", PyTorch {lines['peer']['tokens_per_second']:.0f}" if "peer" in lines else ""))
    return words


def row_of(result):
    parts = [f"{stage}: {counted(steps)}" for stage, steps in result["stages"].items()]
    parts += speeds(result["stages"].get("training", []))
    texts = [result["device"], result["date"], result["commit"], ". ".join(parts)]
    return "| " + " | ".join(text.replace("|", "/") for text in texts) + " |"


def with_row(document, row):
    """The document with the row below the table's header."""
    lines = document.split("\n")
    start = lines.index(HEADER) + 2
    end = start
    while lines[end].startswith("|"):
        end += 1
    key = row.split(" | ")[:3]
    rows = [line for line in lines[start:end] if line != EMPTY and line.split(" | ")[:3] != key]
    return "\n".join([*lines[:start], *rows, row, *lines[end:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--document", type=Path, default=COMMITTED / "README.md")
    options = parser.parse_args()
    result = json.loads(options.result.read_text(encoding="utf-8"))
    if not result["machine"]["gpus"] or result["device"] == "emulated":
        raise SystemExit("this result is of no GPU: the table has only what was run on one")
    document = options.document.read_text(encoding="utf-8")
    options.document.write_text(with_row(document, row_of(result)), encoding="utf-8")


if __name__ == "__main__":
    main()

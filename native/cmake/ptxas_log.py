#!/usr/bin/env python3
"""Compiler launcher: runs nvcc, and keeps ptxas' figures of the kernels of a source beside its object, as OBJECT.ptxas.

tools/gpu/kernel_resources.py reads them. They are kept out of the build's output.
"""

import re
import subprocess
import sys

FIGURES = re.compile(r"ptxas info\s*:|\s+\d+ bytes stack frame,")


def main(command):
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    lines = done.stderr.splitlines(keepends=True)
    sys.stderr.writelines(line for line in lines if not FIGURES.match(line))
    if done.returncode == 0 and "-o" in command:
        with open(f"{command[command.index('-o') + 1]}.ptxas", "w", encoding="utf-8") as log:
            log.writelines(line for line in lines if FIGURES.match(line))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs one step of a check with a timeout, and reports its result."""

import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time

from machine import LOAD_FIELDS, ROOT, query_gpus

PASSED, FAILED, TIMED_OUT, NOT_RUN = "passed", "failed", "timed_out", "not_run"
TAIL_LINES = 40


def not_run(name, why):
    return {"name": name, "status": NOT_RUN, "why": why}


class GpuLoad:
    """Clocks, power and temperature of the first GPU during a step, polled every few seconds."""

    def __init__(self, wanted):
        self.samples = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True) if wanted else None

    def __enter__(self):
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        if self._thread:
            self._thread.join()

    def _watch(self):
        while not self._over.wait(3):
            self.samples.extend(query_gpus(LOAD_FIELDS)[:1])

    def summary(self):
        found = {}
        for field in LOAD_FIELDS:
            numbers = [float(sample[field]) for sample in self.samples if re.fullmatch(r"[\d.]+", sample[field])]
            if numbers:
                found[field] = {"min": min(numbers), "median": statistics.median(numbers), "max": max(numbers)}
        return found


def end_group(process):
    """Kills a step's process group, so that its children do not outlive it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(name, command, limit, log_folder, env=None, watch_gpu=False):
    """
    The step's result, and its output. Everything that it prints goes to a log file, also where it is cut short.
    """
    log_folder.mkdir(parents=True, exist_ok=True)
    log = log_folder / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".log")
    print(f"  {name} …", flush=True)
    start = time.monotonic()
    with open(log, "wb") as sink, GpuLoad(watch_gpu) as load:
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=ROOT,
                env={**os.environ, **(env or {})},
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return {"name": name, "status": FAILED, "why": str(error)}, ""
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_group(process)
            process.wait()
    output = log.read_text(encoding="utf-8", errors="replace")
    status = TIMED_OUT if code is None else PASSED if code == 0 else FAILED
    result = {"name": name, "status": status, "seconds": round(time.monotonic() - start, 1)}
    if status == TIMED_OUT:
        result["why"] = f"it took longer than {limit} s"
    elif status == FAILED:
        result["why"] = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
    if status != PASSED:
        result["output_tail"] = output.splitlines()[-TAIL_LINES:]
    if load.summary():
        result["gpu_load"] = load.summary()
    return result, output


def fail(result, why):
    """Result of a step that ran without the expected outcome."""
    if result["status"] == PASSED:
        result["status"], result["why"] = FAILED, why
    return result


def json_lines(output):
    """Measurements in a program's output."""
    found = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # the last line of a killed program
    return found


CASES = re.compile(r"test cases:\s+(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped")


def add_cases(result, output):
    """Doctest's counts, and the names of failed cases."""
    found = CASES.findall(output)
    if not found:
        return fail(result, "the program printed no summary of its test cases")
    _, passed, failed, skipped = (int(number) for number in found[-1])
    result["cases"] = {"passed": passed, "failed": failed, "skipped": skipped}
    names = []
    for block in output.split("=" * 79):
        name = re.search(r"^TEST CASE:\s+(.+)$", block, re.MULTILINE)
        if name and "ERROR:" in block and name[1] not in names:
            names.append(name[1])
    if names:
        result["failed_cases"] = names
    if passed == 0:
        fail(result, "no test case was run")
    return result


def can_import(python, module):
    try:
        command = [python, "-c", f"import {module}"]
        return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False

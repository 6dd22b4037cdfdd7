"""Runs one step of a check with a timeout, in a process group that ends with the check, and reports its result."""

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

from machine import LOAD_FIELDS, ROOT, query_gpus

PASSED, FAILED, TIMED_OUT, NOT_RUN = "passed", "failed", "timed_out", "not_run"
TAIL_LINES = 40
# Of a process beside each step, which outlives a killed check: the check holds its standard input open, and says so
# when it has ended the step itself.
WATCHER = "import os, signal, sys\nif not sys.stdin.read(): os.killpg(int(sys.argv[1]), signal.SIGKILL)"


class Stopped(Exception):
    """A signal asks the check to end."""


class Signals:
    """Turns signals into Stopped while something is waited for; others wait until then, so that no step or result is
    left half-way."""

    def __init__(self):
        self.received = None
        self._waiting = False

    def install(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._receive)

    def _receive(self, number, _frame):
        self.received = signal.Signals(number).name
        if self._waiting:
            self._waiting = False
            raise Stopped(self.received)

    @contextlib.contextmanager
    def waiting(self):
        try:
            self._waiting = True
            if self.received:
                raise Stopped(self.received)
            yield
        finally:
            self._waiting = False


SIGNALS = Signals()


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
            self._thread.join(timeout=5)

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


class Group:
    """A step's processes. They end with the step, also if the check is killed."""

    def __init__(self, command, env, sink):
        command = [str(part) for part in command]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=sink,
                stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._watcher = subprocess.Popen(
            [sys.executable, "-c", WATCHER, str(self._process.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )

    def wait(self, seconds):
        """The exit code, and why it is not known: after a timeout or a signal to the check."""
        try:
            with SIGNALS.waiting():
                return self._process.wait(timeout=seconds), None
        except (subprocess.TimeoutExpired, Stopped) as error:
            return None, error

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._watcher.communicate(b"ended")


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
            group = Group(command, env or {}, sink)
        except OSError as error:
            return {"name": name, "status": FAILED, "why": str(error)}, ""
        try:
            code, cut_short = group.wait(limit)
        finally:
            group.end()
    output = log.read_text(encoding="utf-8", errors="replace")
    result = {"name": name, "status": PASSED, "seconds": round(time.monotonic() - start, 1)}
    if isinstance(cut_short, Stopped):
        result |= {"status": FAILED, "why": f"stopped by {cut_short}"}
    elif cut_short:
        result |= {"status": TIMED_OUT, "why": f"it took longer than {limit:.0f} s"}
    elif code != 0:
        result |= {"status": FAILED, "why": f"exit code {code}" if code > 0 else f"ended by signal {-code}"}
    if result["status"] != PASSED:
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
    command = [python, "-c", f"import {module}"]
    try:
        with SIGNALS.waiting():
            return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False

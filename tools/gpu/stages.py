"""The stages of a check: each yields the results of its steps, one after the other."""

import math
import os
import re
import shutil
import sys
import time

import predict
import steps
from machine import find_nvcc, output_of

DEVICE_CASES = ["--test-suite=devices"]
NO_DEVICE = re.compile(r"no CUDA device (?:on this machine|in this build)( \(.*?\))?: ")  # printed by the tests without a GPU
# Cases that are quick even under memory checking, covering all kinds of kernels.
SANITIZER_CASES = (
    "--test-case=cast*,*fold*,block stats*,digests*,element-wise*,*norm*,*attention*,*embedding*,*cross-entropy*,gelu*,swiglu*,*rope*,"
    "*router*,*dropout*,gemm*"
)
SANITIZER_TOOLS = {
    "memcheck": ["--leak-check", "no"],
    "racecheck": [],
    "initcheck": [],
}
FULL = ["gpt2", "gpt2-xl", "llama-1b", "llama-1b-4096"]
TINY = ["gpt2-tiny", "llama-tiny"]
# Before the deadline, for ending the last step and writing the result.
RESERVE_SECONDS = 10
# Limits and expected durations of the kinds of steps, in seconds. An estimate is the longest time measured on an H100
# with 16 cores; those of configuring, building and the sanitizer are guesses.
LIMITS = {
    "configure": 300, "build": 3600, "device cases": 3600, "all cases": 3600, "exact": 1200, "kernels": 1800, "training": 900,
    "peer": 900, "sanitizer": 1800,
}
ESTIMATES = {
    "configure": 30, "build": 150, "device cases": 40, "all cases": 180, "exact": 60, "kernels": 65, "training": 35,
    "peer": 75, "sanitizer": 300,
}


class Check:
    """State shared by the stages. `gpu` is the first GPU's description, or None for the emulated device."""

    def __init__(self, options, machine):
        self.options = options
        self.machine = machine
        self.gpu = machine["gpus"][0] if machine["gpus"] and not options.emulated else None
        self.build = options.build_folder
        self.logs = self.build / "check-logs"
        self.result = None
        self.end = options.started + options.deadline - RESERVE_SECONDS if options.deadline else None
        self.env = {}
        for name in ("cublaslt", "cudnn"):
            if machine[name] and not machine[f"{name}_found_by_core"]:
                self.env[f"ZF_{name.upper()}"] = machine[name]

    @property
    def tiny(self):
        return self.options.tiny or not self.gpu

    @property
    def configs(self):
        return self.options.config or (TINY if self.tiny else FULL)

    def left(self):
        """Seconds."""
        return self.end - time.monotonic() if self.end else math.inf

    def obstacle(self, kind):
        """Why a step does not fit before the deadline, or None."""
        if self.left() >= ESTIMATES[kind]:
            return None
        return f"about {ESTIMATES[kind]} s are expected, and {max(self.left(), 0):.0f} s are left before the deadline"

    def step(self, name, kind, command, finish=None, env=None, watch_gpu=False, repeat=False):
        """
        Runs a step if it fits before the deadline. With --continue a step that an earlier call passed is skipped,
        unless `repeat`. finish(result, output) completes the result of a step that ran.
        """
        if steps.SIGNALS.received:
            raise steps.Stopped(steps.SIGNALS.received)
        earlier = self.result.step(name)
        if self.options.resume and not repeat and earlier and earlier["status"] == steps.PASSED:
            return earlier
        if why := self.obstacle(kind):
            return {**steps.not_run(name, why), "estimated_seconds": ESTIMATES[kind]}
        limit = min(self.options.limit or LIMITS[kind], self.left())
        watch_gpu = watch_gpu and self.gpu is not None
        result, output = steps.run(name, command, limit, self.logs, {**self.env, **(env or {})}, watch_gpu)
        result["estimated_seconds"] = ESTIMATES[kind]
        if finish:
            finish(result, output)
        return result

    def program(self, name):
        """A test program's path: the GPU build, or the build with the emulated device."""
        return self.build / (f"zerofleet_{name}" if self.gpu else f"zerofleet_emulated_{name}")


def configure_options(check):
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DZF_BUILD_ADDON=OFF"]
    if check.gpu:
        # Machine code only for this GPU: halves the compile time.
        options += ["-DZF_CUDA=on", f"-DCMAKE_CUDA_ARCHITECTURES={check.gpu['compute_cap'].replace('.', '')}"]
        options += [f"-DCMAKE_CUDA_COMPILER={find_nvcc()}"] if find_nvcc() else []
    else:
        options += ["-DZF_CUDA=on" if find_nvcc() else "-DZF_CUDA=off"]
    if shutil.which("ninja") and not (check.build / "Makefile").exists():
        options += ["-G", "Ninja"]
    return options


def build(check):
    configure = ["cmake", "-S", "native", "-B", check.build, *configure_options(check), *check.options.cmake]
    configured = check.step("configure", "configure", configure, repeat=True)
    yield configured
    if configured["status"] != steps.PASSED:
        return
    targets = ["zerofleet_tests", "zerofleet_gpu_bench"]
    if not check.gpu:
        targets += ["zerofleet_emulated_tests", "zerofleet_emulated_gpu_bench"]
    jobs = str(check.options.jobs or len(os.sched_getaffinity(0)))
    yield check.step("build", "build", ["cmake", "--build", check.build, "--target", *targets, "-j", jobs], repeat=True)


def unbuilt(check, *names):
    missing = [name for name in names if not check.program(name).exists()]
    return f"{', '.join(str(check.program(name)) for name in missing)}: not built" if missing else None


def finish_device_cases(result, output):
    steps.add_cases(result, output)
    if missing := NO_DEVICE.search(output):
        steps.fail(result, f"the program found no CUDA device{missing[1] or ''}")


def tests(check):
    if why := unbuilt(check, "tests"):
        yield steps.not_run("test cases", why)
        return
    where = "on the GPU" if check.gpu else "on the emulated device"
    command = [check.program("tests"), *DEVICE_CASES]
    yield check.step(f"cases for devices {where}", "device cases", command, finish_device_cases, {"ZF_TEST_DEVICES": "cuda"})
    yield check.step("all cases", "all cases", [check.build / "zerofleet_tests"], steps.add_cases)


def bench_command(check, parts, *more):
    return [check.program("gpu_bench"), parts, "--size", "tiny" if check.tiny else "full", *more]


def digests_of(step):
    return [(line["part"], line.get("family"), line.get("digests") or line.get("digest"))
            for line in step.get("measurements", []) if line["part"] in ("digests", "resumed")]


def add_measurements(result, output):
    result["measurements"] = steps.json_lines(output)


def exact(check):
    if why := unbuilt(check, "gpu_bench"):
        yield steps.not_run("digests", why)
        return
    runs = []
    for turn in ("first run", "second run"):
        runs.append(check.step(f"digests and loss curves, {turn}", "exact", bench_command(check, "exact"), add_measurements))
        yield runs[-1]
    name = "digests of both runs"
    # A run of this call, or of an earlier one.
    digests = [digests_of(check.result.step(run["name"])) for run in runs]
    if any(check.result.step(run["name"])["status"] == steps.NOT_RUN for run in runs):
        yield steps.not_run(name, "one of the runs is missing")
        return
    equal = bool(digests[0]) and digests[0] == digests[1]
    comparison = {"name": name, "status": steps.PASSED if equal else steps.FAILED, "equal": equal, "compared": len(digests[0])}
    if not equal:
        comparison["why"] = "they differ" if digests[0] and digests[1] else "there are none to compare"
    yield comparison


def measured(check, name, kind, config):
    def finish(result, output):
        add_measurements(result, output)
        if result["status"] == steps.PASSED and len(result["measurements"]) < 2:
            steps.fail(result, "it printed no measurement")
        predict.add_predictions(result["measurements"], predictions_of(check))

    part = {"kernels": "kernels", "training": "train"}[kind]
    return check.step(name, kind, bench_command(check, part, "--config", config), finish, watch_gpu=True)


def predictions_of(check):
    """Those that are committed for this GPU, or None. Those of the tiny sizes are for an H200, and show only that
    they are there."""
    if not check.tiny:
        return predict.committed_for(check.gpu["name"])
    return predict.predictions("h200", steps.json_lines(output_of(bench_command(check, "cases")) or ""))


def peer(check, config, trained):
    """Trains with PyTorch, using the core's micro-batch."""
    name = f"PyTorch: {config}"
    python = check.options.peer or sys.executable
    if python == "none":
        return steps.not_run(name, "--peer none")
    lines = [line for line in trained.get("measurements", []) if line["part"] == "train" and "tokens_per_second" in line]
    if not lines:
        return steps.not_run(name, "the core's own training was not measured")
    if why := check.obstacle("peer"):
        return steps.not_run(name, why)
    if not steps.can_import(python, "torch"):
        return steps.not_run(name, f"{python} has no torch")
    options = ["--config", config, "--micro-batch", str(lines[-1]["micro_batch"]), "--leaves", str(lines[-1]["leaves"])]
    options += [] if check.gpu else ["--device", "cpu", "--steps", "1"]

    def finish(result, output):
        add_measurements(result, output)
        if not result["measurements"]:
            steps.fail(result, "it printed no measurement")

    return check.step(name, "peer", [python, "bench/gpu/pytorch_peer.py", *options], finish, watch_gpu=True)


def kernels(check):
    if why := unbuilt(check, "gpu_bench"):
        yield steps.not_run("kernels", why)
        return
    for config in check.configs:
        yield measured(check, f"kernels: {config}", "kernels", config)


def training(check):
    if why := unbuilt(check, "gpu_bench"):
        yield steps.not_run("training", why)
        return
    for config in check.configs:
        name = f"training: {config}"
        yield measured(check, name, "training", config)
        yield peer(check, config, check.result.step(name))


def sanitizer(check):
    name = "compute-sanitizer"
    if not check.gpu:
        yield steps.not_run(name, "there is no GPU")
        return
    program = shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    if program is None:
        yield steps.not_run(name, "it is not installed")
        return
    if why := unbuilt(check, "tests"):
        yield steps.not_run(name, why)
        return

    def finish(result, output):
        steps.add_cases(result, output)
        result["summaries"] = [line.strip("= ") for line in output.splitlines() if "SUMMARY" in line and "====" in line]

    for tool, more in SANITIZER_TOOLS.items():
        command = [program, "--tool", tool, *more, "--error-exitcode", "99", check.program("tests"), SANITIZER_CASES, *DEVICE_CASES]
        yield check.step(f"{name}: {tool}", "sanitizer", command, finish, {"ZF_TEST_DEVICES": "cuda"})


STAGES = {"build": build, "tests": tests, "exact": exact, "kernels": kernels, "training": training, "sanitizer": sanitizer}

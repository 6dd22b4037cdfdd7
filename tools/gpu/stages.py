"""The stages of a check: each returns the results of its steps."""

import os
import re
import shutil
import sys

import steps
from machine import ROOT, find_nvcc

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


class Check:
    """State shared by the stages. `gpu` is the first GPU's description, or None for the emulated device."""

    def __init__(self, options, machine):
        self.options = options
        self.machine = machine
        self.gpu = machine["gpus"][0] if machine["gpus"] and not options.emulated else None
        self.build = options.build_folder
        self.logs = self.build / "check-logs"
        self.env = {}
        if machine["cublaslt"] and not machine["cublaslt_found_by_core"]:
            self.env["ZF_CUBLASLT"] = machine["cublaslt"]

    def limit(self, seconds):
        return self.options.limit or seconds

    def run(self, name, command, seconds, env=None, watch_gpu=False):
        return steps.run(name, command, self.limit(seconds), self.logs, {**self.env, **(env or {})}, watch_gpu)

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
    if (ROOT / "third_party").is_dir():
        options.append(f"-DZF_HEADERS={ROOT / 'third_party'}")
    if shutil.which("ninja") and not (check.build / "Makefile").exists():
        options += ["-G", "Ninja"]
    return options


def build(check):
    configured, _ = check.run(
        "configure", ["cmake", "-S", "native", "-B", check.build, *configure_options(check), *check.options.cmake], 300
    )
    if configured["status"] != steps.PASSED:
        return [configured]
    targets = ["zerofleet_tests", "zerofleet_gpu_bench"]
    if not check.gpu:
        targets += ["zerofleet_emulated_tests", "zerofleet_emulated_gpu_bench"]
    jobs = str(check.options.jobs or len(os.sched_getaffinity(0)))
    built, _ = check.run("build", ["cmake", "--build", check.build, "--target", *targets, "-j", jobs], 3600)
    return [configured, built]


def unbuilt(check, *names):
    missing = [name for name in names if not check.program(name).exists()]
    return f"{', '.join(str(check.program(name)) for name in missing)}: not built" if missing else None


def tests(check):
    if why := unbuilt(check, "tests"):
        return [steps.not_run("test cases", why)]
    where = "on the GPU" if check.gpu else "on the emulated device"
    devices, output = check.run(
        f"cases for devices {where}", [check.program("tests"), *DEVICE_CASES], 3600, {"ZF_TEST_DEVICES": "cuda"}
    )
    steps.add_cases(devices, output)
    if missing := NO_DEVICE.search(output):
        steps.fail(devices, f"the program found no CUDA device{missing[1] or ''}")
    whole, output = check.run("all cases", [check.build / "zerofleet_tests"], 3600)
    steps.add_cases(whole, output)
    return [devices, whole]


def bench_command(check, parts, *more):
    size = "full" if check.gpu and not check.options.tiny else "tiny"
    return [check.program("gpu_bench"), parts, "--size", size, *more]


def digests_of(lines):
    return [(line["part"], line.get("family"), line.get("digests") or line.get("digest"))
            for line in lines if line["part"] in ("digests", "resumed")]


def exact(check):
    if why := unbuilt(check, "gpu_bench"):
        return [steps.not_run("digests", why)]
    results, digests = [], []
    for turn in ("first run", "second run"):
        result, output = check.run(f"digests and loss curves, {turn}", bench_command(check, "exact"), 1200)
        result["measurements"] = steps.json_lines(output)
        digests.append(digests_of(result["measurements"]))
        results.append(result)
    equal = bool(digests[0]) and digests[0] == digests[1]
    status = steps.PASSED if equal else steps.FAILED
    comparison = {"name": "digests of both runs", "status": status, "equal": equal, "compared": len(digests[0])}
    if not equal:
        comparison["why"] = "they differ" if digests[0] and digests[1] else "there are none to compare"
    return [*results, comparison]


def measured(check, name, parts, seconds, *more):
    result, output = check.run(name, bench_command(check, parts, *more), seconds, watch_gpu=check.gpu is not None)
    result["measurements"] = steps.json_lines(output)
    if result["status"] == steps.PASSED and len(result["measurements"]) < 2:
        steps.fail(result, "it printed no measurement")
    return result


def peer(check, config, trained):
    """Trains with PyTorch, using the core's micro-batch."""
    name = f"PyTorch: {config}"
    python = check.options.peer or sys.executable
    if python == "none":
        return steps.not_run(name, "--peer none")
    if not steps.can_import(python, "torch"):
        return steps.not_run(name, f"{python} has no torch")
    lines = [line for line in trained["measurements"] if line["part"] == "train" and "tokens_per_second" in line]
    if not lines:
        return steps.not_run(name, "the core's own training was not measured")
    options = ["--config", config, "--micro-batch", str(lines[-1]["micro_batch"]), "--leaves", str(lines[-1]["leaves"])]
    options += [] if check.gpu else ["--device", "cpu", "--steps", "1"]
    result, output = check.run(name, [python, "bench/gpu/pytorch_peer.py", *options], 900, watch_gpu=check.gpu is not None)
    result["measurements"] = steps.json_lines(output)
    return result if result["measurements"] else steps.fail(result, "it printed no measurement")


def bench(check):
    if why := unbuilt(check, "gpu_bench"):
        return [steps.not_run("benchmarks", why)]
    tiny = check.options.tiny or not check.gpu
    configs = check.options.config or (["gpt2-tiny", "llama-tiny"] if tiny else ["gpt2", "gpt2-xl", "llama-1b", "llama-1b-4096"])
    results = [measured(check, f"kernels: {','.join(configs)}", "kernels", 1800, "--config", ",".join(configs))]
    for config in configs:
        trained = measured(check, f"training: {config}", "train", 900, "--config", config)
        results += [trained, peer(check, config, trained)]
    return results


def sanitizer(check):
    name = "compute-sanitizer"
    if not check.gpu:
        return [steps.not_run(name, "there is no GPU")]
    program = shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    if program is None:
        return [steps.not_run(name, "it is not installed")]
    if why := unbuilt(check, "tests"):
        return [steps.not_run(name, why)]
    results = []
    for tool, more in SANITIZER_TOOLS.items():
        command = [program, "--tool", tool, *more, "--error-exitcode", "99", check.program("tests"), SANITIZER_CASES, *DEVICE_CASES]
        result, output = check.run(f"{name}: {tool}", command, 1800, {"ZF_TEST_DEVICES": "cuda"})
        steps.add_cases(result, output)
        result["summaries"] = [line.strip("= ") for line in output.splitlines() if "SUMMARY" in line and "====" in line]
        results.append(result)
    return results


STAGES = {"build": build, "tests": tests, "exact": exact, "bench": bench, "sanitizer": sanitizer}

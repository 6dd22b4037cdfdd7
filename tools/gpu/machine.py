"""What this machine is: its GPU, compilers and libraries, and which commit the sources are."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

GPU_FIELDS = (
    "index",
    "name",
    "uuid",
    "driver_version",
    "memory.total",
    "compute_cap",
    "clocks.max.sm",
    "clocks.max.mem",
    "power.limit",
    "ecc.mode.current",
    "mig.mode.current",
)
LOAD_FIELDS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "memory.used")
# As kernels/gemm/cuda/cublaslt_library.cc and kernels/attention/cuda/cudnn_library.cc look for them.
CUBLASLT_NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")
CUDNN_NAMES = ("libcudnn.so.9",)


def output_of(command, cwd=None):
    """Standard output without its end, or None where the command is missing or fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def query_gpus(fields):
    """One dictionary for each GPU, of texts; an empty list where there is no driver."""
    text = output_of(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
    rows = [line.split(", ") for line in (text or "").splitlines()]
    return [dict(zip(fields, row)) for row in rows if len(row) == len(fields)]


def find_nvcc():
    """nvcc as CMake finds it: CUDACXX, PATH, or where NVIDIA's packages put it."""
    paths = [os.environ.get("CUDACXX"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"]
    return next((path for path in paths if path and shutil.which(path)), None)


def torch_library_folders():
    """Folders of NVIDIA's libraries that came with PyTorch's packages."""
    for folder in [Path(entry) for entry in sys.path if entry] + list(Path("/usr/local/lib").glob("python3*/dist-packages")):
        yield from sorted(folder.glob("nvidia/*/lib"))


def find_library(variable, names, nvcc):
    """The library's file or name, and whether the core finds it by itself; (None, False) where it is missing."""
    if os.environ.get(variable):
        return os.environ[variable], True
    for name in names:
        try:
            ctypes.CDLL(name)
            return name, True
        except OSError:
            continue
    folders = list(torch_library_folders())
    if nvcc:
        toolkit = Path(shutil.which(nvcc)).resolve().parents[1]
        folders = [toolkit / "lib64", *sorted(toolkit.glob("targets/*/lib")), *folders]
    for folder in folders:
        for name in names:
            if (folder / name).exists():
                return str(folder / name), False
    return None, False


def commit():
    """Of the clone, "+" with local changes; "unknown" in a copy of its files."""
    head = output_of(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT)
    if head is None:
        return "unknown"
    changes = output_of(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT)
    return head + ("+" if changes else "")


def cpu_name():
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def last_line(text):
    return text.splitlines()[-1].strip() if text else None


def describe():
    """The `machine` object of a result; see bench/results/README.md."""
    nvcc = find_nvcc()
    cublaslt, by_itself = find_library("ZF_CUBLASLT", CUBLASLT_NAMES, nvcc)
    cudnn, cudnn_by_itself = find_library("ZF_CUDNN", CUDNN_NAMES, nvcc)
    compiler = output_of([os.environ.get("CXX", "g++"), "--version"])
    return {
        "gpus": query_gpus(GPU_FIELDS),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "nvcc": last_line(output_of([nvcc, "--version"])) if nvcc else None,
        "compiler": compiler.splitlines()[0] if compiler else None,
        "cmake": (output_of(["cmake", "--version"]) or "").split("\n")[0] or None,
        "cublaslt": cublaslt,
        "cublaslt_found_by_core": by_itself,
        "cudnn": cudnn,
        "cudnn_found_by_core": cudnn_by_itself,
        "python": platform.python_version(),
    }

"""Grades answers with one Python source, each in a forked child without network, files and processes.

  python3 -s -B serve.py

Frames on standard input and output are a length (4 bytes, big endian) and JSON. The first frame in has the source and
the limits; the first frame out is {} or an error. Each later frame in is an answer, and gets one frame out: a score or
an error. After the death of a grade, which may have left a part of the answer unread, the process ends; `last` says so.

The process itself never compiles or runs the source and never reads an answer. So no grade can change or see another.
"""
import ast
import collections  # noqa: F401 sources import these most; a grade finds them loaded
import datetime  # noqa: F401
import decimal  # noqa: F401
import difflib  # noqa: F401
import gc
import importlib
import json
import marshal
import math
import numbers
import os
import random
import re  # noqa: F401
import resource
import select
import signal
import socket
import statistics  # noqa: F401
import struct
import sys
import tempfile
import time

import confine

MAX_MESSAGE = 2000
MAX_MODULES = 50
# Above a message's, whose characters take up to 12 bytes.
FRAME_BYTES = 32 << 10
CODE_BYTES = 4 << 20
# Descriptors of the frames. Modules that read standard input or print meet none of them.
INPUT, OUTPUT = os.dup(0), os.dup(1)


def read_exactly(count):
    """Reads bytes of the frames; fewer at their end."""
    pieces = []
    while count > 0:
        piece = os.read(INPUT, min(count, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def read_length():
    """Returns the length of the next frame; None after the last one."""
    head = read_exactly(4)
    return struct.unpack(">I", head)[0] if len(head) == 4 else None


def write_all(descriptor, content):
    while content:
        content = content[os.write(descriptor, content):]


def write_frame(frame):
    write_all(OUTPUT, struct.pack(">I", len(frame)) + frame)


def encoded(value):
    return json.dumps(value).encode()


def failure(code, message):
    return {"error": {"code": code, "message": message[:MAX_MESSAGE]}}


def described(error):
    """Describes an exception of the source, with the last of its lines that took part."""
    place, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<grader>":
            place = f"line {trace.tb_lineno}: "
        trace = trace.tb_next
    if isinstance(error, MemoryError):
        return failure("python_memory_limit", f"{place}the grade needs more memory than it may have")
    if isinstance(error, PermissionError):
        return failure("python_forbidden", f"{place}{error}; a grader has no files, no network and no processes")
    return failure("python_failed", f"{place}{type(error).__name__}: {error}")


def score(code, answer):
    """Runs the source on an answer, a frame. Returns the frame of its score."""
    try:
        given = json.loads(answer)
    except RecursionError:
        return failure("python_failed", "the item is nested more deeply than Python reads")
    module = {"__name__": "grader", "__builtins__": __builtins__}
    random.seed(0)  # grades repeat
    try:
        exec(marshal.loads(code), module)
        grade = module.get("grade")
        if not callable(grade):
            return failure("python_source_invalid", "the source has no function grade(sample, item)")
        value = grade(given["sample"], given["item"])
        if not isinstance(value, numbers.Real):
            return failure("python_result_invalid", f"grade() returned {type(value).__name__} instead of a number")
        value = float(value)
    except BaseException as error:  # SystemExit, too
        return described(error)
    if not math.isfinite(value):
        return failure("python_result_invalid", f"grade() returned {value}, which is not finite")
    return {"score": value}


def compiled(source):
    """Compiles a source. Returns the names of the modules that it imports, a line end, and its code; or an error."""
    try:
        tree = ast.parse(source, "<grader>")
        code = compile(tree, "<grader>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f"line {error.lineno}: " if getattr(error, "lineno", None) else ""
        message = getattr(error, "msg", None) or error or type(error).__name__
        return encoded(failure("python_source_invalid", f"{line}{message}"))
    names = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    names = [name for name in names if "__main__" not in name.split(".")]  # these run a program
    return b" ".join(name.encode() for name in names[:MAX_MODULES]) + b"\n" + marshal.dumps(code)


def temporary_folder():
    """Returns a folder in which this machine's users may write; None if there is none."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return None


def probed(folder):
    """Tries what a grade must not do, such as to write into the folder. Returns what succeeded, or nothing."""
    attempts = {
        "network": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "sockets of files": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "processes of others": lambda: os.open("/proc/1/environ", os.O_RDONLY),
        "files": lambda: os.open("/etc", os.O_RDONLY),
        "processes": os.fork,
        "signals": lambda: os.kill(os.getppid(), 0),
    }
    if folder is not None:
        file = os.path.join(folder, f"zerofleet-{os.getpid()}")
        attempts["writing"] = lambda: os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue  # refused, or absent here as /proc may be
        return name.encode()
    return b""


class Server:
    def __init__(self, limits, folder):
        self.limits = limits
        self.folder = folder
        self.program = confine.allowing(confine.COMPUTING)
        self.code = b""

    def prepare(self, source):
        """Compiles the source in a child, and imports its modules. Returns the first frame."""
        reached, failed = self.in_child(lambda: probed(self.folder), FRAME_BYTES)
        if failed is not None or reached:
            raise confine.Unavailable(f"the sandbox leaks: {reached.decode() or failed}")
        content, failed = self.in_child(lambda: compiled(source), CODE_BYTES)
        if failed is not None:
            return failed
        if content.startswith(b"{"):
            return json.loads(content)
        names, _, self.code = content.partition(b"\n")
        self.load(names.decode().split())
        return {}

    def load(self, names):
        """Imports modules in the memory that a grade may have. A grade meets the errors again."""
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (self.limits["memory_bytes"], hard))
        for name in names:
            try:
                importlib.import_module(name)
            except BaseException:
                pass
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    def serve(self):
        gc.collect()
        gc.freeze()
        failed = None
        while failed is None and (length := read_length()) is not None:
            answer = []
            content, failed = self.in_child(
                lambda: encoded(score(self.code, answer[0])), FRAME_BYTES, lambda: answer.append(read_exactly(length)))
            frame = content if failed is None else encoded({**failed, "last": True})
            frame = frame or encoded(failure("python_died", "the source ended its process without a result"))
            write_frame(frame)

    def in_child(self, task, limit, read=lambda: None):
        """Runs a task in a restricted child. Returns what it wrote, up to a limit of bytes, and its
        failure."""
        reading, writing = os.pipe()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            self.live(parent, writing, read, task)
        os.close(writing)
        content, failed = self.listen(child, reading, limit)
        os.close(reading)
        return content, failed

    def listen(self, child, reading, limit):
        """Reads what a child writes until it has ended. Returns that, and its failure."""
        deadline = time.monotonic() + self.limits["seconds"]
        content = b""
        while len(content) <= limit:
            ready, _, _ = select.select([reading], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return b"", self.killed(child, "python_time_limit", f"took more than {self.limits['seconds']} s")
            piece = os.read(reading, 1 << 16)
            if not piece:
                return content, self.ended(child, deadline)
            content += piece
        return b"", self.killed(child, "python_output_limit", f"wrote more than {limit} bytes")

    def ended(self, child, deadline):
        """Waits for the end of a child that writes no more. Returns its failure."""
        while time.monotonic() < deadline:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid == child:
                return None if status == 0 else self.death(status, usage.ru_utime + usage.ru_stime)
            time.sleep(0.001)
        return self.killed(child, "python_time_limit", f"took more than {self.limits['seconds']} s")

    def killed(self, child, code, message):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return failure(code, f"the grade {message}")

    def death(self, status, cpu_seconds):
        if not os.WIFSIGNALED(status):
            code = os.WEXITSTATUS(status)
            return failure("python_died", f"the source ended its process with exit code {code}")
        name = signal.Signals(os.WTERMSIG(status)).name
        limit = self.limits["cpu_seconds"]
        if name == "SIGXCPU" or (name == "SIGKILL" and cpu_seconds >= limit):
            return failure("python_time_limit", f"the grade took more than {limit} s of processor time")
        if name == "SIGKILL":
            return failure("python_memory_limit", "the grade was killed, as the kernel does where memory is short")
        return failure("python_died", f"the source ended its process by {name}")

    def live(self, parent, writing, read, task):
        """Life of a child; never returns."""
        status = 1
        try:
            confine.end_with(parent, signal.SIGKILL)
            cpu, memory = self.limits["cpu_seconds"], self.limits["memory_bytes"]
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
            for name, limit in (("AS", memory), ("FSIZE", 0), ("NOFILE", 64), ("CORE", 0), ("NPROC", 0)):
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
            read()
            os.close(INPUT)
            os.close(OUTPUT)
            confine.restrict_calls(self.program)
            write_all(writing, task())
            status = 0
        finally:
            os._exit(status)


def main():
    confine.end_with(os.getppid(), signal.SIGKILL)
    os.dup2(2, 0)
    os.dup2(2, 1)
    os.environ.pop("PATH", None)
    given = json.loads(read_exactly(read_length() or 0))
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    try:
        # The kernel ends a grader first when memory is short. Only a hint.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    folder = temporary_folder()
    try:
        confine.restrict_files()
        confine.restrict_calls(confine.allowing(confine.SERVING))
        server = Server(given["limits"], folder)
        first = server.prepare(given["source"])
    except confine.Unavailable as error:
        first = failure("python_unavailable", f"{error}; python graders need Linux 5.13 with Landlock and seccomp")
    write_frame(encoded(first))
    if not first:
        server.serve()


main()

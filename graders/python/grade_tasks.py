"""What a restricted child of serve.py does: it probes the sandbox, compiles a source, or grades an answer."""
import ast
import builtins
import json
import marshal
import math
import numbers
import os
import random
import socket

MAX_MESSAGE = 2000
MAX_MODULES = 50


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
    module = {"__name__": "grader", "__builtins__": builtins}
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

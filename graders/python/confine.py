"""Confines this process by Landlock and seccomp, which need no privilege.

Landlock: a process and its children can read Python's own files, and open nothing else. seccomp: they can make only
the listed system calls; all others fail with EPERM.
"""
import ctypes
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_RULE_PATH_BENEATH = 1
READ_FILE, READ_DIR = 1 << 2, 1 << 3
# All rights of the first version of Landlock.
ALL_RIGHTS = (1 << 13) - 1

# Index in the tables below, and the constant AUDIT_ARCH_*.
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# System calls of a grade, as x86_64 and aarch64 number them. None changes anything outside of its process. `fcntl` is
# missing because F_SETOWN sends signals to other processes.
COMPUTING = {
    "read": (0, 63), "write": (1, 64), "open": (2, None), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215),
    "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66), "sched_yield": (24, 124), "mremap": (25, 216),
    "madvise": (28, 233), "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93), "uname": (63, 160),
    "getcwd": (79, 17), "gettimeofday": (96, 169), "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153),
    "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173),
    "sigaltstack": (131, 132), "gettid": (186, 178), "time": (201, None), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "getdents64": (217, 61), "restart_syscall": (219, 128),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94),
    "openat": (257, 56), "newfstatat": (262, 79), "set_robust_list": (273, 99), "getrandom": (318, 278),
    "membarrier": (324, 283), "statx": (332, 291), "rseq": (334, 293),
}
# What the process that starts grades needs as well.
SERVING = {
    **COMPUTING,
    "poll": (7, None), "ioctl": (16, 29), "select": (23, None), "dup": (32, 23), "dup2": (33, None), "clone": (56, 220),
    "wait4": (61, 260), "kill": (62, 129), "fcntl": (72, 25), "readlink": (89, None), "prctl": (157, 167),
    "setrlimit": (160, 164), "readlinkat": (267, 78), "pselect6": (270, 72), "ppoll": (271, 73), "dup3": (292, 24),
    "pipe2": (293, 59), "prlimit64": (302, 261), "clone3": (435, 435),
}


class Unavailable(Exception):
    """The process cannot be confined here."""


class Instruction(ctypes.Structure):
    """struct sock_filter"""

    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction))]


def allowing(calls):
    """Returns the seccomp program that allows some system calls."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES or sys.maxsize < 2**32:
        raise Unavailable(f"python graders need x86_64 or aarch64; this machine is {machine}")
    column, architecture = ARCHITECTURES[machine]
    numbers = sorted({entry[column] for entry in calls.values()} - {None})
    load, if_equal, answer = 0x20, 0x15, 0x06
    allow, eperm, kill = 0x7FFF0000, 0x00050001, 0x80000000
    steps = [(load, 0, 0, 4), (if_equal, 1, 0, architecture), (answer, 0, 0, kill), (load, 0, 0, 0)]
    for number in numbers:
        steps += [(if_equal, 0, 1, number), (answer, 0, 0, allow)]
    steps.append((answer, 0, 0, eperm))
    return Program(len(steps), (Instruction * len(steps))(*(Instruction(*step) for step in steps)))


def require(result, what):
    if result >= 0:
        return result
    reason = os.strerror(ctypes.get_errno())
    raise Unavailable(f"{what} is refused by the kernel or the container ({reason})")


def prctl(option, value, pointer=None):
    rest = (ctypes.c_ulong(0), ctypes.c_ulong(0))
    third = ctypes.c_ulong(0) if pointer is None else pointer
    return LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), third, *rest)


def restrict_calls(program):
    require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)), "seccomp")


def end_with(parent, signal):
    """Lets a signal end this process when its parent ends."""
    require(prctl(PR_SET_PDEATHSIG, signal), "PR_SET_PDEATHSIG")
    if os.getppid() != parent:
        os._exit(1)


def restrict_files():
    """After this, Python's own files can be read, and nothing else can be opened."""
    require(prctl(PR_SET_NO_NEW_PRIVS, 1), "PR_SET_NO_NEW_PRIVS")
    handled = ctypes.c_uint64(ALL_RIGHTS)
    ruleset = require(
        LIBC.syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0)),
        "Landlock",
    )
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    places = {*sys.path, *(os.path.join(prefix, "lib") for prefix in prefixes)}
    places |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache"}
    for place in sorted(places):
        try:
            descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights = READ_FILE | READ_DIR if os.path.isdir(place) else READ_FILE
        rule = struct.pack("=Qi", rights, descriptor)
        added = LIBC.syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, ctypes.c_uint32(0))
        require(added, "Landlock")
        os.close(descriptor)
    require(LIBC.syscall(LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)), "Landlock")
    os.close(ruleset)

"""Closes the process that reads a document: from then on it can compute, read its input, and write its output.

Layers, each of which works without the others:

    limits    every system: no new file or socket gets a number, no process starts, nothing is written to a disk, and
              memory and computing time end
    Landlock  Linux 5.13 and later: no file can be opened; from 6.7 on no TCP connection
    seccomp   Linux on x86_64 and aarch64: of the system calls only those that computing needs

What a reader needs is imported before. As a program, this module closes itself in the same way and prints which system
calls of a hostile document still work on this system; the doctor shows it:

    python -m palaver.media.documents.sandbox      {"possible": []}
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import socket
import struct
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


# prctl
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2

# Landlock: the numbers of its system calls are the same on every architecture
_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_VERSION_FLAG: Final = 1
_FILE_RIGHTS: Final = ((1, 13), (2, 14), (3, 15), (5, 16))  # from this version on, so many
_NETWORK_VERSION: Final = 4
_SCOPE_VERSION: Final = 6

# seccomp: the number of the architecture, and for each system call its number on x86_64 and aarch64
_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_ALLOWED_CALLS: Final = (
    *((0, 63), (1, 64), (19, 65), (20, 66), (17, 67)),  # read, write, readv, writev, pread64
    *((3, 57), (5, 80), (8, 62)),  # close, fstat, lseek
    *((9, 222), (10, 226), (11, 215), (25, 216)),  # mmap, mprotect, munmap, mremap
    *((12, 214), (28, 233), (202, 98)),  # brk, madvise, futex
    *((13, 134), (14, 135), (15, 139), (131, 132)),  # rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack
    *((24, 124), (35, 101), (230, 115), (219, 128)),  # sched_yield, nanosleep, clock_nanosleep, restart_syscall
    *((228, 113), (229, 114), (96, 169), (98, 165)),  # clock_gettime, clock_getres, gettimeofday, getrusage
    *((39, 172), (186, 178), (318, 278), (60, 93), (231, 94)),  # getpid, gettid, getrandom, exit, exit_group
)
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # instructions of a filter
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000  # refuse: with EPERM
CHECK_COMMAND: Final = (sys.executable, "-P", "-m", "palaver.media.documents.sandbox")


def limit_resources(*, memory_bytes: int, cpu_seconds: int) -> None:
    """Limit memory and computing time, and write nothing to a disk. Files can still be read: imports come after."""
    _set_limits(
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    )


def limit_cpu(seconds: int) -> None:
    _set_limits((resource.RLIMIT_CPU, seconds))


def close_sandbox() -> None:
    """Give up everything but computing, with every layer that this system has."""
    os.chdir("/")
    os.closerange(3, 256)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            _apply_landlock(libc)
            _forbid_new_resources()
            _apply_seccomp(libc)
            return
    _forbid_new_resources()


def _forbid_new_resources() -> None:
    _set_limits((resource.RLIMIT_NOFILE, 0), (resource.RLIMIT_NPROC, 0))


def _set_limits(*limits: tuple[int, int]) -> None:
    for limit, value in limits:
        _, highest = resource.getrlimit(limit)
        allowed = value if highest == resource.RLIM_INFINITY else min(value, highest)
        with contextlib.suppress(ValueError, OSError):  # macOS does not limit the address space
            resource.setrlimit(limit, (allowed, allowed))


def _apply_landlock(libc: ctypes.CDLL) -> None:
    """Forbid every access that Landlock knows: a set of rules without any exception."""
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    if version < 1:
        return
    rights = max(count for since, count in _FILE_RIGHTS if version >= since)
    forbidden = struct.pack("=Q", (1 << rights) - 1)
    if version >= _NETWORK_VERSION:
        forbidden += struct.pack("=Q", 0b11)  # bind and connect with TCP
    if version >= _SCOPE_VERSION:
        forbidden += struct.pack("=Q", 0b11)  # abstract Unix sockets and signals
    rules = libc.syscall(_CREATE_RULESET, forbidden, len(forbidden), 0)
    if rules >= 0:
        libc.syscall(_RESTRICT_SELF, rules, 0)
        os.close(rules)


def _apply_seccomp(libc: ctypes.CDLL) -> None:
    architecture = _ARCHITECTURES.get(os.uname().machine)
    if architecture is None or sys.maxsize < 2**32:
        return
    number, column = architecture
    calls = [numbers[column] for numbers in _ALLOWED_CALLS]
    steps = [(_LOAD, 0, 0, 4), (_JUMP_IF_EQUAL, 1, 0, number), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    steps += [(_JUMP_IF_EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)


def _start_process() -> None:
    if os.fork() == 0:
        os._exit(0)


_ATTEMPTS: Final[dict[str, Callable[[], None]]] = {
    "open": lambda: os.close(os.open(sys.executable, os.O_RDONLY)),
    "socket": lambda: socket.socket().close(),
    "fork": _start_process,
}


def _is_possible(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except (OSError, AttributeError):
        return False
    return True


def main() -> None:
    """Close this process and print what it still can do."""
    close_sandbox()
    possible = [name for name, attempt in _ATTEMPTS.items() if _is_possible(attempt)]
    os.write(1, json.dumps({"possible": possible}).encode())
    os._exit(0)


if __name__ == "__main__":
    main()

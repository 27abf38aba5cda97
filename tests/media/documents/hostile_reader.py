"""A hostile document has taken over its process: it closes the sandbox as the reader does, and then tries everything.

Prints JSON: for each attempt, the error with which it was refused, or null if it worked.

    python hostile_reader.py <file> <port> [layer that this system does not have]...
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

from palaver.media.documents import sandbox

_PTRACE_TRACEME = 0
_IS_X86 = os.uname().machine == "x86_64"  # asking is refused later


def try_all(path: str, port: int, *, is_complete: bool) -> dict[str, str | None]:
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> None:
        if libc.syscall(number, *arguments) < 0:
            raise OSError(ctypes.get_errno(), "refused")

    attempts = {
        "open the database": lambda: sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("SELECT * FROM secret"),
        "read a file": lambda: os.open(path, os.O_RDONLY),
        "read /etc/passwd": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "read its own memory": lambda: os.open("/proc/self/mem", os.O_RDONLY),
        "write a file": lambda: os.open(path + ".new", os.O_WRONLY | os.O_CREAT),
        "delete a file": lambda: Path(path).unlink(),
        "rename a file": lambda: Path(path).rename(path + ".moved"),
        "connect over TCP": lambda: socket.socket().connect(("127.0.0.1", port)),
        "open a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "open a Unix socket": lambda: socket.socket(socket.AF_UNIX),
        "fork": _fork,
        "start a program": lambda: subprocess.run(["/bin/true"], check=True),
        "raise its limits": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
    }
    if _IS_X86:
        attempts |= {
            "a call of another kind (x32)": lambda: call(0x40000000 + 39),
            "io_uring": lambda: call(425, 4, 0),
            "a file in memory": lambda: call(319, b"x", 0),
        }
    if is_complete:  # these would end the process, or stop it
        attempts["become a program"] = lambda: os.execv("/bin/true", ["true"])
        if _IS_X86:
            attempts["trace"] = lambda: call(101, _PTRACE_TRACEME, 0, 0, 0)
    return {name: _try(attempt) for name, attempt in attempts.items()}


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _try(attempt: object) -> str | None:
    try:
        attempt()  # type: ignore[operator]
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "refused")
    except (sqlite3.Error, subprocess.SubprocessError, ValueError) as error:
        return type(error).__name__
    return None


def main() -> None:
    path, port, *missing = sys.argv[1:]
    signal.alarm(30)
    if "seccomp" in missing:
        sandbox._ARCHITECTURES.clear()
    if "landlock" in missing:
        sandbox._apply_landlock = lambda libc: None
    if "limits" in missing:
        sandbox._forbid_new_resources = lambda: None
    if "all" not in missing:
        sandbox.close_sandbox()
    os.write(1, json.dumps(try_all(path, int(port), is_complete=not missing)).encode())
    os._exit(0)


if __name__ == "__main__":
    main()

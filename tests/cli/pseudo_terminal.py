"""Running `palaver` in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
from contextlib import suppress

READ_TIMEOUT_SECONDS = 30


def run_in_terminal(*args: str, keys: bytes = b"") -> tuple[int, str]:
    """Run `palaver` and type the same keys at every prompt; returns the exit code and the whole output."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="80", TERM="xterm")
        os.execv(sys.executable, [sys.executable, "-m", "palaver", *args])
    output = b""
    try:
        while piece := _read_output(terminal):
            output += piece
            if keys and piece.rstrip().endswith(b":"):
                os.write(terminal, keys)
    finally:
        os.close(terminal)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGHUP)  # ends a process that still waits for input
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.decode()


def _read_output(terminal: int) -> bytes:
    """Read the next output; empty if the program has ended or prints nothing for too long."""
    ready, _, _ = select.select([terminal], [], [], READ_TIMEOUT_SECONDS)
    try:
        return os.read(terminal, 4096) if ready else b""
    except OSError:  # on Linux this means that the other side was closed
        return b""

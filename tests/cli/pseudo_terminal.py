"""Running `palaver` in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.warm_process import WarmLauncher

READ_TIMEOUT_SECONDS = 30


def run_in_terminal(launcher: WarmLauncher, *args: str, keys: bytes = b"") -> tuple[int, str]:
    """Run `palaver` and type the same keys at every prompt; returns the exit code and the whole output."""
    terminal, programs_side = pty.openpty()
    environ = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    process = launcher.launch_in_terminal(*args, terminal=programs_side, env=environ)
    os.close(programs_side)
    output = b""
    try:
        while piece := _read_output(terminal):
            output += piece
            if keys and piece.rstrip().endswith(b":"):
                os.write(terminal, keys)
    finally:
        os.close(terminal)
        process.send_signal(signal.SIGHUP)  # ends a process that still waits for input
        exit_code = process.wait()
    return exit_code, output.decode()


def _read_output(terminal: int) -> bytes:
    """Read the next output; empty if the program has ended or prints nothing for too long."""
    ready, _, _ = select.select([terminal], [], [], READ_TIMEOUT_SECONDS)
    try:
        return os.read(terminal, 4096) if ready else b""
    except OSError:  # on Linux this means that the other side was closed
        return b""

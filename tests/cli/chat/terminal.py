"""`palaver` as a real process in a pseudo-terminal, with an emulator whose screen tests can read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIMEOUT_SECONDS = 30.0


class EmulatedScreen(pyte.HistoryScreen):
    """A screen that reports its cursor position when the program asks for it."""

    terminal = -1

    def write_process_input(self, data: str) -> None:
        with suppress(OSError):
            os.write(self.terminal, data.encode())


class Terminal:
    """`palaver` in a pseudo-terminal with an emulated screen."""

    def __init__(self, *args: str, env: dict[str, str], code: str | None = None, columns: int = 120) -> None:
        self.raw = b""  # the output with all escape sequences
        self._screen = EmulatedScreen(columns, 30, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        program = ["-m", "palaver"] if code is None else ["-c", code]
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            for name in ("COLUMNS", "LINES", "NO_COLOR"):
                os.environ.pop(name, None)
            os.environ.update({"TERM": "xterm-256color", **env})
            os.execv(sys.executable, [sys.executable, *program, *args])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self._screen.terminal = self._terminal
        self._exit_code: int | None = None

    @property
    def text(self) -> str:
        """Return everything on the screen and above it."""
        scrolled = [
            "".join(row[column].data for column in range(self._screen.columns)) for row in self._screen.history.top
        ]
        return "\n".join(line.rstrip() for line in [*scrolled, *self._screen.display])

    @property
    def status_line(self) -> str:
        """Return the last line of the screen."""
        return self.text.rstrip().rsplit("\n", 1)[-1]

    def type_keys(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait_for(self, expected: str | Callable[[str], bool]) -> str:
        """Wait until the screen shows a text or meets a condition, and return everything on it."""
        is_met = (lambda text: expected in text) if isinstance(expected, str) else expected
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not is_met(self.text):
            if time.monotonic() > deadline or not self._read_output():
                raise AssertionError(f"{expected!r} is not shown, but this:\n{self.text}")
        return self.text

    def send(self, text: str, until: str) -> str:
        """Type a line and wait until the answer has ended and contains a text."""
        self.type_keys(f"{text}\r")
        return self.wait_for(lambda text: until in text and "idle" in self.status_line)

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def wait_for_exit(self) -> int:
        """Wait until the process has ended and return its exit code."""
        if self._exit_code is None:
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while time.monotonic() < deadline and self._read_output():
                pass
            self._exit_code = self._reap()
        return self._exit_code

    def close(self) -> None:
        """Close the terminal, as when its window is closed."""
        os.close(self._terminal)
        self._terminal = -1

    def kill(self) -> None:
        """Close the terminal and kill the process if it still runs."""
        if self._terminal != -1:
            self.close()
        if self._exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code

    def _read_output(self) -> bool:
        """Read output if there is any, and return whether the process may write more."""
        ready, _, _ = select.select([self._terminal], [], [], 0.2)
        try:
            data = os.read(self._terminal, 65536) if ready else None
        except OSError:  # on Linux this means that the other side was closed
            return False
        if data is not None:
            self.raw += data
            self._stream.feed(data)
        return data != b""


class Terminals:
    """A home folder, several terminals with `palaver` on it, and commands beside them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {"PALAVER_HOME": str(home), "PALAVER_MODEL": "demo"}
        self._terminals: list[Terminal] = []

    def open(self, *args: str, code: str | None = None, columns: int = 120, **env: str) -> Terminal:
        """Start `palaver` in a new terminal."""
        terminal = Terminal(*args, env={**self.env, **env}, code=code, columns=columns)
        self._terminals.append(terminal)
        return terminal

    def open_chat(self, *args: str, code: str | None = None, columns: int = 120, **env: str) -> Terminal:
        """Start a chat in a new terminal and wait until it is ready for input."""
        terminal = self.open(*args, code=code, columns=columns, **env)
        terminal.wait_for("idle")
        return terminal

    def run(self, *args: str) -> str:
        """Run `palaver` without a terminal and return its output."""
        ran = subprocess.run(
            [sys.executable, "-m", "palaver", *args],
            env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return ran.stdout

    def kill_all(self) -> None:
        for terminal in self._terminals:
            terminal.kill()

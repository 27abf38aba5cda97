"""`palaver` as a real process in a pseudo-terminal, with an emulator whose screen tests can read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyte

from cli.chat.agent_code import QUICK_AGENT_CODE

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from support.warm_process import WarmLauncher

TIMEOUT_SECONDS = 60.0


class EmulatedScreen(pyte.HistoryScreen):
    """A screen that reports its cursor position when the program asks for it."""

    terminal = -1

    def write_process_input(self, data: str) -> None:
        with suppress(OSError):
            os.write(self.terminal, data.encode())


class ColdLauncher:
    """Starts a new Python process, as people do, for tests of the start itself."""

    def launch_in_terminal(
        self, *args: str, terminal: int, env: Mapping[str, str], code: str | None = None
    ) -> subprocess.Popen[bytes]:
        program = ["-m", "palaver"] if code is None else ["-c", code]
        return subprocess.Popen(
            [sys.executable, *program, *args],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  (the test has no other threads)
        )


class Terminal:
    """`palaver` in a pseudo-terminal with an emulated screen."""

    def __init__(
        self,
        launcher: WarmLauncher | ColdLauncher,
        *args: str,
        env: dict[str, str],
        code: str | None = None,
        columns: int = 120,
    ) -> None:
        self.raw = b""  # the output with all escape sequences
        self._text: str | None = None  # what `text` returns until there is more output
        self._screen = EmulatedScreen(columns, 30, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        self._terminal, programs_side = pty.openpty()
        self._screen.terminal = self._terminal
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        environ = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
        self._process = launcher.launch_in_terminal(
            *args, terminal=programs_side, env={**environ, "TERM": "xterm-256color", **env}, code=code
        )
        os.close(programs_side)

    @property
    def text(self) -> str:
        """Return everything on the screen and above it."""
        if self._text is None:
            scrolled = [
                "".join(row[column].data for column in range(self._screen.columns)) for row in self._screen.history.top
            ]
            self._text = "\n".join(line.rstrip() for line in [*scrolled, *self._screen.display])
        return self._text

    @property
    def status_line(self) -> str:
        """Return the last line of the screen."""
        return self.text.rstrip().rsplit("\n", 1)[-1]

    @property
    def window_title(self) -> str:
        """Return the title of the terminal's window."""
        return self._screen.title

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
        self._process.send_signal(number)

    def wait_for_exit(self) -> int:
        """Wait until the process has ended and return its exit code."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self._terminal != -1 and time.monotonic() < deadline and self._read_output():
            pass
        return self._process.wait()

    def close(self) -> None:
        """Close the terminal, as when its window is closed."""
        os.close(self._terminal)
        self._terminal = -1

    def kill(self) -> None:
        """Close the terminal and kill the process if it still runs."""
        if self._terminal != -1:
            self.close()
        self._process.kill()
        self._process.wait()

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
            self._text = None
        return data != b""


class Terminals:
    """A home folder, several terminals with `palaver` on it, and commands beside them."""

    def __init__(self, launcher: WarmLauncher, home: Path) -> None:
        self.home = home
        self._launcher = launcher
        self.env = {"PALAVER_HOME": str(home), "PALAVER_MODEL": "demo"}
        self._terminals: list[Terminal] = []

    def open(self, *args: str, code: str = QUICK_AGENT_CODE, columns: int = 120, **env: str) -> Terminal:
        """Start `palaver` in a new terminal."""
        terminal = Terminal(self._launcher, *args, env={**self.env, **env}, code=code, columns=columns)
        self._terminals.append(terminal)
        return terminal

    def open_cold(self) -> Terminal:
        """Start `palaver` in a new terminal with all that a start takes."""
        terminal = Terminal(ColdLauncher(), env=self.env)
        self._terminals.append(terminal)
        return terminal

    def open_chat(self, *args: str, code: str = QUICK_AGENT_CODE, columns: int = 120, **env: str) -> Terminal:
        """Start a chat in a new terminal and wait until it is ready for input."""
        terminal = self.open(*args, code=code, columns=columns, **env)
        terminal.wait_for("idle")
        return terminal

    def run(self, *args: str) -> str:
        """Run `palaver` without a terminal and return its output."""
        process = self._launcher.launch(*args, env={**os.environ, **self.env}, code=QUICK_AGENT_CODE)
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        return output

    def let_answers_continue(self) -> None:
        """Let the answers of `PAUSED_AGENT_CODE` continue."""
        (self.home / "continue").touch()

    def kill_all(self) -> None:
        for terminal in self._terminals:
            terminal.kill()

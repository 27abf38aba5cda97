"""The file into which signal-cli writes what it receives, and how far it was read.

signal-cli forgets a message as soon as it has printed it. So it prints into a file of ours, which survives the death of
both processes, and the gateway stores how far it has read together with what it has read.

Each start of signal-cli has a file of its own, with a higher number than those before it. A file that was read to its
end is deleted when its writer is gone. The writer holds a lock on it: its standard output is the file that was locked.

Always true: a file is deleted only after everything in it is stored, and never while it is being written. A line is
read when it is complete; one whose writer has died before its end is passed over, because signal-cli keeps a message
until it has printed it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

log = logging.getLogger(__name__)

READ_BYTES: Final = 256 * 1024
MAX_LINE_BYTES: Final = 4 * 1024 * 1024  # a longer one is passed over
_FILE_NAME: Final = re.compile(r"([0-9]{1,18})\.jsonl")


class SpoolPosition(NamedTuple):
    """A place in the spool; stored as the account's cursor."""

    number: int  # of the file
    offset: int  # in bytes

    def __str__(self) -> str:
        return f"{self.number}:{self.offset}"

    @classmethod
    def parse(cls, text: str | None) -> SpoolPosition:
        """Read a cursor; the beginning of everything at the first start."""
        number, _, offset = (text or "0:0").partition(":")
        return cls(int(number), int(offset))


@dataclass(frozen=True, slots=True)
class SpoolLine:
    """A complete line, and the position after it."""

    content: bytes
    position: SpoolPosition


class Spool:
    """The files of one account."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_file(self, after: SpoolPosition) -> tuple[int, SpoolPosition]:
        """Create the next file; return its descriptor, locked for the process that inherits it, and its beginning."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = max([*self.list_numbers(), after.number]) + 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._get_path(number), flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor, SpoolPosition(number, 0)

    def list_numbers(self) -> list[int]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := _FILE_NAME.fullmatch(name)))

    def measure_size(self, number: int) -> int:
        try:
            return self._get_path(number).stat().st_size
        except FileNotFoundError:
            return 0

    def has_writer(self, number: int) -> bool:
        """Whether a process still writes into a file."""
        try:
            descriptor = os.open(self._get_path(number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def has_more(self, position: SpoolPosition) -> bool:
        """Whether there is something after a position."""
        later = [number for number in self.list_numbers() if number >= position.number]
        read_sizes = {position.number: position.offset}
        return any(self.measure_size(number) > read_sizes.get(number, 0) for number in later)

    def is_written_by(self, pid: int) -> bool:
        """Whether a file is the standard output of a process; where that can't be known, every process may be it."""
        folder = Path("/proc")
        if not (folder / "self" / "fd").exists():
            return True
        for number in self.list_numbers():
            with contextlib.suppress(OSError):
                if self._get_path(number).samefile(folder / str(pid) / "fd" / "1"):
                    return True
        return False

    def read(self, position: SpoolPosition, size: int) -> bytes:
        try:
            with self._get_path(position.number).open("rb") as file:
                file.seek(position.offset)
                return file.read(size)
        except FileNotFoundError:
            return b""

    def delete_before(self, number: int) -> None:
        """Delete the files before one from which everything is stored."""
        for each in self.list_numbers():
            if each < number:
                self._get_path(each).unlink(missing_ok=True)

    def delete_empty(self) -> None:
        """Delete the files of processes that have ended before they wrote anything."""
        for number in self.list_numbers():
            if not self.measure_size(number) and not self.has_writer(number):
                self._get_path(number).unlink(missing_ok=True)

    def _get_path(self, number: int) -> Path:
        return self._folder / f"{number}.jsonl"


class SpoolReader:
    """Reads the files of a spool one after the other."""

    def __init__(self, spool: Spool, position: SpoolPosition) -> None:
        self._spool = spool
        self.position = position
        self._is_passing_over = False  # a line that is too long

    def read_lines(self) -> list[SpoolLine]:
        """Return the next complete lines; nothing if there are none yet."""
        while True:
            lines, is_at_end = self._read_on()
            if lines or not is_at_end or not self._go_to_next_file():
                return lines

    def _read_on(self) -> tuple[list[SpoolLine], bool]:
        """Return the next complete lines of this file, and whether there is no further one yet."""
        data = self._spool.read(self.position, READ_BYTES)
        while b"\n" not in data and len(data) >= READ_BYTES:
            data = self._read_long_line(data)
        lines: list[SpoolLine] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self.position = SpoolPosition(self.position.number, self.position.offset + end + 1 - start)
            if not self._is_passing_over:
                lines.append(SpoolLine(data[start:end], self.position))
            self._is_passing_over = False
            start = end + 1
        return lines, start == 0

    def _read_long_line(self, beginning: bytes) -> bytes:
        """Return more of a line, or what follows after a piece of it that is passed over."""
        if not self._is_passing_over:
            data = self._spool.read(self.position, MAX_LINE_BYTES)
            if b"\n" in data or len(data) < MAX_LINE_BYTES:
                return data if b"\n" in data else b""
            log.warning("signal_line_too_long", extra={"position": str(self.position)})
            beginning, self._is_passing_over = data, True
        self.position = SpoolPosition(self.position.number, self.position.offset + len(beginning))
        return self._spool.read(self.position, READ_BYTES)

    def _go_to_next_file(self) -> bool:
        """Go on with the next file if nothing more can come in this one; True if there is more to read."""
        later = [number for number in self._spool.list_numbers() if number > self.position.number]
        if not later or self._spool.has_writer(self.position.number):
            return False
        rest = self._spool.read(self.position, MAX_LINE_BYTES)
        if b"\n" in rest:
            return True  # its writer has written this before it ended
        if rest:
            log.warning("signal_line_torn", extra={"position": str(self.position), "size": len(rest)})
        self._is_passing_over = False
        self.position = SpoolPosition(later[0], 0)
        return True

"""Reads the records of an export from a file, checks header and footer, and lets the caller look one record ahead."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Self

from palaver.transfer.imported import ImportProblem, InvalidImport
from palaver.transfer.own_format import BadLine, NumberedRecord, Record, check_header, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class RecordStream:
    """The records of one file between header and footer."""

    def __init__(self, path: Path, on_problem: Callable[[ImportProblem], None]) -> None:
        self._path = path
        self._on_problem = on_problem
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InvalidImport(f"{path} can't be read: {error.strerror}.", path=str(path)) from error
        self._lines = read_lines(self._file)
        self._ahead: NumberedRecord | None = None
        self._counts: dict[str, int] = {}
        self._bad_count = 0
        self._footer: Record | None = None
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _read_header(self) -> Record:
        first = next(self._lines, None)
        if not isinstance(first, NumberedRecord):
            raise InvalidImport(
                f"{self._path} is not an export of Palaver: its first line is not a header.", path=str(self._path)
            )
        check_header(first.record, str(self._path))
        self._count(first.record)
        return first.record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def close(self) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._path.stat().st_size

    @property
    def position(self) -> int:
        """How far the file was read."""
        return self._file.tell()

    def seek(self, offset: int) -> None:
        """Go on reading at the start of another line."""
        self._file.seek(offset)

    def describe_line(self, number: int) -> str:
        return f"{self._path.name}, line {number}"

    def report(self, number: int, what: str) -> None:
        """Report that the record in a line could not be used."""
        self._on_problem(ImportProblem(where=self.describe_line(number), what=what))

    def read(self) -> Iterator[NumberedRecord]:
        """Yield the records one after the other."""
        while (found := self._take()) is not None:
            yield found

    def take_while(self, record_type: str, key: str, value: str) -> Iterator[NumberedRecord]:
        """Yield the records that follow now, as long as they have this type and value."""
        while (found := self._take()) is not None:
            if found.record["type"] != record_type or found.record.get(key) != value:
                self._ahead = found
                return
            yield found

    def take_chunks(self, attachment_id: str) -> Iterator[bytes]:
        """Yield the bytes of a file that follow now."""
        for number, record in self.take_while("chunk", "attachment", attachment_id):
            try:
                yield b64decode(record.get("data") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                self.report(number, "the bytes of the file are not valid base64")

    def check_end(self) -> None:
        """Report it if the file is not complete."""
        if self._footer is None:
            self.report(sum(self._counts.values()) + self._bad_count, "the file ends early: its last line is missing")
            return
        expected = self._footer.get("counts")
        if not self._bad_count and expected != self._counts:
            self._on_problem(ImportProblem(where=self._path.name, what="lines are missing from this file"))

    def _take(self) -> NumberedRecord | None:
        if self._ahead is not None:
            found, self._ahead = self._ahead, None
            return found
        for line in self._lines:
            if isinstance(line, BadLine):
                self._bad_count += 1
                self.report(line.number, line.what)
            elif line.record["type"] == "footer":
                self._footer = line.record
            else:
                self._count(line.record)
                return line
        return None

    def _count(self, record: Record) -> None:
        self._counts[record["type"]] = self._counts.get(record["type"], 0) + 1

"""Reading a large JSON object with long lists in it, item by item. Memory is bounded by the largest item."""

from __future__ import annotations

import json
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.readers.plain_file import open_plain_file

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path
    from typing import TextIO

CHUNK_CHARS: Final = 65_536
MAX_ITEM_CHARS: Final = 64_000_000
_WHITE_SPACE: Final = " \t\r\n"


class UnreadableObject(ValueError):
    """The rest of this file is not JSON; what was read before is valid."""


def read_members(path: Path, lists: Container[str]) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object; of the named lists each item, as `(key, item)`.

    Raises UnreadableObject where the file stops being JSON, and OSError if it cannot be read.
    """
    with TextIOWrapper(open_plain_file(path), encoding="utf-8-sig", errors="replace") as file:
        yield from _ObjectReader(file).read(lists)


class _ObjectReader:
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decoder = json.JSONDecoder(strict=False)
        self._buffer = ""
        self._position = 0
        self._is_at_end = False

    def read(self, lists: Container[str]) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        while self._peek() != "}":
            key = self._read_value()
            self._expect(":")
            if key in lists and self._peek() == "[":
                self._expect("[")
                while self._peek() != "]":
                    yield key, self._read_value()
                    self._skip_comma("]")
                self._expect("]")
            else:
                yield key, self._read_value()
            self._skip_comma("}")

    def _peek(self) -> str:
        while True:
            while self._position < len(self._buffer) and self._buffer[self._position] in _WHITE_SPACE:
                self._position += 1
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._fill():
                raise UnreadableObject("The file ends too early.")

    def _expect(self, char: str) -> None:
        found = self._peek()
        if found != char:
            raise UnreadableObject(f"It is not valid JSON: {found!r} instead of {char!r}.")
        self._position += 1

    def _skip_comma(self, end: str) -> None:
        if self._peek() != end:
            self._expect(",")

    def _read_value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._position)
            except RecursionError:
                raise UnreadableObject("It is nested too deeply.") from None
            except ValueError:
                if not self._fill():
                    raise UnreadableObject("The file ends in the middle of an item, or is not valid JSON.") from None
                continue
            if end == len(self._buffer) and self._fill():  # a number may go on
                continue
            self._position = end
            return value

    def _fill(self) -> bool:
        """Read more of the file, always as much again as there is, so that long items are not parsed too often."""
        rest = self._buffer[self._position :]
        if len(rest) > MAX_ITEM_CHARS:
            raise UnreadableObject(f"An item has more than {MAX_ITEM_CHARS // 1_000_000} million characters.")
        more = self._file.read(max(CHUNK_CHARS, len(rest)))
        self._buffer, self._position = rest + more, 0
        return bool(more)

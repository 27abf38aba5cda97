"""Reading a large JSON list item by item.

The list is never in memory: its items are found in one pass, in time that grows with the size of the file, and an item
is parsed when it is needed. Memory is bounded by the largest item. Where the parser of JSON can follow, it finds the
end of an item; an item that is damaged, or does not fit into the buffer, ends where its brackets do.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from palaver.transfer.imported import InvalidImport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CHUNK_BYTES: Final = 1_048_576
MAX_ITEM_BYTES: Final = 64_000_000
BUFFER_BYTES: Final = 4_194_304  # in which items are parsed while they are looked for
_MAX_UNPARSED_ITEMS: Final = 10_000  # that are found by their brackets before the parser is tried again
_MAX_GAP_BYTES: Final = 80  # how much of an unexpected text between two items is kept

# Everything up to the next bracket that is not in a string, or to the beginning of a string that ends in a later chunk.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}])', re.DOTALL)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_GAP = re.compile(r"[ \t\r\n]*+(,?)[ \t\r\n]*+(?=[\[{])")
_BOM: Final = b"\xef\xbb\xbf"
_WHITE_SPACE: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class ItemSpan:
    """The place of an item in its file."""

    number: int  # the first item has number 1
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListProblem:
    """Something in a list that is no item."""

    start: int
    what: str


class UnreadableItem(ValueError):
    """This item cannot be read; the message says why."""


def find_items(chunks: Iterable[bytes]) -> Iterator[ItemSpan | ListProblem]:
    """Find the objects and lists in a JSON list; the chunks start with the list itself."""
    return _ItemFinder().find(chunks)


class _ItemFinder:
    def __init__(self, depth: int = 0, number: int = 0) -> None:
        self._depth = depth  # 1: inside the list, between its items
        self._number = number  # of the last item
        self._start = 0  # of the current item
        self._gap = b""  # what is between two items
        self._in_string = False
        self._is_escaped = False  # the next character of the string is escaped
        self._gap_start = 0  # in the current chunk

    def find(self, chunks: Iterable[bytes]) -> Iterator[ItemSpan | ListProblem]:
        offset = 0
        for chunk in chunks:
            yield from self._read_chunk(chunk, offset)
            offset += len(chunk)
        if self._depth:
            what = "The file ends in the middle of an item." if self._depth > 1 else "The file ends too early."
            yield ListProblem(self._start if self._depth > 1 else offset, what)

    def _read_chunk(self, chunk: bytes, offset: int) -> Iterator[ItemSpan | ListProblem]:
        position = self._skip_string(chunk) if self._in_string else 0
        self._gap_start = position
        while found := _UP_TO_BRACKET.match(chunk, position):
            position = found.end()
            bracket = found[1]
            if bracket in (b"[", b"{"):
                yield from self._open_bracket(chunk, position - 1, offset)
            elif bracket in (b"]", b"}"):
                yield from self._close_bracket(chunk, position - 1, offset)
            else:
                self._in_string = True
                self._is_escaped = _ends_with_escape(chunk, position)
                break
        if self._depth == 1:
            self._add_gap(chunk[self._gap_start :])

    def _open_bracket(self, chunk: bytes, at: int, offset: int) -> Iterator[ListProblem]:
        self._depth += 1
        if self._depth == 1:
            self._gap_start = at + 1
        elif self._depth == 2:
            self._add_gap(chunk[self._gap_start : at])
            yield from self._check_gap(offset + at)
            self._start = offset + at

    def _close_bracket(self, chunk: bytes, at: int, offset: int) -> Iterator[ItemSpan | ListProblem]:
        self._depth -= 1
        if self._depth == 1:
            self._number += 1
            yield ItemSpan(self._number, self._start, offset + at + 1)
            self._gap_start = at + 1
        elif self._depth == 0:
            self._add_gap(chunk[self._gap_start : at])
            yield from self._check_gap(offset + at, is_last=True)
        elif self._depth < 0:
            yield ListProblem(offset + at, "There is text after the end of the list.")
            self._depth = 0

    def _skip_string(self, chunk: bytes) -> int:
        """Return where the string that began in an earlier chunk ends; the end of the chunk if it goes on."""
        start = 1 if self._is_escaped else 0
        rest = _REST_OF_STRING.match(chunk, start)
        if rest is None:
            self._is_escaped = _ends_with_escape(chunk, start)
            return len(chunk)
        self._in_string = self._is_escaped = False
        return rest.end()

    def _add_gap(self, text: bytes) -> None:
        self._gap = (self._gap + text.strip(_WHITE_SPACE)[:_MAX_GAP_BYTES])[:_MAX_GAP_BYTES]

    def _check_gap(self, at: int, *, is_last: bool = False) -> Iterator[ListProblem]:
        gap, self._gap = self._gap, b""
        expected = {b"", b","} if is_last else {b","} if self._number else {b""}
        if gap.strip(_WHITE_SPACE) not in expected:
            yield ListProblem(at, f"Unexpected text between two items: {gap.decode(errors='replace')!r}")


def _ends_with_escape(chunk: bytes, start: int) -> bool:
    """Return whether a string that goes on in the next chunk ends with a backslash that escapes what follows."""
    string = chunk[start:]
    return (len(string) - len(string.rstrip(b"\\"))) % 2 == 1


class ItemFile:
    """The items of one JSON file, which can be read again by their place.

    The file holds a list; or an object, which is one item, or has the list under one of `list_keys`.
    """

    def __init__(self, name: str, file: BinaryIO, *, list_keys: Sequence[str] = ()) -> None:
        self.name = name
        self._file = file
        self._offset = 0  # where the list starts: after a byte order mark and white space
        self._has_list = True
        self._parsed: tuple[ItemSpan, Any] | None = None  # the item that was found last
        self._open(list_keys)

    def close(self) -> None:
        self._file.close()

    def find_spans(self) -> Iterator[ItemSpan | ListProblem]:
        if not self._has_list:
            self._file.seek(0, os.SEEK_END)
            yield ItemSpan(1, self._offset, self._file.tell())
            return
        position, number, unparsed_count = self._offset + 1, 0, 1
        while True:
            first_number = number
            for span, value in self._parse_ahead(position, number):
                self._parsed = span, value
                yield span
                position, number = span.end, span.number
            self._parsed = None
            unparsed_count = 1 if number > first_number else min(unparsed_count * 2, _MAX_UNPARSED_ITEMS)
            last = None
            for found in self._find_by_brackets(position, number, unparsed_count):
                yield found
                if isinstance(found, ItemSpan):
                    last = found
            if last is None or last.number < number + unparsed_count:
                return  # the end of the file
            position, number = last.end, last.number

    def _parse_ahead(self, position: int, number: int) -> Iterator[tuple[ItemSpan, Any]]:
        """Parse items until one does not fit into the buffer, or is damaged; `position` is where the last one ended."""
        self._file.seek(position)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(self._file.read(BUFFER_BYTES))
        except UnicodeDecodeError:
            return
        is_ascii, index, decoder = text.isascii(), 0, json.JSONDecoder()
        while (gap := _GAP.match(text, index)) and bool(gap[1]) == (number > 0):
            try:
                value, end = decoder.raw_decode(text, gap.end())
            except (ValueError, RecursionError):
                return
            number += 1
            start = position + gap.end() - index
            position = start + (end - gap.end() if is_ascii else len(text[gap.end() : end].encode()))
            index = end
            yield ItemSpan(number, start, position), value

    def _find_by_brackets(self, position: int, number: int, count: int) -> Iterator[ItemSpan | ListProblem]:
        """Find up to `count` items, and everything that is wrong between them."""
        for found in _ItemFinder(depth=1, number=number).find(self._read_chunks(position)):
            if not isinstance(found, ItemSpan):
                yield ListProblem(found.start + position, found.what)
                continue
            yield ItemSpan(found.number, found.start + position, found.end + position)
            if found.number == number + count:
                return

    def read_bytes(self, span: ItemSpan) -> bytes:
        size = span.end - span.start
        if size > MAX_ITEM_BYTES:
            raise UnreadableItem(
                f"It has {size // 1_000_000} MB; at most {MAX_ITEM_BYTES // 1_000_000} MB can be imported."
            )
        self._file.seek(span.start)
        return self._file.read(size)

    def read_item(self, span: ItemSpan) -> Any:
        """Parse an item; raise UnreadableItem, with words for people, if that is impossible."""
        if self._parsed is not None and self._parsed[0] is span:
            return self._parsed[1]
        return parse_json(self.read_bytes(span))

    def _read_chunks(self, position: int) -> Iterator[bytes]:
        while True:
            self._file.seek(position)  # items are read in between
            if not (chunk := self._file.read(CHUNK_BYTES)):
                return
            position += len(chunk)
            yield chunk

    def _open(self, list_keys: Sequence[str]) -> None:
        self._file.seek(0)
        beginning = self._file.read(CHUNK_BYTES)
        without_bom = beginning.removeprefix(_BOM)
        text = without_bom.lstrip(_WHITE_SPACE)
        self._offset = len(beginning) - len(text)
        if text[:1] == b"{":
            self._has_list = False
            self._unwrap(list_keys)
        elif text[:1] != b"[":
            raise InvalidImport(f"{self.name} is not a JSON file with a list of conversations.", file=self.name)

    def _unwrap(self, list_keys: Sequence[str]) -> None:
        """If the file holds an object with the list in it, go on with the list."""
        span = next(iter(self.find_spans()))
        try:
            content = self.read_item(cast("ItemSpan", span))
        except UnreadableItem as error:
            raise InvalidImport(
                f"{self.name} cannot be read: it is one JSON object instead of a list, and {error}", file=self.name
            ) from error
        for key in list_keys:
            if isinstance(items := content.get(key), list):
                file = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=8 * CHUNK_BYTES))  # noqa: SIM115
                file.write(json.dumps(items).encode())
                self._file.close()
                self._file, self._offset, self._has_list = file, 0, True
                return


def parse_json(data: bytes | str) -> Any:
    """Parse JSON; raise UnreadableItem, with words for people, if that is impossible."""
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except RecursionError:
        raise UnreadableItem("It is nested too deeply.") from None
    except ValueError as error:
        raise UnreadableItem(f"It is not valid JSON: {error}.") from None

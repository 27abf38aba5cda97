"""Palaver's own format: one JSON object a line, with a `type`; complete, so that an import gives the same store.

    header          the version of the format, and what was exported
    audience        a set of people who may see sessions; `ref` is its number in this file
    person          with their accounts on platforms
    project, saved_prompt
    attachment      then its bytes in lines of type `chunk`
    session         then its log in lines of type `event`, and what it used in lines of type `usage`
    usage           of sessions that were deleted since
    lane            with its moves from one session to another
    memory, job, home_channel
    footer          how many lines of each type there are, so that a file that was cut off is noticed

There are no passwords, tokens, codes or shared links in it. The order of the lines is fixed and no time of the export
is in it, so equal stores give equal files. What is in each line: `transfer/export_records.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple

from palaver.transfer.export_records import EXPORT_FORMAT
from palaver.transfer.imported import InvalidImport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_LINE_BYTES: Final = 64 * 1024 * 1024  # more than the largest message as JSON
CHUNK_BYTES: Final = 192 * 1024  # of a file, in one line
_FORMAT_NAME, _, _FORMAT_VERSION = EXPORT_FORMAT.partition("/")

Record = dict[str, Any]
ScopeKind = Literal["all", "person", "sessions"]


class BadLine(NamedTuple):
    """A line that is not a record."""

    number: int
    what: str


class NumberedRecord(NamedTuple):
    """A record, and the number of its line."""

    number: int
    record: Record


def make_header(scope: ScopeKind, person_id: str | None = None) -> Record:
    header: Record = {"type": "header", "format": EXPORT_FORMAT, "scope": scope}
    return header if person_id is None else header | {"person": person_id}


def check_header(record: Record, where: str) -> None:
    """Raise InvalidImport unless this is the header of an export that this version can read."""
    name, _, version = str(record.get("format") or "").partition("/")
    if record.get("type") != "header" or name != _FORMAT_NAME:
        raise InvalidImport(f"{where} is not an export of Palaver: its first line is not a header.", path=where)
    if version != _FORMAT_VERSION:
        raise InvalidImport(
            f"{where} was exported by a newer version of Palaver (format {version}; this one reads {_FORMAT_VERSION})."
            " Update Palaver, then import it again.",
            path=where,
            version=version,
        )


def format_line(record: Record) -> bytes:
    """Write a record as one line, with its line end."""
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which a damaged row may have
        return json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def format_lines(records: Iterable[Record]) -> Iterator[bytes]:
    """Write records as lines, and a footer that counts them."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record["type"]] = counts.get(record["type"], 0) + 1
        yield format_line(record)
    yield format_line({"type": "footer", "counts": counts})


def read_lines(stream: BinaryIO) -> Iterator[NumberedRecord | BadLine]:
    """Read records from lines; at most one line is in memory. A line that is not valid becomes a `BadLine`."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_line(stream)
            yield BadLine(number, f"the line is longer than {MAX_LINE_BYTES} bytes")
            continue
        if line.strip():
            yield _parse_line(number, line)


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


def _parse_line(number: int, line: bytes) -> NumberedRecord | BadLine:
    try:
        record = json.loads(line)
    except RecursionError:
        return BadLine(number, "the JSON is nested too deeply")
    except ValueError as error:
        what = "the file ends in the middle of this line" if not line.endswith(b"\n") else f"not valid JSON ({error})"
        return BadLine(number, what)
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        return BadLine(number, "not an object with a type")
    return NumberedRecord(number, record)

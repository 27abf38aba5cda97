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

import binascii
import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple, TypeVar

from palaver.core.files import iterate_lines
from palaver.transfer.export_records import EXPORT_FORMAT, InvalidRecord
from palaver.transfer.imported import ImportProblem, InvalidImport
from palaver.transfer.reader_kit.export_files import close_on_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from palaver.core.ids import PersonId


MAX_LINE_BYTES: Final = 64 * 1024 * 1024  # more than the largest message as JSON
CHUNK_BYTES: Final = 192 * 1024  # of a file, in one line
_FORMAT_NAME, _, _FORMAT_VERSION = EXPORT_FORMAT.partition("/")

T = TypeVar("T")
Record = dict[str, Any]
ScopeKind = Literal["all", "person", "sessions"]


class BadLine(NamedTuple):
    number: int
    what: str


class NumberedRecord(NamedTuple):
    number: int
    record: Record


def make_header(scope: ScopeKind, person_id: str | None = None) -> Record:
    header: Record = {"type": "header", "format": EXPORT_FORMAT, "scope": scope}
    return header if person_id is None else header | {"person": person_id}


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
    for number, (_, line) in enumerate(iterate_lines(stream, MAX_LINE_BYTES), 1):
        if line is None:
            yield BadLine(number, f"the line is longer than {MAX_LINE_BYTES} bytes")
        elif line.strip():
            yield _parse_line(number, line)


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


class RecordStream:
    """Reads the records of one file, checks its header and footer, and can look one record ahead."""

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
        with close_on_error(self._file):
            self.header = self._read_header()

    def _read_header(self) -> Record:
        """Return the header; raise InvalidImport unless it is that of an export that this version can read."""
        first, where = next(self._lines, None), str(self._path)
        header = first.record if isinstance(first, NumberedRecord) else {}
        name, _, version = str(header.get("format") or "").partition("/")
        if header.get("type") != "header" or name != _FORMAT_NAME:
            raise InvalidImport(f"{where} is not an export of Palaver: its first line is not a header.", path=where)
        if version != _FORMAT_VERSION:
            raise InvalidImport(
                f"{where} was exported by a newer version of Palaver (format {version}; this one reads"
                f" {_FORMAT_VERSION}). Update Palaver, then import it again.",
                path=where,
                version=version,
            )
        self._count(header)
        return header

    def close(self) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        return self._path.stat().st_size

    @property
    def position(self) -> int:
        """How far the file was read."""
        return self._file.tell()

    def seek(self, offset: int) -> None:
        """Go on reading at the start of another line."""
        self._file.seek(offset)

    def report(self, number: int, what: str) -> None:
        """Report that the record in a line could not be used."""
        self._on_problem(ImportProblem(where=f"{self._path.name}, line {number}", what=what))

    def read(self) -> Iterator[NumberedRecord]:
        while (found := self._take()) is not None:
            yield found

    def take_while(self, record_type: str, key: str, value: str) -> Iterator[NumberedRecord]:
        """Yield the records that follow now, as long as they have this type and value."""
        while (found := self._take()) is not None:
            if found.record["type"] != record_type or found.record.get(key) != value:
                self._ahead = found
                return
            yield found

    def read_parts(self, record_type: str, session_id: str, read: Callable[[Record], T]) -> Iterator[T]:
        """Read the lines of a session that follow now; one that is not valid is reported and left out."""
        for number, record in self.take_while(record_type, "session", session_id):
            try:
                yield read(record)
            except InvalidRecord as error:
                self.report(number, str(error))

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
        elif not self._bad_count and self._footer.get("counts") != self._counts:
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


def keep_visible_records(records: Iterable[Record], person_id: PersonId) -> Iterator[Record]:
    """Yield the records of an export without what belongs to other people only.

    An export of a conversation that several people share names who takes part in it. The accounts of the others, how
    far they have read and the projects into which they have sorted it are theirs.
    """
    own_projects: set[Any] = set()
    for record in records:
        match record["type"]:
            case "project" | "saved_prompt" if record.get("person") != person_id:
                continue
            case "project":
                own_projects.add(record["id"])
                yield record
            case "person" if record["id"] != person_id and record.get("merged_into") != person_id:
                yield {key: value for key, value in record.items() if key != "accounts"}
            case "session":
                yield _keep_own_details(record, person_id, own_projects)
            case _:
                yield record


def _keep_own_details(record: Record, person_id: PersonId, own_projects: set[Any]) -> Record:
    kept = dict(record)
    if kept.get("project") not in own_projects:
        kept.pop("project", None)
    marks = [mark for mark in kept.pop("read_marks", ()) if mark.get("person") == person_id]
    return kept | ({"read_marks": marks} if marks else {})

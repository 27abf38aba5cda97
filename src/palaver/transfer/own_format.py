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
is in it, so equal stores give equal files.

Always true: `decode_fields(fields, encode_fields(fields, values)) == values`, to the last character. So an export that
was imported into an empty store and exported again has the same bytes. Keys that a newer version may have added are
ignored.

JSON in a column becomes part of the record. If writing it again would give other characters (it is damaged, or another
program wrote it), the record has the column's text instead, under the name of the column with `_text` behind it.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple, TypeVar

from palaver.core.clock import format_time, from_micros, to_micros
from palaver.core.errors import InvalidInput
from palaver.core.files import iterate_lines
from palaver.core.text import is_storable
from palaver.core.texts import load_text, store_text
from palaver.jobs import table as jobs
from palaver.media import table as attachments
from palaver.memory import table as memories
from palaver.people import table as people
from palaver.people.person_data import Field, FieldKind
from palaver.prompts import table as saved_prompts
from palaver.sessions import home_channels, lanes_table as lanes, projects_table as projects, table as sessions
from palaver.sessions.log_table import MESSAGE_EXPORT, OTHER_EVENT_EXPORT
from palaver.transfer.imported import ImportProblem, InvalidImport
from palaver.transfer.reader_kit.export_files import close_on_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from palaver.core.ids import PersonId


_FORMAT_NAME, _FORMAT_VERSION = "palaver.export", "1"
MAX_LINE_BYTES: Final = 64 * 1024 * 1024  # more than the largest message as JSON
CHUNK_BYTES: Final = 192 * 1024  # of a file, in one line
_MAX_INT: Final = 2**63
# The tables whose records stand for themselves, by type.
EXPORTED_TABLES: Final = {
    each.table: each
    for each in (
        people.PERSON_EXPORT,
        projects.EXPORT,
        saved_prompts.EXPORT,
        attachments.EXPORT,
        sessions.EXPORT,
        lanes.EXPORT,
        memories.EXPORT,
        jobs.EXPORT,
        home_channels.EXPORT,
    )
}

T = TypeVar("T")
Record = dict[str, Any]
ScopeKind = Literal["all", "person", "sessions"]


class InvalidRecord(InvalidInput):
    """A record of an export is not valid."""


def get_event_fields(kind: object) -> tuple[Field, ...]:
    """Return the fields of an event of this kind: the JSON of messages is written without spaces."""
    return (MESSAGE_EXPORT if kind == "message" else OTHER_EVENT_EXPORT).fields


def encode_fields(fields: Sequence[Field], values: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of a row as JSON-ready data; columns without a value are left out."""
    record: dict[str, Any] = {}
    for field, value in zip(fields, values, strict=False):
        if value is None:
            continue
        match field.kind:
            case FieldKind.TEXT | FieldKind.NUMBER:
                record[field.name] = value
            case FieldKind.TRANSLATABLE:
                record[field.name] = str(load_text(value))
            case FieldKind.FLAG:
                record[field.name] = bool(value)
            case FieldKind.TIME:
                record[field.name] = format_time(from_micros(value))
            case _:
                name, data = _encode_json(field, value)
                record[name] = data
    return record


def _encode_json(field: Field, text: str) -> tuple[str, Any]:
    try:
        data = json.loads(text)
        if data is not None and write_json(data, is_spaced=field.kind is FieldKind.SPACED_JSON) == text:
            return field.name, data
    except (ValueError, RecursionError):
        pass
    return f"{field.name}_text", text


def write_json(data: object, *, is_spaced: bool = False) -> str:
    """Write JSON as a column has it; raises ValueError for what JSON cannot represent."""
    return json.dumps(data, allow_nan=False, separators=(", ", ": ") if is_spaced else (",", ":"))


def decode_fields(fields: Sequence[Field], record: Mapping[str, Any]) -> list[Any]:
    return list(decode_columns(fields, record).values())


def decode_columns(fields: Sequence[Field], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the columns; raises InvalidRecord with the name of a field that is not valid."""
    return {field.name: _decode_field(field, record) for field in fields}


def _decode_field(field: Field, record: Mapping[str, Any]) -> Any:
    value = record.get(field.name)
    if value is not None:
        decoded = _DECODERS[field.kind](field, value)
        if field.choices is not None and decoded not in set(field.choices):
            raise InvalidRecord(f"{field.name}: {decoded[:40]!r} is not allowed", key=field.name)
        return decoded
    if field.kind in {FieldKind.JSON, FieldKind.SPACED_JSON} and record.get(f"{field.name}_text") is not None:
        return check_text(field.name, record[f"{field.name}_text"])
    if field.is_required:
        raise InvalidRecord(f"{field.name} is missing", key=field.name)
    return None


def _decode_number(field: Field, value: object) -> int:
    if type(value) is int and -_MAX_INT <= value < _MAX_INT:
        return value
    raise _make_error(field.name, value, "a whole number")


def _decode_flag(field: Field, value: object) -> int:
    if isinstance(value, bool):
        return int(value)
    raise _make_error(field.name, value, "true or false")


def _write_column(field: Field, value: object) -> str:
    try:
        return check_text(field.name, write_json(value, is_spaced=field.kind is FieldKind.SPACED_JSON))
    except (ValueError, RecursionError):
        raise _make_error(field.name, value, "JSON") from None


def check_text(name: str, value: object) -> str:
    if isinstance(value, str) and is_storable(value):
        return value
    raise _make_error(name, value, "text")


def parse_micros(name: str, value: object) -> int:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is not None:
            return to_micros(moment.astimezone(UTC))
    except (ValueError, OverflowError):  # the latter: at the first or last day of the calendar
        pass
    raise _make_error(name, value, "a time with a time zone")


def _make_error(name: str, value: object, allowed: str) -> InvalidRecord:
    shown = repr(value)
    return InvalidRecord(f"{name}: {shown[:80]} is not {allowed}", key=name)


_DECODERS: Final[dict[FieldKind, Callable[[Field, Any], Any]]] = {
    FieldKind.TEXT: lambda field, value: check_text(field.name, value),
    FieldKind.TRANSLATABLE: lambda field, value: store_text(check_text(field.name, value)),
    FieldKind.NUMBER: _decode_number,
    FieldKind.FLAG: _decode_flag,
    FieldKind.TIME: lambda field, value: parse_micros(field.name, value),
    FieldKind.JSON: _write_column,
    FieldKind.SPACED_JSON: _write_column,
}


class BadLine(NamedTuple):
    number: int
    what: str


class NumberedRecord(NamedTuple):
    number: int
    record: Record


def make_header(scope: ScopeKind, person_id: str | None = None) -> Record:
    header: Record = {"type": "header", "format": f"{_FORMAT_NAME}/{_FORMAT_VERSION}", "scope": scope}
    return header if person_id is None else header | {"person": person_id}


def format_line(record: Record) -> bytes:
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
        """The place up to which the file was read."""
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
        for number, record in self.take_while("chunk", "attachment", attachment_id):
            try:
                yield b64decode(record.get("data") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                self.report(number, "the bytes of the file are not valid base64")

    def check_end(self) -> None:
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

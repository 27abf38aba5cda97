"""The records of an export in Palaver's own format: which tables they are of, and how the values look as JSON.

Always true: `decode_fields(fields, encode_fields(fields, values)) == values`, to the last character. So an export that
was imported into an empty store and exported again has the same bytes. Keys that a newer version may have added are
ignored.

JSON in a column becomes part of the record. If writing it again would give other characters (it is damaged, or another
program wrote it), the record has the column's text instead, under the name of the column with `_text` behind it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


EXPORT_FORMAT: Final = "palaver.export/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_INT: Final = 2**63


class InvalidRecord(InvalidInput):
    """A record of an export is not valid."""


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
                moment = _EPOCH + timedelta(microseconds=value)
                record[field.name] = moment.isoformat(timespec="microseconds")
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
            return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND
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

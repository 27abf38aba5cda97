"""The records of an export in Palaver's own format: which columns each has, and how their values look as JSON.

Always true: `decode_fields(fields, encode_fields(fields, values)) == values`, to the last character. So an export that
was imported into an empty store and exported again has the same bytes. Keys that a newer version may have added are
ignored.

JSON in a column becomes part of the record. If writing it again would give other characters (it is damaged, or another
program wrote it), the record has the column's text instead, under the name of the column with `_text` behind it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.core.text import is_storable
from palaver.jobs import table as jobs
from palaver.prompts import table as saved_prompts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.core.columns import Columns

EXPORT_FORMAT: Final = "palaver.export/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_INT: Final = 2**63


class InvalidRecord(InvalidInput):
    """A record of an export is not valid."""


class FieldKind(Enum):
    TEXT = auto()
    NUMBER = auto()
    FLAG = auto()  # 0 or 1 in the column
    TIME = auto()  # microseconds since 1970 in the column
    JSON = auto()  # written without spaces
    SPACED_JSON = auto()  # written with a space after `,` and `:`


@dataclass(frozen=True, slots=True)
class Field:
    """A column, which has the same name in a record."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    is_required: bool = False


def _require(name: str, kind: FieldKind = FieldKind.TEXT) -> Field:
    return Field(name, kind, is_required=True)


def _make_fields(kind: FieldKind, *names: str, is_required: bool = False) -> tuple[Field, ...]:
    return tuple(Field(name, kind, is_required) for name in names)


def _derive_fields(columns: Columns[Any]) -> tuple[Field, ...]:
    """Return the columns of a table as its room declares them."""
    return tuple(Field(each.name, FieldKind[each.kind.upper()], each.is_required) for each in columns.columns)


_USAGE_COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")

AUDIENCE_FIELDS: Final = (_require("created_at", FieldKind.TIME),)
MEMBER_FIELDS: Final = (_require("joined_at", FieldKind.TIME),)
PERSON_FIELDS: Final = (
    *(_require("id"), _require("name"), _require("role"), Field("timezone")),
    _require("created_at", FieldKind.TIME),
)
IDENTITY_FIELDS: Final = (
    *(_require("platform"), _require("account"), Field("dm_source", FieldKind.JSON)),
    _require("created_at", FieldKind.TIME),
)
SENDER_ID_FIELDS: Final = (
    _require("id"),
    _require("is_lasting", FieldKind.FLAG),
    _require("seen_at", FieldKind.TIME),
)
PROJECT_FIELDS: Final = (
    *(_require("id"), _require("name"), Field("color"), _require("created_at", FieldKind.TIME)),
    Field("instructions"),
)
SAVED_PROMPT_FIELDS: Final = _derive_fields(saved_prompts.COLUMNS)
ATTACHMENT_FIELDS: Final = (
    *(_require("id"), _require("name"), _require("media_type"), _require("size", FieldKind.NUMBER)),
    *(_require("sha256"), _require("created_at", FieldKind.TIME)),
)
SESSION_FIELDS: Final = (
    *(_require("id"), _require("key"), _require("platform"), _require("chat_type")),
    _require("source", FieldKind.JSON),
    *_make_fields(FieldKind.FLAG, "shared", "has_shared_content", is_required=True),
    *_make_fields(FieldKind.TEXT, "title", "auto_title"),
    _require("auto_title_asked", FieldKind.FLAG),
    _require("preview"),
    _require("created_at", FieldKind.TIME),
    *_make_fields(FieldKind.TIME, "active_at", "last_message_at", "last_human_at", "ended_at"),
    *(Field("end_reason"), _require("start_reason")),
    *_make_fields(FieldKind.FLAG, "previous_had_messages", "is_first_contact", is_required=True),
    *_make_fields(FieldKind.TIME, "pinned_at", "archived_at"),
    _require("last_seq", FieldKind.NUMBER),
    *_make_fields(FieldKind.NUMBER, "redo_seq", "compaction_seq"),
    *_make_fields(FieldKind.NUMBER, "message_count", "tool_call_count", is_required=True),
    *_make_fields(FieldKind.TEXT, "chosen_model", "profile", "personality", "workspace", "busy_policy"),
    Field("disabled_toolsets", FieldKind.SPACED_JSON),
    *_make_fields(FieldKind.TEXT, "model", "provider"),
    *_make_fields(FieldKind.NUMBER, "last_prompt_tokens", *_USAGE_COUNTERS, is_required=True),
    *(Field("cost_nanos", FieldKind.NUMBER), _require("cost_status"), Field("cost_source")),
    _require("unpriced_turns", FieldKind.NUMBER),
)
READ_MARK_FIELDS: Final = (_require("read_seq", FieldKind.NUMBER), _require("updated_at", FieldKind.TIME))
_EVENT_START = (_require("seq", FieldKind.NUMBER), _require("kind"), _require("created_at", FieldKind.TIME))
_EVENT_END = (
    *_make_fields(FieldKind.TEXT, "person_id", "platform_message_id"),
    *_make_fields(FieldKind.NUMBER, "hidden_by", "edited_by"),
)
EVENT_COLUMNS: Final = (
    *("seq", "kind", "created_at", "role", "content", "body"),
    *("person_id", "platform_message_id", "hidden_by", "edited_by"),
)
MESSAGE_FIELDS: Final = (*_EVENT_START, Field("role"), Field("content"), Field("body", FieldKind.JSON), *_EVENT_END)
OTHER_EVENT_FIELDS: Final = (
    *(*_EVENT_START, Field("role"), Field("content"), Field("body", FieldKind.SPACED_JSON)),
    *_EVENT_END,
)
USAGE_FIELDS: Final = (
    *(_require("turn_id"), _require("model"), Field("provider"), _require("created_at", FieldKind.TIME)),
    *_make_fields(FieldKind.NUMBER, *_USAGE_COUNTERS, is_required=True),
    *(Field("cost_nanos", FieldKind.NUMBER), _require("cost_status"), Field("cost_source"), Field("platform")),
)
LANE_FIELDS: Final = (
    *(_require("key"), _require("source", FieldKind.JSON), _require("shared", FieldKind.FLAG)),
    _require("updated_at", FieldKind.TIME),
)
LANE_MOVE_FIELDS: Final = (
    *(_require("reason"), _require("moved_at", FieldKind.TIME), Field("undone_at", FieldKind.TIME)),
)
MEMORY_FIELDS: Final = (
    *(_require("id"), Field("person_id"), _require("text"), _require("created_at", FieldKind.TIME)),
    *(_require("origin"), Field("session_id")),
)
JOB_FIELDS: Final = (*_derive_fields(jobs.JOB_COLUMNS), Field("proposed_at", FieldKind.TIME), Field("alerted_cause"))
HOME_CHANNEL_FIELDS: Final = (
    *(_require("platform"), _require("source", FieldKind.JSON), Field("set_by"), _require("set_at", FieldKind.TIME)),
)


def get_event_fields(kind: object) -> tuple[Field, ...]:
    """Return the fields of an event of this kind: the JSON of messages is written without spaces."""
    return MESSAGE_FIELDS if kind == "message" else OTHER_EVENT_FIELDS


def list_columns(fields: Sequence[Field], alias: str = "") -> str:
    """Return the columns of these fields for a SELECT or an INSERT."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + field.name for field in fields)


# ---- to JSON -----------------------------------------------------------------------------------------------


def encode_fields(fields: Sequence[Field], values: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of a row as JSON-ready data; columns without a value are left out."""
    record: dict[str, Any] = {}
    for field, value in zip(fields, values, strict=False):
        if value is None:
            continue
        match field.kind:
            case FieldKind.TEXT | FieldKind.NUMBER:
                record[field.name] = value
            case FieldKind.FLAG:
                record[field.name] = bool(value)
            case FieldKind.TIME:
                record[field.name] = format_micros(value)
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


def format_micros(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")


def write_json(data: object, *, is_spaced: bool = False) -> str:
    """Write JSON as a column has it; raises ValueError for what JSON cannot represent."""
    return json.dumps(data, allow_nan=False, separators=(", ", ": ") if is_spaced else (",", ":"))


# ---- from JSON ---------------------------------------------------------------------------------------------


def decode_fields(fields: Sequence[Field], record: Mapping[str, Any]) -> list[Any]:
    """Return the values of the columns; raises InvalidRecord with the name of a field that is not valid."""
    return [_decode_field(field, record) for field in fields]


def _decode_field(field: Field, record: Mapping[str, Any]) -> Any:
    value = record.get(field.name)
    if value is not None:
        return _DECODERS[field.kind](field, value)
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
    FieldKind.NUMBER: _decode_number,
    FieldKind.FLAG: _decode_flag,
    FieldKind.TIME: lambda field, value: parse_micros(field.name, value),
    FieldKind.JSON: _write_column,
    FieldKind.SPACED_JSON: _write_column,
}

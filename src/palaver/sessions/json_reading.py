"""Reads the JSON that `session_json` writes back into values: the reverse of it, without loss.

Always true: `x_from_json(x_to_json(x)) == x`. Keys that a newer version may have added are ignored, and so are keys
that are derived from others (`display_name`, the name of an event's person). A value that is missing or of the wrong
type raises `InvalidInput` with its key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from palaver.core.errors import InvalidInput
from palaver.core.ids import PersonId, ProjectId, SessionId, SessionKey
from palaver.core.source import SessionSource
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message
from palaver.sessions.model import EndReason, Session, StartReason
from palaver.sessions.usage import NANOS_PER_DOLLAR, TOKEN_COUNTERS, CostStatus, UsageTotals

T = TypeVar("T")


class JsonReader:
    """Reads the fields of one JSON object, and names the field that is not valid."""

    def __init__(self, name: str, data: object) -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{name}: expected a mapping of fields, not {type(data).__name__}", key=name)
        self._name = name
        self._data = data

    def read(self, key: str, kind: type[T]) -> T:
        value = self._data.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self._make_error(key, value, kind.__name__)
        return value

    def read_optional(self, key: str, kind: type[T]) -> T | None:
        return None if self._data.get(key) is None else self.read(key, kind)

    def read_time(self, key: str) -> datetime:
        text = self.read(key, str)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self._make_error(key, text, "a time in ISO 8601") from None
        if moment.utcoffset() is None:
            raise self._make_error(key, text, "a time with a time zone")
        return moment.astimezone(UTC)

    def read_optional_time(self, key: str) -> datetime | None:
        return None if self._data.get(key) is None else self.read_time(key)

    def read_dollars(self, key: str) -> Decimal | None:
        text = self.read_optional(key, str)
        try:
            return None if text is None else Decimal(text)
        except InvalidOperation:
            raise self._make_error(key, text, "an amount such as 0.25") from None

    def read_choice(self, key: str, choices: type[T]) -> T:
        """Read a member of an enum."""
        value = self.read(key, str)
        try:
            return choices(value)  # type: ignore[call-arg]
        except ValueError:
            raise self._make_error(key, value, ", ".join(map(str, choices))) from None  # type: ignore[call-overload]

    def _make_error(self, key: str, value: object, allowed: str) -> InvalidInput:
        return InvalidInput(f"{self._name}.{key}: {value!r} is not allowed ({allowed})", key=key)


def session_from_json(data: Mapping[str, Any]) -> Session:
    reader = JsonReader("session", data)
    source = SessionSource.from_dict(reader.read("source", Mapping))  # type: ignore[type-abstract]
    project_id, parent_id = reader.read_optional("project_id", str), reader.read_optional("parent_id", str)
    return Session(
        id=SessionId(reader.read("id", str)),
        key=SessionKey(reader.read("key", str)),
        platform=source.platform,
        chat_type=source.chat_type,
        title=reader.read_optional("title", str),
        auto_title=reader.read_optional("auto_title", str),
        preview=reader.read("preview", str),
        shared=reader.read("shared", bool),
        message_count=reader.read("message_count", int),
        tool_call_count=reader.read("tool_call_count", int),
        created_at=reader.read_time("created_at"),
        active_at=reader.read_optional_time("active_at"),
        last_message_at=reader.read_optional_time("last_message_at"),
        last_human_at=reader.read_optional_time("last_human_at"),
        ended_at=reader.read_optional_time("ended_at"),
        end_reason=None if data.get("end_reason") is None else reader.read_choice("end_reason", EndReason),
        start_reason=reader.read_choice("start_reason", StartReason),
        previous_had_messages=reader.read("previous_had_messages", bool),
        is_first_contact=reader.read("is_first_contact", bool),
        pinned=reader.read("pinned", bool),
        archived=reader.read("archived", bool),
        project_id=None if project_id is None else ProjectId(project_id),
        parent_id=None if parent_id is None else SessionId(parent_id),
        model=reader.read_optional("model", str),
        model_provider=reader.read_optional("model_provider", str),
        last_prompt_tokens=reader.read("context_tokens", int),
        usage=session_usage_from_json(reader.read("usage", Mapping)),  # type: ignore[type-abstract]
        source_json=json.dumps(source.to_dict(), separators=(",", ":")),
    )


def session_usage_from_json(data: Mapping[str, Any]) -> UsageTotals:
    reader = JsonReader("usage", data)
    dollars = reader.read_dollars("cost_usd")
    return UsageTotals(
        **{name: reader.read(name, int) for name in TOKEN_COUNTERS},
        cost_nanos=None if dollars is None else int(dollars * NANOS_PER_DOLLAR),
        cost_status=reader.read_choice("cost_status", CostStatus),
        cost_source=reader.read_optional("cost_source", str),
        unpriced_turns=reader.read("unpriced_turns", int),
    )


def event_from_json(data: Mapping[str, Any]) -> Event:
    reader = JsonReader("event", data)
    person = reader.read_optional("person", Mapping)  # type: ignore[type-abstract]
    message = reader.read_optional("message", Mapping)  # type: ignore[type-abstract]
    return Event(
        seq=reader.read("seq", int),
        kind=reader.read_choice("kind", EventKind),
        at=reader.read_time("at"),
        hidden=reader.read("hidden", bool),
        person_id=None if person is None else PersonId(JsonReader("event.person", person).read("id", str)),
        message=None if message is None else message_from_json(message),
        facts=dict(reader.read("facts", Mapping)),  # type: ignore[type-abstract]
    )


def message_from_json(data: Mapping[str, Any]) -> Message:
    """Read a message; keys that Palaver does not know belong to it."""
    fields = {key: value for key, value in data.items() if value is not None}
    for flag in ("interrupted", "is_error", "edited"):
        if fields.get(flag) is False:
            del fields[flag]
    if "answers_seq" in fields:
        fields["answers"] = fields.pop("answers_seq")
    return Message.from_dict({"content": None, **fields})

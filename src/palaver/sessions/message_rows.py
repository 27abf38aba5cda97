"""Converts messages and events to columns and back, exactly."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from palaver.core.errors import InvalidMessage
from palaver.core.ids import PersonId
from palaver.core.json_limits import is_too_deep
from palaver.core.text import make_json_storable, make_storable
from palaver.core.timestamps import from_micros
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import MESSAGE_ROLES, Message

if TYPE_CHECKING:
    from palaver.core.engines.base import Row

# role, content, body, person_id, platform_message_id
MessageRow = tuple[str, str | None, str | None, str | None, str | None]

# Its rows are what `event_from_row` reads.
EDITED_TEXT = """CASE WHEN event.edited_by IS NOT NULL THEN (SELECT edit.content FROM event AS edit
    WHERE edit.session_no = event.session_no AND edit.seq = event.edited_by) END"""
SELECT_EVENT = f"""SELECT seq, kind, created_at, role, content, body, person_id, platform_message_id, hidden_by,
    {EDITED_TEXT} FROM event"""
# The same columns with sizes instead of texts, which are not read.
SELECT_EVENT_SIZES = """SELECT seq, kind, created_at, role, COALESCE(octet_length(content), 0),
    COALESCE(octet_length(body), 0), person_id, platform_message_id, hidden_by, NULL FROM event"""


class UnreadableRow(Exception):
    """A row of the log cannot be read: something other than Palaver wrote it, or it is damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # invalid_json, too_deep, wrong_shape or unknown_kind


def encode_message(message: Message, person_id: PersonId | None) -> MessageRow:
    """Return the columns of a message. Content that is not plain text goes into the JSON body.

    Every message enters the store here: text that cannot be stored is replaced (see `core/text.py`).
    Raises InvalidMessage for a message that could not be read again.
    """
    message.check_limits()
    content = message.content
    body: dict[str, Any] = dict(message.extra)
    text: str | None
    if content is None or isinstance(content, str):
        text = None if content is None else make_storable(content)
    else:
        body["content"] = content
        text = make_storable(message.text)
    if message.author is not None:
        body["author"] = message.author.to_dict()
    encoded = _encode_body(make_json_storable(body)) if body else None
    return (message.role, text, encoded, person_id, message.platform_message_id)


def _encode_body(body: dict[str, Any]) -> str:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"The message contains something that JSON cannot represent: {error}") from None


def event_from_row(row: Row) -> Event:
    """Read an event. One that cannot be read becomes an event of kind `unreadable`, so that the others can be read."""
    seq, stored_kind, created_at, role, content, body, person_id, platform_message_id, hidden_by, edited_text = row
    message: Message | None = None
    facts: dict[str, Any] = {}
    try:
        kind = _parse_kind(stored_kind)
        if kind is EventKind.MESSAGE:
            message = decode_message(role, content, body, platform_message_id, edited_text)
        else:
            facts = decode_body(body)
            if content is not None:
                facts["text"] = content
    except UnreadableRow as error:
        kind, facts = EventKind.UNREADABLE, {"stored_kind": str(stored_kind), "reason": error.reason}
    return Event(
        seq=seq,
        kind=kind,
        at=from_micros(created_at),
        message=message,
        facts=facts,
        person_id=None if person_id is None else PersonId(person_id),
        hidden=hidden_by is not None,
    )


def decode_message(
    role: str, content: str | None, body: str | None, platform_message_id: str | None, edited_text: str | None = None
) -> Message:
    """Read a message, with the text that its author has given it since; raises `UnreadableRow`."""
    if body is None and role in MESSAGE_ROLES and (content is None or isinstance(content, str)):
        message = Message(role, content, None, platform_message_id)
    else:
        try:
            fields = {"role": role, "content": content, **decode_body(body), "platform_message_id": platform_message_id}
            message = Message.from_dict(fields)
        except InvalidMessage:
            raise UnreadableRow("wrong_shape") from None
    return message if edited_text is None else message.with_edited_text(edited_text)


def get_text(row: Row) -> str | None:
    """Return the text of a message from a row of `SELECT_EVENT`, as its author has edited it."""
    return row[4] if row[9] is None else str(row[9])


def decode_body(body: str | None) -> dict[str, Any]:
    """Read the JSON of an event; raises `UnreadableRow`."""
    if not body:
        return {}
    try:
        value = _DECODER.decode(body)
    except RecursionError:
        raise UnreadableRow("too_deep") from None
    except (ValueError, TypeError):
        raise UnreadableRow("invalid_json") from None
    if not isinstance(value, dict):
        raise UnreadableRow("wrong_shape")
    if is_too_deep(value, body):
        raise UnreadableRow("too_deep")
    return value


def find_facts(body: str | None) -> dict[str, Any]:
    """Return the facts of an event that is not a message; empty if they cannot be read."""
    try:
        return decode_body(body)
    except UnreadableRow:
        return {}


def _parse_kind(text: str) -> EventKind:
    try:
        kind = EventKind(text)
    except ValueError:
        raise UnreadableRow("unknown_kind") from None
    if kind is EventKind.UNREADABLE:
        raise UnreadableRow("unknown_kind")
    return kind


def _parse_finite(text: str) -> float:
    """Read a number; infinity and NaN, which no JSON response can contain, raise ValueError."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_DECODER = json.JSONDecoder(parse_float=_parse_finite, parse_constant=_parse_finite)

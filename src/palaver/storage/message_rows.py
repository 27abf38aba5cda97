"""Converts messages and events to columns and back, exactly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import InvalidMessage
from palaver.domain.events import Event, EventKind
from palaver.domain.ids import PersonId
from palaver.domain.message import Author, Message
from palaver.domain.text import is_storable, make_storable
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.storage.engines.base import Row

# role, content, body, person_id, platform_message_id
MessageRow = tuple[str, str | None, str | None, str | None, str | None]

# Its rows are what `event_from_row` reads.
SELECT_EVENT = "SELECT seq, kind, created_at, role, content, body, person_id, platform_message_id, hidden_by FROM event"


def encode_message(message: Message, person_id: PersonId | None) -> MessageRow:
    """Return the columns of a message. Content that the text column cannot hold exactly goes into the JSON body."""
    content = message.content
    body: dict[str, Any] = dict(message.extra)
    text: str | None
    if content is None or (isinstance(content, str) and is_storable(content)):
        text = content
    else:
        body["content"] = content
        text = make_storable(message.text)
    if message.author is not None:
        body["author"] = message.author.to_dict()
    return (message.role, text, _encode_body(body) if body else None, person_id, message.platform_message_id)


def _encode_body(body: dict[str, Any]) -> str:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"The message contains something that JSON cannot represent: {error}") from None


def decode_message(role: str, content: str | None, body: Mapping[str, Any], platform_message_id: str | None) -> Message:
    extra = dict(body)
    author = extra.pop("author", None)
    exact_content = extra.pop("content", content)
    return Message(
        role,
        exact_content,
        None if author is None else Author(author["name"], author.get("id")),
        platform_message_id,
        extra,
    )


def event_from_row(row: Row) -> Event:
    seq, kind, created_at, role, content, body, person_id, platform_message_id, hidden_by = row
    facts: dict[str, Any] = json.loads(body) if body else {}
    message = None
    if kind == EventKind.MESSAGE:
        message = decode_message(role, content, facts, platform_message_id)
        facts = {}
    return Event(
        seq=seq,
        kind=EventKind(kind),
        at=from_micros(created_at),
        message=message,
        facts=facts,
        person_id=None if person_id is None else PersonId(person_id),
        hidden=hidden_by is not None,
    )

"""The columns of a message, and the message: what was said comes back exactly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import InvalidMessage
from palaver.domain.events import Event, EventKind
from palaver.domain.ids import PersonId
from palaver.domain.message import Author, Message
from palaver.domain.text import is_storable, storable
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.storage.engines.base import Row

# role, content, body, person, platform's id
MessageRow = tuple[str, str | None, str | None, str | None, str | None]

# What `event_from_row` reads.
EVENT = "SELECT seq, kind, at, role, content, body, person_id, platform_message_id, hidden_by FROM event"


def encoded(message: Message, person_id: PersonId | None) -> MessageRow:
    """The columns of a message. What the text column cannot hold exactly is kept whole in the JSON."""
    content = message.content
    body: dict[str, Any] = dict(message.extra)
    text: str | None
    if content is None or (isinstance(content, str) and is_storable(content)):
        text = content
    else:
        body["content"] = content
        text = storable(message.text)
    if message.author is not None:
        body["author"] = message.author.to_dict()
    return (message.role, text, _json(body) if body else None, person_id, message.platform_message_id)


def _json(body: dict[str, Any]) -> str:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"a message holds only what JSON can hold: {error}") from None


def decoded(role: str, content: str | None, body: Mapping[str, Any], platform_message_id: str | None) -> Message:
    """A message as it was said."""
    extra = dict(body)
    author = extra.pop("author", None)
    whole = extra.pop("content", content)
    return Message(
        role,
        whole,
        None if author is None else Author(author["name"], author.get("id")),
        platform_message_id,
        extra,
    )


def event_from_row(row: Row) -> Event:
    """An event as it was stored."""
    seq, kind, at, role, content, body, person_id, platform_message_id, hidden_by = row
    facts: dict[str, Any] = json.loads(body) if body else {}
    message = None
    if kind == EventKind.MESSAGE:
        message = decoded(role, content, facts, platform_message_id)
        facts = {}
    return Event(
        seq=seq,
        kind=EventKind(kind),
        at=from_micros(at),
        message=message,
        facts=facts,
        person_id=None if person_id is None else PersonId(person_id),
        hidden=hidden_by is not None,
    )

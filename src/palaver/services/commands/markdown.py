"""A conversation as a Markdown document, to keep or to hand on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from palaver.services.commands.reply_text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from palaver.domain.events import Event
    from palaver.domain.message import Message
    from palaver.domain.session import Session


def document(session: Session, messages: Sequence[Event]) -> str:
    """The visible conversation; times are in UTC."""
    blocks = [
        f"# {plain(session.title or session.preview or 'Conversation', 100)}",
        f"- id: {session.id}\n- began: {_when(session.created_at)}\n- messages: {session.message_count}",
    ]
    for event in messages:
        if event.message is not None:
            blocks.append(f"## {_speaker(event.message, session)}, {_when(event.at)}")
            blocks += _parts(event.message)
    return "\n\n".join(blocks)


def _speaker(message: Message, session: Session) -> str:
    if message.role == "assistant":
        return "agent"
    if message.role == "tool":
        return plain(f"tool {message.extra.get('tool_name') or ''}")
    known = message.author.name if message.author else "" if session.shared else session.origin.user_name or ""
    return plain(known) or message.role


def _parts(message: Message) -> Iterator[str]:
    if message.role == "tool":
        yield _fenced(message.text)
    elif text := message.text.strip():
        yield text
    for part in message.content if not isinstance(message.content, str | None) else ():
        if isinstance(part, Mapping) and not isinstance(part.get("text"), str):
            yield f"[{plain(str(part.get('type') or 'attachment'))}]"
    for call in message.extra.get("tool_calls") or ():
        yield f"→ {_call(call)}"


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    given = function if isinstance(function, Mapping) else {}
    arguments = given.get("arguments") or ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{plain(str(given.get('name') or 'tool'))}({plain(text, 200)})"


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text.strip()}\n{fence}"


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"

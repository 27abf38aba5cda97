"""A conversation as a Markdown document: what people see of it, with times in UTC."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING

from palaver.domain.events import EventKind
from palaver.domain.sender_words import describe_sender
from palaver.domain.sent_message import find_sent_by
from palaver.services.export import iterate_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from palaver.domain.events import Event
    from palaver.domain.message import Message
    from palaver.domain.session import Session
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow

MAX_ARGUMENTS_CHARS = 200  # of a tool call
MAX_NAME_CHARS = 100
_BACKTICKS = re.compile("`+")


def export_markdown(tx: Transaction, row: SessionRow) -> str:
    return format_markdown(row.session, (event for event in iterate_log(tx, row) if not event.hidden))


def format_markdown(session: Session, events: Iterable[Event]) -> str:
    """Format a session and its messages, unreadable ones included; other events are left out."""
    title = session.shown_title or session.preview or "Conversation"
    blocks = [
        f"# {_to_line(title)}",
        f"- id: {session.id}\n- from: {_format_place(session)}\n- started: {_format_time(session.created_at)}\n"
        f"- messages: {session.message_count}",
    ]
    for event in events:
        if event.message is not None:
            blocks.append(f"## {_format_speaker(event.message, session)}, {_format_time(event.at)}")
            blocks += _format_message(event.message)
        elif event.kind is EventKind.UNREADABLE:
            blocks.append(f"## unreadable, {_format_time(event.at)}")
            blocks.append(f"Entry {event.seq} of the log can't be read.")
    return "\n\n".join(blocks)


def _format_place(session: Session) -> str:
    """`Telegram, Ada`: the platform, and the person or chat there."""
    origin = session.origin
    if origin.chat_type == "dm":
        name = origin.user_name or origin.chat_name or origin.user_id or origin.chat_id
    else:
        name = origin.chat_name or origin.chat_id
    label = session.platform.label
    return label if not name or session.platform == "local" else f"{label}, {_to_line(name)}"


def _format_speaker(message: Message, session: Session) -> str:
    if message.role == "assistant":
        return "agent"
    if message.role == "tool":
        return f"tool {_to_line(str(message.extra.get('tool_name') or ''))}".strip()
    if message.role != "user":
        return message.role
    name = message.author.name if message.author else None
    if not name and not session.shared:
        name = session.origin.user_name
    return _to_line(name or "") or "user"


def _format_message(message: Message) -> Iterator[str]:
    if message.role == "tool":
        yield _fence_text(message.text)
        return
    sent_by = find_sent_by(message.extra)
    if sent_by is not None:
        yield f"{_to_line(describe_sender(sent_by))}."
    reasoning = message.extra.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        yield "\n".join(f"> {line}".rstrip() for line in reasoning.strip().splitlines())
    yield from _format_content(message.content)
    for call in message.extra.get("tool_calls") or ():
        yield f"→ {_format_tool_call(call)}"


def _format_content(content: object) -> Iterator[str]:
    for part in [content] if isinstance(content, str) else content if isinstance(content, list | tuple) else ():
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            if text.strip():
                yield text.strip()
        else:
            kind = part.get("type") if isinstance(part, Mapping) else None
            yield f"[{_to_line(str(kind or 'attachment'))}]"


def split_tool_call(call: object) -> tuple[str, str]:
    """Return the name and the arguments, as text, of a tool call in any of the shapes that providers use."""
    fields = call if isinstance(call, Mapping) else {}
    function = fields.get("function")
    fields = function if isinstance(function, Mapping) else fields
    arguments = fields.get("arguments", fields.get("args", fields.get("input")))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return str(fields.get("name") or "tool"), text if arguments else ""


def _format_tool_call(call: object) -> str:
    name, arguments = split_tool_call(call)
    return f"{_to_line(name)}({_to_line(arguments, MAX_ARGUMENTS_CHARS)})"


def _fence_text(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}\n{text.strip()}\n{fence}"


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _to_line(text: str, max_chars: int = MAX_NAME_CHARS) -> str:
    line = " ".join(text[: 4 * max_chars].split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"

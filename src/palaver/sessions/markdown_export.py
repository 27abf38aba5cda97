"""A conversation as a Markdown document: what people see of it, with times in UTC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from palaver.sessions.document_words import (
    describe_version,
    format_place,
    format_speaker,
    format_time,
    format_title,
    split_tool_call,
    to_line,
)
from palaver.sessions.events import EventKind, is_shown_erased
from palaver.sessions.export import iterate_visible_entries
from palaver.sessions.sender_words import describe_sender
from palaver.sessions.sent_message import find_sent_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from palaver.core.engines.base import Transaction
    from palaver.sessions.document_entry import DocumentEntry
    from palaver.sessions.message import Message
    from palaver.sessions.model import Session
    from palaver.sessions.session_rows import SessionRow

MAX_ARGUMENTS_CHARS = 200  # of a tool call
_BACKTICKS = re.compile("`+")


def export_markdown(tx: Transaction, row: SessionRow) -> str:
    return "\n\n".join(iterate_markdown(row.session, iterate_visible_entries(tx, row)))


def iterate_markdown(session: Session, entries: Iterable[DocumentEntry]) -> Iterator[str]:
    """Yield the blocks of the document; an empty line belongs between two of them.

    It has the messages, unreadable and erased ones included; other events are left out.
    """
    yield f"# {format_title(session)}"
    yield (
        f"- id: {session.id}\n- from: {format_place(session)}\n- started: {format_time(session.created_at)}\n"
        f"- messages: {session.message_count}"
    )
    for event, version in entries:
        if event.message is not None:
            yield f"## {format_speaker(event.message, session)}, {format_time(event.at)}"
            yield from _format_message(event.message)
            if version is not None:
                yield f"*{describe_version(version)}*"
        elif event.kind is EventKind.ERASED and is_shown_erased(event):
            yield f"## erased, {format_time(event.at)}"
            yield "Message erased: the person who wrote it was erased."
        elif event.kind is EventKind.UNREADABLE:
            yield f"## unreadable, {format_time(event.at)}"
            yield f"Entry {event.seq} of the log can't be read."


def _format_message(message: Message) -> Iterator[str]:
    if message.role == "tool":
        yield _fence_text(message.text)
        return
    sent_by = find_sent_by(message.extra)
    if sent_by is not None:
        yield f"{to_line(describe_sender(sent_by))}."
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
            name = part.get("name") if isinstance(part, Mapping) else None
            shown = f"{kind}: {name}" if isinstance(kind, str) and isinstance(name, str) else str(kind or "attachment")
            yield f"[{to_line(shown)}]"


def _format_tool_call(call: object) -> str:
    name, arguments = split_tool_call(call)
    return f"{to_line(name)}({to_line(arguments, MAX_ARGUMENTS_CHARS)})"


def _fence_text(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}\n{text.strip()}\n{fence}"

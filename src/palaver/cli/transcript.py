"""A conversation as lines of text: its header, its messages, its log.

Pure: values in, lines out. All text from a conversation is cleaned here. Long tool results are cut after a few
lines unless the caller wants them in full, and a line says how much was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from palaver.cli.output import (
    clean_line,
    clean_text,
    format_count,
    format_relative_time,
    format_timestamp,
    truncate_text,
)
from palaver.sessions import export
from palaver.sessions.events import Event, EventKind, is_shown_erased
from palaver.sessions.quoted_messages import describe_sender
from palaver.sessions.sent_message import find_sent_by

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.sessions.message import Message
    from palaver.sessions.model import SearchHit, Session

INDENT = "    "
MAX_TOOL_RESULT_LINES = 10
MAX_ARGUMENT_COLUMNS = 200


format_place = partial(export.format_place, clean=clean_line)
format_speaker = partial(export.format_speaker, clean=clean_line)


def format_heading(session: Session) -> str:
    """Return the title, or the preview of the last message in quotation marks."""
    return clean_line(session.shown_title) if session.shown_title else f"“{clean_line(session.preview)}”"


def format_header(session: Session, now: datetime, project: str | None = None) -> list[str]:
    facts = [session.id, format_place(session), format_count(session.message_count, "message")]
    facts.append(f"active {format_relative_time(session.active_at, now)}" if session.active_at else "no messages yet")
    state = [word for word, is_set in (("pinned", session.pinned), ("archived", session.archived)) if is_set]
    if session.shared:
        state.append("shared by several people")
    if project:
        state.append(f"project {clean_line(project)}")
    if session.ended_at is not None:
        state.append(f"ended {format_relative_time(session.ended_at, now)} ({session.end_reason})")
    if session.parent_id is not None:
        state.append(f"branched from {session.parent_id}")
    rows = [format_heading(session), " · ".join(facts), " · ".join(state), " · ".join(_format_usage(session))]
    return [row for row in rows if row]


def _format_usage(session: Session) -> Iterator[str]:
    usage = session.usage
    if usage.total_tokens:
        yield f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    if usage.cost is not None:
        estimate = "" if usage.estimated_cost is None else f"; ${usage.estimated_cost:.4f} by list prices"
        yield f"${usage.cost:.4f} ({usage.cost_status}{estimate})"
    if usage.unpriced_turns:
        yield f"{format_count(usage.unpriced_turns, 'turn')} with unknown cost"
    if session.model_name:
        yield clean_line(session.model_name)


def format_events(events: Iterable[Event], session: Session, *, in_full: bool) -> Iterator[str]:
    """Format events of the log, with empty lines around messages but not between other events."""
    after_message = True
    for event in events:
        if after_message or event.message is not None:
            yield ""
        after_message = event.message is not None
        if event.kind is EventKind.ERASED and is_shown_erased(event):
            yield f"[{event.seq}] Message erased · {format_timestamp(event.at)}"
        elif event.message is None:
            facts = [
                f"{clean_line(name)}: {_format_value(fact)}" for name, fact in event.facts.items() if fact is not None
            ]
            details = f" ({', '.join(facts)})" if facts else ""
            yield f"[{event.seq}] {event.kind} · {format_timestamp(event.at)}{details}"
        else:
            sent_by = find_sent_by(event.message.extra)
            sender = f" · {clean_line(describe_sender(sent_by))}" if sent_by else ""
            hidden = " · hidden" if event.hidden else ""
            speaker = format_speaker(event.message, session)
            yield f"[{event.seq}] {speaker} · {format_timestamp(event.at)}{sender}{hidden}"
            yield from _format_message(event.message, in_full=in_full)


def _format_message(message: Message, *, in_full: bool) -> Iterator[str]:
    lines = [line for part in _format_parts(message) for line in clean_text(part).rstrip().split("\n")]
    cut_count = len(lines) - MAX_TOOL_RESULT_LINES if message.role == "tool" and not in_full else 0
    for line in lines[:MAX_TOOL_RESULT_LINES] if cut_count > 1 else lines:
        yield (INDENT + line).rstrip()
    if cut_count > 1:
        yield f"{INDENT}… {format_count(cut_count, 'more line')} (use --all to show everything)"


def format_search_hit(hit: SearchHit, session: Session, now: datetime) -> Iterator[str]:
    title = clean_line(hit.title) if hit.title else f"untitled ({format_place(session)})"
    yield f"{hit.session_id} [{hit.seq}] · {format_relative_time(hit.at, now)} · {title}"
    yield f"{INDENT}{format_speaker(hit.message, session)}: {clean_line(hit.snippet.highlight())}"


def _format_parts(message: Message) -> Iterator[str]:
    reasoning = message.extra.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        yield f"(thinking) {reasoning.strip()}"
    yield from _format_content(message.content)
    for call in message.extra.get("tool_calls") or ():
        name, arguments = export.split_tool_call(call)
        yield f"→ {clean_line(name)}({truncate_text(clean_line(arguments), MAX_ARGUMENT_COLUMNS)})"


def _format_content(content: str | Sequence[Any] | None) -> Iterator[str]:
    if isinstance(content, str):
        if content:
            yield content
        return
    for part in content or ():
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text
        else:
            kind = part.get("type") if isinstance(part, Mapping) else None
            yield f"[{clean_line(str(kind or 'attachment'))}]"


def _format_value(value: object) -> str:
    return f"'{clean_line(value)}'" if isinstance(value, str) else clean_line(str(value))

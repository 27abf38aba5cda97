"""A conversation as text to read: its head, its messages, its log, and the whole of it as Markdown.

Pure: values in, lines out. Everything said in a conversation is cleaned on its way through here. Tool results
can be very long; they are cut after a few lines unless all is asked for, and the cut is always told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from palaver.cli.output import ago, clean, fit, line, plural, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from palaver.domain.events import Event
    from palaver.domain.message import Message
    from palaver.domain.session import SearchHit, Session

INDENT = "    "
TOOL_LINES = 10  # of a tool's result
ARGUMENTS = 200  # characters of a tool call's arguments


# ---- names -------------------------------------------------------------------------------------------------


def place(session: Session) -> str:
    """Where a conversation takes place, in a few words: `Telegram, Ada`."""
    origin = session.origin
    if origin.chat_type == "dm":
        name = origin.user_name or origin.chat_name or origin.user_id or origin.chat_id
    else:
        name = origin.chat_name or origin.chat_id
    label = session.platform.label
    return label if not name or session.platform == "local" else f"{label}, {line(name)}"


def headline(session: Session) -> str:
    """What to call a conversation in a list: its title, or in quotation marks what was last said in it."""
    return line(session.title) if session.title else f"“{line(session.preview)}”"


def speaker(message: Message, session: Session) -> str:
    """Who says a message."""
    if message.role == "user":
        known = message.author.name if message.author else None
        if not known and not session.shared:
            known = session.origin.user_name
        return line(known or "") or "user"
    if message.role == "tool":
        return f"tool {line(str(message.extra.get('tool_name') or ''))}".strip()
    return "agent" if message.role == "assistant" else message.role


# ---- to read -----------------------------------------------------------------------------------------------


def head_lines(session: Session, now: datetime, project: str | None = None) -> list[str]:
    """The head of a conversation: what it is, where and when, what it cost."""
    facts = [session.id, place(session), plural(session.message_count, "message")]
    facts.append(f"active {ago(session.active_at, now)}" if session.active_at else "nothing said yet")
    state = [word for word, holds in (("pinned", session.pinned), ("archived", session.archived)) if holds]
    if session.shared:
        state.append("several people speak here")
    if project:
        state.append(f"project {line(project)}")
    if session.ended_at is not None:
        state.append(f"ended {ago(session.ended_at, now)} ({session.end_reason})")
    if session.parent_id is not None:
        state.append(f"forked from {session.parent_id}")
    rows = [headline(session), " · ".join(facts), " · ".join(state), " · ".join(_spent(session))]
    return [row for row in rows if row]


def _spent(session: Session) -> Iterator[str]:
    used = session.usage
    if used.total_tokens:
        yield f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out"
    if used.cost is not None:
        yield f"${used.cost:.4f} ({used.cost_status})"
    if used.unpriced_turns:
        yield f"{plural(used.unpriced_turns, 'turn')} without a known price"
    if session.model:
        yield line(session.model)


def log_lines(events: Iterable[Event], session: Session, *, whole: bool) -> Iterator[str]:
    """A stretch of the log; messages stand apart, what else happened stands together."""
    apart = True
    for event in events:
        if apart or event.message is not None:
            yield ""
        apart = event.message is not None
        if event.message is None:
            facts = [f"{line(name)}: {_value(fact)}" for name, fact in event.facts.items() if fact is not None]
            told = f" ({', '.join(facts)})" if facts else ""
            yield f"[{event.seq}] {event.kind} · {stamp(event.at)}{told}"
        else:
            hidden = " · hidden" if event.hidden else ""
            yield f"[{event.seq}] {speaker(event.message, session)} · {stamp(event.at)}{hidden}"
            yield from _said(event.message, whole=whole)


def _said(message: Message, *, whole: bool) -> Iterator[str]:
    """What a message says, indented."""
    said = [each for part in _parts(message) for each in clean(part).rstrip().split("\n")]
    cut = len(said) - TOOL_LINES if message.role == "tool" and not whole else 0
    for each in said[:TOOL_LINES] if cut > 1 else said:
        yield (INDENT + each).rstrip()
    if cut > 1:
        yield f"{INDENT}… {plural(cut, 'more line')}; --all shows everything"


def hit_lines(hit: SearchHit, session: Session, now: datetime) -> Iterator[str]:
    """One message that was found: where, when, who, and the words around the match."""
    title = line(hit.title) if hit.title else f"untitled ({place(session)})"
    yield f"{hit.session_id} [{hit.seq}] · {ago(hit.at, now)} · {title}"
    yield f"{INDENT}{speaker(hit.message, session)}: {line(hit.snippet)}"


def _parts(message: Message) -> Iterator[str]:
    """What a message holds, piece by piece."""
    reasoning = message.extra.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        yield f"(thinks) {reasoning.strip()}"
    yield from _content(message.content)
    for call in message.extra.get("tool_calls") or ():
        yield _tool_call(call)


def _content(content: str | Sequence[Any] | None) -> Iterator[str]:
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
            yield f"[{line(str(kind or 'attachment'))}]"


def _tool_call(call: object) -> str:
    """A tool call, in the shapes that providers use."""
    given = call if isinstance(call, Mapping) else {}
    function = given.get("function")
    inner = function if isinstance(function, Mapping) else given
    arguments = inner.get("arguments", inner.get("args", inner.get("input")))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return f"→ {line(str(inner.get('name') or 'tool'))}({fit(line(text if arguments else ''), ARGUMENTS)})"


def _value(value: object) -> str:
    return f"'{line(value)}'" if isinstance(value, str) else line(str(value))


# ---- to keep -----------------------------------------------------------------------------------------------


def markdown(session: Session, messages: Sequence[Event]) -> str:
    """The visible conversation as a Markdown document, with times in UTC."""
    blocks = [
        f"# {headline(session)}",
        f"- id: {session.id}\n- place: {place(session)}\n- began: {_utc(session.created_at)}\n"
        f"- messages: {session.message_count}",
    ]
    for event in messages:
        if event.message is not None:
            blocks.append(f"## {speaker(event.message, session)}, {_utc(event.at)}")
            blocks += _markdown_parts(event.message)
    return "\n\n".join(blocks)


def _markdown_parts(message: Message) -> Iterator[str]:
    for part in _parts(message):
        text = clean(part).strip()
        if message.role == "tool":
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield f"{fence}\n{text}\n{fence}"
        elif text:
            yield text


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"

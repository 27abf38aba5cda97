"""A session and its complete log as JSON-ready data.

The words that exported documents share: who spoke, where and when, and one line for each event beside messages.

A conversation as a Markdown document: what people see of it, with times in UTC.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.people import table as people
from palaver.sessions import log_table as events, transcript_table as transcript_pages
from palaver.sessions.events import Event, EventKind, is_shown_erased
from palaver.sessions.quoted_messages import describe_sender
from palaver.sessions.sent_message import find_sent_by

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.message import Message
    from palaver.sessions.model import Session, VersionInfo
    from palaver.sessions.table import SessionRow


EXPORT_FORMAT = "palaver.session/1"
# A long log is exported on a thread of its own, which shares the interpreter with the event loop; the pause between two
# batches lets the others go first.
_BATCH_EVENTS = 100
_PAUSE_SECONDS = 0.0005
MAX_NAME_CHARS = 100
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NOTES = {
    EventKind.REOPENED: "Continued here.",
    EventKind.FORKED: "A branch of this conversation was started here.",
    EventKind.COMPACTION_UNDONE: "The summary was removed: the agent sees all messages again.",
    EventKind.REDONE: "What was undone is shown again.",
    EventKind.TURN_INTERRUPTED: "The answer was interrupted.",
    EventKind.MESSAGE_DELETED: "A message was deleted on the platform.",
}
_START_NOTES = {
    "idle": "Started automatically after a period of inactivity.",
    "daily": "Started automatically: conversations here restart every day.",
    "fork": "Branched from another conversation.",
}
_END_NOTES = {"idle": "Ended after a period of inactivity.", "daily": "Ended: conversations here restart every day."}
MAX_ARGUMENTS_CHARS = 200  # of a tool call
_BACKTICKS = re.compile("`+")


class DocumentEntry(NamedTuple):
    event: Event
    version: VersionInfo | None = None  # of a message that has other versions, which are not in the document


def iterate_visible_entries(tx: Transaction, row: SessionRow) -> Iterator[DocumentEntry]:
    """Yield the events of a session that people see, oldest first, with the version that each message is."""
    after, has_more = 0, True
    while has_more:
        page = transcript_pages.load_page(tx, row.no, after=after, limit=_BATCH_EVENTS)
        yield from (DocumentEntry(event, page.versions.get(event.seq)) for event in page.events)
        has_more = page.has_more_after
        if has_more:
            after = page.events[-1].seq
            time.sleep(_PAUSE_SECONDS)


def export_session(tx: Transaction, row: SessionRow) -> dict[str, Any]:
    """Export a session: the keys of `Session.to_dict`, and its complete log as `events`."""
    log = list(events.iterate_events(tx, row.no, _BATCH_EVENTS, pause=lambda: time.sleep(_PAUSE_SECONDS)))
    names = people.load_names(tx, (event.person_id for event in log if event.person_id is not None))
    return {
        "format": EXPORT_FORMAT,
        **row.session.to_dict(),
        "events": [event.to_dict(names) for event in log],
    }


def clean_document_text(text: str) -> str:
    """Replace control characters, which make a text file binary or move the cursor of a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def to_line(text: str, max_chars: int = MAX_NAME_CHARS) -> str:
    line = " ".join(text[: 4 * max_chars].split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_message_count(session: Session) -> str:
    count = session.message_count
    return f"{count:,} message{'' if count == 1 else 's'}"


def format_title(session: Session) -> str:
    return to_line(session.shown_title or session.preview or "") or "Conversation"


def format_place(session: Session, clean: Callable[[str], str] = to_line) -> str:
    """Return the platform, and the person or chat there: `Telegram, Ada`; `clean` is how names are shown."""
    origin = session.origin
    if origin.chat_type == "dm":
        name = origin.user_name or origin.chat_name or origin.user_id or origin.chat_id
    else:
        name = origin.chat_name or origin.chat_id
    label = session.platform.label
    return label if not name or session.platform == "local" else f"{label}, {clean(name)}"


def format_speaker(message: Message, session: Session, clean: Callable[[str], str] = to_line) -> str:
    if message.role == "assistant":
        return "agent"
    if message.role == "tool":
        return f"tool {clean(str(message.extra.get('tool_name') or ''))}".strip()
    if message.role != "user":
        return message.role
    name = message.author.name if message.author else None
    if not name and not session.shared:
        name = session.origin.user_name
    return clean(name or "") or "user"


def split_tool_call(call: object) -> tuple[str, str]:
    """Return the name and the arguments, as text, of a tool call in any of the shapes that providers use."""
    fields = call if isinstance(call, Mapping) else {}
    function = fields.get("function")
    fields = function if isinstance(function, Mapping) else fields
    arguments = fields.get("arguments", fields.get("args", fields.get("input")))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return str(fields.get("name") or "tool"), text if arguments else ""


def describe_event(event: Event) -> str | None:
    """Return one line about an event that is not a message; None for what a reader of a document does not need."""
    facts = event.facts
    note = _NOTES.get(event.kind)
    match event.kind:
        case EventKind.STARTED:
            note = _START_NOTES.get(str(facts.get("reason")))
        case EventKind.ENDED:
            note = _END_NOTES.get(str(facts.get("reason")))
        case EventKind.RENAMED if not facts.get("automatic"):
            title = facts.get("title")
            note = f"Renamed to “{to_line(title)}”." if isinstance(title, str) else "The title was removed."
        case EventKind.UNDONE:
            turns = facts.get("turns")
            note = "The last exchange was undone." if turns == 1 else f"The last {turns} exchanges were undone."
        case EventKind.COMPACTED:
            note = f"From here on, the agent saw a summary of {facts.get('message_count')} older messages."
        case EventKind.TURN_FAILED:
            reason = facts.get("reason")
            note = "The agent could not answer."
            if isinstance(reason, str) and reason.strip():
                note = f"The agent could not answer: {to_line(reason, 300)}"
        case EventKind.ERASED:
            note = "Message erased." if is_shown_erased(event) else None
        case EventKind.UNREADABLE:
            note = f"Entry {event.seq} of the log can't be read."
        case _:
            pass
    return note


def describe_version(version: VersionInfo) -> str:
    """Say below a message that it has other versions, which a document leaves out."""
    what = "message" if version.has_edits else "answer"
    others = "The other version is" if version.count == 2 else f"The other {version.count - 1} versions are"
    return f"Version {version.number} of {version.count} of this {what}. {others} not in this document."


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
        fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(message.text)), default=0))
        yield f"{fence}\n{message.text.strip()}\n{fence}"
        return
    sent_by = find_sent_by(message.extra)
    if sent_by is not None:
        yield f"{to_line(describe_sender(sent_by))}."
    reasoning = message.extra.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        yield "\n".join(f"> {line}".rstrip() for line in reasoning.strip().splitlines())
    yield from _format_content(message.content)
    for call in message.extra.get("tool_calls") or ():
        name, arguments = split_tool_call(call)
        yield f"→ {to_line(name)}({to_line(arguments, MAX_ARGUMENTS_CHARS)})"


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


class DocumentFormat(StrEnum):
    MARKDOWN = "markdown"
    HTML = "html"
    JSONL = "jsonl"  # the complete log, which can be imported again
    JSON = "json"  # the complete log as one object

    @property
    def suffix(self) -> str:
        return "md" if self is DocumentFormat.MARKDOWN else self.value

    @property
    def media_type(self) -> str:
        media_types = {
            DocumentFormat.MARKDOWN: "text/markdown; charset=utf-8",
            DocumentFormat.HTML: "text/html; charset=utf-8",
            DocumentFormat.JSONL: "application/jsonl",
            DocumentFormat.JSON: "application/json",
        }
        return media_types[self]

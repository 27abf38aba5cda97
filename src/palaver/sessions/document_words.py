"""The words that exported documents share: who spoke, where and when, and one line for each event beside messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING

from palaver.sessions.events import EventKind, is_shown_erased

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.sessions.events import Event
    from palaver.sessions.message import Message
    from palaver.sessions.model import Session
    from palaver.sessions.version import VersionInfo

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


def clean_document_text(text: str) -> str:
    """Replace control characters, which make a text file binary or move the cursor of a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def to_line(text: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 4 * max_chars].split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_message_count(session: Session) -> str:
    count = session.message_count
    return f"{count:,} message{'' if count == 1 else 's'}"


def format_title(session: Session) -> str:
    return to_line(session.shown_title or session.preview or "") or "Conversation"


def format_place(session: Session) -> str:
    """Return the platform, and the person or chat there: `Telegram, Ada`."""
    origin = session.origin
    if origin.chat_type == "dm":
        name = origin.user_name or origin.chat_name or origin.user_id or origin.chat_id
    else:
        name = origin.chat_name or origin.chat_id
    label = session.platform.label
    return label if not name or session.platform == "local" else f"{label}, {to_line(name)}"


def format_speaker(message: Message, session: Session) -> str:
    if message.role == "assistant":
        return "agent"
    if message.role == "tool":
        return f"tool {to_line(str(message.extra.get('tool_name') or ''))}".strip()
    if message.role != "user":
        return message.role
    name = message.author.name if message.author else None
    if not name and not session.shared:
        name = session.origin.user_name
    return to_line(name or "") or "user"


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
            note = _add_reason("The agent could not answer", facts.get("reason"))
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


def _add_reason(text: str, reason: object) -> str:
    return f"{text}: {to_line(reason, 300)}" if isinstance(reason, str) and reason.strip() else f"{text}."

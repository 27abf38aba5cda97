"""Turns the entries of an imported conversation into the rows of its log, and counts what lists show of it.

Pure and streaming: an entry goes in, rows come out. The same entries give the same rows in every run, so that an
import that was interrupted can continue in the middle. The counters are those that the store would have written if
people had sent these messages here.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidMessage
from palaver.core.text import make_json_storable, make_storable
from palaver.core.titles import make_words_title
from palaver.sessions.events import EventKind
from palaver.sessions.message import MAX_MESSAGE_BYTES, MESSAGE_ROLES, Author, Message, make_preview
from palaver.sessions.message_table import PREVIEW_ROLES, encode_message
from palaver.transfer.import_rows import EventRow
from palaver.transfer.imported import ImportedCompaction, ImportedEntry, ImportedMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.ids import PersonId

MAX_KEPT_MESSAGES: Final = 5000  # that a compaction leaves in the agent's view
MAX_HIDDEN_RUN: Final = 200  # messages that one event hides
MAX_SHORTENED_CHARS: Final = 1_000_000  # of a message that was too large
_SURE_PREVIEW_CHARS: Final = 240  # a text with anything in these has a preview
_MAX_PLAIN_CHARS: Final = MAX_MESSAGE_BYTES // 8  # far below the limit, whatever characters they are
_SHORTENED_NOTE = "\n\n(This message was too large to import as a whole.)"


class LogProgress(NamedTuple):
    """The number of stored entries, their digest, and the last event that they have become."""

    entry_count: int
    digest: str
    last_seq: int


@dataclass(slots=True)
class LogCounters:
    """The columns of a session that count its log."""

    last_seq: int = 0
    message_count: int = 0  # visible ones
    stored_messages: int = 0  # hidden ones too
    tool_call_count: int = 0
    auto_title: str | None = None
    last_message_at: int | None = None  # of the visible ones
    last_human_at: int | None = None
    last_entry_at: int | None = None
    compaction_seq: int | None = None


class ConversationLog:
    def __init__(self, *, started_at: int, started_facts: Mapping[str, object], is_from_human: bool) -> None:
        self.counters = LogCounters()
        self.entry_count = 0
        self._digest = hashlib.sha256()
        self._is_from_human = is_from_human
        self._visible_seqs: deque[int] = deque(maxlen=MAX_KEPT_MESSAGES)
        self._preview_text = ""  # of the last message that has one
        self._hidden: list[tuple[Any, ...]] = []  # rows that wait for the number of the event that hides them
        self._progress: LogProgress | None = None  # before the messages in `_hidden`
        self.first_row = self._make_event(EventKind.STARTED, started_at, started_facts)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    @property
    def preview(self) -> str:
        """The last text that people read, as lists show it."""
        return make_preview(self._preview_text)

    @property
    def progress(self) -> LogProgress:
        """The part of the conversation that the returned rows hold."""
        if self._progress is not None:
            return self._progress
        return LogProgress(self.entry_count, self.digest, self.counters.last_seq)

    def continue_after(self, last_seq: int) -> None:
        """Go on after an event of a conversation that is here already, and may have more events than were imported."""
        self._close_hidden()
        self.counters.last_seq = last_seq

    def add(
        self,
        entry: ImportedEntry,
        file_parts: Sequence[Mapping[str, Any]] = (),
        person_id: PersonId | None = None,
        author: Author | None = None,
    ) -> tuple[list[EventRow], str | None]:
        """Add an entry; return the rows that are ready, and what is wrong with the entry, if anything.

        `author` is who wrote the message if it does not say so itself.
        """
        rows = self._start_hidden_run() if isinstance(entry, ImportedMessage) and entry.hidden else self._close_hidden()
        at = to_micros(to_utc(entry.at))
        self.entry_count += 1
        self._digest.update(_describe_entry(entry, at))
        if isinstance(entry, ImportedCompaction):
            return [*rows, self._make_compaction(entry, at)], None
        if entry.message.role not in MESSAGE_ROLES:
            self._progress = self._progress if self._hidden else None
            return rows, f"a message has the role {entry.message.role!r}, which is not known"
        message, columns, problem = _encode(entry.message, file_parts, person_id, author)
        seq = self._next_seq()
        self._count_message(message, columns[1], at)
        if entry.hidden:
            self._hidden.append((seq, "message", at, *columns))
        else:
            self._count_visible(columns, seq, at)
            rows.append(EventRow._make((seq, "message", at, *columns, None, None)))
        return rows, problem

    def finish(self, ended_at: int | None, end_reason: str | None) -> list[EventRow]:
        """Return the last rows: what hides the messages before it, and the end."""
        rows = self._close_hidden()
        if ended_at is not None:
            rows.append(self._make_event(EventKind.ENDED, ended_at, {"reason": end_reason}))
        return rows

    def _next_seq(self) -> int:
        self.counters.last_seq += 1
        return self.counters.last_seq

    def _make_event(self, kind: EventKind, at: int, facts: Mapping[str, object]) -> EventRow:
        body = json.dumps(make_json_storable(facts)) if facts else None
        return EventRow(self._next_seq(), kind.value, at, None, None, body, None, None, None, None)

    def _make_compaction(self, entry: ImportedCompaction, at: int) -> EventRow:
        counters, kept = self.counters, min(entry.kept_count, len(self._visible_seqs))
        seq = counters.last_seq + 1
        facts = {
            "summary": make_storable(entry.summary[:MAX_SHORTENED_CHARS]),
            "first_kept_seq": self._visible_seqs[-kept] if kept else seq,
            "message_count": counters.message_count - kept,
            "previous_seq": counters.compaction_seq,
        }
        row = self._make_event(EventKind.COMPACTED, at, facts)
        counters.compaction_seq = seq
        counters.last_entry_at = at
        return row

    def _start_hidden_run(self) -> list[EventRow]:
        """Get ready for a hidden message: the progress stays before the first one until what hides them is written."""
        rows = self._close_hidden() if len(self._hidden) >= MAX_HIDDEN_RUN else []
        if not self._hidden:
            self._progress = LogProgress(self.entry_count, self.digest, self.counters.last_seq)
        return rows

    def _close_hidden(self) -> list[EventRow]:
        """Return the hidden messages and the event that hides them: all from its first one on, as a rewrite does."""
        if not self._hidden:
            return []
        hidden, self._hidden = self._hidden, []
        self._progress = None
        facts = {"first_seq": hidden[0][0], "hidden": len(hidden), "added": 0}
        event = self._make_event(EventKind.REWRITTEN, hidden[-1][2], facts)
        return [*(EventRow._make((*row, event.seq, None)) for row in hidden), event]

    def _count_message(self, message: Message, text: str | None, at: int) -> None:
        counters = self.counters
        counters.stored_messages += 1
        calls = message.extra.get("tool_calls") if message.extra else None
        if isinstance(calls, list | tuple):
            counters.tool_call_count += len(calls)
        counters.last_entry_at = at
        if message.role == "user":
            if self._is_from_human:
                counters.last_human_at = at
            if counters.auto_title is None and text:
                counters.auto_title = make_words_title(text)

    def _count_visible(self, columns: tuple[Any, ...], seq: int, at: int) -> None:
        counters = self.counters
        counters.message_count += 1
        counters.last_message_at = at
        self._visible_seqs.append(seq)
        role, text = columns[0], columns[1]
        if text and role in PREVIEW_ROLES and (text[:_SURE_PREVIEW_CHARS].strip() or make_preview(text)):
            self._preview_text = text  # the preview itself takes longer, and only the last one is needed


def _encode(
    message: Message, file_parts: Sequence[Mapping[str, Any]], person_id: PersonId | None, author: Author | None
) -> tuple[Message, tuple[Any, ...], str | None]:
    content = message.content
    is_plain = isinstance(content, str) and len(content) <= _MAX_PLAIN_CHARS and not message.extra and not file_parts
    if is_plain and message.author is author is None and message.platform_message_id is None:
        return message, (message.role, make_storable(str(content)), None, person_id, None), None  # nearly all of them
    message = _add_parts(message, file_parts)
    if message.author is None and author is not None:
        message = replace(message, author=author)
    if message.platform_message_id is not None:
        message = replace(message, platform_message_id=make_storable(message.platform_message_id))
    try:
        return message, encode_message(message, person_id), None
    except (InvalidMessage, RecursionError, TypeError, ValueError) as error:
        short = replace(message, content=message.text[:MAX_SHORTENED_CHARS] + _SHORTENED_NOTE, extra={})
        return short, encode_message(short, person_id), f"a message was shortened: {error}"


def _add_parts(message: Message, file_parts: Sequence[Mapping[str, Any]]) -> Message:
    if not file_parts:
        return message
    content = message.content
    if content is None or isinstance(content, str):
        parts: list[Any] = [{"type": "text", "text": content}] if content else []
    else:
        parts = list(content)
    return replace(message, content=[*parts, *file_parts])


def _describe_entry(entry: ImportedEntry, at: int) -> bytes:
    """Return bytes that are the same for the same entry, and hardly ever for another."""
    if isinstance(entry, ImportedCompaction):
        return f"c {at} {entry.kept_count} {entry.summary}\n".encode("utf-8", "surrogatepass")
    message = entry.message
    if isinstance(message.content, str) and not message.extra and not entry.files and message.author is None:
        head = f"{message.role} {at} {entry.hidden:d} {message.platform_message_id} "
        return (head + message.content).encode("utf-8", "surrogatepass")
    values = [message.to_dict(), entry.hidden, [file.name for file in entry.files], at]
    try:
        return json.dumps(values, default=str).encode()
    except (RecursionError, ValueError, TypeError):
        return f"{message.role} {at} {message.text}".encode("utf-8", "surrogatepass")


def to_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

"""The log of a session: everything that ever happened in it, in order.

Events are appended and never changed; the only thing a later event may do to an earlier message is hide it
(undo, rewrite) or show it again (redo). `seq` counts from 1 in each session and orders everything: clocks
may step, the log does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.domain.ids import PersonId
    from palaver.domain.message import Message


class EventKind(StrEnum):
    """What can happen in a session."""

    MESSAGE = "message"
    STARTED = "started"
    ENDED = "ended"
    REOPENED = "reopened"
    RENAMED = "renamed"
    PINNED = "pinned"
    UNPINNED = "unpinned"
    ARCHIVED = "archived"
    UNARCHIVED = "unarchived"
    MOVED = "moved"
    UNDONE = "undone"
    REDONE = "redone"
    REWRITTEN = "rewritten"
    FORKED = "forked"
    INTERRUPTED = "interrupted"  # a turn was stopped, or its worker died after a tool had acted
    FAILED = "failed"  # a turn could not be answered
    COMPACTED = "compacted"  # what came before is put before the agent as a summary
    EXPANDED = "expanded"  # a compaction was taken back
    RESENT = "resent"  # somebody had an answer sent again that had failed, or may have arrived
    CHANGED = "changed"  # a setting of this conversation: its model, its toolsets, what happens while it is busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a session's log."""

    seq: int
    kind: EventKind
    at: datetime
    message: Message | None = None  # for kind `message`
    facts: Mapping[str, Any] = field(default_factory=dict)  # for every other kind
    person_id: PersonId | None = None  # who did it, where that is known
    hidden: bool = False  # a message that an undo or a rewrite took out of the conversation

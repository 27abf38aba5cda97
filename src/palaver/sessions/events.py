"""The log of a session: everything that happened in it, in order.

Events are appended and never changed. A later event can hide an earlier message (undo, rewrite, another version,
deletion on the platform), show it again (redo, that version), or give it another text (edit on the platform); what was
stored first is kept. `seq` counts from 1 in each session and defines the order: a clock may be set back, the log is not
affected.

One exception: when a person is erased (`people/erasures_table.py`), the content of their entries in conversations of
others is removed, and what is left is an entry of kind `erased`.

A compaction: the agent sees a summary instead of the older messages. The messages themselves stay in the log.

If no summary could be made, the older messages leave the agent's view without one (`omitted_count`).
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import format_time
from palaver.core.dataclass import dataclass
from palaver.core.ids import PersonId
from palaver.sessions.message import Message, message_from_json, message_to_json
from palaver.sessions.wire import JsonReader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


ERASED_KIND_FACT: Final = "stored_kind"  # of an erased entry: what it was
ERASED_HIDDEN_FACT: Final = "was_hidden"  # an erased message that an undo had hidden is not shown


class EventKind(StrEnum):
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
    VERSION_STARTED = "version_started"  # a message is asked again or edited; the version before it is hidden
    VERSION_CHOSEN = "version_chosen"  # another version of a message, with all that followed it, is shown again
    FORKED = "forked"
    TURN_INTERRUPTED = "turn_interrupted"  # a turn was stopped, or its worker died after a tool had side effects
    TURN_FAILED = "turn_failed"  # the agent could not answer
    COMPACTED = "compacted"  # the agent now sees a summary of the older messages
    COMPACTION_UNDONE = "compaction_undone"
    ANSWER_RESENT = "answer_resent"  # a person resent an answer whose delivery had failed or was uncertain
    SETTING_CHANGED = "setting_changed"  # a setting of this session, such as its model or profile
    MESSAGE_EDITED = "message_edited"  # its author has changed a message on the platform; everybody sees the new text
    MESSAGE_DELETED = "message_deleted"  # a message was deleted on the platform, and is hidden here
    REACTION = "reaction"  # a person has reacted to a message on the platform, or taken a reaction back
    MEMBERS_CHANGED = "members_changed"  # people have joined or left the chat
    JOB_PROPOSED = "job_proposed"  # the agent wants to make or change a job, and its person is asked to confirm it
    JOB_CONFIRMED = "job_confirmed"
    JOB_REJECTED = "job_rejected"
    ERASED = "erased"  # the person who wrote it was erased, and so was its content; only its number is left
    UNREADABLE = "unreadable"  # never stored: what is read instead of an entry that is damaged


VERSION_KINDS = frozenset({EventKind.VERSION_STARTED, EventKind.VERSION_CHOSEN})

# What makes a conversation unread again for people who had read it. After everything else it stays read.
UNREAD_KINDS = frozenset({EventKind.MESSAGE, EventKind.TURN_INTERRUPTED, EventKind.TURN_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry in a session's log."""

    seq: int
    kind: EventKind
    at: datetime
    message: Message | None = None  # for kind `message`
    facts: Mapping[str, Any] = field(default_factory=dict)  # details, for every other kind
    person_id: PersonId | None = None  # who did it, if known
    hidden: bool = False  # an undo, a rewrite or another version removed it from the conversation

    def to_dict(self, person_names: Mapping[PersonId, str] = MappingProxyType({})) -> dict[str, Any]:
        person_id = self.person_id
        person = None if person_id is None else {"id": person_id, "name": person_names.get(person_id, "")}
        message = None if self.message is None else message_to_json(self.message)
        return {
            "seq": self.seq,
            "kind": self.kind.value,
            "at": format_time(self.at),
            "hidden": self.hidden,
            "person": person,
            "message": message,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Event:
        reader = JsonReader("event", data)
        person, message = reader.read_optional_object("person"), reader.read_optional_object("message")
        return cls(
            **reader.read_fields(cls, without={"person_id", "message", "facts"}),
            person_id=None if person is None else PersonId(JsonReader("event.person", person).read("id", str)),
            message=None if message is None else message_from_json(message),
            facts=dict(reader.read_object("facts")),
        )


def is_shown_erased(event: Event) -> bool:
    """Return whether people are shown that an erased entry was there: a message that was visible."""
    facts = event.facts
    return facts.get(ERASED_KIND_FACT) == "message" and facts.get(ERASED_HIDDEN_FACT) is not True


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Replaces the messages before `first_kept_seq` for the agent, except the carried ones."""

    seq: int  # of the compaction's own event in the log
    summary: str  # empty if messages were only left out
    first_kept_seq: int  # from here on the agent sees every message as it is
    message_count: int  # how many messages the agent no longer sees as they are
    carried_seqs: tuple[int, ...] = ()  # earlier messages that the agent still sees: their answers come later
    omitted_count: int = 0  # how many of them no summary covers

    def covers(self, seq: int) -> bool:
        """Return whether the agent sees the summary instead of the message with this number."""
        return seq < self.first_kept_seq and seq not in self.carried_seqs

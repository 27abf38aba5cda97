"""Sessions and lanes: what is stored about a conversation besides its log.

A `Session` keeps its id for its whole life. A `SessionEntry` is a lane with its current session: the conversation
that the next message in that lane joins.

Versions of an exchange: a message was edited or its answer regenerated, and the other version is kept.

Always true: of the versions of a message one is chosen, and only that one, with everything that followed it, is part
of the conversation. The others are hidden in the same log.

A conversation as one person sees it: the session, how far they have read it, and whether the agent is busy.
"""

from __future__ import annotations

import json
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from palaver.core.columns import Columns, StoredValue, compile_writer
from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.titles import clean_long_text
from palaver.sessions.message import Message, message_to_json
from palaver.sessions.turn import BusyPolicy
from palaver.sessions.usage import UsageTotals
from palaver.sessions.wire import JsonReader, write_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from palaver.core.ids import PersonId, ProjectId, SessionId, SessionKey
    from palaver.sessions.events import Event
    from palaver.sessions.search_text import Snippet


T = TypeVar("T")
MAX_PROJECT_INSTRUCTION_CHARS: Final = 20_000
MAX_VERSIONS: Final = 200  # of one message
NO_PROJECT = "none"  # in a list, instead of a project: what is in none
_JSON_KEYS: Final = """id title auto_title display_name preview platform chat_type key source shared pinned archived
    project_id parent_id message_count tool_call_count created_at active_at last_message_at last_human_at start_reason
    previous_had_messages is_first_contact ended_at end_reason model model_provider context_tokens usage"""


class EndReason(StrEnum):
    """The reason for which a session stopped being its lane's current one. The first one is kept."""

    IDLE = "idle"  # reset by the policy
    DAILY = "daily"  # reset by the policy
    MANUAL = "manual"  # reset by a person
    FORCED = "forced"  # the caller asked for a new session (`force_new`)
    SWITCHED = "switched"  # the lane was switched to another session
    RESTORED = "restored"  # the lane was switched back to an earlier session


class StartReason(StrEnum):
    FIRST = "first"  # the lane had none
    IDLE = "idle"
    DAILY = "daily"
    MANUAL = "manual"
    FORCED = "forced"
    FORK = "fork"


AUTOMATIC_START_REASONS = frozenset({StartReason.IDLE, StartReason.DAILY})
POLICY_END_REASONS = frozenset({EndReason.IDLE, EndReason.DAILY})


@lru_cache(maxsize=512)  # a list asks for the same source several times
def parse_source(source_json: str) -> SessionSource:
    return SessionSource.from_dict(json.loads(source_json))


def find_display_name(title: str | None, auto_title: str | None, source_json: str) -> str:
    return title or auto_title or parse_source(source_json).description


@dataclass(frozen=True, kw_only=True)
class Session(StoredValue):
    """One conversation: its origin, state and counters."""

    id: SessionId
    key: SessionKey  # the lane in which it was started
    platform: Platform
    chat_type: ChatType
    title: str | None  # chosen by a person, unique for its owner
    auto_title: str | None  # the first words, or what a model made of the first exchange; not unique
    preview: str
    shared: bool  # several people write here
    message_count: int
    tool_call_count: int  # made by the agent here; an undo does not lower it, a fork starts at 0
    created_at: datetime
    active_at: datetime | None  # when the last message was added; None before the first one
    last_message_at: datetime | None  # of the messages that are not hidden
    last_human_at: datetime | None  # the reset policy uses this
    ended_at: datetime | None
    end_reason: EndReason | None
    start_reason: StartReason
    previous_had_messages: bool  # the session that was in the lane before it had messages
    is_first_contact: bool  # the first conversation with this person or, if shared, in this place
    pinned: bool
    archived: bool
    project_id: ProjectId | None
    parent_id: SessionId | None  # the session it was forked from
    model: str | None
    model_provider: str | None
    last_prompt_tokens: int
    usage: UsageTotals
    source_json: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        return _write_session(self.get_row(), source=self.origin.to_dict(), usage=self.usage.to_dict())

    def get_row(self) -> Sequence[Any]:
        """Return a row that begins with `SESSION_COLUMNS` and `USAGE_COLUMNS`."""
        if hasattr(self, "row"):
            return self.row
        return (*SESSION_COLUMNS.encode_value(self).values(), *USAGE_COLUMNS.encode_value(self.usage).values())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Session:
        reader = JsonReader("session", data)
        source = SessionSource.from_dict(reader.read_object("source"))
        derived = {"platform", "chat_type", "last_prompt_tokens", "usage", "source_json"}
        return cls(
            **reader.read_fields(cls, without=derived),
            platform=source.platform,
            chat_type=source.chat_type,
            last_prompt_tokens=reader.read("context_tokens", int),
            usage=UsageTotals.from_dict(reader.read_object("usage")),
            source_json=json.dumps(source.to_dict(), separators=(",", ":")),
        )

    @property
    def origin(self) -> SessionSource:
        """The source of its first message."""
        return parse_source(self.source_json)

    @property
    def display_name(self) -> str:
        """Its title, or a description of where it takes place."""
        return find_display_name(self.title, self.auto_title, self.source_json)

    @property
    def updated_at(self) -> datetime:
        """The time of the last activity."""
        return self.active_at or self.created_at

    @property
    def shown_title(self) -> str | None:
        """The title that people see: the chosen one, otherwise the automatic one; None before the first words."""
        return self.title or self.auto_title

    @property
    def is_expired(self) -> bool:
        """Return whether the reset policy has ended it, and it does not continue."""
        return self.end_reason in POLICY_END_REASONS

    @property
    def model_name(self) -> str | None:
        """The model of the last answer as the settings spell it, with its provider: `openai:gpt-5`, `demo`."""
        if self.model is None or self.model_provider in {None, self.model}:
            return self.model
        return f"{self.model_provider}:{self.model}"


SESSION_COLUMNS: Final = Columns(Session, without={"usage"})
USAGE_COLUMNS: Final = Columns(UsageTotals)  # they follow those of the session
read_session: Final = SESSION_COLUMNS.compile_reader(
    usage=lambda row: USAGE_COLUMNS.decode(row[len(SESSION_COLUMNS) :])
)
_write_session = compile_writer(
    SESSION_COLUMNS.columns,
    _JSON_KEYS.split(),
    display_name=("title auto_title source_json", find_display_name),
    context_tokens=("last_prompt_tokens", None),
)


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A lane and its current session."""

    session_key: SessionKey
    session: Session
    is_new: bool = False  # the call that returned this entry started the session

    def to_dict(self) -> dict[str, Any]:
        return write_keys("session_key session is_new", self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SessionEntry:
        return cls(data["session_key"], Session.from_dict(data["session"]), bool(data.get("is_new")))

    @property
    def session_id(self) -> SessionId:
        return self.session.id

    @property
    def origin(self) -> SessionSource:
        return self.session.origin

    @property
    def created_at(self) -> datetime:
        return self.session.created_at

    @property
    def updated_at(self) -> datetime:
        return self.session.updated_at

    @property
    def was_auto_reset(self) -> bool:
        """Whether the reset policy started this session and it has no message yet: the moment to notify the person."""
        return self.session.start_reason in AUTOMATIC_START_REASONS and self.session.active_at is None

    @property
    def auto_reset_reason(self) -> StartReason | None:
        """`idle` or `daily` if `was_auto_reset`, else None."""
        return self.session.start_reason if self.was_auto_reset else None

    @property
    def is_first_contact(self) -> bool:
        return self.session.is_first_contact

    @property
    def reset_had_activity(self) -> bool:
        """Return whether the previous session had messages, so that the reset is worth a notification."""
        return self.session.previous_had_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMessage:
    """The session and log number under which a message was stored."""

    session_key: SessionKey
    session_id: SessionId
    session_no: int  # of the session in the database
    seq: int  # the message's number in the session's log
    start_reason: StartReason | None = None  # of a session in which this is the first message of a person; else None
    previous_had_messages: bool = False  # the lane's previous session had messages: tell the person about the reset

    @property
    def was_auto_reset(self) -> bool:
        """Return whether the reset policy has started a session, and the person has to be told."""
        return self.start_reason in AUTOMATIC_START_REASONS


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """The turns and messages that an undo or a redo changed."""

    turns: int
    messages: int
    prompt: str  # the first user message among them, to offer it for editing


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    session_id: SessionId
    title: str | None
    seq: int
    at: datetime
    message: Message
    snippet: Snippet
    archived: bool  # the session
    owner_name: str | None  # of the person whose session it is; None if several people share it

    @property
    def cursor(self) -> str:
        """Continues the search after this message. It contains nothing that the reader does not know of the message."""
        return f"{self.session_id}.{self.seq}"

    def to_dict(self) -> dict[str, Any]:
        others = {"role": self.message.role, "snippet": self.snippet.text, "highlights": self.snippet.highlights}
        keys = "session_id title seq at role snippet highlights archived message"
        return write_keys(keys, self, message=message_to_json(self.message), **others)


class SearchHits(list[SearchHit]):
    """The messages that a search has found, newest first."""

    def __init__(self, hits: Iterable[SearchHit], *, is_indexing: bool = False) -> None:
        super().__init__(hits)
        self.is_indexing = is_indexing  # some messages of the reader are not indexed yet, and may be missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder of a person's conversations."""

    id: ProjectId
    name: str
    color: str | None
    session_count: int
    created_at: datetime
    instructions: str | None = None  # what the agent is told in its conversations


def clean_project_instructions(text: str) -> str | None:
    """Return the instructions of a project as they are stored; None: without any."""
    return clean_long_text("instructions", text, MAX_PROJECT_INSTRUCTION_CHARS) if text.strip() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInfo:
    """The version of a message that is shown, and the number of versions."""

    group: int  # the number of the first version's message in the log
    number: int  # of the chosen version, from 1
    count: int
    has_edits: bool  # the message itself differs between versions, not only its answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    number: int
    seq: int  # of its message in the log
    is_chosen: bool
    question: str
    answer: str  # empty if there is none


@dataclass(frozen=True, kw_only=True)
class SessionSummary(StoredValue):
    """An entry in a person's list of conversations."""

    session: Session
    last_seq: int  # of the last event in the log
    read_seq: int = 0  # of the last event that this person has read
    chosen_model: str | None = None  # set for this conversation; None: the default
    profile: str | None = None  # set for this conversation; None: the default
    personality: str | None = None  # set for this conversation; None: none
    workspace: str | None = None  # set for this conversation; None: none
    busy_policy: BusyPolicy | None = None  # set for this conversation; None: the default
    disabled_toolsets: tuple[str, ...] = ()
    running: bool = False  # the agent is answering
    queued: int = 0  # turns that wait
    owner_name: str | None = None  # None if several people share it
    belongs_to_its_lane: bool = False  # it takes place, or took place, in the chat where it was started

    def get_row(self) -> Sequence[Any]:
        """Return a row that begins with `SESSION_COLUMNS`, `USAGE_COLUMNS` and `SUMMARY_COLUMNS`."""
        if hasattr(self, "row"):
            return self.row
        return (*self.session.get_row()[:_FIRST_SUMMARY_COLUMN], *SUMMARY_COLUMNS.encode_value(self).values())

    @property
    def has_delivery_address(self) -> bool:
        """Return whether it has a chat where answers can be sent if the platform is connected."""
        return self.belongs_to_its_lane and self.session.origin.has_chat


SUMMARY_COLUMNS: Final = Columns(
    SessionSummary, types={BusyPolicy}, without={"session"}
)  # they follow those of the usage
_FIRST_SUMMARY_COLUMN: Final = len(SESSION_COLUMNS) + len(USAGE_COLUMNS)
read_summary: Final = SUMMARY_COLUMNS.compile_reader(first=_FIRST_SUMMARY_COLUMN, session=read_session)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPage:
    """A part of a log for people to read: visible messages, and the other events between them."""

    events: Sequence[Event]
    has_more_before: bool
    has_more_after: bool
    person_names: Mapping[PersonId, str] = field(default_factory=dict)  # of the people in these events
    versions: Mapping[int, VersionInfo] = field(default_factory=dict)  # of the messages with several, by number

"""A conversation as seen from outside its log: what lists show and what routing needs.

A `Session` keeps one id for its whole life. A `SessionEntry` is a lane's current session: which conversation
a message from that place goes to now, and how it came to be that one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from palaver.domain.source import ChatType, Platform, SessionSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from palaver.domain.ids import ProjectId, SessionId, SessionKey
    from palaver.domain.message import Message
    from palaver.domain.usage import UsageTotals

T = TypeVar("T")


class EndReason(StrEnum):
    """Why a session stopped being a lane's current one. The first reason stands."""

    IDLE = "idle"  # by the reset policy
    DAILY = "daily"  # by the reset policy
    MANUAL = "manual"  # the person asked for a reset
    FORCED = "forced"  # a new session was asked for outright
    SWITCHED = "switched"  # the lane went on to another session
    RESTORED = "restored"  # an earlier session was brought back


class StartReason(StrEnum):
    """Why a session began."""

    FIRST = "first"  # nothing was there
    IDLE = "idle"
    DAILY = "daily"
    MANUAL = "manual"
    FORCED = "forced"
    FORK = "fork"


AUTOMATIC = frozenset({StartReason.IDLE, StartReason.DAILY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation: its place, its state, its counters."""

    id: SessionId
    key: SessionKey  # the lane it was born in
    platform: Platform
    chat_type: ChatType
    title: str | None
    preview: str
    shared: bool  # several people speak here
    message_count: int
    created_at: datetime
    active_at: datetime | None  # the last thing said; None until the first message
    last_message_at: datetime | None  # of what is visible
    last_human_at: datetime | None  # what the reset policy looks at
    ended_at: datetime | None
    end_reason: EndReason | None
    start_reason: StartReason
    started_after_activity: bool  # the session before it in the lane had messages
    pinned: bool
    archived: bool
    project_id: ProjectId | None
    parent_id: SessionId | None  # what it was forked from
    model: str | None
    provider: str | None
    last_prompt_tokens: int
    usage: UsageTotals
    source_json: str = field(repr=False)

    @property
    def origin(self) -> SessionSource:
        """Where it began."""
        return SessionSource.from_dict(json.loads(self.source_json))

    @property
    def display_name(self) -> str:
        """What to call it: its title, or where it takes place."""
        return self.title or self.origin.description


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A lane and the session it is on."""

    session_key: SessionKey
    session: Session
    is_new: bool = False  # this very call began it

    @property
    def session_id(self) -> SessionId:
        """The id of the lane's current session."""
        return self.session.id

    @property
    def origin(self) -> SessionSource:
        """Where the session began."""
        return self.session.origin

    @property
    def created_at(self) -> datetime:
        """When the session began."""
        return self.session.created_at

    @property
    def updated_at(self) -> datetime:
        """The last activity."""
        return self.session.active_at or self.session.created_at

    @property
    def was_auto_reset(self) -> bool:
        """Whether the policy began this session and nothing has been said in it yet: the moment to tell."""
        return self.session.start_reason in AUTOMATIC and self.session.active_at is None

    @property
    def auto_reset_reason(self) -> StartReason | None:
        """`idle` or `daily`, where `was_auto_reset`."""
        return self.session.start_reason if self.was_auto_reset else None

    @property
    def reset_had_activity(self) -> bool:
        """Whether the session before it had messages, so that the person loses sight of something."""
        return self.session.started_after_activity


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Where a message went."""

    session_key: SessionKey
    session_id: SessionId
    seq: int  # its number in the session's log
    began: StartReason | None  # the message began a session, and why
    after_activity: bool  # the lane's session before that one had messages: somebody wants to be told

    @property
    def was_auto_reset(self) -> bool:
        """Whether the reset policy began the session with this message."""
        return self.began in AUTOMATIC


class Page(tuple[T, ...], Generic[T]):
    """A page of a list, and the cursor that continues it (None at the end)."""

    cursor: str | None

    def __new__(cls, items: Iterable[T], cursor: str | None = None) -> Page[T]:
        """Make a page of `items`."""
        page = super().__new__(cls, items)
        page.cursor = cursor
        return page


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo or a redo did."""

    turns: int
    messages: int
    prompt: str  # the first user text among them, to be offered again


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that was found."""

    session_id: SessionId
    title: str | None
    seq: int
    at: datetime
    message: Message
    snippet: str
    position: int  # where it stands in the whole log of the store; orders hits and continues a search


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder for a person's conversations."""

    id: ProjectId
    name: str
    colour: str | None
    session_count: int
    created_at: datetime

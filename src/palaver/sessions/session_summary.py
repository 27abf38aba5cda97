"""A conversation as one person sees it: the session, how far they have read it, and whether the agent is busy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.model import Session
    from palaver.sessions.turn import BusyPolicy
    from palaver.sessions.version import VersionInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
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
    has_delivery_address: bool = False  # it has a chat where answers can be sent if the platform is connected


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPage:
    """A part of a log for people to read: visible messages, and the other events between them."""

    events: Sequence[Event]
    has_more_before: bool
    has_more_after: bool
    person_names: Mapping[PersonId, str] = field(default_factory=dict)  # of the people in these events
    versions: Mapping[int, VersionInfo] = field(default_factory=dict)  # of the messages with several, by number

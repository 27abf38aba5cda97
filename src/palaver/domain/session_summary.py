"""A conversation as a page shows it to one person: the session, how far they have read, and what goes on in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.domain.events import Event
    from palaver.domain.ids import PersonId
    from palaver.domain.session import Session
    from palaver.domain.turn import BusyPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One conversation, for one person."""

    session: Session
    last_seq: int  # of the last event in its log
    read_seq: int = 0  # the last one this person has seen
    chosen_model: str | None = None  # for this conversation alone
    busy: BusyPolicy | None = None  # the same
    toolsets_off: tuple[str, ...] = ()  # the same
    running: bool = False  # an answer is being given
    queued: int = 0  # messages that wait for one
    owner: str | None = None  # whose it is; None where several people share it
    takes_place: bool = False  # somewhere outside, where answers can be sent if its platform is connected


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A part of a log that people read: visible messages, and everything else that happened between them."""

    events: Sequence[Event]
    more_before: bool
    more_after: bool
    names: Mapping[PersonId, str] = field(default_factory=dict)  # of the people who did something in it

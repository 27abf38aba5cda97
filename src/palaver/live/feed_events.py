"""The items that a follower of a conversation receives, in order.

Each event of the log comes exactly once, in the order of its number. The answer that the agent is producing comes
beside them as pieces of a draft, without a number, because it is not in the log yet. When the turn ends, its messages
come as events, followed by the end of the turn. The delivery of an answer is reported whenever its state changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.ids import TurnId
    from palaver.sessions.delivery import DeliveryStatus
    from palaver.sessions.draft import Piece
    from palaver.sessions.events import Event
    from palaver.sessions.turn import Turn


@dataclass(frozen=True, slots=True)
class EventAppended:
    """The log has a new event."""

    event: Event


@dataclass(frozen=True, slots=True)
class TurnChanged:
    """A turn was queued, started or ended."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class DraftGrew:
    """The agent produced more of its answer."""

    turn_id: TurnId
    pieces: Sequence[Piece]
    replaces_draft: bool = False  # these are all the pieces: drop the draft received so far


@dataclass(frozen=True, slots=True)
class NoticeSent:
    """The agent reports something about the run; it is not stored."""

    turn_id: TurnId
    text: str  # in English
    code: str = ""  # with which a page writes the text in the reader's language; see `NoticeCode`
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeliveryChanged:
    """The delivery of an answer has a new state."""

    delivery: DeliveryStatus


FeedItem = EventAppended | TurnChanged | DraftGrew | NoticeSent | DeliveryChanged

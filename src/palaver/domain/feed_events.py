"""What somebody who follows a conversation is told, in order.

Events of the log come exactly once each, by number. What the agent is just saying comes beside them as pieces of a
draft: it has no number, because the log does not hold it yet. When its turn ends, the messages it became come as
events, and then the end of the turn. Where an answer is sent somewhere, how that stands comes as it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.delivery import DeliveryStatus
    from palaver.domain.draft import Piece
    from palaver.domain.events import Event
    from palaver.domain.ids import TurnId
    from palaver.domain.turn import Turn


@dataclass(frozen=True, slots=True)
class Happened:
    """Something new in the log."""

    event: Event


@dataclass(frozen=True, slots=True)
class TurnChanged:
    """A turn waits, runs or has ended."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Drafted:
    """More of a growing answer."""

    turn_id: TurnId
    pieces: Sequence[Piece]
    afresh: bool = False  # these are all the pieces there are: forget what was drafted before


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the agent wants the person to know about the run; not kept."""

    turn_id: TurnId
    text: str


@dataclass(frozen=True, slots=True)
class DeliveryChanged:
    """An answer waits to be sent somewhere, was sent, or was not."""

    delivery: DeliveryStatus


FeedItem = Happened | TurnChanged | Drafted | Noticed | DeliveryChanged

"""A turn: one run of the agent for one accepted input, and what becomes of it.

queued ──claim──▶ running ──▶ done
   ▲                 │ ├────▶ interrupted   stopped, or its worker died after a tool had acted
   └──worker died────┘ └────▶ failed        the agent could not answer, or it killed too many workers
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.ids import PersonId, SessionId, TurnId
    from palaver.domain.source import Platform

QUOTES = "quotes"  # among the facts of a turn
GATHERED = "gathered"  # among them too: how many messages it answers together
MOST_ATTEMPTS = 3  # a turn that has killed this many workers is parked


class TurnState(StrEnum):
    """Where a turn stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self not in {TurnState.QUEUED, TurnState.RUNNING}


class TurnKind(StrEnum):
    """What a turn is for."""

    ANSWER = "answer"
    COMPACT = "compact"  # summarise the conversation so far


class BusyPolicy(StrEnum):
    """What happens to a message that arrives while the agent is answering another one."""

    QUEUE = "queue"
    STEER = "steer"  # given to the running agent after its next tool call
    INTERRUPT = "interrupt"  # stops it, keeps what was said, and answers the new message
    REJECT = "reject"


class StopRequest(StrEnum):
    """What somebody wants of a turn that is running."""

    STOP = "stop"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn as others see it."""

    id: TurnId
    session_id: SessionId
    kind: TurnKind
    state: TurnState
    input_seq: int  # the message it answers; the last of them, where several were taken together
    attempt: int
    person_id: PersonId | None
    created_at: datetime
    steers: bool = False  # it is given to the run before it, if that still takes something
    ended_at: datetime | None = None
    error: str | None = None  # why it failed or was interrupted, in words for the person
    goes_to: Platform | None = None  # where its answer is sent; None: it is read in the conversation
    quotes: tuple[int, ...] = ()  # messages that are quoted before the answer, because nobody there has seen them


class Fate(StrEnum):
    """What becomes of a running turn whose worker died."""

    AGAIN = "again"
    INTERRUPTED = "interrupted"
    PARKED = "parked"


def after_death(*, acted: bool, attempt: int, wish: StopRequest | None) -> Fate:
    """A turn whose tools had acted is never repeated by itself; one that keeps killing its worker is parked."""
    if acted or wish is not None:
        return Fate.INTERRUPTED
    return Fate.AGAIN if attempt < MOST_ATTEMPTS else Fate.PARKED

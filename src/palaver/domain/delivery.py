"""A delivery: something on its way to one address, and how often it is tried.

    pending ──▶ sending ──▶ sent
       ▲            ├─────▶ uncertain   the process died, or the line broke, between sending and hearing of it
       └─try later──┘─────▶ failed      refused for good, or tried too often

Always true: what may have arrived is never sent again by itself, unless the platform knows it by its key.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

from palaver.domain.errors import InvalidInput
from palaver.domain.source import Platform

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.ids import DeliveryId, SessionId, TurnId
    from palaver.domain.source import SessionSource

MOST_ATTEMPTS = 8
FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(minutes=10)


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNCERTAIN = "uncertain"
    FAILED = "failed"


class DeliveryKind(StrEnum):
    """What is being delivered."""

    ANSWER = "answer"
    NOTICE = "notice"  # from the gateway itself: a command's reply, a reset, a refusal


@dataclass(frozen=True, slots=True)
class Address:
    """A place on a platform that something can be sent to. `account` is the bot that speaks there."""

    platform: Platform
    chat_id: str
    thread_id: str | None = None
    account: str = ""

    def __str__(self) -> str:
        parts = (self.platform, self.account, self.chat_id, *([self.thread_id] if self.thread_id else []))
        return ":".join(quote(part, safe="@+-_.!#$*") for part in parts)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The address that `str` wrote."""
        parts = [unquote(part) for part in text.split(":")]
        if len(parts) not in {3, 4} or not parts[2]:
            raise InvalidInput(f"address: {text!r} is not an address (platform:account:chat or …:chat:thread)")
        return cls(Platform(parts[0]), parts[2], parts[3] if len(parts) == 4 else None, parts[1])

    @classmethod
    def of(cls, source: SessionSource, account: str = "") -> Self:
        """Where an answer to this source goes."""
        return cls(source.platform, source.chat_id, source.thread_id, account)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One thing to be sent, as an adapter gets it."""

    id: str  # the idempotency key: the same through every attempt
    address: Address
    content: str  # Markdown
    kind: DeliveryKind
    attempt: int
    session_id: SessionId | None = None
    reply_to: str | None = None  # the platform's id of the message it answers
    state: DeliveryState = DeliveryState.SENDING
    receipt: str | None = None  # the platform's id of what was sent
    error: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """How the delivery of an answer stands, for those who may see its conversation."""

    id: DeliveryId
    turn_id: TurnId
    input_seq: int  # the message that is answered
    quotes: tuple[int, ...]  # messages that stand before the answer, because nobody there has seen them
    platform: Platform
    state: DeliveryState
    error: str | None  # why it failed, is uncertain or is tried again
    created_at: datetime  # the moment of the answer itself: the two are stored together
    ended_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether more will become of it by itself."""
        return self.state in {DeliveryState.PENDING, DeliveryState.SENDING}


def delay_before(attempt: int, *, retry_after: timedelta | None = None, jitter: float | None = None) -> timedelta:
    """How long to wait before the next attempt: doubling, spread out, and never shorter than the platform asks."""
    spread = random.random() if jitter is None else jitter  # noqa: S311  (not a secret)
    doubled: int = 2 ** min(attempt - 1, 20)
    step = min(FIRST_DELAY * doubled, LONGEST_DELAY)
    wait = step * (0.5 + spread / 2)
    return max(wait, retry_after) if retry_after else wait

"""A delivery: one message on its way to one address, its state, and when it is retried.

    pending ──▶ sending ──▶ sent
       ▲            ├─────▶ uncertain   the process died, or the connection broke, before the platform confirmed
       └───retry────┘─────▶ failed      the platform rejected it, or there were too many attempts

Always true: a delivery that may have arrived is never retried automatically, unless the platform recognizes it by
its idempotency key.
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

MAX_DELIVERY_ATTEMPTS = 8
FIRST_RETRY_DELAY = timedelta(seconds=1)
MAX_RETRY_DELAY = timedelta(minutes=10)


class DeliveryState(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNCERTAIN = "uncertain"
    FAILED = "failed"


class DeliveryKind(StrEnum):
    ANSWER = "answer"
    NOTICE = "notice"  # from the gateway itself: the reply to a command, a reset, a rejected message


AccountKey = tuple[Platform, str]  # a platform, and the name of our account there; the name is empty for the only one


@dataclass(frozen=True, slots=True)
class Address:
    """A chat on a platform that can be sent to; `account` is the bot that sends there."""

    platform: Platform
    chat_id: str
    thread_id: str | None = None
    account: str = ""

    def __str__(self) -> str:
        parts = (self.platform, self.account, self.chat_id, *([self.thread_id] if self.thread_id else []))
        return ":".join(quote(part, safe="@+-_.!#$*") for part in parts)

    @property
    def account_key(self) -> AccountKey:
        """The account that sends there."""
        return self.platform, self.account

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse what `str(address)` returns; raise InvalidInput for anything else."""
        parts = [unquote(part) for part in text.split(":")]
        if len(parts) not in {3, 4} or not parts[2]:
            raise InvalidInput(f"address: {text!r} is not valid (use platform:account:chat or …:chat:thread)")
        return cls(Platform(parts[0]), parts[2], parts[3] if len(parts) == 4 else None, parts[1])

    @classmethod
    def from_source(cls, source: SessionSource) -> Self:
        """Return the address that answers to this source are sent to."""
        return cls(source.platform, source.chat_id, source.thread_id, source.account)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message to send, as an adapter receives it."""

    id: str  # the idempotency key: the same in every attempt
    address: Address
    content: str  # Markdown
    kind: DeliveryKind
    attempt: int
    session_id: SessionId | None = None
    reply_to: str | None = None  # the platform's id of the message that it answers
    state: DeliveryState = DeliveryState.SENDING
    sent_message_id: str | None = None  # the platform's id of the sent message
    error: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """The state of an answer's delivery, as shown in its conversation."""

    id: DeliveryId
    turn_id: TurnId
    input_seq: int  # the message that is answered
    quoted_seqs: tuple[int, ...]  # messages that are quoted before the answer, because that chat has not seen them
    platform: Platform
    state: DeliveryState
    error: str | None  # why it failed, is uncertain, or is retried
    created_at: datetime  # the time of the answer itself: both are stored together
    ended_at: datetime | None


def compute_retry_delay(
    attempt: int, *, retry_after: timedelta | None = None, jitter: float | None = None
) -> timedelta:
    """Return the wait before the next attempt: it doubles, with jitter, and is never shorter than `retry_after`."""
    spread = random.random() if jitter is None else jitter  # noqa: S311  (not a secret)
    factor: int = 2 ** min(attempt - 1, 20)
    full_delay = min(FIRST_RETRY_DELAY * factor, MAX_RETRY_DELAY)
    delay = full_delay * (0.5 + spread / 2)
    return max(delay, retry_after) if retry_after else delay

"""A delivery: one answer or notice on its way to one address, its parts, their states, and when it is retried.

    pending ──▶ sending ──▶ sent
       ▲            ├─────▶ uncertain   the process died, or the connection broke, before the platform confirmed
       └───retry────┘─────▶ failed      the platform rejected it, or there were too many attempts

A delivery has parts: the messages that it becomes on its platform, in order. Each has a state of its own, with the same
values. `decide_part_outcome` says what follows from the outcome of one part.

Always true: a part that may have arrived is never sent again automatically, unless the platform recognizes its key or
says that it was not sent, or it edits a message that is known: an edit can be repeated.
"""

from __future__ import annotations

import random
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

from palaver.core.columns import TRANSLATABLE
from palaver.core.dataclass import dataclass
from palaver.core.errors import (
    ChatMovedAway,
    DeliveryError,
    InvalidInput,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.source import Platform, SessionSource

if TYPE_CHECKING:
    from palaver.core.ids import DeliveryId, SessionId, TurnId


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


MAX_CACHED_ADDRESSES = 512
AccountKey = tuple[Platform, str]  # a platform, and the name of our account there; the name is empty for the only one


@lru_cache(MAX_CACHED_ADDRESSES)  # each message of a chat needs it a few times
def _format_address(*parts: str) -> str:
    return ":".join(quote(part, safe="@+-_.!#$*") for part in (parts if parts[3] else parts[:3]))


@dataclass(frozen=True, slots=True)
class Address:
    """A chat on a platform that can be sent to; `account` is the bot that sends there."""

    platform: Platform
    chat_id: str
    thread_id: str | None = None
    account: str = ""

    def __str__(self) -> str:
        return _format_address(self.platform, self.account, self.chat_id, self.thread_id or "")

    @property
    def account_key(self) -> AccountKey:
        return self.platform, self.account

    @classmethod
    @lru_cache(MAX_CACHED_ADDRESSES)
    def from_text(cls, text: str) -> Self:
        """Parse what `str(address)` returns; raise InvalidInput for anything else."""
        parts = [unquote(part) for part in text.split(":")]
        if len(parts) not in {3, 4} or not parts[2]:
            raise InvalidInput(f"address: {text!r} is not valid (use platform:account:chat or …:chat:thread)")
        return cls(Platform(parts[0]), parts[2], parts[3] if len(parts) == 4 else None, parts[1])

    @classmethod
    def from_source(cls, source: SessionSource) -> Self:
        return cls(source.platform, source.chat_id, source.thread_id, source.account)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One answer or notice to send. Its parts are what an adapter receives."""

    id: str  # the keys of its parts begin with it
    address: Address
    content: str  # Markdown
    kind: DeliveryKind
    attempt: int  # since the last part of it has arrived
    session_id: SessionId | None = None
    reply_to: str | None = None  # the platform's id of the message that it answers
    state: DeliveryState = DeliveryState.SENDING
    error: str | None = field(default=None, metadata=TRANSLATABLE)
    created_at: datetime | None = None
    turn_no: int | None = None  # the turn whose answer it is
    attachment_ids: tuple[str, ...] = ()  # files that are sent after the text
    buttons: tuple[Button, ...] = ()  # under its last message, where the platform has buttons


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPart:
    """One message of a delivery on its platform."""

    no: int  # 1, 2, 3 …
    body: str  # as the adapter has rendered it; empty for a file
    attachment_no: int | None = None  # the file to send
    edits_id: str | None = None  # the platform's id of the message that it replaces: the preview of the answer
    state: DeliveryState = DeliveryState.PENDING
    first_sent_at: int | None = None  # microseconds: of the first attempt that may have arrived
    sent_message_id: str | None = None  # the platform's id of the sent message
    error: str | None = field(default=None, metadata=TRANSLATABLE)

    @property
    def has_ended(self) -> bool:
        """Return whether it is not sent any more, because it has arrived or may have."""
        return self.state in {DeliveryState.SENT, DeliveryState.UNCERTAIN}


def format_part_key(delivery_id: str, part_no: int) -> str:
    """Return the key with which a part is sent in every attempt; at most 25 characters."""
    return f"{delivery_id}.{part_no}"


def parse_part_key(key: str) -> tuple[str, int] | None:
    """Return the delivery and the number of the part that a key belongs to; None if it is not the key of a part."""
    delivery_id, _, number = key.partition(".")
    is_key = delivery_id.startswith("d_") and number.isascii() and number.isdigit() and len(number) <= 6
    return (delivery_id, int(number)) if is_key else None


class NextStep(StrEnum):
    CONTINUE = "continue"  # with the next part, or end the delivery
    RETRY = "retry"  # send the same part again, later
    SEND_AS_NEW = "send_as_new"  # send the same part as a new message at once, instead of the edit that was refused
    MOVE = "move"  # move the chat, and send the same part at its new address
    FAIL = "fail"  # end the delivery; the parts after it are not sent


def decide_part_outcome(
    error: DeliveryError | None, *, is_edit: bool, is_resolvable: bool, is_last_attempt: bool
) -> tuple[DeliveryState, NextStep]:
    """Return the state of a part after an attempt, and what follows; `error` is None if it has arrived."""
    match error:
        case None:
            decision = DeliveryState.SENT, NextStep.CONTINUE
        case SendRejected() if is_edit and not isinstance(error, TargetUnreachable):
            decision = DeliveryState.PENDING, NextStep.SEND_AS_NEW
        case SendRejected():
            decision = DeliveryState.FAILED, NextStep.FAIL
        case SendRetryable() | ChatMovedAway() if is_last_attempt:
            decision = DeliveryState.FAILED, NextStep.FAIL
        case SendRetryable():
            decision = DeliveryState.PENDING, NextStep.RETRY
        case ChatMovedAway():
            decision = DeliveryState.PENDING, NextStep.MOVE
        case _ if (is_edit or is_resolvable) and not is_last_attempt:
            decision = DeliveryState.PENDING, NextStep.RETRY
        case _:
            decision = DeliveryState.UNCERTAIN, NextStep.CONTINUE
    return decision


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """The state of the delivery of an answer, or of a message that a job or the agent sent to a chat."""

    id: DeliveryId
    turn_id: TurnId | None  # of an answer
    input_seq: int | None  # of an answer: the message that is answered
    message_seq: int | None = None  # of a message that a job or the agent sent: the message itself
    quoted_seqs: tuple[int, ...]  # messages that are quoted before the answer, because that chat has not seen them
    platform: Platform
    state: DeliveryState
    error: str | None = field(metadata=TRANSLATABLE)  # why it failed, is uncertain, or is retried
    created_at: datetime  # the time of the answer or message itself: both are stored together
    ended_at: datetime | None
    target: str  # where it goes, as `sessions/targets.py` writes it


class Resolution(StrEnum):
    """What a person decides about a delivery that failed or may not have arrived."""

    RESEND = "resend"
    SENT = "sent"  # it has arrived, as the person has seen
    NOT_SENT = "not_sent"
    DISMISS = "dismiss"  # take it off the list, whatever became of it


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeliveredMessage:
    """A delivery that failed or is uncertain, on the list of what people have to decide."""

    id: DeliveryId
    session_id: SessionId | None  # None: a notice outside of any conversation
    title: str | None  # of the conversation
    kind: DeliveryKind
    platform: Platform
    account: str
    target: str  # where it was to go, as `sessions/targets.py` writes it
    state: DeliveryState
    error: str | None = field(metadata=TRANSLATABLE)
    created_at: datetime
    ended_at: datetime


def make_unexpected_error(error: Exception) -> SendUncertain:
    """Return what an error that no adapter should raise means: the message may have arrived."""
    return SendUncertain.say(
        "delivery.unexpected_error", "Unexpected error while sending ({error}).", error=type(error).__name__
    )


def compute_retry_delay(
    attempt: int, *, retry_after: timedelta | None = None, jitter: float | None = None
) -> timedelta:
    """Return the wait before the next attempt: it doubles, with jitter, and is never shorter than `retry_after`."""
    spread = random.random() if jitter is None else jitter  # noqa: S311  (not a secret)
    factor: int = 2 ** min(attempt - 1, 20)
    full_delay = min(FIRST_RETRY_DELAY * factor, MAX_RETRY_DELAY)
    delay = full_delay * (0.5 + spread / 2)
    return max(delay, retry_after) if retry_after else delay


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message. `data` comes back in `ButtonPressed`; platforms allow 64 bytes."""

    label: str
    data: str  # `stop:t_…`, `retry:t_…`, `rerun:s:seq`, `confirm:j_…:time`, `reject:j_…:time`, `link-confirm:time`

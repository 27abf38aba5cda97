"""What comes in from a platform, and the honest answer to whoever brought it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from palaver.domain.delivery import Address
from palaver.domain.source import Platform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.ids import SessionId, SessionKey, TurnId
    from palaver.domain.source import SessionSource
    from palaver.domain.turn import BusyPolicy

# Where people read the conversation itself, live: nothing has to be sent there.
FOLLOWING = frozenset({Platform.LOCAL, Platform.WEB, Platform.API})


def place_of(source: SessionSource, account: str = "") -> Address | None:
    """Where answers to this source are sent; None where they are read in the conversation itself, or nobody knows."""
    return None if source.platform in FOLLOWING or not source.chat_id else Address.of(source, account)


class ReplyTo(StrEnum):
    """Where the answer to a message is read that was written on a surface of ours."""

    HERE = "here"  # in the conversation itself
    THERE = "there"  # also where the conversation takes place


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message that a platform brought."""

    source: SessionSource
    content: str | Sequence[Any]
    message_id: str | None = None  # the platform's, or a client's own key: the same one twice is one message
    account: str = ""  # which of our accounts on the platform received it
    busy: BusyPolicy | None = None  # what this message itself asks for, above every setting
    session_id: SessionId | None = None  # a surface that shows a conversation speaks in it, whatever its lane is on
    reply: ReplyTo = ReplyTo.HERE  # of a message in a conversation that a surface shows

    @property
    def answer_to(self) -> Address | None:
        """Where the gateway answers whoever brought it; None where that is read in the conversation itself."""
        return place_of(self.source, self.account)


class Outcome(StrEnum):
    """What became of an inbound message."""

    ACCEPTED = "accepted"  # its turn begins as soon as a worker is free
    QUEUED = "queued"  # behind others in the same conversation
    COLLECTED = "collected"  # taken together with the message before it
    STEERED = "steered"  # given to the agent that is running
    INTERRUPTING = "interrupting"  # the agent is being stopped to answer it
    COMMAND = "command"  # it was a slash command, and has been carried out
    DUPLICATE = "duplicate"  # this message had arrived before
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of an inbound message. When it is returned, all of it is durable."""

    outcome: Outcome
    session_id: SessionId | None = None
    session_key: SessionKey | None = None
    turn_id: TurnId | None = None
    seq: int | None = None  # the message's number in the log
    ahead: int = 0  # turns that come first in the same conversation
    reply: str | None = None  # what the gateway itself says to the person: a command's answer, a refusal, a notice
    facts: dict[str, Any] | None = None  # of a command, for programs

    @property
    def stored(self) -> bool:
        """Whether the message is in a conversation now."""
        return self.seq is not None

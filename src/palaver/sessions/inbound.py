"""A message that arrives at the gateway, and the receipt that says what happened to it.

What a platform reports besides a new message: edits, deletions, reactions, pressed buttons, moved chats, members.

`Inbound` (in `inbound.py`) is a new message. Every update names its source, which has the platform, our account there,
the chat and who did it.
"""

from __future__ import annotations

from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from palaver.core.dataclass import dataclass
from palaver.core.source import (
    PLATFORMS_WITH_SENDER_IDS,
    PLATFORMS_WITHOUT_DELIVERY,
    ChatType,
    SessionSource,
)
from palaver.sessions.delivery import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from datetime import datetime

    from palaver.core.ids import SessionId, SessionKey, TurnId
    from palaver.people.model import Principal, SignedInPerson
    from palaver.sessions.speech import Transcript
    from palaver.sessions.turn import BusyPolicy

MAX_LIVE_AGE = timedelta(seconds=30)  # a platform that takes longer to hand over a message was not reachable
TIME_PRECISION = timedelta(seconds=1)  # of the times of messages on several platforms
SECRET_FACT = "is_secret"  # noqa: S105  (of a receipt whose reply contains a code: it is sent, but not kept with the receipt)


def find_delivery_address(source: SessionSource) -> Address | None:
    """Return where answers to this source are sent; None if people read them in the conversation itself.

    It is also None when the source names no chat.
    """
    return Address.from_source(source) if source.has_chat else None


class ReplyTo(StrEnum):
    """The destination of the answer to a message from the web, the terminal or the API."""

    SESSION = "session"  # it only appears in the conversation
    ORIGIN = "origin"  # it is also sent to the chat where the conversation takes place


@dataclass(frozen=True, slots=True)
class InboundFile:
    """A file of a message, not downloaded yet: that happens only if its sender may talk to the agent."""

    name: str | None
    open: Callable[[], AsyncIterator[bytes]] = field(compare=False, repr=False)  # downloads it, in chunks
    media_type: str | None = None  # as the platform says
    size: int | None = None  # as the platform says
    is_voice: bool = False  # a voice note
    duration_seconds: int | None = None  # of a voice note or audio file, as the platform says


@dataclass(frozen=True, slots=True)
class RepliedMessage:
    """The message that a person has replied to on the platform. Its text is data for the agent, not an instruction."""

    message_id: str
    author: str | None = None
    text: str = ""  # as far as the platform sends it
    is_own: bool = False  # it is a message of our account


class KnownText(NamedTuple):
    """A text that a conversation has already."""

    text: str
    authors: tuple[str, ...] = ()  # the id and the name of the person who wrote it; empty: the agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message from a platform, the web, the terminal or the API."""

    source: SessionSource
    content: str | Sequence[Any]
    attachment_ids: Sequence[str] = ()  # files that the sender uploaded before
    message_id: str | None = None  # the platform's id or the sender's key: the same one twice is one message
    message_id_namespace: str = ""  # on the page and in the API: what the sender's key is for
    busy_policy: BusyPolicy | None = None  # for this message only; overrides every setting
    session_id: SessionId | None = None  # the session that the sender has open, instead of the lane's current one
    reply_to: ReplyTo = ReplyTo.SESSION  # applies only with `session_id`
    language: str | None = None  # that the sender's client asks for; None: that of the person
    reported_language: str | None = None  # of the sender's app, as the platform says; None: it does not say
    signed_in: SignedInPerson | None = None  # of a request to the API: who sends it, and with which browser or token
    is_addressed: bool = True  # False: a message in a group to another person, which is only context for later ones
    addresses_others: bool | None = None  # it mentions or answers another person or program; None: not known
    is_in_own_thread: bool = False  # it is addressed only by its thread, which is under a message of our account
    replied_message: RepliedMessage | None = None
    is_from_bot: bool = False  # of the platform: a program wrote it
    sent_at: datetime | None = None  # as the platform says
    is_sent_at_reliable: bool = True  # the platform's own servers say it: no sender can choose it
    received_at: datetime | None = None  # by our account on the platform; None: it has not come through one
    receiving_since: datetime | None = None  # since when the account was connected then
    files: Sequence[InboundFile] = ()
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)  # of recordings among the files, by their id
    is_interaction: bool = False  # the adapter can show the reply of the gateway to its sender alone
    can_be_answered: bool = True  # False: the platform lets our account write nothing in this chat
    album_id: str | None = None  # messages with the same one are sent together, and answered together
    # Returns `content` without what it quotes of its own conversation: of these texts. None: it quotes nothing.
    cut_quotes: Callable[[Sequence[KnownText]], str] | None = field(default=None, compare=False, repr=False)
    may_be_from_bot: bool = False  # on its platform many programs do not say what they are: answers are limited

    @property
    def answer_address(self) -> Address | None:
        """The address of the gateway's replies; None if they are read elsewhere, such as in the conversation itself."""
        return find_delivery_address(self.source) if self.can_be_answered else None

    @property
    def may_follow_up(self) -> bool:
        """Return whether it may go on with a thread that the agent answers in, without a mention of the agent."""
        in_thread = self.source.thread_id is not None and self.source.chat_type is not ChatType.DM
        return in_thread and self.addresses_others is False and not self.is_from_bot  # None: threads are unlike these

    @property
    def is_backlog(self) -> bool:
        """Return whether the platform hands the message over late, after an outage or a restart.

        Messages that pile up while we can't receive are no flood, and each of them wants its answer.
        """
        if self.was_sent_before_connection:
            return True
        age = self._compute_age(self.received_at)
        return age is not None and age > MAX_LIVE_AGE

    @property
    def was_sent_before_connection(self) -> bool:
        age = self._compute_age(self.receiving_since)
        return age is not None and age > TIME_PRECISION

    def _compute_age(self, at: datetime | None) -> timedelta | None:
        """Return how old the message was at a time; None if that is not known for certain."""
        is_known = self.is_sent_at_reliable and self.sent_at is not None and self.sent_at.tzinfo is not None
        return at - self.sent_at if is_known and at is not None and self.sent_at is not None else None

    @property
    def can_be_repeated(self) -> bool:
        """Return whether the sender chose `message_id` and may send the message again under it after it was refused."""
        return self.source.platform in PLATFORMS_WITH_SENDER_IDS

    @property
    def message_id_owner(self) -> str:
        """The owner of `message_id`: on the page and in the API its sender, whose keys say nothing of those of others.

        It is empty for an id that a platform chose: such an id belongs to the chat, not to a person.
        """
        return (self.source.user_id or "") if self.source.platform in PLATFORMS_WITHOUT_DELIVERY else ""


class Outcome(StrEnum):
    ACCEPTED = "accepted"  # its turn starts as soon as a worker is free
    QUEUED = "queued"  # behind other turns in the same conversation
    MERGED = "merged"  # will be answered together with the message before it
    STEERED = "steered"  # will be given to the running agent
    INTERRUPTING = "interrupting"  # the running answer is being stopped to answer it
    COMMAND = "command"  # it was a slash command, which has run
    DUPLICATE = "duplicate"  # the same message had arrived before
    REJECTED = "rejected"
    RECORDED = "recorded"  # stored without an answer: an edit, a reaction, a group message to another person
    IGNORED = "ignored"  # it concerns nothing that is stored here, and nothing was stored


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """A file with a conversation that a command wants to send with its reply."""

    principal: Principal  # who may see the conversation
    session_id: SessionId
    format: str
    max_bytes: int  # that the platform takes
    fallback_reply: str  # instead of the reply, if the file can't be sent


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsRequest:
    """A change of the server's settings that a command wants to make, by key. Only owners may make it."""

    principal: Principal
    values: Mapping[str, object] = field(default_factory=dict)
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of accepting an inbound message. When it is returned, everything it reports is durable."""

    outcome: Outcome
    session_id: SessionId | None = None
    session_key: SessionKey | None = None
    turn_id: TurnId | None = None
    seq: int | None = None  # the number of the message in the log
    turns_ahead: int = 0  # turns that run first in the same conversation
    reply: str | None = None  # from the gateway itself: the reply to a command, why it was rejected, a notice
    is_private: bool = False  # the reply is not sent to the chat: the adapter shows it to the sender alone
    facts: dict[str, Any] | None = None  # the result of a command, for programs
    export: ExportRequest | None = None  # a file that the inbox still has to make and send with the reply
    settings: SettingsRequest | None = None  # a change that the inbox still has to make before the reply
    attachment_ids: tuple[str, ...] = ()  # files that are sent with the reply

    @property
    def is_stored(self) -> bool:
        """Return whether the message is in the log."""
        return self.seq is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdited:
    """A person has changed a message that they sent before."""

    source: SessionSource
    message_id: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeleted:
    """A message was deleted on the platform. The source need not name a user: many platforms do not tell who did it."""

    source: SessionSource
    message_id: str
    is_by_author: bool = False  # only the user of the source may delete it: the platform has not checked who does it


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReaction:
    """A person has reacted to a message, or taken a reaction back."""

    source: SessionSource
    message_id: str
    emoji: str
    is_removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPressed:
    """A person has pressed a button under a message of ours."""

    source: SessionSource
    message_id: str
    data: str  # of the button, see `Button`
    press_id: str  # the platform's id of this press: the same one twice is one press


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMoved:
    """A chat has got another id. Its conversations, deliveries and home channel go on under the new one.

    A direct message moves when the person has another number: then `new_user_ids` are the ids that they have now, and
    the person goes on under them, too.
    """

    source: SessionSource  # the chat under its old id; in a direct message with the old ids of the person
    new_chat_id: str
    new_user_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersChanged:
    """People have joined or left a chat, or our account was added or removed."""

    source: SessionSource
    joined: tuple[str, ...] = ()  # names for people to read
    left: tuple[str, ...] = ()
    is_own_account: bool = False  # it was our account: it can send there, or no longer


PlatformUpdate = MessageEdited | MessageDeleted | MessageReaction | ButtonPressed | ChatMoved | MembersChanged
AnyUpdate: TypeAlias = Inbound | PlatformUpdate


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an account has read on its platform. It is stored in the transaction that accepts what was read."""

    value: str
    name: str = ""  # for platforms with several streams, such as one for each channel


def parse_button(data: str) -> tuple[str, str]:
    """Return the action of a button, such as `stop`, and what it applies to."""
    action, _, subject = data.partition(":")
    return action, subject

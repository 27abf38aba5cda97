"""What a platform reports besides a new message: edits, deletions, reactions, pressed buttons, moved chats, members.

`Inbound` (in `inbound.py`) is a new message. Every update names its source, which has the platform, our account there,
the chat and who did it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from palaver.core.source import SessionSource
    from palaver.sessions.inbound import Inbound


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

if TYPE_CHECKING:
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

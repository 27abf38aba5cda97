"""Ids of Signal: people, groups, messages. Pure.

A chat with one person has the person's ACI (a UUID) as its id, which is also the person's own id: a phone number may be
hidden, and can change. A group has its id in base64. A message has no id on Signal: its author and the time at which it
was sent name it, `<author>:<milliseconds>`.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.core.errors import SendRejected

if TYPE_CHECKING:
    from palaver.sessions.delivery import Address

_ACI = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"\+[1-9][0-9]{4,14}")
_GROUP_ID_BYTES = (16, 32)  # of groups of the first and of the second kind


class MessageRef(NamedTuple):
    """A message on Signal, by its author and time."""

    author: str
    timestamp: int  # milliseconds

    @property
    def id(self) -> str:
        return f"{self.author}:{self.timestamp}"


def parse_message_id(message_id: str) -> MessageRef:
    """Read the id of a message. Raises SendRejected for what is none."""
    author, _, timestamp = message_id.rpartition(":")
    if not author or not (timestamp.isascii() and timestamp.isdigit()):
        raise SendRejected("This is not the id of a message on Signal.")
    return MessageRef(author, int(timestamp))


def is_person(chat_id: str) -> bool:
    """Whether a chat is the one with a single person."""
    return bool(_ACI.fullmatch(chat_id) or _NUMBER.fullmatch(chat_id))


def build_target(address: Address) -> dict[str, Any]:
    """Return the parameters that name a chat to signal-cli. Raises SendRejected for what is no chat."""
    chat_id = address.chat_id.removeprefix("group:")
    if is_person(chat_id):
        return {"recipient": [chat_id]}
    try:
        is_group = len(base64.b64decode(chat_id, validate=True)) in _GROUP_ID_BYTES
    except (binascii.Error, ValueError):
        is_group = False
    if not is_group:
        raise SendRejected(
            "This is not a chat on Signal: use a phone number such as +491701234567, the id of a person or the id of a "
            "group."
        )
    return {"groupId": chat_id}

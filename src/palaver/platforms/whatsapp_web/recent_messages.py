"""Remembers the latest messages: WhatsApp wants to be told whose message it is that is replied or reacted to."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.platforms.whatsapp_web.jids import is_group

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_MESSAGES: Final = 1000
MAX_QUOTE_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """What a reply or a reaction needs to know of a message."""

    sender: str
    text: str  # its beginning, which phones show in a reply
    is_own: bool  # from our number


class RecentMessages:
    """The latest messages and reactions of one account, in memory: after a restart, replies in groups quote nothing."""

    def __init__(self) -> None:
        self._messages: OrderedDict[str, SeenMessage] = OrderedDict()
        self._reactions: OrderedDict[tuple[str, str], str] = OrderedDict()  # message and person → emoji
        self.sent_ids: OrderedDict[str, None] = OrderedDict()

    def note_received(self, event: Mapping[str, Any]) -> None:
        """Remember a message that came."""
        if event["kind"] == "message":
            seen = SeenMessage(event["sender"], event["text"][:MAX_QUOTE_CHARS], event["is_self"])
            _remember(self._messages, event["id"], seen)

    def note_sent(self, chat: str, message_id: str, text: str) -> None:
        """Remember a message that was sent."""
        _remember(self.sent_ids, message_id, None)
        _remember(self._messages, message_id, SeenMessage(chat, text[:MAX_QUOTE_CHARS], is_own=True))

    def note_reaction(self, event: Mapping[str, Any]) -> str | None:
        """Remember a reaction; for one that is taken back, return which it was, if that is known."""
        if event["kind"] != "reaction":
            return None
        key = (event["target"], event["sender"])
        if event["emoji"]:
            _remember(self._reactions, key, event["emoji"])
            return None
        return self._reactions.pop(key, None)

    def find(self, message_id: str) -> SeenMessage | None:
        return self._messages.get(message_id)

    def find_quote(self, chat: str, message_id: str) -> dict[str, str] | None:
        """Return what a reply quotes; None if it is sent without: in a group, its author is no longer known."""
        seen = self._messages.get(message_id)
        if seen is not None:
            return {"id": message_id, "sender": seen.sender, "text": seen.text}
        return None if is_group(chat) else {"id": message_id, "sender": chat, "text": ""}


def _remember(known: OrderedDict[Any, Any], key: object, value: object) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > MAX_MESSAGES:
        known.popitem(last=False)

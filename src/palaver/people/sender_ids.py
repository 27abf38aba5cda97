"""The ids of one person on platforms that give a person several.

One human has several ids on WhatsApp (number, LID, BSUID, devices) and on Signal (UUID, number): `fold_id_aliases`
folds those of one source. `accounts/sender_merge.py` folds those that came in different messages before.
"""

from __future__ import annotations

import re
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def fold_id_aliases(source: SessionSource) -> SessionSource:
    """Return the source with the aliases of its user, and of a chat with one person, folded into one id.

    WhatsApp: the bare phone number if known, else the LID without the device. Signal: the UUID in lower case if
    known, else the number. Other platforms and group chats are unchanged. In a direct message whose chat and user
    share an alias, the user's aliases are used for the chat too.
    """
    parse_alias = _ALIAS_PARSERS.get(source.platform)
    if parse_alias is None:
        return source
    user_aliases = [parse_alias(alias) for alias in (source.user_id_alt, source.user_id) if alias]
    user_id = min(user_aliases, key=itemgetter(0))[1] if user_aliases else None
    if source.chat_type is not ChatType.DM:
        return replace(source, user_id=user_id, user_id_alt=None)
    chat_aliases = [parse_alias(alias) for alias in (source.chat_id, source.chat_id_alt) if alias]
    if not set(chat_aliases).isdisjoint(user_aliases):
        chat_aliases += user_aliases
    chat_id = min(chat_aliases, key=itemgetter(0))[1] if chat_aliases else ""
    return replace(source, user_id=user_id, user_id_alt=None, chat_id=chat_id, chat_id_alt=None)


@dataclass(frozen=True, slots=True)
class SenderId:
    """One of the ids that a platform itself says a person has, in the form that keys use."""

    id: str
    is_lasting: bool  # no other person ever gets it, unlike a phone number, which may get a new holder


def list_sender_ids(source: SessionSource) -> list[SenderId]:
    """List the ids of the person who writes, the one that a new person is stored under first.

    Empty on platforms where a person has one id. On the others a message may carry any of them, so `accounts/
    sender_merge.py` remembers which belong together.
    """
    return parse_sender_ids(source.platform, (source.user_id_alt, source.user_id))


def parse_sender_ids(platform: str, ids: Iterable[str | None]) -> list[SenderId]:
    """Parse ids of one person; empty on platforms where a person has one id."""
    if platform not in FOLDED_PLATFORMS:
        return []
    aliases = {_parse_whatsapp_alias(alias) for alias in ids if alias}
    return [SenderId(text, is_lasting=rank > 0) for rank, text in sorted(aliases)]


_WHATSAPP_PHONE = re.compile(r"\+?([0-9]+)(?:(?:[._][0-9]+)?(?::[0-9]+)?@(?:s\.whatsapp\.net|c\.us))?")
_WHATSAPP_LID = re.compile(r"([0-9]+)(?:[._][0-9]+)?(?::[0-9]+)?@lid")
_SIGNAL_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SIGNAL_NUMBER = re.compile(r"\+[0-9]+")


def _parse_whatsapp_alias(alias: str) -> tuple[int, str]:
    if phone := _WHATSAPP_PHONE.fullmatch(alias):
        return 0, phone[1]
    if lid := _WHATSAPP_LID.fullmatch(alias):
        return 1, f"{lid[1]}@lid"
    return 2, alias


def _parse_signal_alias(alias: str) -> tuple[int, str]:
    if _SIGNAL_UUID.fullmatch(alias):
        return 0, alias.lower()
    return (1 if _SIGNAL_NUMBER.fullmatch(alias) else 2), alias


FOLDED_PLATFORMS = frozenset({Platform.WHATSAPP, Platform.WHATSAPP_WEB})  # a message may carry any id of its sender


_ALIAS_PARSERS: dict[str, Callable[[str], tuple[int, str]]] = {
    Platform.WHATSAPP: _parse_whatsapp_alias,
    Platform.WHATSAPP_WEB: _parse_whatsapp_alias,
    Platform.SIGNAL: _parse_signal_alias,
}

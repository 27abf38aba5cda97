"""Which conversation a message belongs to: one pure function from a source to the address of its lane.

A key names a lane of talk. Different lanes never share a key, whatever characters the platform's ids hold:
the grammar below can be read back, and a test does so.

    key     agent:<agent>:<platform>:<place>     a chat on one platform
            agent:<agent>:person:<person>        one person's lane everywhere          (dm_scope person)
            agent:<agent>:dm                     one lane for all direct messages      (dm_scope shared)

    place of a direct message                place of a group, channel or thread (<type>)
    known          written                   known               written
    -              dm                        -                   <type>
    chat           dm:<chat>                 chat                <type>:<chat>
    chat, thread   dm:<chat>:<thread>        chat, who           <type>:<chat>:<who>
    thread         dm:thread=<thread>        chat, thread        <type>:<chat>:thread=<thread>
    who            dm:user=<who>             chat, thread, who   <type>:<chat>:<thread>:<who>
                                             thread              <type>:thread=<thread>
                                             thread, who         <type>:thread=<thread>:<who>
                                             who                 <type>:user=<who>

So an id is named (`thread=`, `user=`) only where the bare form could be read two ways. Inside an id `%` is
written `%25` and `:` is written `%3A`; an id that itself begins with `thread=` or `user=` has that `=`
written `%3D`; a person whose id is the name of a chat type has its first letter percent-encoded. Every other
id stands as it came. With dm_scope platform a direct message is written `dm`, like one that names neither
chat nor thread nor anybody. A platform that names only the user of a direct message never puts two people
into one lane.

*Who* is the participant of the source. It is part of the key when it is known and people are kept apart: in
threads (a chat of type thread, or any thread outside a direct message) by `thread_sessions_per_user`, in
other groups and channels by `group_sessions_per_user`. `is_shared` says the same from the other side.

One human has several ids on WhatsApp (number, LID, devices) and on Signal (UUID, number): `canonical` folds
them first, so that a lane does not split when the platform changes the form it reports.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.domain.errors import ConfigError
from palaver.domain.ids import SessionKey
from palaver.domain.source import ChatType, Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.domain.ids import PersonId
    from palaver.domain.source import SessionSource


class DmScope(StrEnum):
    """How far one direct conversation reaches."""

    CHAT = "chat"  # each chat, and each thread in it, is its own
    PLATFORM = "platform"  # all direct messages of a platform are one
    PERSON = "person"  # one per linked person, on every platform
    SHARED = "shared"  # all direct messages of all platforms are one

    @classmethod
    def _missing_(cls, value: object) -> DmScope:
        allowed = ", ".join(cls)
        raise ConfigError(f"dm_scope is {value!r}: use one of {allowed}", dm_scope=value)


def build_session_key(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    dm_scope: DmScope | str = DmScope.CHAT,
    agent: str = "main",
    person: PersonId | str | None = None,
) -> SessionKey:
    """The address of the lane that a message from `source` joins; equal sources give equal keys, for ever.

    `person` is the linked person who speaks; without one, dm_scope `person` falls back to `chat`.
    """
    lane = f"agent:{_segment(agent)}"
    if source.chat_type is ChatType.DM:
        if dm_scope != DmScope.CHAT and (wide := _wide_lane(source, DmScope(dm_scope), person)):
            return SessionKey(f"{lane}:{wide}")
        return SessionKey(f"{lane}:{source.platform}:{_direct_place(canonical(source))}")
    apart = thread_sessions_per_user if _in_thread(source) else group_sessions_per_user
    return SessionKey(f"{lane}:{source.platform}:{_group_place(canonical(source), apart=apart)}")


def is_shared(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    dm_scope: DmScope | str = DmScope.CHAT,
) -> bool:
    """Whether several people may speak in the lane of `source`, so that a message must say who wrote it."""
    if source.chat_type is ChatType.DM:
        return DmScope(dm_scope) in {DmScope.PLATFORM, DmScope.SHARED}
    apart = thread_sessions_per_user if _in_thread(source) else group_sessions_per_user
    return not apart or source.participant is None


def canonical(source: SessionSource) -> SessionSource:
    """The source with the aliases of its user, and of its chat when that is a person, folded into one id.

    WhatsApp: the bare phone number when it is known, else the LID, without device. Signal: the UUID in lower
    case when it is known, else the number. Other platforms, and chats of several people, stay as they are.
    In a direct message, what is known about the user counts for the chat too when they share an alias.
    """
    read = _ALIASES.get(source.platform)
    if read is None:
        return source
    user = [read(alias) for alias in (source.user_id_alt, source.user_id) if alias]
    user_id = min(user, key=_rank)[1] if user else None
    if source.chat_type is not ChatType.DM:
        return replace(source, user_id=user_id, user_id_alt=None)
    chat = [read(alias) for alias in (source.chat_id, source.chat_id_alt) if alias]
    if not set(chat).isdisjoint(user):
        chat += user
    chat_id = min(chat, key=_rank)[1] if chat else ""
    return replace(source, user_id=user_id, user_id_alt=None, chat_id=chat_id, chat_id_alt=None)


# ---- places -----------------------------------------------------------------------------------------------


def _in_thread(source: SessionSource) -> bool:
    return source.thread_id is not None or source.chat_type is ChatType.THREAD


def _wide_lane(source: SessionSource, scope: DmScope, person: str | None) -> str | None:
    """The lane of a direct message that reaches further than its chat; None when it does not."""
    if scope is DmScope.SHARED:
        return "dm"
    if scope is DmScope.PLATFORM:
        return f"{source.platform}:dm"
    if scope is DmScope.PERSON and person:
        if person in _CHAT_TYPES:  # else it could be a chat on a platform named `person`
            return f"person:%{ord(person[0]):02X}{person[1:]}"
        return f"person:{_segment(person)}"
    return None


def _direct_place(source: SessionSource) -> str:
    chat, thread = source.chat_id, source.thread_id
    if thread is None:
        if chat or source.participant is None:
            return f"dm:{_segment(chat)}" if chat else "dm"
        return f"dm:user={_segment(source.participant)}"
    return f"dm:{_segment(chat)}:{_segment(thread)}" if chat else f"dm:thread={_segment(thread)}"


def _group_place(source: SessionSource, *, apart: bool) -> str:
    chat, thread = source.chat_id, source.thread_id
    who = source.participant if apart else None
    place = source.chat_type.value
    if chat:
        place += f":{_segment(chat)}"
    if thread:
        place += f":{_segment(thread)}" if chat and who else f":thread={_segment(thread)}"
    if who:
        place += f":{_segment(who)}" if chat or thread else f":user={_segment(who)}"
    return place


def _segment(text: str) -> str:
    """An id as one segment of a key; nearly every id stands as it is."""
    if ":" in text or "%" in text:
        text = text.replace("%", "%25").replace(":", "%3A")
    if "=" in text and text.startswith(("thread=", "user=")):
        text = text.replace("=", "%3D", 1)
    return text


_CHAT_TYPES = frozenset(chat_type.value for chat_type in ChatType)

# ---- aliases: each form of an id as (rank, the id as it is keyed); the lowest rank is the identity ---------

_WHATSAPP_PHONE = re.compile(r"\+?([0-9]+)(?:(?:[._][0-9]+)?(?::[0-9]+)?@(?:s\.whatsapp\.net|c\.us))?")
_WHATSAPP_LID = re.compile(r"([0-9]+)(?:[._][0-9]+)?(?::[0-9]+)?@lid")
_SIGNAL_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SIGNAL_NUMBER = re.compile(r"\+[0-9]+")


def _whatsapp(alias: str) -> tuple[int, str]:
    if phone := _WHATSAPP_PHONE.fullmatch(alias):
        return 0, phone[1]
    if lid := _WHATSAPP_LID.fullmatch(alias):
        return 1, f"{lid[1]}@lid"
    return 2, alias


def _signal(alias: str) -> tuple[int, str]:
    if _SIGNAL_UUID.fullmatch(alias):
        return 0, alias.lower()
    return (1 if _SIGNAL_NUMBER.fullmatch(alias) else 2), alias


def _rank(form: tuple[int, str]) -> int:
    return form[0]


_ALIASES: dict[str, Callable[[str], tuple[int, str]]] = {
    Platform.WHATSAPP: _whatsapp,
    Platform.SIGNAL: _signal,
}

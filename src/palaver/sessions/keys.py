"""Session keys: one pure function from the source of a message to the address of its lane.

Two different lanes never have the same key, whatever characters the platform's ids contain: the grammar below
can be parsed back, and a test does that.

    key     agent:<agent>:<platform>:<place>     a chat on one platform
            agent:<agent>:person:<person>        one person's lane everywhere          (dm_scope person)
            agent:<agent>:dm                     one lane for all direct messages      (dm_scope shared)

    place of a direct message                place of a group, channel or thread (<type>)
    known ids      place                     known ids           place
    -              dm                        -                   <type>
    chat           dm:<chat>                 chat                <type>:<chat>
    chat, thread   dm:<chat>:<thread>        chat, who           <type>:<chat>:<who>
    thread         dm:thread=<thread>        chat, thread        <type>:<chat>:thread=<thread>
    who            dm:user=<who>             chat, thread, who   <type>:<chat>:<thread>:<who>
                                             thread              <type>:thread=<thread>
                                             thread, who         <type>:thread=<thread>:<who>
                                             who                 <type>:user=<who>

An id is labeled (`thread=`, `user=`) only where the bare form would be ambiguous. Inside an id `%` is written
`%25` and `:` is written `%3A`; if an id itself begins with `thread=` or `user=`, that `=` is written `%3D`; if a
person's id is the name of a chat type, its first letter is percent-encoded. Every other id is used unchanged.
With dm_scope platform the place of a direct message is `dm`, as if chat, thread and user were unknown. When a
platform names only the user of a direct message, two users still get two lanes.

*Who* is the participant of the source. It is part of the key when it is known and each user has a separate
session: in threads (a chat of type thread, or any thread outside a direct message) this depends on
`thread_sessions_per_user`, in other groups and channels on `group_sessions_per_user`. `is_shared` answers the
opposite question with the same rules.

One human has several ids on WhatsApp (number, LID, BSUID, devices) and on Signal (UUID, number): `fold_id_aliases`
folds those of one source. `accounts/sender_merge.py` folds those that came in different messages before.
"""

from __future__ import annotations

from enum import StrEnum

from palaver.core.errors import ConfigError
from palaver.core.ids import PersonId, SessionKey
from palaver.core.source import ChatType, SessionSource
from palaver.people.sender_ids import fold_id_aliases


class DmScope(StrEnum):
    """Which direct messages share one lane."""

    CHAT = "chat"  # each chat, and each thread in it, has its own lane
    PLATFORM = "platform"  # all direct messages of a platform share one
    PERSON = "person"  # each linked person has one, on every platform
    SHARED = "shared"  # all direct messages of all platforms share one

    @classmethod
    def _missing_(cls, value: object) -> DmScope:
        raise ConfigError(f"dm_scope: {value!r} is not allowed ({', '.join(cls)})", dm_scope=value)


def build_session_key(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    dm_scope: DmScope | str = DmScope.CHAT,
    agent: str = "main",
    person: PersonId | str | None = None,
) -> SessionKey:
    """Return the key of the lane that a message from `source` joins; equal sources give equal keys in every version.

    `person` is the linked person who writes; without one, dm_scope `person` falls back to `chat`.
    """
    prefix, network = f"agent:{_escape_id(agent)}", _format_network(source.platform, source.account)
    if source.chat_type is ChatType.DM:
        if dm_scope != DmScope.CHAT and (lane := _build_scoped_lane(source, DmScope(dm_scope), person)):
            return SessionKey(f"{prefix}:{lane}")
        return SessionKey(f"{prefix}:{network}:{_build_dm_place(fold_id_aliases(source))}")
    per_user = thread_sessions_per_user if _is_in_thread(source) else group_sessions_per_user
    place = _build_group_place(fold_id_aliases(source), per_user=per_user)
    return SessionKey(f"{prefix}:{network}:{place}")


def is_shared(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    dm_scope: DmScope | str = DmScope.CHAT,
) -> bool:
    """Return whether several people may write in the lane of `source`, so that each message must name its author."""
    if source.chat_type is ChatType.DM:
        return DmScope(dm_scope) in {DmScope.PLATFORM, DmScope.SHARED}
    per_user = thread_sessions_per_user if _is_in_thread(source) else group_sessions_per_user
    return not per_user or source.participant is None or source.is_written_by_chat


def list_chat_key_prefixes(agent_prefix: str, platform: str, account: str, chat_id: str) -> list[str]:
    """Return the beginnings of all keys of one chat, one for each type of chat.

    A key of the chat is one of them, or continues with `:` and the thread or the participant. `agent_prefix` is the
    beginning of an agent's keys, such as `agent:main`.
    """
    network = _format_network(platform, account)
    return [f"{agent_prefix}:{network}:{chat_type}:{_escape_id(chat_id)}" for chat_type in sorted(_CHAT_TYPES)]


def replace_participant(key: str, old_id: str, new_id: str) -> str | None:
    """Return the key of a lane whose last part is a person's id with another id; None if it ends differently."""
    ending = f":{_escape_id(old_id)}"
    return f"{key.removesuffix(ending)}:{_escape_id(new_id)}" if key.endswith(ending) else None


def _is_in_thread(source: SessionSource) -> bool:
    return source.thread_id is not None or source.chat_type is ChatType.THREAD


def _build_scoped_lane(source: SessionSource, scope: DmScope, person: str | None) -> str | None:
    """Return the lane of a direct message under a scope wider than its chat; None if the chat's own lane applies."""
    if scope is DmScope.SHARED:
        return "dm"
    if scope is DmScope.PLATFORM:
        return f"{source.platform}:dm"
    if scope is DmScope.PERSON and person:
        if person in _CHAT_TYPES:  # otherwise it could be a chat on a platform named `person`
            return f"person:%{ord(person[0]):02X}{person[1:]}"
        return f"person:{_escape_id(person)}"
    return None


def _format_network(platform: str, account: str) -> str:
    """Return the platform; with several accounts there also the account, because each has chats of its own."""
    return f"{platform}@{_escape_id(account)}" if account else platform


def _build_dm_place(source: SessionSource) -> str:
    chat, thread = source.chat_id, source.thread_id
    if thread is None:
        if chat or source.participant is None:
            return f"dm:{_escape_id(chat)}" if chat else "dm"
        return f"dm:user={_escape_id(source.participant)}"
    return f"dm:{_escape_id(chat)}:{_escape_id(thread)}" if chat else f"dm:thread={_escape_id(thread)}"


def _build_group_place(source: SessionSource, *, per_user: bool) -> str:
    chat, thread = source.chat_id, source.thread_id
    who = source.participant if per_user else None
    place = source.chat_type.value
    if chat:
        place += f":{_escape_id(chat)}"
    if thread:
        place += f":{_escape_id(thread)}" if chat and who else f":thread={_escape_id(thread)}"
    if who:
        place += f":{_escape_id(who)}" if chat or thread else f":user={_escape_id(who)}"
    return place


def _escape_id(text: str) -> str:
    """Return an id as one segment of a key; nearly every id is unchanged."""
    if ":" in text or "%" in text:
        text = text.replace("%", "%25").replace(":", "%3A")
    if "=" in text and text.startswith(("thread=", "user=")):
        text = text.replace("=", "%3D", 1)
    return text


_CHAT_TYPES = frozenset(chat_type.value for chat_type in ChatType)

"""Where a conversation of OpenClaw took place: from its session key and what its index says about it.

    agent:<agent>:<main>                                   all direct messages; the index says where the last one was
    agent:<agent>:<channel>:direct:<person>                a direct message (older: dm)
    agent:<agent>:<channel>:<account>:direct:<person>
    agent:<agent>:direct:<person>                          one person on every channel
    agent:<agent>:<channel>:group:<id>[:topic:<thread>]    a group (also channel, room; also thread)

Keys are in lower case. The index has most ids as the platform wrote them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidSource
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.transfer.readers.values import as_dict, as_id, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

# What OpenClaw calls a platform, where we call it differently; its WhatsApp is a linked device.
_PLATFORMS: Final = {"whatsapp": Platform.WHATSAPP_WEB, "mail": Platform.EMAIL, "gmail": Platform.EMAIL}
_NO_PLATFORMS: Final = frozenset({"", "webchat", "internal", "tui", "cli", "last", "none", "unknown"})
_DIRECT: Final = frozenset({"direct", "dm"})
_GROUPS: Final = {"group": ChatType.GROUP, "channel": ChatType.CHANNEL, "room": ChatType.CHANNEL}
_THREAD = re.compile(r":(?:topic|thread):([^:]+)$")
_PREFIX = re.compile(
    r"(?:telegram|tg|discord|slack|whatsapp|signal|matrix|channel|group|room|user|dm|direct|chat):", re.IGNORECASE
)
# Conversations that the agent had with itself: runs of jobs, sub-agents, hooks and the like.
_INTERNAL: Final = frozenset({"cron", "subagent", "hook", "acp", "heartbeat", "node", "dreaming", "boot", "plugin"})
# Platforms on which the chat of a direct message has the id of the person.
_CHAT_IS_PERSON: Final = frozenset({Platform.TELEGRAM, Platform.WHATSAPP_WEB, Platform.SIGNAL, Platform.EMAIL})
_MAX_ID_CHARS: Final = 500
_GENERAL_TOPIC: Final = "1"  # of a group on Telegram: messages there are in no thread
_GROUP_TYPES: Final = {
    Platform.SLACK: ChatType.GROUP,
    Platform.MATRIX: ChatType.GROUP,
    Platform.DISCORD: ChatType.CHANNEL,
}


@dataclass(frozen=True, slots=True)
class _Address:
    """Where the index says that the last message was sent."""

    channel: str = ""
    to: str = ""
    thread_id: str = ""
    account: str = ""


def is_internal(key: str) -> bool:
    """Whether a session is one that the agent had with itself."""
    parts = split_key(key)[1].lower().split(":")
    return parts[0] in _INTERNAL or parts[0].startswith("node-") or "subagent" in parts or parts[-1] == "heartbeat"


def split_key(key: str) -> tuple[str, str]:
    """Return the agent and the rest of a session key."""
    first, _, rest = key.partition(":")
    if first.lower() != "agent":
        return "main", key
    agent, _, rest = rest.partition(":")
    return agent or "main", rest


def find_source(key: str, entry: dict[str, Any]) -> SessionSource | None:
    """Return where a session took place; None if that was no platform of ours, such as OpenClaw's own page."""
    rest, thread_id = split_key(key)[1], ""
    if found := _THREAD.search(rest):
        rest, thread_id = rest[: found.start()], found[1]
    addresses = list(_read_addresses(entry))
    parts = rest.split(":")
    try:
        for index, part in enumerate(parts[:-1]):
            identity = ":".join(parts[index + 1 :])
            channel = parts[0] if index else ""
            if part in _DIRECT:
                return _make_direct(channel, identity, entry, addresses)
            if part in _GROUPS:
                return _make_group(channel, _GROUPS[part], identity, thread_id, entry, addresses)
        return _make_direct("", "", entry, addresses)
    except InvalidSource:
        return None


def _read_addresses(entry: dict[str, Any]) -> Iterator[_Address]:
    """Return what the index says about where a session is, the most reliable first."""
    origin, context = as_dict(entry.get("origin")), as_dict(entry.get("deliveryContext"))
    yield _read_address(context.get("channel"), context.get("to"), context.get("threadId"), context.get("accountId"))
    yield _read_address(
        entry.get("lastChannel"), entry.get("lastTo"), entry.get("lastThreadId"), entry.get("lastAccountId")
    )
    channel = origin.get("provider") or origin.get("surface") or entry.get("channel")
    for to in (origin.get("to"), origin.get("from"), entry.get("groupId")):
        yield _read_address(channel, to, origin.get("threadId"), origin.get("accountId"))


def _read_address(channel: object, to: object, thread_id: object, account: object) -> _Address:
    target, thread = as_id(to)[:_MAX_ID_CHARS], as_id(thread_id)[:_MAX_ID_CHARS]
    if found := _THREAD.search(target):
        target, thread = target[: found.start()], thread or found[1]
    while found := _PREFIX.match(target):
        target = target[found.end() :]
    return _Address(as_text(channel).strip().lower(), target, thread, as_text(account))


def _find_platform(channel: str, addresses: list[_Address]) -> Platform | None:
    for name in (channel.lower(), *(address.channel for address in addresses)):
        if name not in _NO_PLATFORMS:
            return _PLATFORMS.get(name) or Platform(name)
    return None


def _find_raw_id(identity: str, addresses: list[_Address]) -> str:
    """Return an id as the platform wrote it: keys are in lower case."""
    return next((each.to for each in addresses if each.to.lower() == identity.lower()), identity)


def _find_account(addresses: list[_Address]) -> str:
    account = next((address.account for address in addresses if address.account), "")
    return "" if account == "default" else account


def _make_direct(channel: str, identity: str, entry: dict[str, Any], addresses: list[_Address]) -> SessionSource | None:
    origin = as_dict(entry.get("origin"))
    platform = _find_platform(channel, addresses)
    if platform is None:
        return None
    person = _find_raw_id(identity, addresses) if identity and channel else as_id(origin.get("nativeDirectUserId"))
    person = person or next((each.to for each in addresses if each.to and each.channel not in _NO_PLATFORMS), "")
    chat = person if platform in _CHAT_IS_PERSON else as_id(origin.get("nativeChannelId"))
    if not person and not chat:
        return None
    return SessionSource(platform, chat, user_id=person, user_name=_read_label(entry), account=_find_account(addresses))


def _make_group(
    channel: str,
    chat_type: ChatType,
    identity: str,
    thread_id: str,
    entry: dict[str, Any],
    addresses: list[_Address],
) -> SessionSource | None:
    platform = _find_platform(channel, addresses)
    if platform is None:
        return None
    chat = _find_raw_id(identity, addresses)
    if platform == Platform.SLACK and chat == identity:
        chat = chat.upper()
    if platform == Platform.TELEGRAM and thread_id == _GENERAL_TOPIC:
        thread_id = ""
    return SessionSource(
        platform,
        chat,
        chat_type=_GROUP_TYPES.get(platform, chat_type),
        chat_name=_read_label(entry),
        thread_id=thread_id or None,
        account=_find_account(addresses),
    )


def _read_label(entry: dict[str, Any]) -> str | None:
    names = (entry.get("subject"), entry.get("displayName"), as_dict(entry.get("origin")).get("label"))
    return next((text for name in names if (text := as_text(name).strip())), None)

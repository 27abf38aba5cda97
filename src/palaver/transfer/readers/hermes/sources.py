"""Where a conversation of Hermes took place, in the form that our adapters give to the same chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidSource
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.transfer.readers.values import as_id, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

# Sessions from these belong to the person who imports them: they name no chat on a platform.
OWN_SOURCES: Final = frozenset(
    {"", "cli", "tui", "local", "webui", "desktop", "acp", "cron", "api_server", "tool", "unknown", "bg", "subagent"}
)
_PLATFORM_NAMES: Final = {"whatsapp": Platform.WHATSAPP_WEB, "whatsapp_cloud": Platform.WHATSAPP}
_PHONE_SERVER: Final = "@s.whatsapp.net"
_CHAT_OF_USER: Final = frozenset({Platform.TELEGRAM, Platform.WHATSAPP, Platform.WHATSAPP_WEB, Platform.SIGNAL})


def convert_platform(name: str) -> Platform:
    """Return our platform; raise InvalidSource if the name is none."""
    return _PLATFORM_NAMES.get(name.lower()) or Platform(name)


def convert_origin(origin: Mapping[str, Any]) -> SessionSource | None:
    """Read a source as Hermes stores it; None for its own terminal and page. Raises InvalidSource."""
    name = as_text(origin.get("platform"))
    if name in OWN_SOURCES:
        return None
    platform = convert_platform(name)
    return SessionSource(
        platform,
        convert_chat_id(platform, _find_chat(platform, origin)),
        chat_type=_convert_chat_type(platform, as_text(origin.get("chat_type")) or "dm"),
        chat_name=as_text(origin.get("chat_name")) or None,
        chat_topic=as_text(origin.get("chat_topic")) or None,
        user_id=convert_chat_id(platform, as_id(origin.get("user_id"))) or None,
        user_name=as_text(origin.get("user_name")) or None,
        user_id_alt=convert_chat_id(platform, as_id(origin.get("user_id_alt"))) or None,
        thread_id=as_id(origin.get("thread_id")) or None,
    )


def convert_row(row: Mapping[str, Any]) -> SessionSource | None:
    """Read the source of a session that has only columns: older versions stored just the platform and the user."""
    platform_name = as_text(row.get("source"))
    user_id = as_id(row.get("user_id"))
    if platform_name in OWN_SOURCES or not (user_id or row.get("chat_id")):
        return None
    platform = convert_platform(platform_name)
    origin = {**row, "platform": platform_name}
    if not row.get("chat_id"):  # where it took place is unknown: it belongs to this person alone
        origin |= {"chat_id": user_id if platform in _CHAT_OF_USER else "", "chat_type": "dm", "thread_id": None}
    return convert_origin(origin)


def convert_chat_id(platform: Platform, chat_id: str) -> str:
    if platform in (Platform.WHATSAPP_WEB, Platform.WHATSAPP):
        return chat_id.removesuffix(_PHONE_SERVER)
    if platform == Platform.SIGNAL:
        return chat_id.removeprefix("group:")
    return chat_id


def _find_chat(platform: Platform, origin: Mapping[str, Any]) -> str:
    """Return the chat; there, a thread of Discord is a chat of its own."""
    chat_id, parent = as_id(origin.get("chat_id")), as_id(origin.get("parent_chat_id"))
    is_thread = bool(parent) and chat_id == as_id(origin.get("thread_id"))
    return parent if platform == Platform.DISCORD and is_thread else chat_id


def _convert_chat_type(platform: Platform, chat_type: str) -> ChatType:
    if platform == Platform.DISCORD and chat_type == "group":
        return ChatType.CHANNEL
    if chat_type in {"webhook", "private"}:
        return ChatType.DM
    try:
        return ChatType(chat_type)
    except InvalidSource:
        return ChatType.GROUP


def replace_thread(source: SessionSource, thread_id: str | None) -> SessionSource:
    return SessionSource.from_dict({**source.to_dict(), "thread_id": thread_id})

"""Delivery targets: how people, the agent and jobs write down where something is sent. One parser, one writer.

    origin                                the chat that the request came from
    local                                 this machine
    <platform>                            the home channel of a platform
    <platform>[@<account>]:<chat>         a chat; the account is ours, where there are several
    <platform>[@<account>]:<chat>:<thread>

Ids are written as the platform writes them: `matrix:!abc:server.org:$thread`, `signal:group:X==`. Where that would be
ambiguous, an id is percent-encoded: `my_irc:net%3A#chan`. The parser decodes every `%XX`.

Always true: `parse_target(format_target(address))` is that address again, whatever storable characters its ids contain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import unquote

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.source import Platform
from palaver.core.texts import say

if TYPE_CHECKING:
    from palaver.core.source import SessionSource
    from palaver.sessions.delivery import Address

# Platforms whose chat ids contain colons, and how a thread follows such an id.
_CHAT_PATTERNS: Final = {
    Platform.MATRIX: re.compile(
        r"(?P<chat>[!#@][^:]*(?::(?:\[[^]]*\]|[^:$\[][^:]*)(?::\d{1,5}(?=:|$))?)?)(?::(?P<thread>.+))?", re.DOTALL
    ),
    Platform.SIGNAL: re.compile(r"(?P<chat>group:[^:]+)(?::(?P<thread>.+))?", re.DOTALL),
    Platform.WHATSAPP: re.compile(r"(?P<chat>[^@]+@[^:]+)(?::(?P<thread>.+))?", re.DOTALL),
}
TARGET_HELP: Final = say(
    "target.help", "Use origin, local, a platform such as telegram, or platform:chat or platform:chat:thread."
)


@dataclass(frozen=True)
class DeliveryTarget:
    """A place to send to.

    `home` is the home channel of a platform; `origin` is without a platform until the request's source is known.
    """

    kind: Literal["origin", "local", "home", "chat"]
    platform: Platform = Platform.LOCAL
    chat_id: str = ""
    thread_id: str | None = None
    account: str = ""


def parse_target(text: str) -> DeliveryTarget:
    """Parse a target, also one in quotes; raise InvalidInput if it is none."""
    target = strip_quotes(text)
    name, colon, rest = target.partition(":")
    if not colon and name.lower() in {"origin", "local"}:
        return DeliveryTarget("origin" if name.lower() == "origin" else "local")
    platform_name, _, account = name.partition("@")
    try:
        platform = Platform(platform_name.strip())
    except InvalidSource:
        raise InvalidInput(
            say("target.bad", "target: {text} is not valid. {help}", text=repr(text), help=TARGET_HELP), target=text
        ) from None
    if not colon:
        return DeliveryTarget("home", platform, account=unquote(account))
    chat_id, thread_id = split_chat(platform, rest)
    if platform == Platform.LOCAL or not chat_id or thread_id == "":
        raise InvalidInput(
            say("target.no_chat", "target: {text} names no chat. {help}", text=repr(text), help=TARGET_HELP),
            target=text,
        )
    return DeliveryTarget("chat", platform, chat_id, thread_id, unquote(account))


def strip_quotes(text: str) -> str:
    """Return a target without the spaces and quotation marks around it."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        return text[1:-1].strip()
    return text


def split_chat(platform: Platform, text: str) -> tuple[str, str | None]:
    """Split `chat[:thread]`, as ids are written on this platform, and decode both."""
    pattern = _CHAT_PATTERNS.get(platform)
    chat_id, colon, thread_id = text.partition(":")
    if pattern and "%" not in chat_id and (match := pattern.fullmatch(text)):
        chat_id, thread = match["chat"], match["thread"]
    else:
        thread = thread_id if colon else None
    return unquote(chat_id), None if thread is None else unquote(thread)


def format_target(address: Address) -> str:
    """Write the target of an address: as the platform writes its ids or, where that is ambiguous, encoded."""
    return format_chat_target(address.platform, address.chat_id, address.thread_id, address.account)


def format_chat_target(platform: Platform, chat_id: str, thread_id: str | None, account: str = "") -> str:
    """Like `format_target`, for the parts of an address."""
    network = f"{platform}@{_encode(account)}" if account else str(platform)
    plain = f"{network}:{chat_id}" if thread_id is None else f"{network}:{chat_id}:{thread_id}"
    target = DeliveryTarget("chat", platform, chat_id, thread_id, account)
    try:
        if parse_target(plain) == target:
            return plain
    except InvalidInput:
        pass
    encoded = _encode(chat_id)
    if "%" not in encoded:  # otherwise the platform's own way of writing ids would apply
        encoded = f"{_encode_character(encoded[:1])}{encoded[1:]}"
    return f"{network}:{encoded}" if thread_id is None else f"{network}:{encoded}:{_encode(thread_id)}"


def format_source_target(source: SessionSource, *, with_thread: bool = True) -> str:
    """Like `format_target`, for the chat of a source, or for its thread there."""
    thread_id = source.thread_id if with_thread else None
    return format_chat_target(source.platform, source.chat_id, thread_id, source.account)


def _encode(text: str) -> str:
    """Encode what has a meaning in a target, and white space and quotation marks, which are stripped around one."""
    return "".join(
        _encode_character(char) if char in "%:@\"'`" or char.isspace() or not char.isprintable() else char
        for char in text
    )


def _encode_character(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))

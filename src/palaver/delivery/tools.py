"""The tools `list_chats` and `send_message`: the agent sends to chats that the person who asks may send to.

The caller passes what decides where that is; this module never widens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from palaver.agent.tool_arguments import DATA_NOTICE, define_tool, text_argument
from palaver.agent.toolsets import MESSAGING_TOOLSET
from palaver.core.dataclass import dataclass
from palaver.sessions.context import quote_chat_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from palaver.agent.base import Tool

MAX_SENT_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedChat:
    """A chat that the agent may send to."""

    target: str  # as the agent writes it; with a hidden id if ids are hidden from it
    name: str | None  # None: unknown, or hidden
    kind: str  # in words, such as `group on Telegram`


class Messages(Protocol):
    """Sends messages for one person from one conversation."""

    def list_chats(self, search: str) -> Awaitable[tuple[Sequence[ListedChat], bool]]:
        """Return chats that may be sent to, and whether there are more."""

    def send(self, target: str, text: str) -> Awaitable[str]:
        """Send a message; return in words where it goes."""


@dataclass(frozen=True, slots=True)
class ListArguments:
    search: str = text_argument("words of the chat's or person's name; empty for all", required=False)


@dataclass(frozen=True, slots=True)
class SendArguments:
    target: str = text_argument("a target from list_chats, or a platform's name for its home channel")
    text: str = text_argument("the message, in Markdown", max_chars=MAX_SENT_CHARS)


def make_messaging_tools(messages: Messages) -> tuple[Tool, ...]:
    @define_tool(
        "List the chats that you can send to from here, with the targets for send_message.",
        ListArguments,
        toolset=MESSAGING_TOOLSET,
    )
    async def list_chats(arguments: ListArguments) -> str:
        chats, has_more = await messages.list_chats(arguments.search)
        return _format_chats(chats, arguments.search, has_more=has_more)

    @define_tool(
        "Send a message to another chat, on behalf of the user. Use it only when the user asks for it: your answer to"
        " this conversation is sent by itself. People there see the message as yours, and their replies reach you in"
        " that chat.",
        SendArguments,
        has_side_effects=True,
        sends_messages=True,
        toolset=MESSAGING_TOOLSET,
    )
    async def send_message(arguments: SendArguments) -> str:
        return await messages.send(arguments.target, arguments.text)

    return list_chats, send_message


def _format_chats(chats: Sequence[ListedChat], search: str, *, has_more: bool) -> str:
    if not chats:
        return "No chat matches. Leave out the search to list all." if search else "There is no chat to send to."
    more = " There are more; search for a name to find others." if has_more else ""
    lines = [f"{len(chats)} found.{more} {DATA_NOTICE}"]
    for chat in chats:
        name = f" {quote_chat_text(chat.name)}" if chat.name else ""
        lines.append(f"- target {quote_chat_text(chat.target)}:{name} ({chat.kind})")
    return "\n".join(lines)

"""An in-process platform: behaves like any other adapter, without a network.

Tests and programs that embed Palaver use it: `say` sends a message as a person, `receive` passes any other update on,
`sent` lists what was delivered to people, and `messages` what they see now. A `transport` stands for the network and
the platform behind it, and decides how sending, editing and deleting fail.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from palaver.core.errors import LeaseLost, PalaverError
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.delivery.adapter import AccountLink, Adapter, OutgoingMessage
from palaver.delivery.model import Capabilities
from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, Receipt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.sessions.delivery import Address

    Transport = Callable[[OutgoingMessage], Awaitable[str | None]]

LOOPBACK = Platform("loopback")


class LoopbackAdapter(Adapter):
    """An adapter whose platform is a list."""

    platform = LOOPBACK

    def __init__(
        self, transport: Transport | None = None, *, account: str = "", capabilities: Capabilities | None = None
    ) -> None:
        self.account = account
        self.capabilities = capabilities or Capabilities()
        self.sent: list[OutgoingMessage] = []
        self.messages: dict[str, OutgoingMessage] = {}  # by the id of the platform, as people see them now
        self.edits: list[tuple[str, OutgoingMessage]] = []  # id of the platform, new message
        self.deleted: list[str] = []  # ids of the platform
        self.typing: list[Address] = []  # where it was shown, each time
        self.drafts: list[tuple[Address, str, str]] = []  # address, key, text
        self.reactions: dict[str, str] = {}  # by the id of the message
        self.press_answers: dict[str, str | None] = {}  # by the id of the press
        self._transport = transport
        self._link: AccountLink | None = None
        self._connected = asyncio.Event()
        self._end: asyncio.Future[None] | None = None  # of the connection

    async def run(self, link: AccountLink) -> None:
        """Be connected until canceled, or until `disconnect`."""
        self._link = link
        self._end = asyncio.get_running_loop().create_future()
        link.report_connected()
        self._connected.set()
        try:
            await self._end
        finally:
            self._link = None
            self._connected.clear()

    async def send(self, message: OutgoingMessage) -> str | None:
        """Pass a message to the transport; without a transport it arrives at once."""
        if self._transport is None:
            message_id: str | None = f"loopback-{len(self.sent) + 1}"
        else:
            message_id = await self._transport(message)
        self.sent.append(message)
        if message_id:
            self.messages[message_id] = message
        return message_id

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Replace a message; the transport decides whether that works."""
        if self._transport is not None:
            await self._transport(message)
        self.edits.append((message_id, message))
        self.messages[message_id] = message

    async def delete(self, address: Address, message_id: str) -> None:
        self.deleted.append(message_id)
        self.messages.pop(message_id, None)

    async def show_typing(self, address: Address) -> None:
        self.typing.append(address)

    async def show_draft(self, address: Address, key: str, body: str) -> bool:
        self.drafts.append((address, key, body))
        return True

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        if emoji:
            self.reactions[message_id] = emoji
        else:
            self.reactions.pop(message_id, None)

    async def answer_press(self, press_id: str, text: str | None) -> None:
        self.press_answers[press_id] = text

    def get_source(self, user: str = "ada", chat: str | None = None, thread: str | None = None) -> SessionSource:
        """Return where a user writes: in their direct messages, or in the group `chat`."""
        return SessionSource(
            self.platform,
            chat or user,
            chat_type=ChatType.GROUP if chat else ChatType.DM,
            user_id=user,
            user_name=user.title(),
            thread_id=thread,
            account=self.account,
        )

    async def say(
        self,
        content: str,
        *,
        user: str = "ada",
        chat: str | None = None,
        thread: str | None = None,
        message_id: str | None = None,
        **fields: Any,
    ) -> Receipt:
        """Send a message as `user`: in their direct messages, or in the group `chat`; `fields` are those of Inbound."""
        source = self.get_source(user, chat, thread)
        return await self.receive(Inbound(source=source, content=content, message_id=message_id, **fields))

    async def receive(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        """Pass on an update as if the platform had sent it."""
        try:
            await asyncio.wait_for(self._connected.wait(), 10)
        except TimeoutError:
            raise PalaverError("The loopback platform is not connected. Start the gateway first.") from None
        link = self._link
        if link is None:
            raise LeaseLost("The connection has just ended.")
        try:
            return await link.accept(update, cursor=cursor)
        except LeaseLost as error:
            self.disconnect(error)
            raise

    def disconnect(self, error: Exception) -> None:
        """End the connection: `run` raises this error."""
        if self._end is not None and not self._end.done():
            self._end.set_exception(error)


RECOGNIZES_KEYS = Capabilities(key_lifetime=timedelta(days=1))  # a message that is sent again with its key arrives once

"""An in-process platform: behaves like any other adapter, without a network.

Tests and programs that embed Palaver use it: `say` sends a message as a person, and `sent` lists what was delivered to
people. A `transport` stands for the network and the platform behind it, and decides how sending fails.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.domain.capabilities import Capabilities
from palaver.domain.errors import PalaverError
from palaver.domain.inbound import Inbound
from palaver.domain.source import ChatType, Platform, SessionSource
from palaver.services.platforms.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.domain.inbound import Receipt
    from palaver.services.platforms.adapter import AccountLink, OutgoingMessage

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
        self._transport = transport
        self._link: AccountLink | None = None
        self._connected = asyncio.Event()

    async def run(self, link: AccountLink) -> None:
        """Be connected until canceled."""
        self._link = link
        link.report_connected()
        self._connected.set()
        try:
            await asyncio.Event().wait()
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
        return message_id

    async def say(
        self, content: str, *, user: str = "ada", chat: str | None = None, message_id: str | None = None
    ) -> Receipt:
        """Send a message as `user`: in their direct messages, or in the group `chat`."""
        try:
            await asyncio.wait_for(self._connected.wait(), 10)
        except TimeoutError:
            raise PalaverError("The loopback platform is not connected. Start the gateway first.") from None
        assert self._link is not None  # noqa: S101
        source = SessionSource(
            self.platform,
            chat or user,
            chat_type=ChatType.GROUP if chat else ChatType.DM,
            user_id=user,
            user_name=user.title(),
        )
        return await self._link.accept(Inbound(source=source, content=content, message_id=message_id))


RECOGNIZES_KEYS = Capabilities(key_lifetime=timedelta(days=1))  # a message that is sent again with its key arrives once

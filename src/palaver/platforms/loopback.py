"""An in-process platform: behaves like any other adapter, without a network.

Tests and programs that embed Palaver use it: `say` sends a message as a person, and `sent` lists what was delivered to
people. A `transport` stands for the network and the platform behind it, and decides how sending fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import PalaverError
from palaver.domain.inbound import Inbound
from palaver.domain.source import ChatType, Platform, SessionSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.domain.delivery import Delivery
    from palaver.domain.inbound import Receipt
    from palaver.services.ports import AcceptMessage

    Transport = Callable[[Delivery], Awaitable[str | None]]

LOOPBACK = Platform("loopback")


class LoopbackAdapter:
    """An adapter whose platform is a list."""

    platform = LOOPBACK

    def __init__(self, transport: Transport | None = None, *, has_idempotency_keys: bool = False) -> None:
        self.has_idempotency_keys = has_idempotency_keys
        self.sent: list[Delivery] = []
        self._transport = transport
        self._accept: AcceptMessage | None = None

    async def start(self, accept: AcceptMessage) -> None:
        self._accept = accept

    async def stop(self) -> None:
        self._accept = None

    async def send(self, delivery: Delivery) -> str | None:
        """Pass a delivery to the transport; without a transport it arrives at once."""
        if self._transport is None:
            receipt: str | None = f"loopback-{len(self.sent) + 1}"
        else:
            receipt = await self._transport(delivery)
        self.sent.append(delivery)
        return receipt

    async def say(
        self, content: str, *, user: str = "ada", chat: str | None = None, message_id: str | None = None
    ) -> Receipt:
        """Send a message as `user`: in their direct messages, or in the group `chat`."""
        if self._accept is None:
            raise PalaverError("The loopback platform is not connected. Start the gateway first.")
        source = SessionSource(
            self.platform,
            chat or user,
            chat_type=ChatType.GROUP if chat else ChatType.DM,
            user_id=user,
            user_name=user.title(),
        )
        return await self._accept(Inbound(source=source, content=content, message_id=message_id))

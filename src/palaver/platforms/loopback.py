"""The platform inside the process: what other adapters look like, without a network.

Tests and programs that embed Palaver speak through it: `say` is a person sending a message, `sent` is what they got.
How it fails is decided by `wire`, which stands for the network and the platform behind it.
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
    from palaver.services.ports import Accept

    Wire = Callable[[Delivery], Awaitable[str | None]]

LOOPBACK = Platform("loopback")


class Loopback:
    """An adapter whose platform is a list."""

    platform = LOOPBACK

    def __init__(self, wire: Wire | None = None, *, knows_keys: bool = False) -> None:
        self.knows_keys = knows_keys
        self.sent: list[Delivery] = []
        self._wire = wire
        self._accept: Accept | None = None

    async def start(self, accept: Accept) -> None:
        """Begin to receive."""
        self._accept = accept

    async def stop(self) -> None:
        """Stop receiving."""
        self._accept = None

    async def send(self, delivery: Delivery) -> str | None:
        """Hand a delivery to the wire; without one it has arrived."""
        receipt = await self._wire(delivery) if self._wire is not None else f"loopback-{len(self.sent) + 1}"
        self.sent.append(delivery)
        return receipt

    async def say(
        self, content: str, *, user: str = "ada", chat: str | None = None, message_id: str | None = None
    ) -> Receipt:
        """Somebody says something: in their direct messages, or in a group when `chat` is named."""
        if self._accept is None:
            raise PalaverError("the loopback platform is not connected")
        source = SessionSource(
            self.platform,
            chat or user,
            chat_type=ChatType.GROUP if chat else ChatType.DM,
            user_id=user,
            user_name=user.title(),
        )
        return await self._accept(Inbound(source=source, content=content, message_id=message_id))

"""What a platform adapter is.

An adapter receives what people say and hands it to `Inbox.accept`, and it acknowledges a message to its platform only
after that has returned. It sends what the outbox gives it, and says honestly how that went: by returning the
platform's id of what was sent, or by raising one of the `DeliveryError`s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.domain.delivery import Delivery
    from palaver.domain.inbound import Inbound, Receipt
    from palaver.domain.source import Platform

    Accept = Callable[[Inbound], Awaitable[Receipt]]


class Adapter(Protocol):
    """One way in and out."""

    @property
    def platform(self) -> Platform:
        """Which platform this is."""
        ...

    @property
    def knows_keys(self) -> bool:
        """Whether the platform takes a delivery with the same id once, however often it is sent."""
        ...

    async def start(self, accept: Accept) -> None:
        """Begin to receive."""
        ...

    async def stop(self) -> None:
        """Stop receiving; what was received and not accepted comes again."""
        ...

    async def send(self, delivery: Delivery) -> str | None:
        """Send, and return the platform's id of it.

        Raises SendLater or SendRejected when it was certainly not sent, TargetGone when nobody is there any more,
        and SendUncertain when it may have arrived. Anything else counts as uncertain too.
        """
        ...

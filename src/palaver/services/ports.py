"""The interface of a platform adapter.

An adapter receives messages and passes each one to `Inbox.accept`; it acknowledges a message to its platform only after
that call has returned. It sends what the outbox gives it and reports the outcome honestly: it returns the platform's id
of the sent message, or raises a `DeliveryError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.domain.delivery import Delivery
    from palaver.domain.inbound import Inbound, Receipt
    from palaver.domain.source import Platform

    AcceptMessage = Callable[[Inbound], Awaitable[Receipt]]


class Adapter(Protocol):
    """Connects one platform: receives messages from it and sends deliveries to it."""

    @property
    def platform(self) -> Platform: ...

    @property
    def has_idempotency_keys(self) -> bool:
        """Whether the platform delivers a message with the same delivery id once, however often it is sent."""
        ...

    async def start(self, accept: AcceptMessage) -> None:
        """Start receiving messages and pass each one to `accept`."""
        ...

    async def stop(self) -> None:
        """Stop receiving. The platform sends again what was received but not accepted."""
        ...

    async def send(self, delivery: Delivery) -> str | None:
        """Send a delivery and return the platform's id of the message.

        Raises SendRetryable or SendRejected when it was certainly not sent, TargetUnreachable when the address no
        longer exists, and SendUncertain when it may have arrived. The outbox treats any other error as uncertain.
        """
        ...

"""The bodies of webhooks, which are read before it is known who has sent them: the signature is over the body.

Always true: a body that does not arrive, however many there are, keeps no other request waiting. What is bounded is
memory, not places: of the bytes above `SMALL_BODY_BYTES`, one address has at most `MAX_BYTES_PER_ADDRESS` in memory and
all together at most `MAX_BYTES`. A small body, as platforms send them, is never refused, and a slow one ends in time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from palaver.core.errors import TooManyAttempts
from palaver.people.account import group_ip_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import Request

SMALL_BODY_BYTES: Final = 64 * 2**10
MAX_BYTES_PER_ADDRESS: Final = 16 * 2**20
MAX_BYTES: Final = 128 * 2**20
BODY_SECONDS: Final = 15.0  # for a whole body, at whatever rate it comes
RETRY_SECONDS: Final = 30


@dataclass(slots=True)
class _Body:
    address: str
    data: bytearray = field(default_factory=bytearray)
    counted_bytes: int = 0


class WebhookBodies:
    """Reads the bodies of webhooks within limits of memory and time."""

    def __init__(self, *, body_seconds: float = BODY_SECONDS) -> None:
        self._body_seconds = body_seconds
        self._held: Counter[str] = Counter()  # bytes by address
        self.unfinished = 0  # bodies that are being read

    @property
    def held_bytes(self) -> int:
        return self._held.total()

    @asynccontextmanager
    async def read(self, request: Request, address: str) -> AsyncIterator[bytes]:
        """Read the body of a request from an address; its memory counts until the block ends.

        Raises TooManyAttempts if the limit of the address or of all is reached, and HTTPException with the status 408
        if it does not arrive in time, and 400 if the connection ends.
        """
        body = _Body(group_ip_address(address))
        try:
            await self._receive(request, body)
            yield bytes(body.data)
        finally:
            self._held[body.address] -= body.counted_bytes
            if not self._held[body.address]:
                del self._held[body.address]

    async def _receive(self, request: Request, body: _Body) -> None:
        self.unfinished += 1
        try:
            async with asyncio.timeout(self._body_seconds):
                async for chunk in request.stream():
                    body.data += chunk
                    self._count(body)
        except TimeoutError:
            raise HTTPException(408, "The request did not arrive completely in time.") from None
        except ClientDisconnect:
            raise HTTPException(400, "The connection was closed before the request was complete.") from None
        finally:
            self.unfinished -= 1

    def _count(self, body: _Body) -> None:
        more = max(0, len(body.data) - SMALL_BODY_BYTES) - body.counted_bytes
        if not more:
            return
        if self._held[body.address] + more > MAX_BYTES_PER_ADDRESS or self.held_bytes + more > MAX_BYTES:
            message = f"Too many large requests are arriving. Try again in {RETRY_SECONDS} seconds."
            raise TooManyAttempts(message, retry_after=RETRY_SECONDS - 1)
        self._held[body.address] += more
        body.counted_bytes += more

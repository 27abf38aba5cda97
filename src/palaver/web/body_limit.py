"""Limits of request bodies: how many bytes of a body are read, and how many values its JSON may have.

Always true: nothing of a body is read before its sender is known, except on the few routes that strangers may use, and
there bodies are small. Of one person, only a few large bodies are in memory at once. Parsing a body needs memory in
proportion to the limits here, whatever it contains: a list of a million empty lists is small as text and large in
memory, so the values are counted before they are parsed.

The bodies of webhooks are read before it is known who has sent them: the signature is over the body. A body that does
not arrive, however many there are, keeps no other request waiting. What is bounded is memory, not places: of the bytes
above `SMALL_BODY_BYTES`, one address has at most `MAX_BYTES_PER_ADDRESS` in memory and all together at most
`MAX_BYTES`. A small body, as platforms send them, is never refused, and a slow one ends in time.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from palaver.core.errors import TooManyAttempts
from palaver.people.model import group_ip_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import Request
    from starlette.types import Message, Receive, Scope


MAX_ANONYMOUS_BODY_BYTES: Final = 64 * 2**10
MAX_BODY_BYTES: Final = 4 * 2**20  # a message of 200,000 characters, each written as two \uXXXX escapes, fits
MAX_JSON_VALUES: Final = 50_000
LARGE_BODY_BYTES: Final = 2**20
MAX_LARGE_REQUESTS_PER_PERSON: Final = 4  # at once; further ones wait, and nothing of their bodies is read
# of webhooks
SMALL_BODY_BYTES: Final = 64 * 2**10
MAX_BYTES_PER_ADDRESS: Final = 16 * 2**20
MAX_BYTES: Final = 128 * 2**20
BODY_SECONDS: Final = 15.0  # for a whole body, at whatever rate it comes
RETRY_SECONDS: Final = 30
_SCOPE_KEY: Final = "palaver.body_limit"
_JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class BodyLimit:
    """The body of one request, which can be read up to a limit; reading more fails with status 413."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.max_bytes: int | None = MAX_ANONYMOUS_BODY_BYTES
        headers = Headers(scope=scope)
        self._declared_bytes = int(headers.get("content-length", "0"))  # the HTTP parser has checked it
        self.is_large = self._declared_bytes > LARGE_BODY_BYTES or "transfer-encoding" in headers
        self._received_bytes = 0
        self._receive = receive
        scope[_SCOPE_KEY] = self

    async def receive(self) -> Message:
        self._check(self._declared_bytes)
        message = await self._receive()
        self._received_bytes += len(message.get("body", b""))
        self._check(self._received_bytes)
        return message

    def _check(self, size: int) -> None:
        if self.max_bytes is not None and size > self.max_bytes:
            raise HTTPException(413, f"The request body is too large. The limit is {self.max_bytes} bytes.")


def is_large_request(scope: Scope) -> bool:
    limit: BodyLimit = scope[_SCOPE_KEY]
    return limit.is_large


def set_body_limit(scope: Scope, max_bytes: int | None) -> None:
    """Change how much of a request's body can be read; None means that the route limits it."""
    limit: BodyLimit = scope[_SCOPE_KEY]
    limit.max_bytes = max_bytes


def check_json_values(body: bytes) -> None:
    """Refuse JSON with too many values: parsed, each needs far more memory than its text."""
    if _count_separators(body) > MAX_JSON_VALUES and _count_separators(_JSON_STRING.sub(b"", body)) > MAX_JSON_VALUES:
        raise HTTPException(413, f"The request body has too many values. The limit is {MAX_JSON_VALUES}.")


def _count_separators(body: bytes) -> int:
    """Count the characters that come with every JSON value but the first; those in strings count too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


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
        group, body, counted_bytes = group_ip_address(address), bytearray(), 0
        self.unfinished += 1
        try:
            try:
                async with asyncio.timeout(self._body_seconds):
                    async for chunk in request.stream():
                        body += chunk
                        more = max(0, len(body) - SMALL_BODY_BYTES) - counted_bytes
                        self._check_limits(group, more)
                        self._held[group] += more
                        counted_bytes += more
            except TimeoutError:
                raise HTTPException(408, "The request did not arrive completely in time.") from None
            except ClientDisconnect:
                raise HTTPException(400, "The connection was closed before the request was complete.") from None
            finally:
                self.unfinished -= 1
            yield bytes(body)
        finally:
            self._held[group] -= counted_bytes
            if not self._held[group]:
                del self._held[group]

    def _check_limits(self, group: str, more: int) -> None:
        if more and (self._held[group] + more > MAX_BYTES_PER_ADDRESS or self.held_bytes + more > MAX_BYTES):
            message = f"Too many large requests are arriving. Try again in {RETRY_SECONDS} seconds."
            raise TooManyAttempts(message, retry_after=RETRY_SECONDS - 1)

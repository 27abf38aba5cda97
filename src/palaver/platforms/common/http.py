"""HTTP: downloads of files with a guard, connections to one host, and what a failed request says about a message.

Platforms and people name the URL of a file, and our network is not theirs to explore.
What is refused, and how redirects are followed, is in `media/web/requests.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import httpx2

from palaver.core.errors import ConnectionLost, InvalidInput
from palaver.media.web.requests import GuardedRequests, Resolve
from palaver.people.model import is_loopback
from palaver.platforms.common.send_mark import trace_httpx_request
from palaver.sessions.speech import MAX_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping


_BYTES_PER_MB: Final = 1_000_000

MAX_CONNECTIONS: Final = 64
CONNECT_SECONDS: Final = 10.0


class ConnectionClosed(httpx2.RequestError):
    """The client was closed: nothing was sent."""


# With these the request has not left this machine. After any other error it may have arrived.
NOT_SENT_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
    ConnectionClosed,
)


class FileFetcher:
    """Downloads files. `trusted_hosts` are the platform's own hosts, as the operator has configured them."""

    def __init__(
        self,
        trusted_hosts: Collection[str] = (),
        *,
        max_bytes: int = MAX_FILE_BYTES,
        resolve: Resolve | None = None,
    ) -> None:
        self._requests = GuardedRequests(trusted_hosts, resolve=resolve)
        self._max_bytes = max_bytes

    async def fetch(self, url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[bytes]:
        """Download a file in chunks. The headers, which may hold a token, are sent to the host of this URL only.

        Raises InvalidInput if it is too large or at a place that is not allowed, and ConnectionLost if it can't be
        downloaded.
        """
        async with self._requests.get(url, headers) as response:
            if response.status_code != httpx2.codes.OK:
                raise ConnectionLost(f"the server answered {response.status_code}")
            announced = response.headers.get("content-length", "")
            if announced.isascii() and announced.isdigit() and len(announced) < 19 and int(announced) > self._max_bytes:
                raise InvalidInput(self._describe_limit(int(announced)))
            size = 0
            try:
                async for chunk in response.aiter_raw():
                    size += len(chunk)
                    if size > self._max_bytes:
                        raise InvalidInput(self._describe_limit(None))
                    yield chunk
            except httpx2.HTTPError as error:
                raise ConnectionLost("the download broke off") from error

    def _describe_limit(self, size: int | None) -> str:
        limit = f"limit {self._max_bytes // _BYTES_PER_MB} MB"
        return f"too large ({limit})" if size is None else f"too large ({-(-size // _BYTES_PER_MB)} MB, {limit})"


class HttpConnections:
    """The connections to one host. They are opened in a thread when they are needed: that reads all certificates."""

    def __init__(self, host: str, seconds: float) -> None:
        self._host = host
        self._seconds = seconds  # for an answer
        self._http: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def open(self) -> httpx2.AsyncClient:
        """Return the client. Raises ConnectionClosed after `close`."""
        async with self._opening:
            if self._is_closed:
                raise ConnectionClosed("the connection is closed")
            if self._http is None:
                self._http = await asyncio.to_thread(self._create)
            return self._http

    def _create(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS),
            follow_redirects=False,
            event_hooks={"request": [trace_httpx_request]},
            trust_env=not is_loopback(self._host),  # no proxy of the environment for this machine
        )

    async def close(self) -> None:
        """End every request and close every connection."""
        self._is_closed = True
        if self._http is not None:
            await self._http.aclose()

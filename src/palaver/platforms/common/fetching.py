"""Downloads files by URL, with a guard: platforms and people name the URL, and our network is not theirs to explore.

What is refused, and how redirects are followed, is in `media/web/requests.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import httpx2

from palaver.core.errors import ConnectionLost, InvalidInput
from palaver.media.web.requests import GuardedRequests
from palaver.sessions.speech import MAX_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from palaver.media.web.requests import Resolve

_BYTES_PER_MB: Final = 1_000_000

# With these the request has not left this machine. After any other error it may have arrived.
NOT_SENT_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
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
            async for chunk in self._read(response):
                yield chunk

    async def _read(self, response: httpx2.Response) -> AsyncIterator[bytes]:
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


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds to wait that a `Retry-After` header names, as a number or as a date; None if it names none."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())

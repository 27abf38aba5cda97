"""Sends signed requests to the address of one webhook. The only module of this adapter that uses the network."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx2

from palaver.core.errors import SendRetryable, SendUncertain
from palaver.platforms.common.http_errors import NOT_SENT_ERRORS, parse_retry_after

CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 30.0


class WebhookClient:
    """Requests to one address, which comes from the settings and is never chosen by a message."""

    def __init__(self, url: str, host: str, *, is_local: bool) -> None:
        self._url = url
        self._host = host
        self._is_local = is_local
        self._http: httpx2.AsyncClient | None = None

    async def post(self, body: bytes, headers: dict[str, str]) -> tuple[int, float | None]:
        """Make one request; return the status of the answer, and the seconds that it asks to wait.

        The body of the answer is not read. Raises SendRetryable and SendUncertain.
        """
        http = await self._open()
        headers = {**headers, "content-type": "application/json", "user-agent": "palaver"}
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                async with http.stream("POST", self._url, content=body, headers=headers) as response:
                    retry_after = parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC))
                    return response.status_code, retry_after
        except NOT_SENT_ERRORS as error:
            raise SendRetryable(f"{self._host} can't be reached ({type(error).__name__}).") from None
        except (httpx2.RequestError, TimeoutError) as error:
            raise SendUncertain(f"{self._host} did not answer ({type(error).__name__}).") from None

    async def _open(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = await asyncio.to_thread(self._create)  # it reads all certificates, which takes a while
        return self._http

    def _create(self) -> httpx2.AsyncClient:
        timeout = httpx2.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS)
        return httpx2.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=not self._is_local)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

"""discord.py's HTTP client, with one attempt for each request.

discord.py itself waits when Discord asks for it, and repeats failed requests, for up to half a minute each and unseen.
Palaver's outbox does both, durably, and shows it: so here a refusal is raised at once.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from discord.gateway import DiscordClientWebSocketResponse
from discord.http import HTTPClient, Route

from palaver.platforms.discord.failures import RequestFailed, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from discord.file import File

CONNECT_TIMEOUT_SECONDS: Final = 15.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0
UPLOAD_TIMEOUT_SECONDS: Final = 180.0
CLOSE_TIMEOUT_SECONDS: Final = 5.0  # for the other side to confirm that the socket ends


class DiscordHttp(HTTPClient):
    """Requests to one server that speaks Discord's API. Raises RequestRefused and RequestFailed."""

    def __init__(self, api_url: str, token: str) -> None:
        super().__init__(asyncio.get_running_loop())
        self._api_url = api_url
        self.token = token
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                ws_response_class=DiscordClientWebSocketResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
            )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        return await self._get_session().ws_connect(
            url,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_SECONDS),
            max_msg_size=0,
            autoclose=False,
            headers={"User-Agent": self.user_agent},
            compress=compress,
        )

    async def request(
        self,
        route: Route,
        *,
        files: Sequence[File] | None = None,
        form: Iterable[dict[str, Any]] | None = None,
        **options: Any,
    ) -> Any:
        """Make a request; return the JSON of the answer."""
        headers = {"User-Agent": self.user_agent, "Authorization": f"Bot {self.token}"}
        data: aiohttp.FormData | bytes | None = None
        if form is not None:
            data = aiohttp.FormData(quote_fields=False)  # Discord does not read escaped brackets in `files[0]`
            for fields in form:
                data.add_field(**fields)
        elif "json" in options:
            data = json.dumps(options["json"], ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        seconds = options.get("timeout") or (UPLOAD_TIMEOUT_SECONDS if form else ANSWER_TIMEOUT_SECONDS)
        status, payload, retry_after = await self._exchange(
            route.method,
            self._api_url + route.url.removeprefix(Route.BASE),
            headers=headers,
            data=data,
            params=options.get("params"),
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT_SECONDS),
        )
        if not 200 <= status < 300:
            raise RequestRefused.from_response(status, payload, retry_after)
        try:
            return json.loads(payload) if payload else None
        except ValueError:
            raise RequestFailed("its answer is not JSON", was_sent=True) from None

    async def _exchange(self, method: str, url: str, **options: Any) -> tuple[int, bytes, str | None]:
        try:
            async with self._get_session().request(method, url, **options) as response:
                return response.status, await response.read(), response.headers.get("Retry-After")
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise RequestFailed(_describe(error), was_sent=False) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RequestFailed(_describe(error), was_sent=True) from None

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RequestFailed("the connection is closed", was_sent=False)
        return self._session


def _describe(error: Exception) -> str:
    """Return the reason in words, without the address, which may hold the token of an interaction."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name can't be resolved. Check the network connection of this machine"
    if isinstance(error, aiohttp.ClientSSLError):
        return "the encrypted connection failed"
    if isinstance(error, aiohttp.ClientConnectorError):
        is_refused = isinstance(error.os_error, ConnectionRefusedError)
        return "the connection was refused" if is_refused else "no connection could be made"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return "the connection broke"

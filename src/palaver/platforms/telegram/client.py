"""The Bot API, through python-telegram-bot's `Bot`: the only module that talks to Telegram.

Always true: every failure is one of Palaver's errors, and says honestly whether Telegram may have acted; the token,
which is part of every address, is in none of them.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx
from telegram import Bot, Message
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from palaver.core.errors import AccountRefused, ConnectionLost, LimitReached, SendRetryable
from palaver.platforms.common.send_mark import mark_before_request, trace_httpx_request
from palaver.platforms.telegram.failures import (
    REMOVED,
    ApiRefusal,
    NotSentError,
    make_delivery_error,
    make_platform_error,
    read_failure,
)
from palaver.platforms.telegram.inbound import ALLOWED_UPDATES

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from palaver.platforms.telegram.manifest import TelegramSettings
    from palaver.sessions.delivery import Address

MAX_DOWNLOAD_BYTES: Final = 20 * 1024 * 1024
DOWNLOAD_CHUNK_BYTES: Final = 64 * 1024
POLL_SECONDS: Final = 30
MAX_UPDATES_PER_POLL: Final = 100
CONNECT_TIMEOUT_SECONDS: Final = 10.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0
UPLOAD_TIMEOUT_SECONDS: Final = 180.0
LAST_REQUESTS_SECONDS: Final = 2.0  # for requests that are under way when the connection ends

T = TypeVar("T")


class _BotRequest(HTTPXRequest):
    """The SDK's HTTP client. It tells refusals by the Bot API, and requests that never left, from the rest."""

    def __init__(self, token: str, pool_size: int) -> None:
        super().__init__(
            connection_pool_size=pool_size,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=ANSWER_TIMEOUT_SECONDS,
            write_timeout=ANSWER_TIMEOUT_SECONDS,
            pool_timeout=CONNECT_TIMEOUT_SECONDS,
            media_write_timeout=UPLOAD_TIMEOUT_SECONDS,
            httpx_kwargs={"verify": _load_certificates(), "event_hooks": {"request": [trace_httpx_request]}},
        )
        self._bot_token = token

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        try:
            status, payload = await super().do_request(*args, **kwargs)
        except TelegramError as error:
            # Only these happen before the request is written to the connection.
            if isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
                raise NotSentError(str(error)) from error.__cause__
            raise
        if status >= 300:
            raise ApiRefusal(status, payload.replace(self._bot_token.encode(), REMOVED.encode()))
        return status, payload


class _PollingBot(Bot):
    """The SDK's bot, which also returns updates as JSON, so that one it does not know cannot stop the others."""

    async def fetch_updates(self, parameters: dict[str, Any], *, read_timeout: float) -> list[dict[str, Any]]:
        updates: list[dict[str, Any]] = await self._post("getUpdates", parameters, read_timeout=read_timeout)
        return updates

    async def send_rich_message(self, chat_id: int | str, markdown: str, **optional: Any) -> Message:
        """Send a rich message, which the SDK does not know."""
        given = {name: value for name, value in optional.items() if value is not None}
        fields = {"chat_id": chat_id, "rich_message": {"markdown": markdown}, **given}
        message: Message = await self.do_api_request("sendRichMessage", api_kwargs=fields, return_type=Message)
        return message


class TelegramClient:
    def __init__(self, settings: TelegramSettings, *, poll_seconds: int = POLL_SECONDS) -> None:
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every address, with the token
        self._token = settings.bot_token.get_secret_value()
        self._poll_seconds = poll_seconds
        self._requests = [_BotRequest(self._token, pool_size) for pool_size in (1, 64)]
        poll_request, request = self._requests
        self.bot = _PollingBot(
            self._token,
            base_url=f"{settings.api_url}/bot",
            base_file_url=f"{settings.api_url}/file/bot",
            request=request,
            get_updates_request=poll_request,
        )
        self._is_open = False
        self._request_count = 0  # that are under way
        self._is_idle = asyncio.Event()  # none is
        self._is_idle.set()
        self._flooded_chat: tuple[str, float] | None = None  # the chat that last had to wait, and until when

    async def open(self) -> None:
        """Allow requests, also again after `close`."""
        for request in self._requests:
            await request.initialize()
        self._is_open = True

    async def close(self) -> None:
        """Close all connections, after the requests of other tasks: one that is just being opened would stay open."""
        self._is_open = False
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_idle.wait(), LAST_REQUESTS_SECONDS)
        for request in self._requests:
            await request.shutdown()

    @contextmanager
    def _count_request(self) -> Iterator[None]:
        self._request_count += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._request_count -= 1
            if not self._request_count:
                self._is_idle.set()

    # ---- receiving -------------------------------------------------------------------------------------------

    async def get_updates(self, offset: int | None, *, waits: bool = True) -> list[dict[str, Any]]:
        """Return updates from `offset` on, which confirms those before it; if there are none, wait a while for them."""
        poll_seconds = self._poll_seconds if waits else 0
        parameters: dict[str, Any] = {
            "offset": offset,
            "limit": MAX_UPDATES_PER_POLL,
            "timeout": poll_seconds,
            "allowed_updates": list(ALLOWED_UPDATES),
        }
        read_timeout = poll_seconds + CONNECT_TIMEOUT_SECONDS
        return await self.call(self.bot.fetch_updates, parameters=parameters, read_timeout=read_timeout)

    async def get_webhook_url(self) -> str:
        """Return where Telegram sends the updates of this bot; empty if it is asked for them."""
        return (await self.call(self.bot.get_webhook_info)).url

    async def download(self, file_id: str, size: int | None) -> AsyncIterator[bytes]:
        """Download a file that a person has sent. Raises LimitReached if Telegram does not give it to bots."""
        if size is not None and size > MAX_DOWNLOAD_BYTES:
            raise _make_size_error(size)
        try:
            file = await self.call(self.bot.get_file, file_id=file_id)
        except ConnectionLost as error:
            if isinstance(error.__cause__, ApiRefusal) and error.__cause__.says("file is too big"):
                raise _make_size_error(size) from None
            raise
        try:
            content = await self.call(file.download_as_bytearray, read_timeout=UPLOAD_TIMEOUT_SECONDS)
        except AccountRefused:  # here 404 is not about the token
            raise ConnectionLost.say("telegram.file_gone", "Telegram no longer has this file.") from None
        view = memoryview(content)
        for start in range(0, len(view), DOWNLOAD_CHUNK_BYTES):
            yield bytes(view[start : start + DOWNLOAD_CHUNK_BYTES])

    # ---- calls and their failures ----------------------------------------------------------------------------

    async def call(self, call: Callable[..., Awaitable[T]], **fields: Any) -> T:
        """Make a request that sends no message. Raises AccountRefused or ConnectionLost."""
        if not self._is_open:
            raise ConnectionLost("The connection to Telegram is closed.")
        try:
            with self._count_request():
                return await call(**fields)
        except TelegramError as error:
            raise make_platform_error(read_failure(error, self._token)) from error

    async def deliver(
        self,
        address: Address,
        call: Callable[..., Awaitable[T]],
        *,
        mark: Callable[[], Awaitable[None]] | None = None,
        is_repeatable: bool = False,
        **fields: Any,
    ) -> T:
        """Make a request about a chat, and call `mark` before it is written; raises a DeliveryError."""
        if not self._is_open:
            raise SendRetryable("The connection to Telegram is closed.")
        chat_id = address.chat_id if address.chat_id.startswith("@") else int(address.chat_id)
        try:
            with self._count_request(), mark_before_request(mark):
                return await call(chat_id=chat_id, **fields)
        except TelegramError as error:
            if isinstance(error, ApiRefusal):
                error.is_for_account = self._is_account_flooded(address, error)
            raise make_delivery_error(read_failure(error, self._token), is_repeatable=is_repeatable) from error

    def _is_account_flooded(self, address: Address, error: ApiRefusal) -> bool:
        """Return whether Telegram asks the whole account to wait.

        It does not say so. But if a second chat has to wait while the first still does, it is not about one chat.
        """
        if error.wait_seconds is None:
            return False
        now = time.monotonic()
        before = self._flooded_chat
        self._flooded_chat = (address.chat_id, now + error.wait_seconds)
        return before is not None and before[0] != address.chat_id and before[1] > now


@functools.cache
def _load_certificates() -> ssl.SSLContext:
    """Load the certificate authorities once: it takes as long as many requests, and every connection needs them."""
    return httpx.create_ssl_context()


def _make_size_error(size: int | None) -> LimitReached:
    measured = f" This one has {size / 1024 / 1024:.0f} MB." if size else ""
    return LimitReached(f"Telegram lets bots download files of up to 20 MB.{measured}")

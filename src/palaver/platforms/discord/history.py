"""The history of a channel, and what else we ask Discord about it: again if Discord fails, within limits."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from palaver.core.errors import ConnectionLost
from palaver.platforms.discord.failures import RequestFailed, RequestRefused, make_platform_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.platforms.discord.client import DiscordClient

log = logging.getLogger(__name__)

JSON = dict[str, Any]
T = TypeVar("T")

MAX_GAP_MESSAGES: Final = 1_000  # that are fetched of one channel; older ones of a longer gap are left out
PAGE_MESSAGES: Final = 100
MAX_ATTEMPTS: Final = 4
RETRY_SECONDS: Final = 0.25  # before the second attempt; each further one waits twice as long
MAX_WAIT_SECONDS: Final = 10.0  # then there is no further attempt for now: live messages wait meanwhile
POSTPONE_SECONDS: Final = 30.0  # before Discord is asked again for what it did not return


class HistoryUnavailable(ConnectionLost):
    """Discord does not answer what we ask about a channel. It may after so many seconds."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


async def fetch_messages(client: DiscordClient, channel_id: str, since: int) -> list[JSON] | None:
    """Fetch the messages of a channel after a position, the oldest first; if there are too many, the newest.

    A channel that the bot can't read has none; None: there is no such channel. Raises HistoryUnavailable.
    """
    found: list[JSON] = []
    while len(found) < MAX_GAP_MESSAGES:
        before = found[-1]["id"] if found else None
        try:
            page = await ask(lambda: client.list_messages(channel_id, before=before, limit=PAGE_MESSAGES))  # noqa: B023
        except RequestRefused as error:
            if error.status == 404 and not found:
                return None
            if error.status not in {400, 403, 404}:
                raise make_platform_error(error) from None
            page = []
        newer = [message for message in page if int(message["id"]) > since]
        found += newer
        if len(newer) < PAGE_MESSAGES:
            return found[::-1]
    log.warning("discord_gap_too_long", extra={"channel": channel_id, "messages": len(found)})
    return found[::-1]


async def ask(request: Callable[[], Awaitable[T]]) -> T:
    """Ask Discord about a channel, several times if it fails. Raises RequestRefused if its API says no."""
    failure: RequestRefused | RequestFailed
    started = time.monotonic()
    for attempt in range(MAX_ATTEMPTS):
        wait = RETRY_SECONDS * 2**attempt
        try:
            return await request()
        except RequestRefused as error:
            if error.is_from_api and error.status != 429 and error.status < 500:
                raise
            failure, wait = error, error.retry_after or wait
        except RequestFailed as error:
            failure = error
        if max(wait, time.monotonic() - started) > MAX_WAIT_SECONDS:
            break
        await asyncio.sleep(wait)
    raise HistoryUnavailable(str(make_platform_error(failure)), max(wait, POSTPONE_SECONDS))

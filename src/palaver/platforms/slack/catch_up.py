"""Reads what was written while nothing ran: Slack repeats an event three times in a few minutes, and then never again.

The cursor is the `ts` of the newest message that was accepted. Messages are read again from some minutes before it,
because they do not arrive in order; what was accepted already is recognized. One cursor for all channels is enough, and
also finds a conversation that a person has begun meanwhile. Everything is bounded: how old, how many channels, pages.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from palaver.platforms.slack.failures import ApiRefusal, RequestFailed, make_platform_error
from palaver.platforms.slack.inbound import is_own_message, is_ts
from palaver.platforms.slack.outbound import read_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from palaver.delivery.adapter import AccountLink
    from palaver.platforms.slack.client import SlackClient
    from palaver.platforms.slack.inbound import AppIdentity

    JSON = Mapping[str, Any]

OVERLAP_SECONDS: Final = 600.0  # before the cursor
MAX_AGE_SECONDS: Final = 24 * 3600.0  # older messages are not answered any more
THREAD_AGE_SECONDS: Final = 3 * 24 * 3600.0  # replies are found in threads that began within this time
MAX_CHANNEL_PAGES: Final = 5  # of 200 channels
MAX_PAGES: Final = 5  # of 200 messages in one channel or thread
MAX_THREADS: Final = 50  # of one channel

log = logging.getLogger(__name__)


class CatchUp:
    """Reads the history once, after connecting."""

    def __init__(
        self,
        client: SlackClient,
        app: AppIdentity,
        link: AccountLink,
        accept: Callable[[JSON], Awaitable[None]],
        get_time: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._app = app
        self._link = link
        self._accept = accept  # an event
        self._get_time = get_time

    async def run(self, cursor: str) -> None:
        """Accept the messages after the cursor, in the order of each channel."""
        if not is_ts(cursor):
            return
        since = max(float(cursor) - OVERLAP_SECONDS, self._get_time() - MAX_AGE_SECONDS)
        try:
            channels = await self._client.list_channels(MAX_CHANNEL_PAGES)
        except ApiRefusal as error:
            self._note_refusal(error, "")
            return
        except RequestFailed as error:
            raise make_platform_error(error) from error
        count = 0
        for channel in channels:
            count += await self._read_channel(channel, since)
        log.info("slack_caught_up", extra={"channels": len(channels), "messages": count})

    async def _read_channel(self, channel: JSON, since: float) -> int:
        try:
            messages = await self._list_messages(channel["id"], since)
        except ApiRefusal as error:
            self._note_refusal(error, channel["id"])
            return 0
        except RequestFailed as error:
            raise make_platform_error(error) from error
        for message in messages:
            if is_own_message(message, self._app):
                if key := read_key(message):
                    await self._link.confirm(key, message["ts"])
            else:
                await self._accept({**message, "type": "message", "channel": channel["id"]})
        return len(messages)

    async def _list_messages(self, channel_id: str, since: float) -> list[JSON]:
        """Return what was written in a channel and its threads since a time, oldest first."""
        history = await self._client.list_history(channel_id, _format_ts(since - THREAD_AGE_SECONDS), MAX_PAGES)
        found = {each["ts"]: each for each in history if float(each["ts"]) > since}
        threads = [each for each in history if float(each.get("latest_reply") or 0) > since]
        for parent in threads[:MAX_THREADS]:
            for reply in await self._client.list_replies(channel_id, parent["ts"], _format_ts(since), MAX_PAGES):
                if float(reply["ts"]) > since:
                    found.setdefault(reply["ts"], reply)
        return [found[ts] for ts in sorted(found, key=float)]

    @staticmethod
    def _note_refusal(error: ApiRefusal, channel_id: str) -> None:
        """Go on if a scope is missing or the channel is no longer ours: what was written there can't be read."""
        if error.is_about_token or error.is_uncertain:
            raise make_platform_error(error) from error
        log.info("slack_history_refused", extra={"channel": channel_id, "reason": error.code, "scope": error.needed})


def _format_ts(seconds: float) -> str:
    return f"{max(0.0, seconds):.6f}"

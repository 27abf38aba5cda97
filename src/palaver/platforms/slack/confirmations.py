"""Finds out whether a message has arrived whose sending was not confirmed.

Every message of ours carries its key as metadata on Slack, so reading the chat back proves that it has arrived. A
stream cannot carry metadata; but what our app has sent in a thread without any can only be one. A file is found by its
id. What is not found stays uncertain: it may still arrive, so it is never sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.core.errors import LeaseLost, PlatformError
from palaver.platforms.slack.client import find_share
from palaver.platforms.slack.failures import RequestFailed
from palaver.platforms.slack.inbound import is_own_message
from palaver.platforms.slack.outbound import read_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from palaver.delivery.adapter import AccountLink
    from palaver.platforms.slack.client import SlackClient
    from palaver.platforms.slack.inbound import AppIdentity
    from palaver.sessions.delivery import Address

CHECK_DELAYS: Final = (2.0, 10.0, 60.0)  # seconds after each other: Slack may still be at work on it
PREVIEW_DELAYS: Final = (0.5, 1.5)  # of a growing message: the answer replaces it, if it is found in time
MAX_UNCONFIRMED: Final = 200
MAX_CLOCK_DIFFERENCE_SECONDS: Final = 120.0  # between Slack and this machine

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconfirmedMessage:
    """A message that may have arrived."""

    key: str
    address: Address
    is_stream: bool = False
    file_id: str | None = None
    sent_at: float = field(default_factory=time.time)  # by the clock of this machine


class Confirmations:
    """Checks the messages that may have arrived."""

    def __init__(
        self,
        client: SlackClient,
        is_known_stream: Callable[[str], bool],
        delays: Sequence[float] = CHECK_DELAYS,
    ) -> None:
        self._client = client
        self._is_known_stream = is_known_stream
        self._delays = delays
        self._waiting: deque[UnconfirmedMessage] = deque(maxlen=MAX_UNCONFIRMED)
        self._has_new = asyncio.Event()

    def add(self, message: UnconfirmedMessage) -> None:
        """Remember a message that was just sent without an answer."""
        self._waiting.append(message)
        self._has_new.set()

    async def run(self, link: AccountLink, app: AppIdentity) -> None:
        """Check every message some times, and report those that have arrived."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                await self._has_new.wait()
                self._has_new.clear()
                while self._waiting:
                    task = asyncio.create_task(self._follow(link, app, self._waiting.popleft()))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, link: AccountLink, app: AppIdentity, message: UnconfirmedMessage) -> None:
        message_id = await self.find(app, message, self._delays)
        if message_id is not None:
            with contextlib.suppress(LeaseLost):  # the connection has ended; the next one reads the history
                await link.confirm(message.key, message_id)

    async def find(self, app: AppIdentity, message: UnconfirmedMessage, delays: Sequence[float]) -> str | None:
        """Look for a message after each delay; return its ts, or None if it is not there."""
        for delay in delays:
            await asyncio.sleep(delay)
            try:
                message_id = await self._find(app, message)
            except (PlatformError, RequestFailed) as error:
                log.info("slack_confirmation_failed", extra={"key": message.key, "reason": str(error)})
                continue
            if message_id is not None:
                return message_id
        return None

    async def _find(self, app: AppIdentity, message: UnconfirmedMessage) -> str | None:
        address = message.address
        if message.file_id is not None:
            return find_share(await self._client.find_file(message.file_id), address.chat_id)
        oldest = f"{message.sent_at - MAX_CLOCK_DIFFERENCE_SECONDS:.6f}"
        if address.thread_id is not None:
            found = await self._client.list_replies(address.chat_id, address.thread_id, oldest, max_pages=3)
        else:
            found = await self._client.list_history(address.chat_id, oldest, max_pages=3)
        own = [each for each in found if is_own_message(each, app)]
        proofs = [each for each in own if read_key(each) == message.key]
        if not proofs and message.is_stream:
            proofs = [each for each in own if self._is_lost_stream(each, address)]
        return str(proofs[0]["ts"]) if len(proofs) == 1 else None  # of several streams, any could be the one

    def _is_lost_stream(self, message: Mapping[str, Any], address: Address) -> bool:
        has_content = "metadata" in message or bool(message.get("files")) or "subtype" in message
        return not has_content and message["ts"] != address.thread_id and not self._is_known_stream(message["ts"])

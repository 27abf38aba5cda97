"""The platforms that are connected in any process: what the agent is told, and where answers can be sent; and which
accounts an owner wants to be tested.

It is read from the database when another process may have changed it, at most once a second, and never per message.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from palaver.core.engines.base import Read
from palaver.core.poll_loop import run_poll_loop
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.health import list_live_platforms

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.source import Platform
    from palaver.live.feed import Feed
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore

MIN_INTERVAL_SECONDS = 1.0  # between two reads
EXPIRY_SECONDS = 15.0  # a killed process writes nothing: while something is connected, it is read again after this time
IDLE_SECONDS = 600.0

log = logging.getLogger(__name__)


class ConnectedPlatforms:
    """Knows which platforms are live, in this process or in another one on the same database."""

    def __init__(self, store: SessionStore, feed: Feed, on_test_request: Callable[[AccountKey, int], None]) -> None:
        self._store = store
        self._feed = feed
        self._on_test_request = on_test_request  # account, number of its latest test; again after every read
        self.platforms: frozenset[Platform] = frozenset()
        self._wake_event = asyncio.Event()
        self._remove_listener: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read what is connected now, and follow the changes."""
        await self._refresh()
        self._remove_listener = self._feed.add_change_listener(self._note_change)
        self._task = asyncio.create_task(self._run(), name="palaver-connected-platforms")

    async def stop(self) -> None:
        self._remove_listener()
        self._remove_listener = lambda: None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.platforms = frozenset()

    def wake(self) -> None:
        """Read it again soon: this process has changed something."""
        self._wake_event.set()

    def _note_change(self, session_numbers: frozenset[int] | None) -> None:
        if not session_numbers:  # changes of conversations are none of an account
            self._wake_event.set()

    async def _run(self) -> None:
        await run_poll_loop(
            self._poll,
            self._wake_event,
            is_stopped=lambda: False,
            log=log,
            failure_event="connected_platforms_not_read",
        )

    async def _poll(self) -> float:
        await self._refresh()
        await asyncio.sleep(MIN_INTERVAL_SECONDS)
        return EXPIRY_SECONDS if self.platforms else IDLE_SECONDS

    async def _refresh(self) -> None:
        rows = await self._store.engine.arun(Read(platform_accounts.list_accounts, is_quick=True))
        self.platforms = list_live_platforms(rows, self._store.clock.now())
        for row in rows:
            self._on_test_request((row.platform, row.account), row.test_no)

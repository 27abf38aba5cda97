"""Keeps the accounts of this process connected, each in a task of its own; the failure of one never affects another."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from palaver.core.errors import AccountNotConnected, LeaseLost, NotFound, StoreError
from palaver.gateway.account_link import ConnectionLink
from palaver.gateway.account_runner import AccountRunner, ConnectionTiming
from palaver.gateway.connected_platforms import ConnectedPlatforms
from palaver.gateway.leases import AccountLeases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.core.source import Platform
    from palaver.delivery.accounts_table import Fence
    from palaver.delivery.adapter import Adapter, WebhookRequest, WebhookResponse
    from palaver.gateway.account_link import ConnectionEvents, SentMessages
    from palaver.gateway.account_runner import Connection
    from palaver.gateway.configured_account import ConfiguredAccount
    from palaver.inbox import Inbox
    from palaver.live.feed import Feed
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore

WEBHOOK_SECONDS = 30.0  # for one request
STOP_SECONDS = 30.0  # for closing all accounts, which happens at once

log = logging.getLogger(__name__)


class Supervisor:
    """Runs the accounts of this process, and knows which platforms are connected in any."""

    def __init__(
        self,
        accounts: Sequence[ConfiguredAccount],
        store: SessionStore,
        feed: Feed,
        inbox: Inbox,
        *,
        sent_messages: SentMessages,
        on_change: Callable[[], None] = lambda: None,
        timing: ConnectionTiming | None = None,
    ) -> None:
        self._timing = timing or ConnectionTiming()
        self._leases = AccountLeases(store, self._timing.lease)
        self._clock = store.clock
        self._inbox = inbox
        self._sent_messages = sent_messages
        self._on_change = on_change  # called when an account has become live, or is no longer
        self._connected = ConnectedPlatforms(store, feed, self._note_test_request)
        self._runners: dict[AccountKey, AccountRunner] = {
            account.key: self._make_runner(account) for account in accounts
        }
        self._tasks: dict[AccountKey, asyncio.Task[None]] = {}
        self._has_started = False
        self._replace_lock = asyncio.Lock()

    @property
    def keys(self) -> frozenset[AccountKey]:
        """The accounts that this process runs, or waits to run."""
        return frozenset(self._runners)

    @property
    def platforms(self) -> frozenset[Platform]:
        """The platforms with an account that is live in some process on this database."""
        return self._connected.platforms | {platform for platform, _ in self.list_live_adapters()}

    def list_live_adapters(self) -> Mapping[AccountKey, Adapter]:
        """Return the adapters to send with: those of accounts that are live in this process."""
        return {key: adapter for key, runner in self._runners.items() if (adapter := runner.live_adapter) is not None}

    @property
    def has_problem(self) -> bool:
        """Whether an account that this process runs cannot receive or send, and not only because it just started."""
        return any(runner.has_problem for runner in self._runners.values())

    async def start(self) -> None:
        """Start to connect. It waits for no platform."""
        await self._connected.start()
        self._has_started = True
        for runner in self._runners.values():
            self._start_runner(runner)

    async def stop(self) -> None:
        """Close all accounts and give their leases back, within a bounded time."""
        self._has_started = False
        await self._end_tasks(list(self._tasks.values()))
        await self._connected.stop()

    async def replace_accounts(self, accounts: Sequence[ConfiguredAccount]) -> None:
        """Run these accounts: start new ones, close those that are gone, connect those again whose settings differ.

        An account whose settings are the same is not touched. Adapters that were passed in as objects stay.
        """
        async with self._replace_lock:
            wanted = {account.key: account for account in accounts}
            ended = [
                key
                for key, runner in self._runners.items()
                if runner.account.fingerprint
                and (key not in wanted or wanted[key].fingerprint != runner.account.fingerprint)
            ]
            tasks = [self._tasks.pop(key) for key in ended if key in self._tasks]
            for key in ended:
                del self._runners[key]
            await self._end_tasks(tasks)
            for key, account in wanted.items():
                if key not in self._runners:
                    self._runners[key] = runner = self._make_runner(account)
                    if self._has_started:
                        self._start_runner(runner)
            if ended or tasks:
                self._note_change()

    def _make_runner(self, account: ConfiguredAccount) -> AccountRunner:
        return AccountRunner(
            account,
            self._leases,
            self._clock,
            make_link=self._make_link,
            on_change=self._note_change,
            timing=self._timing,
        )

    def _start_runner(self, runner: AccountRunner) -> None:
        name = f"palaver-account-{runner.account.platform}-{runner.account.account or 'default'}"
        self._tasks[runner.account.key] = asyncio.create_task(runner.run(), name=name)

    async def _end_tasks(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in stuck:
                log.error("platform_account_stuck", extra={"task": task.get_name()})

    def _make_link(self, fence: Fence, events: ConnectionEvents) -> ConnectionLink:
        return ConnectionLink(fence, self._inbox, self._sent_messages, events)

    def _note_change(self) -> None:
        self._connected.wake()
        self._on_change()

    def _note_test_request(self, key: AccountKey, number: int) -> None:
        if number and key in self._runners:
            self._runners[key].note_test_request(number)

    # -- webhooks ------------------------------------------------------------------------------------------

    def get_max_webhook_bytes(self, platform: str, account: str) -> int:
        """Return how long the body of a request to the webhook of an account may be.

        Raises NotFound if there is no such account or it has no webhook, AccountNotConnected while it cannot receive.
        """
        return self._find_connection(platform, account).adapter.max_webhook_bytes

    async def handle_webhook(self, platform: str, account: str, request: WebhookRequest) -> WebhookResponse:
        """Let the adapter of an account answer a request to its webhook. Raises like `get_max_webhook_bytes`."""
        connection = self._find_connection(platform, account)
        fields = {"platform": platform, "account": account}
        try:
            async with asyncio.timeout(WEBHOOK_SECONDS):
                return await connection.adapter.handle_webhook(connection.link, request)
        except (LeaseLost, StoreError, TimeoutError) as error:  # nothing was stored: the platform sends it again
            log.warning("webhook_not_handled", extra={**fields, "error": type(error).__name__})
            raise AccountNotConnected from error

    def _find_connection(self, platform: str, account: str) -> Connection:
        key = next((key for key in self._runners if key == (platform, account)), None)
        if key is None:
            raise NotFound
        connection = self._runners[key].connection
        if connection is None:
            raise AccountNotConnected
        if not connection.adapter.max_webhook_bytes:
            raise NotFound
        return connection

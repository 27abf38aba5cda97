"""Keeps the accounts of this process connected, each in a task of its own; the failure of one never affects another."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.background import PollLoop, is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import AccountNotConnected, AccountNotRunning, LeaseLost, NotFound, PalaverError, StoreError
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.health import list_live_platforms
from palaver.delivery.model import AccountState, AccountStatus, ConnectionTest
from palaver.gateway.account_runner import (
    AccountLeases,
    AccountRunner,
    ConnectionTiming,
    apply_account_info,
    describe_connection_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.core.source import Platform
    from palaver.delivery.accounts_table import AccountRow
    from palaver.delivery.adapter import AccountInfo, Adapter, WebhookRequest, WebhookResponse
    from palaver.delivery.outbox import Outbox
    from palaver.gateway.account_link import ConfiguredAccount, ConnectionLink
    from palaver.inbox import Inbox
    from palaver.live.feed import Feed
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore


MIN_INTERVAL_SECONDS = 1.0  # between two reads of what is connected
EXPIRY_SECONDS = 15.0  # a killed process writes nothing: while something is connected, it is read again after this time
IDLE_SECONDS = 600.0
WEBHOOK_SECONDS = 30.0  # for one request
STOP_SECONDS = 30.0  # for closing all accounts, which happens at once
POLL_SECONDS = 0.2  # between two looks at the outcome of a test, while a caller waits for it
OWN_LEASE_SECONDS = 180.0  # longer than `probe_without_server` can take

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
        outbox: Outbox,
        timing: ConnectionTiming | None = None,
    ) -> None:
        self._timing = timing or ConnectionTiming()
        self._leases = AccountLeases(store, self._timing.lease)
        self._store = store
        self._feed = feed
        self._inbox = inbox
        self._outbox = outbox
        self._stored_platforms: frozenset[Platform] = frozenset()  # live, as all processes have stored it
        self._read_loop = PollLoop(
            self._poll, "palaver-connected-platforms", log=log, failure_event="connected_platforms_not_read"
        )
        self._remove_listener: Callable[[], None] = lambda: None
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
        return self._stored_platforms | {platform for platform, _ in self.list_live_adapters()}

    def list_live_adapters(self) -> Mapping[AccountKey, Adapter]:
        """Return the adapters to send with: those of accounts that are live in this process."""
        return {key: adapter for key, runner in self._runners.items() if (adapter := runner.live_adapter) is not None}

    @property
    def has_problem(self) -> bool:
        """Whether an account that this process runs cannot receive or send, and not only because it just started."""
        return any(runner.has_problem for runner in self._runners.values())

    async def start(self) -> None:
        """Start to connect. It waits for no platform."""
        await self._read_accounts()
        self._remove_listener = self._feed.add_change_listener(self._handle_stored_change)
        self._read_loop.start()
        self._has_started = True
        for runner in self._runners.values():
            self._start_runner(runner)

    async def stop(self) -> None:
        """Close all accounts and give their leases back, within a bounded time."""
        self._has_started = False
        await self._end_tasks(list(self._tasks.values()))
        self._remove_listener()
        self._remove_listener = lambda: None
        await self._read_loop.cancel()
        self._stored_platforms = frozenset()

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
                self._handle_change()

    def _make_runner(self, account: ConfiguredAccount) -> AccountRunner:
        return AccountRunner(
            account,
            self._leases,
            self._store.clock,
            self._inbox,
            self._outbox,
            on_change=self._handle_change,
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

    def _handle_change(self) -> None:
        self._read_loop.wake()
        self._outbox.wake()

    # -- what is connected, in this process or in another one on the same database ---------------------------

    def _handle_stored_change(self, session_numbers: frozenset[int] | None) -> None:
        if not session_numbers:  # changes of conversations are none of an account
            self._read_loop.wake()

    async def _poll(self) -> float:
        await self._read_accounts()
        await asyncio.sleep(MIN_INTERVAL_SECONDS)
        return EXPIRY_SECONDS if self._stored_platforms else IDLE_SECONDS

    async def _read_accounts(self) -> None:
        """Learn what is live, and start the tests that owners have asked for."""
        rows = await self._store.engine.arun(Read(platform_accounts.list_accounts, is_quick=True))
        self._stored_platforms = list_live_platforms(rows, self._store.clock.now())
        for row in rows:
            runner = self._runners.get((row.platform, row.account))
            if runner is not None and row.test_no:
                runner.start_test(row.test_no)

    # -- webhooks ------------------------------------------------------------------------------------------

    def get_max_webhook_bytes(self, platform: str, account: str) -> int:
        """Return how long the body of a request to the webhook of an account may be.

        Raises NotFound if there is no such account or it has no webhook, AccountNotConnected while it cannot receive.
        """
        return self._find_link(platform, account).adapter.max_webhook_bytes

    async def handle_webhook(self, platform: str, account: str, request: WebhookRequest) -> WebhookResponse:
        """Let the adapter of an account answer a request to its webhook. Raises like `get_max_webhook_bytes`."""
        link = self._find_link(platform, account)
        fields = {"platform": platform, "account": account}
        try:
            async with asyncio.timeout(WEBHOOK_SECONDS):
                return await link.adapter.handle_webhook(link, request)
        except (LeaseLost, StoreError, TimeoutError) as error:  # nothing was stored: the platform sends it again
            log.warning("webhook_not_handled", extra={**fields, "error": type(error).__name__})
            raise AccountNotConnected from error

    def _find_link(self, platform: str, account: str) -> ConnectionLink:
        runner = next((runner for key, runner in self._runners.items() if key == (platform, account)), None)
        if runner is None:
            raise NotFound
        if (link := runner.link) is None:
            raise AccountNotConnected
        if not link.adapter.max_webhook_bytes:
            raise NotFound
        return link


async def run_connection_test(store: SessionStore, key: AccountKey, *, wait_seconds: float) -> AccountStatus:
    """Let the process that runs an account test its connection; return its status, whose `last_test` is the outcome.

    An account that is not connected is connected now. Raises AccountNotRunning if no process runs it.

    Usually that is another process. The request is a number in the account's row: the process that runs it notices the
    number within a second or two, tests, and stores the outcome (`AccountRunner.start_test`).
    """

    def request_test(tx: Transaction) -> int:
        _find_running(tx, store, key)
        return platform_accounts.request_test(tx, key)

    number = await store.engine.arun(Write(request_test))
    deadline = time.monotonic() + wait_seconds
    while True:
        status = await store.engine.arun(Read(lambda tx: _find_running(tx, store, key).status, is_quick=True))
        if status.last_test is not None and status.last_test.number >= number:
            return status
        if time.monotonic() >= deadline:
            error = f"There is no result after {wait_seconds:g} seconds. It is still being connected."
            test = ConnectionTest(
                number=number, finished_at=store.clock.now(), seconds=round(wait_seconds, 3), error=error
            )
            return replace(status, last_test=test)
        await asyncio.sleep(POLL_SECONDS)


async def probe_without_server(store: SessionStore, account: ConfiguredAccount) -> AccountStatus:
    """Sign in to an account that no process runs, and sign out again; return its status like `run_connection_test`.

    Its state is `linking` if it has to be linked with a phone, which only a server can do, and else `off`. Meanwhile no
    server can run it. Raises AccountNotRunning if one has just started to.
    """
    leases = AccountLeases(store, OWN_LEASE_SECONDS)
    lease = await leases.try_acquire(account.key)
    if lease is None:
        raise AccountNotRunning("A server has just started to run this account. Try again.")
    status, state, error = lease.status, AccountState.OFF, None
    started_at = time.monotonic()
    try:
        info = await _probe(account)
    except Exception as raised:  # an adapter may fail in any way: it is shown
        if not isinstance(raised, PalaverError | TimeoutError):
            log.exception("platform_account_failed", extra={"platform": account.platform, "account": account.account})
        error = describe_connection_error(raised, account)
        status = replace(status, error=error, error_at=store.clock.now())
    else:
        status = apply_account_info(status, info, account)
        state = AccountState.OFF if info.is_linked else AccountState.LINKING
    now = store.clock.now()
    test = ConnectionTest(number=0, finished_at=now, seconds=round(time.monotonic() - started_at, 3), error=error)
    await leases.release(lease, status)
    return replace(status, state=state, last_test=test)


async def _probe(account: ConfiguredAccount) -> AccountInfo:
    timing = ConnectionTiming()
    async with asyncio.timeout(timing.probe):
        adapter = await account.create()
    try:
        async with asyncio.timeout(timing.probe):
            return await adapter.probe()
    finally:
        async with asyncio.timeout(timing.close):
            await adapter.close()


def load_running_status(store: SessionStore, key: AccountKey) -> AccountStatus:
    """Return the status of an account that a process runs. Raises AccountNotRunning."""
    return store.engine.run(Read(lambda tx: _find_running(tx, store, key).status))


def _find_running(tx: Transaction, store: SessionStore, key: AccountKey) -> AccountRow:
    row = platform_accounts.find_account(tx, key)
    if row is None or not row.is_held(to_micros(store.clock.now()), is_owner_dead):
        raise AccountNotRunning
    return row

"""Keeps one account connected: takes its lease, connects, notices silence, and connects again after a pause.

Always true: while an adapter is connected, this process holds the lease of its account; it is given back only after
the adapter was closed. Nothing that an adapter does, or fails to do, reaches another account.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from palaver.core.background import create_lease_owner, is_owner_dead
from palaver.core.clock import Clock, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Write
from palaver.core.errors import AccountRefused, ConnectionLost, LeaseLost, PalaverError, StoreError
from palaver.core.tasks import wait_for_event
from palaver.core.texts import say
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.model import AccountState, AccountStatus, ConnectionTest, LinkingPrompt
from palaver.gateway.account_link import ConfiguredAccount, ConnectionLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.delivery.accounts_table import Fence
    from palaver.delivery.adapter import AccountInfo, Adapter
    from palaver.delivery.outbox import Outbox
    from palaver.inbox import Inbox
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore


QUIET_SECONDS = 60.0  # without a message, after which the next one is shown at once

log = logging.getLogger(__name__)


@dataclass(slots=True)
class AccountLease:
    """The right to run an account, and what was known about it when it was taken."""

    fence: Fence
    status: AccountStatus
    renewed_at: float  # by the monotonic clock


class AccountLeases:
    def __init__(self, store: SessionStore, lease_seconds: float = 45.0) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._owner = create_lease_owner()

    async def try_acquire(self, key: AccountKey) -> AccountLease | None:
        """Take the lease of an account; None if another process has it."""
        started_at = time.monotonic()
        now = to_micros(self._store.clock.now())
        until = now + round(self._lease_seconds * 1e6)

        acquire: Write[tuple[Fence, AccountStatus] | Literal[False]] = Write(
            lambda tx: platform_accounts.acquire(tx, key, self._owner, until, now, is_owner_dead) or False,
            read_first=lambda tx: None if platform_accounts.can_acquire(tx, key, now, is_owner_dead) else False,
        )
        taken = await self._store.engine.arun(acquire)
        return AccountLease(*taken, started_at) if taken else None

    async def renew(self, lease: AccountLease, status: AccountStatus) -> None:
        """Extend a lease and store the status of its account. Raises LeaseLost if another process has taken it."""
        started_at = time.monotonic()
        until = to_micros(self._store.clock.now()) + round(self._lease_seconds * 1e6)
        if not await self._store.engine.arun(Write(lambda tx: platform_accounts.renew(tx, lease.fence, until, status))):
            raise LeaseLost
        lease.renewed_at = started_at

    async def release(self, lease: AccountLease, status: AccountStatus) -> None:
        """Give a lease back after the adapter was closed; the account is off then. No error if it was lost before."""
        off = replace(status, state=AccountState.OFF, since=self._store.clock.now())
        await self._store.engine.arun(Write(lambda tx: platform_accounts.renew(tx, lease.fence, None, off)))

    def is_expired(self, lease: AccountLease) -> bool:
        """Return whether another process may have taken the account over: the lease was not renewed in time."""
        return time.monotonic() - lease.renewed_at >= self._lease_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTiming:
    """The waits of an account, in seconds."""

    lease: float = 45.0  # how long a lease lasts without being renewed
    renewal: float = 15.0  # between two renewals, which also store the status
    acquisition: float = 2.0  # between two attempts to take the lease of an account that another process runs
    first_pause: float = 1.0  # before connecting again; it doubles with every failure in a row
    max_pause: float = 300.0
    refused_pause: float = 600.0
    stable: float = 10.0  # after having been live for so long, the pauses start from the first again
    probe: float = 60.0  # for signing in
    test: float = 20.0  # for signing in again when an owner tests a connection that works
    close: float = 10.0  # for ending and closing an adapter

    def compute_pause(self, failures: int) -> float:
        """Return the pause after so many failures in a row, with jitter: accounts do not all come back at once."""
        full: float = min(self.first_pause * 2 ** min(failures - 1, 20), self.max_pause)
        return full * (0.5 + random.random() / 2)  # noqa: S311  (not a secret)


@dataclass(frozen=True, slots=True)
class _PendingTest:
    """A test of the connection that an owner has asked for."""

    number: int
    started_at: float  # by the monotonic clock


class _Silence(Exception):
    """The adapter has not heard from its platform for too long."""


class AccountRunner:
    """Runs one account. `run` ends only when it is canceled."""

    def __init__(
        self,
        account: ConfiguredAccount,
        leases: AccountLeases,
        clock: Clock,
        inbox: Inbox,
        outbox: Outbox,
        *,
        on_change: Callable[[], None],
        timing: ConnectionTiming,
    ) -> None:
        self.account = account
        self._leases = leases
        self._clock = clock
        self._inbox = inbox
        self._outbox = outbox
        self._on_change = on_change  # called when the state has changed, and when the status was stored
        self._timing = timing
        # As this process sees it: off if another process runs the account.
        self.status = AccountStatus(state=AccountState.OFF, since=clock.now())
        self.link: ConnectionLink | None = None  # set before the account is live, and until the adapter is told to end
        self._heard_at = 0.0  # by the monotonic clock: the last `report_connected`
        self._live_since: float | None = None  # by the monotonic clock
        self._failures = 0  # in a row
        self._status_changed = asyncio.Event()
        self._pending_test: _PendingTest | None = None
        self._test_task: asyncio.Task[None] | None = None  # while a live connection is being tested
        self._connect_event = asyncio.Event()  # an owner asks to connect now: ends the pause before the next attempt
        self._fields = {"platform": str(account.platform), "account": account.account}  # of log lines

    @property
    def has_problem(self) -> bool:
        """Whether the account is not connected although this process has tried."""
        return self._failures > 0 and self.status.state is not AccountState.LIVE

    @property
    def live_adapter(self) -> Adapter | None:
        """The adapter to send with; None unless the account is live in this process."""
        return self.link.adapter if self.link and self.status.state is AccountState.LIVE else None

    def start_test(self, number: int) -> None:
        """Test the connection for a request that is stored, unless it was noted before or another process runs this.

        A live account signs in again. Otherwise it is connected now, and the outcome of that counts.
        """
        last = self.status.last_test
        if self.status.state is AccountState.OFF or (last is not None and number <= last.number):
            return
        if self._pending_test is not None:
            self._pending_test = replace(self._pending_test, number=number)  # one answer for all who wait
            return
        self._pending_test = _PendingTest(number, time.monotonic())
        if self.status.state is AccountState.LINKING:
            self._finish_test()
        elif (adapter := self.live_adapter) is not None:
            self._test_task = asyncio.create_task(self._test_live(adapter), name=self._name_task("test"))
        else:
            self._connect_event.set()

    async def run(self) -> None:
        """Take the lease of the account and keep it connected, again and again, until canceled."""
        while True:
            try:
                lease = await self._wait_for_lease()
                await self._run_with_lease(lease)
            except LeaseLost:
                log.warning("platform_account_taken_over", extra=self._fields)
            except Exception as error:  # noqa: BLE001  (a bug in an adapter, or here: only this account pauses)
                self._log_failure("platform_account_failed", error)
            await asyncio.sleep(self._timing.acquisition)

    # -- the lease -----------------------------------------------------------------------------------------

    async def _wait_for_lease(self) -> AccountLease:
        is_waiting = False
        while True:
            try:
                lease = await self._leases.try_acquire(self.account.key)
            except StoreError as error:
                log.warning("platform_account_lease_failed", extra={**self._fields, "error": str(error)})
                lease = None
            else:
                if lease is not None:
                    return lease
                if not is_waiting:
                    is_waiting = True
                    log.info("platform_account_runs_elsewhere", extra=self._fields)
            await asyncio.sleep(self._timing.acquisition)

    async def _run_with_lease(self, lease: AccountLease) -> None:
        """Keep the account connected while the lease is held, and give the lease back at the end."""
        self.status = replace(lease.status, state=AccountState.CONNECTING, since=self._clock.now())
        self._pending_test = None
        connecting = asyncio.create_task(self._keep_connected(lease.fence), name=self._name_task("connection"))
        renewing = asyncio.create_task(self._keep_lease(lease), name=self._name_task("lease"))
        try:
            await asyncio.wait({connecting, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_closed = await self._end_task(connecting, 2 * self._timing.close)  # renewed while it closes
            await self._end_task(renewing, self._timing.close)
            self._set_state(AccountState.OFF)
            if is_closed:
                with contextlib.suppress(StoreError):  # then it expires
                    await self._leases.release(lease, self.status)
        ended = [task for task in (renewing, connecting) if task.done() and not task.cancelled()]
        errors = [error for task in ended if (error := task.exception()) is not None]
        if errors:
            raise errors[0]

    async def _keep_lease(self, lease: AccountLease) -> None:
        """Renew the lease, and store the status at once when it changes. Raises LeaseLost."""
        while True:
            self._status_changed.clear()
            try:
                await self._leases.renew(lease, self.status)
            except StoreError as error:
                log.warning("platform_account_lease_failed", extra={**self._fields, "error": str(error)})
                if self._leases.is_expired(lease):
                    raise LeaseLost from None
                await asyncio.sleep(min(1.0, self._timing.renewal))
                continue
            self._on_change()
            await wait_for_event(self._status_changed, self._timing.renewal)

    # -- the connection ------------------------------------------------------------------------------------

    async def _keep_connected(self, fence: Fence) -> None:
        """Connect, and connect again after a pause whenever the connection has ended. Raises LeaseLost."""
        self._failures = 0
        while True:
            self._set_state(AccountState.CONNECTING)
            self._live_since = None
            try:
                await self._connect(fence)
                error: Exception = ConnectionLost.say("gateway.connection_ended", "The connection has ended.")
            except LeaseLost:
                raise
            except Exception as raised:  # noqa: BLE001  (whatever it is, it is shown, and tried again)
                error = raised
            self._failures = 1 if self._was_stable() else self._failures + 1
            await wait_for_event(self._connect_event, self._record_failure(error))

    def _was_stable(self) -> bool:
        return self._live_since is not None and time.monotonic() - self._live_since >= self._timing.stable

    async def _connect(self, fence: Fence) -> None:
        """Create an adapter, sign in, and run it until it ends; it is closed in any case."""
        async with asyncio.timeout(self._timing.probe):
            adapter = await self.account.create()
        link = ConnectionLink(
            adapter,
            fence,
            self._inbox,
            self._outbox,
            self._clock,
            on_connected=self._mark_connected,
            on_linking=self._mark_linking,
            on_message=self._record_message_time,
        )
        try:
            await self._probe(adapter, self._timing.probe)
            self.link = link
            await self._run_adapter(link)
        finally:
            link.close()
            self.link = None
            if self._test_task is not None:
                await self._end_task(self._test_task, self._timing.close)
            await self._close_adapter(adapter)

    async def _probe(self, adapter: Adapter, seconds: float) -> None:
        """Sign in, and keep what the platform says about the account."""
        try:
            async with asyncio.timeout(seconds):
                info = await adapter.probe()
        except TimeoutError:
            raise ConnectionLost.say(
                "gateway.platform_timeout_seconds",
                "The platform did not answer within {seconds} seconds.",
                seconds=f"{seconds:g}",
            ) from None
        self.status = apply_account_info(self.status, info, self.account)
        for warning in self.status.warnings:
            log.warning("platform_account_warning", extra={**self._fields, "warning": warning})

    async def _test_live(self, adapter: Adapter) -> None:
        try:
            await self._probe(adapter, self._timing.test)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is shown; the connection goes on)
            if not isinstance(error, PalaverError):
                self._log_failure("platform_account_test_failed", error)
            self._finish_test(describe_connection_error(error, self.account))
        else:
            self._finish_test()

    async def _learn_name(self, adapter: Adapter) -> None:
        """Ask for the name of the account that was just linked: it was unknown when the adapter signed in."""
        with contextlib.suppress(PalaverError):
            await self._probe(adapter, self._timing.test)
            self._on_change()
            self._status_changed.set()

    async def _run_adapter(self, link: ConnectionLink) -> None:
        """Run an adapter until it ends, or until it has been silent for too long."""
        self._heard_at = time.monotonic()
        task = asyncio.create_task(link.adapter.run(link), name=self._name_task("adapter"))
        try:
            while not task.done():
                wait = self._heard_at + link.adapter.silence_seconds - time.monotonic()
                if wait <= 0:
                    self._set_state(AccountState.UNRESPONSIVE)
                    raise _Silence
                await asyncio.wait({task}, timeout=wait)
        finally:
            link.close()
            await self._end_task(task, self._timing.close)
        await task

    async def _close_adapter(self, adapter: Adapter) -> None:
        task = asyncio.create_task(adapter.close(), name=self._name_task("close"))
        try:
            await self._wait_for_end(task, self._timing.close, "platform_account_close_timed_out")
        finally:
            if not task.done():
                task.cancel()
            elif not task.cancelled() and (error := task.exception()) is not None:
                self._log_failure("platform_account_close_failed", error)

    async def _end_task(self, task: asyncio.Task[None], seconds: float) -> bool:
        """Cancel a task and wait until it has ended; False if it goes on regardless."""
        task.cancel()
        return await self._wait_for_end(task, seconds, "platform_account_stuck")

    async def _wait_for_end(self, task: asyncio.Task[None], seconds: float, stuck_event: str) -> bool:
        """Wait for a task even while this one is being canceled; False if it goes on regardless."""
        was_canceled, deadline = False, time.monotonic() + seconds
        while not task.done() and (left := deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait({task}, timeout=left)
            except asyncio.CancelledError:
                was_canceled = True
        if not task.done():
            log.error(stuck_event, extra={**self._fields, "task": task.get_name()})
        if was_canceled:
            raise asyncio.CancelledError
        return task.done()

    # -- the status ----------------------------------------------------------------------------------------

    def _mark_connected(self) -> None:
        self._heard_at = time.monotonic()
        if self.status.state is not AccountState.LIVE:
            was_linking = self.status.state is AccountState.LINKING
            self._live_since = time.monotonic()
            self._set_state(AccountState.LIVE)
            self._finish_test()
            log.info("platform_account_live", extra={**self._fields, "name_there": self.status.name})
            is_testing = self._test_task is not None and not self._test_task.done()
            if was_linking and not is_testing and (adapter := self.live_adapter) is not None:
                self._test_task = asyncio.create_task(self._learn_name(adapter), name=self._name_task("name"))

    def _mark_linking(self, prompt: LinkingPrompt) -> None:
        self._heard_at = time.monotonic()
        if self.status.state is not AccountState.LINKING:
            log.info("platform_account_waits_to_be_linked", extra=self._fields)
        self._set_state(AccountState.LINKING, prompt)
        self._finish_test()

    def _record_message_time(self) -> None:
        """Note the time. It is stored at once after a quiet while, otherwise with the next renewal of the lease."""
        now, last = self._clock.now(), self.status.last_message_at
        self.status = replace(self.status, last_message_at=now)
        if last is None or (now - last).total_seconds() > QUIET_SECONDS:
            self._status_changed.set()

    def _record_failure(self, error: Exception) -> float:
        """Store why the connection has ended, and return the pause before the next attempt in seconds."""
        state, pause = AccountState.CONNECTING, self._timing.compute_pause(self._failures)
        if isinstance(error, AccountRefused):
            state, pause = AccountState.REFUSED, self._timing.refused_pause
        elif isinstance(error, _Silence):
            state = AccountState.UNRESPONSIVE
        words = describe_connection_error(error, self.account)
        fields = {**self._fields, "error": words, "retry_seconds": round(pause, 1)}
        if isinstance(error, PalaverError | TimeoutError | _Silence):
            log.warning(
                f"platform_account_{'refused' if state is AccountState.REFUSED else 'disconnected'}", extra=fields
            )
        else:
            self._log_failure("platform_account_failed", error)
        self.status = replace(self.status, error=words, error_at=self._clock.now())
        self._set_state(state)
        self._finish_test(words)
        return pause

    def _finish_test(self, error: str | None = None) -> None:
        """Store the outcome for the caller who has asked to test the connection."""
        self._connect_event.clear()
        if (test := self._pending_test) is not None:
            self._pending_test = None
            seconds = round(time.monotonic() - test.started_at, 3)
            last = ConnectionTest(number=test.number, finished_at=self._clock.now(), seconds=seconds, error=error)
            self.status = replace(self.status, last_test=last)
            self._status_changed.set()

    def _log_failure(self, event: str, error: BaseException) -> None:
        log.error(event, extra=self._fields, exc_info=error)

    def _set_state(self, state: AccountState, linking: LinkingPrompt | None = None) -> None:
        status = replace(self.status, state=state, linking=linking)
        if state is not self.status.state:
            status = replace(status, since=self._clock.now())
        if status != self.status:
            self.status = status
            self._on_change()
        self._status_changed.set()

    def _name_task(self, part: str) -> str:
        return f"palaver-{self.account.platform}-{self.account.account or 'default'}-{part}"


def apply_account_info(status: AccountStatus, info: AccountInfo, account: ConfiguredAccount) -> AccountStatus:
    """Return a status with what the platform says about the account."""
    warnings, details = (tuple(map(account.hide_secrets, texts)) for texts in (info.warnings, info.details))
    return replace(status, name=info.name, user_id=info.user_id, warnings=warnings, details=details)


def describe_connection_error(error: Exception, account: ConfiguredAccount) -> str:
    """Return an error in words. Of an unexpected one only its type: its text may hold anything."""
    if isinstance(error, _Silence):
        return say("gateway.platform_silent", "Nothing was heard from the platform for too long.")
    if isinstance(error, TimeoutError):
        return say("gateway.platform_timeout", "The platform did not answer in time.")
    if isinstance(error, PalaverError):
        return account.hide_secrets(error.text)
    return say(
        "gateway.unexpected_error",
        "Unexpected error ({error}). The log of the server has the details.",
        error=type(error).__name__,
    )

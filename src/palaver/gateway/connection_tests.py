"""Tests the connection of an account when an owner asks for it, and says how it went.

Usually another process runs the account. The request is a number in its row: the process that runs it notices the
number within a second or two, tests, and stores the outcome (`AccountRunner.start_test`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.background import is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import AccountNotRunning
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.model import AccountState, AccountStatus, ConnectionTest
from palaver.gateway.account_runner import (
    AccountLeases,
    ConnectionTiming,
    apply_account_info,
    describe_connection_error,
)

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.delivery.accounts_table import AccountRow
    from palaver.delivery.adapter import AccountInfo
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore

POLL_SECONDS = 0.2  # between two looks at the outcome, while a caller waits for it
OWN_LEASE_SECONDS = 180.0  # longer than `probe_without_server` can take


async def run_connection_test(store: SessionStore, key: AccountKey, *, wait_seconds: float) -> AccountStatus:
    """Let the process that runs an account test its connection; return its status, whose `last_test` is the outcome.

    An account that is not connected is connected now. Raises AccountNotRunning if no process runs it.
    """
    number = await store.engine.arun(Write(lambda tx: _request_test(tx, store, key)))
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
    status = lease.status or AccountStatus(state=AccountState.OFF, since=store.clock.now())
    state, error = AccountState.OFF, None
    started_at = time.monotonic()
    try:
        info = await _probe(account)
    except Exception as raised:  # noqa: BLE001  (whatever it is, it is shown)
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


def _request_test(tx: Transaction, store: SessionStore, key: AccountKey) -> int:
    _find_running(tx, store, key)
    number = platform_accounts.request_test(tx, key)
    assert number is not None  # noqa: S101  (its row was just read)
    return number


def _find_running(tx: Transaction, store: SessionStore, key: AccountKey) -> AccountRow:
    row = platform_accounts.find_account(tx, key)
    if row is None or not row.is_held(to_micros(store.clock.now()), is_owner_dead):
        raise AccountNotRunning
    return row

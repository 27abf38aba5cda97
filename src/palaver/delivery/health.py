"""The health of every account on every platform: its state, its last message and error, and its deliveries.

It is read from the database, so every process gives the same answer, whichever of them runs the account.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from palaver.core.background import is_owner_dead
from palaver.core.clock import from_micros, to_micros
from palaver.core.engines.base import Read, Transaction
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.model import AccountHealth, AccountState, AccountStatus
from palaver.sessions import delivery_queries
from palaver.sessions.delivery_queries import NO_PROBLEMS
from palaver.sessions.home_channels import load_home_channels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from palaver.core.source import Platform
    from palaver.delivery.accounts_table import AccountRow
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.store import SessionStore

PROBLEM_WINDOW = timedelta(days=1)  # older problems with deliveries are not reported


async def load_account_health(store: SessionStore, configured: Collection[AccountKey]) -> list[AccountHealth]:
    """Load the health of every account, sorted by platform and name; see `read_account_health`."""
    now = store.clock.now()
    return await store.engine.arun(Read(lambda tx: read_account_health(tx, store.config, configured, now)))


def load_health(store: SessionStore, configured: Collection[AccountKey]) -> list[AccountHealth]:
    """Load the same for a program that is not asynchronous."""
    now = store.clock.now()
    return store.engine.run(Read(lambda tx: read_account_health(tx, store.config, configured, now)))


def read_account_health(
    tx: Transaction, config: GatewayConfig, configured: Collection[AccountKey], now: datetime
) -> list[AccountHealth]:
    """Return the accounts that are set up, run in some process, or have deliveries that wait or went wrong."""
    rows = {(row.platform, row.account): row for row in platform_accounts.list_accounts(tx)}
    running = {key for key, row in rows.items() if row.is_held(to_micros(now), is_owner_dead)}
    waiting = delivery_queries.count_open_by_account(tx)
    problems = delivery_queries.count_problems(tx, to_micros(now - PROBLEM_WINDOW))
    homes = {(home.platform, home.account): home for home in load_home_channels(tx, config).values()}
    keys = {*configured, *running, *waiting, *problems}
    return [
        AccountHealth(
            platform=key[0],
            account=key[1],
            is_configured=key in configured or key in running,
            status=None if key not in rows else _find_current_status(rows[key], is_running=key in running, now=now),
            waiting=waiting.get(key, 0),
            home_channel=homes.get(key),
            uncertain=found.uncertain,
            failed=found.failed,
            delivery_error=found.last_error,
            delivery_error_at=found.last_at,
        )
        for key in sorted(keys)
        for found in [problems.get(key, NO_PROBLEMS)]
    ]


def list_live_platforms(rows: Iterable[AccountRow], now: datetime) -> frozenset[Platform]:
    """Return the platforms with an account that is live in some process: answers can be sent there."""
    return frozenset(
        row.platform
        for row in rows
        if row.status.state is AccountState.LIVE and row.is_held(to_micros(now), is_owner_dead)
    )


def _find_current_status(row: AccountRow, *, is_running: bool, now: datetime) -> AccountStatus:
    """Return the status of an account; one whose process was killed is off since its lease ended, at the latest now."""
    if is_running or row.status.state is AccountState.OFF:
        return row.status
    ended_at = row.status.since if row.lease_until is None else min(from_micros(row.lease_until), now)
    return replace(row.status, state=AccountState.OFF, since=max(ended_at, row.status.since), linking=None)

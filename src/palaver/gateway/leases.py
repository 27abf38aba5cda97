"""The leases of accounts: one process at a time runs each (decision 23).

A lease lasts for `lease_seconds` by the clock that all processes on the database share, and is renewed long before. A
process that could not renew in time gives the account up by itself, measured by a clock that can't be set (monotonic).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from palaver.core.engines.base import Write
from palaver.core.errors import LeaseLost
from palaver.core.process_identity import create_lease_owner, is_owner_dead
from palaver.core.timestamps import to_micros
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.health_model import AccountState

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.delivery.accounts_table import Fence
    from palaver.delivery.health_model import AccountStatus
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore

LEASE_SECONDS = 45.0


@dataclass(slots=True)
class AccountLease:
    """The right to run an account, and what was known about it when it was taken."""

    fence: Fence
    status: AccountStatus | None
    renewed_at: float  # by the monotonic clock

    def is_expired(self, lease_seconds: float) -> bool:
        """Whether another process may have taken the account over, because the lease was not renewed in time."""
        return time.monotonic() - self.renewed_at >= lease_seconds


class AccountLeases:
    """Takes, renews and gives back the leases of one process."""

    def __init__(self, store: SessionStore, lease_seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._owner = create_lease_owner()

    async def try_acquire(self, key: AccountKey) -> AccountLease | None:
        """Take the lease of an account; None if another process has it."""
        started_at = time.monotonic()
        now = self._now()
        until = self._compute_end(now)

        def acquire(tx: Transaction) -> tuple[Fence, AccountStatus | None] | bool:
            fence = platform_accounts.acquire(tx, key, self._owner, until, now, is_owner_dead)
            return False if fence is None else (fence, platform_accounts.load_status(tx, key))

        def try_without_write(tx: Transaction) -> bool | None:
            return None if platform_accounts.can_acquire(tx, key, now, is_owner_dead) else False

        taken = await self._store.engine.arun(Write(acquire, read_first=try_without_write))
        return AccountLease(*taken, started_at) if isinstance(taken, tuple) else None

    async def renew(self, lease: AccountLease, status: AccountStatus) -> None:
        """Extend a lease and store the status of its account. Raises LeaseLost if another process has taken it."""
        started_at = time.monotonic()
        until = self._compute_end(self._now())
        if not await self._store.engine.arun(Write(lambda tx: platform_accounts.renew(tx, lease.fence, until, status))):
            raise LeaseLost
        lease.renewed_at = started_at

    async def release(self, lease: AccountLease, status: AccountStatus) -> None:
        """Give a lease back after the adapter was closed; the account is off then. No error if it was lost before."""
        off = replace(status, state=AccountState.OFF, since=self._store.clock.now())
        await self._store.engine.arun(Write(lambda tx: platform_accounts.release(tx, lease.fence, off)))

    def is_expired(self, lease: AccountLease) -> bool:
        return lease.is_expired(self._lease_seconds)

    def _compute_end(self, now: int) -> int:
        return now + round(self._lease_seconds * 1e6)

    def _now(self) -> int:
        return to_micros(self._store.clock.now())

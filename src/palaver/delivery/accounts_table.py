"""Our accounts on platforms: which process runs each, how it is doing, and how far it has read.

Always true: one process at a time holds the lease of an account. `lease_no` counts its holders. What a process writes
for an account carries a `Fence` with its number, and is refused (`LeaseLost`) in its transaction once another process
has taken the account over, so that a process which was paused for a while cannot move a cursor back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, fetch_number, fetch_value
from palaver.core.errors import LeaseLost
from palaver.core.text import make_storable
from palaver.delivery.model import AccountStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.source import Platform
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.inbound import Cursor


@dataclass(frozen=True, slots=True)
class Fence:
    """The right of one process to write for an account, until another process takes the account over."""

    platform: Platform
    account: str
    lease_no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """An account as it is stored. Its status counts only while its process holds the lease."""

    platform: Platform
    account: str
    status: AccountStatus
    lease_owner: str | None
    lease_until: int | None
    test_no: int  # how often a test of its connection was asked for

    def is_held(self, now: int, is_owner_dead: Callable[[str], bool]) -> bool:
        """Return whether a process runs this account: its lease has not expired, and it is not known to be dead."""
        if self.lease_owner is None or self.lease_until is None:
            return False
        return self.lease_until > now and not is_owner_dead(self.lease_owner)


_IS_ACCOUNT = "platform = $1 AND account = $2"
_HAS_LEASE = f"{_IS_ACCOUNT} AND lease_no = $3 AND lease_owner IS NOT NULL"
_ROW = Columns(AccountRow, without=("status",))
_STATUS = Columns(AccountStatus, since="state_since")
_STATUS_COLUMNS = ["state_since" if column.name == "since" else column.name for column in _STATUS.columns]
_SET_STATUS = ", ".join(f"{name} = ${number}" for number, name in enumerate(_STATUS_COLUMNS, 5))
_SELECT = f"SELECT {_ROW.format_select()}, {_STATUS.format_select()} FROM platform_account"


def check_fence(tx: Transaction, fence: Fence) -> None:
    """Raise `LeaseLost` if another process runs this account now. It cannot be taken over until `tx` has ended."""
    if not fetch_value(
        tx, f"SELECT 1 FROM platform_account WHERE {_HAS_LEASE} {tx.for_key_share}", *_make_params(fence)
    ):
        raise LeaseLost


def can_acquire(tx: Transaction, key: AccountKey, now: int, is_owner_dead: Callable[[str], bool]) -> bool:
    """Return whether no process runs this account."""
    row = find_account(tx, key)
    return row is None or not row.is_held(now, is_owner_dead)


def acquire(
    tx: Transaction, key: AccountKey, owner: str, until: int, now: int, is_owner_dead: Callable[[str], bool]
) -> tuple[Fence, AccountStatus] | None:
    """Take the lease of an account, and return its last status, too; None if another process holds it.

    Everything that the previous holder was writing is stored or refused when this returns.
    """
    insert = "INSERT INTO platform_account (platform, account, state, state_since) VALUES ($1, $2, 'off', $3)"
    tx.execute(f"{insert} ON CONFLICT DO NOTHING", *map(str, key), now)
    row = find_account(tx, key, tx.for_update)
    if row is None or row.is_held(now, is_owner_dead):
        return None
    take = "UPDATE platform_account SET lease_owner = $3, lease_until = $4, lease_no = lease_no + 1"
    lease_no = fetch_number(tx, f"{take} WHERE {_IS_ACCOUNT} RETURNING lease_no", *map(str, key), owner, until)
    return Fence(*key, lease_no), row.status


def renew(tx: Transaction, fence: Fence, until: int | None, status: AccountStatus) -> bool:
    """Extend a lease and store the status of its account; False if another process has taken it over.

    With None the lease is given back: another process can take it at once.
    """
    freed = ", lease_owner = NULL" if until is None else ""
    update = f"UPDATE platform_account SET lease_until = $4{freed}, {_SET_STATUS} WHERE {_HAS_LEASE}"
    return tx.execute(update, *_make_params(fence), until, *_STATUS.encode_value(status).values()) > 0


def _make_params(fence: Fence) -> tuple[str, str, int]:
    return str(fence.platform), fence.account, fence.lease_no


def request_test(tx: Transaction, key: AccountKey) -> int:
    """Ask the process that runs an account to test its connection; return the number of the test, which it stores.

    0 if the account never ran.
    """
    update = f"UPDATE platform_account SET test_no = test_no + 1 WHERE {_IS_ACCOUNT} RETURNING test_no"
    return fetch_number(tx, update, *map(str, key))


def list_accounts(tx: Transaction) -> list[AccountRow]:
    """List all accounts that have ever run, sorted by name."""
    return [_account_from_row(row) for row in tx.fetch_all(f"{_SELECT} ORDER BY platform, account")]


def find_account(tx: Transaction, key: AccountKey, lock: str = "") -> AccountRow | None:
    """Return an account as it is stored; None if it never ran."""
    row = tx.fetch_one(f"{_SELECT} WHERE {_IS_ACCOUNT} {lock}", *map(str, key))
    return None if row is None else _account_from_row(row)


def _account_from_row(row: Row) -> AccountRow:
    return _ROW.decode(row, status=_STATUS.decode(row[len(_ROW) :]))


def save_cursor(tx: Transaction, account: AccountKey, cursor: Cursor, now: int) -> None:
    sql = """INSERT INTO platform_cursor (platform, account, name, value, updated_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (platform, account, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at"""
    tx.execute(sql, *map(str, account), cursor.name, make_storable(cursor.value), now)


def load_cursor(tx: Transaction, account: AccountKey, name: str = "") -> str | None:
    """Return the cursor that was saved last; None if there is none."""
    select = "SELECT value FROM platform_cursor WHERE platform = $1 AND account = $2 AND name = $3"
    value: str | None = fetch_value(tx, select, *map(str, account), name)
    return value

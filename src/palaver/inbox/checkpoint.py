"""What a connection to a platform stores together with an update: its right to do so, and how far it has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.delivery import accounts_table as platform_accounts, platform_cursors

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.delivery.accounts_table import Fence
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.platform_updates import Cursor


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The account that reports an update; without a fence and a cursor there is nothing to check and to store."""

    account: AccountKey
    fence: Fence | None = None
    cursor: Cursor | None = None

    @property
    def is_empty(self) -> bool:
        return self.fence is None and self.cursor is None

    def save(self, tx: Transaction, now: int) -> None:
        """Store the cursor. Raises LeaseLost if another process runs the account now."""
        if self.fence is not None:
            platform_accounts.check_fence(tx, self.fence)
        if self.cursor is not None:
            platform_cursors.save(tx, self.account, self.cursor, now)

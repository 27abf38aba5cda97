"""Work that was open when a backup was made: after a restore, it is unknown what became of it since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

REASON: Final = "It was open when the backup was made that has been restored."


def close_open_work(tx: Transaction, now: int) -> None:
    """End what would otherwise be answered or sent a second time; people decide whether to repeat it.

    Queued turns are interrupted. Running ones are left to the recovery at the next start, as if a tool had acted: what
    was answered so far is kept, and they are not run again. Deliveries become uncertain. Notifications to browsers are
    not sent.
    """
    tx.execute("UPDATE turn SET state = 'interrupted', ended_at = $1, error = $2 WHERE state = 'queued'", now, REASON)
    tx.execute("UPDATE turn SET has_side_effects = 1, lease_until = 0 WHERE state = 'running'")
    tx.execute("DELETE FROM push_message")
    tx.execute(
        "UPDATE delivery_part SET state = 'uncertain' WHERE state IN ('pending', 'sending')"
        " AND delivery_no IN (SELECT no FROM delivery WHERE state IN ('pending', 'sending'))"
    )
    tx.execute(
        "UPDATE delivery SET state = 'uncertain', due_at = NULL, lease_owner = NULL, lease_until = NULL,"
        " ended_at = $1, error = $2 WHERE state IN ('pending', 'sending')",
        now,
        REASON,
    )

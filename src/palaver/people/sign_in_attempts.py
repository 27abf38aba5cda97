"""Rate limits for sign-in attempts: one moment for each subject (a name, a network address or a device).

An attempt moves the subject's moment ahead by one refill interval; if it then lies further ahead than the allowed
burst, the attempt is refused. As time passes, the moment falls behind again (this is the generic cell rate algorithm).

Always true: an attempt is counted before it is made, so a hundred attempts at the same moment count as a hundred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.people.account import RateLimit

# One transaction at a time: each changes several rows, and two of them could wait for each other for ever.
_LOCK_NAME = "palaver sign-in attempts"


def count_attempt(tx: Transaction, limits: dict[str, RateLimit], now: int) -> float:
    """Count an attempt against each subject and return 0; if it is too many, count nothing and return the seconds
    to wait.
    """
    tx.lock_name(_LOCK_NAME)
    tx.execute("DELETE FROM sign_in_attempt WHERE busy_until <= $1", now)
    wait_micros = 0
    rows = []
    for subject, limit in limits.items():
        row = tx.fetch_one("SELECT busy_until FROM sign_in_attempt WHERE subject = $1", subject)
        interval = _compute_interval_micros(limit)
        busy_until = (row[0] if row else now) + interval
        wait_micros = max(wait_micros, busy_until - now - limit.burst * interval)
        rows.append((subject, busy_until))
    if wait_micros > 0:
        return wait_micros / 1_000_000
    tx.execute_many(
        "INSERT INTO sign_in_attempt (subject, busy_until) VALUES ($1, $2)"
        " ON CONFLICT (subject) DO UPDATE SET busy_until = EXCLUDED.busy_until",
        rows,
    )
    return 0.0


def uncount_attempt(tx: Transaction, limits: dict[str, RateLimit]) -> None:
    """Take an attempt out of the count, because it succeeded."""
    tx.lock_name(_LOCK_NAME)
    for subject, limit in limits.items():
        tx.execute(
            "UPDATE sign_in_attempt SET busy_until = busy_until - $2 WHERE subject = $1",
            subject,
            _compute_interval_micros(limit),
        )


def _compute_interval_micros(limit: RateLimit) -> int:
    return int(limit.refill_interval.total_seconds() * 1_000_000)

"""Attempts: who has tried how often, as one moment for each subject.

An attempt moves the subject's moment on by one pause. A moment that lies further ahead than the attempts allowed at
once is one too many; time itself brings it back. Always true: an attempt is counted before it is made, so that a
hundred at the same moment are a hundred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.domain.account import Limit
    from palaver.storage.engines.base import Transaction

_ALL = "palaver attempts"  # one at a time: each touches several rows, and two could wait for each other for ever


def count(tx: Transaction, limits: dict[str, Limit], now: int) -> float:
    """Count an attempt against each subject; the seconds to wait when it is one too many, which counts for none."""
    tx.hold(_ALL)
    tx.run("DELETE FROM attempt WHERE busy_until <= $1", now)
    wait = 0
    moved = []
    for subject, limit in limits.items():
        row = tx.one("SELECT busy_until FROM attempt WHERE subject = $1", subject)
        busy_until = (row[0] if row else now) + _pause(limit)
        wait = max(wait, busy_until - now - limit.at_once * _pause(limit))
        moved.append((subject, busy_until))
    if wait > 0:
        return wait / 1_000_000
    tx.many(
        "INSERT INTO attempt (subject, busy_until) VALUES ($1, $2)"
        " ON CONFLICT (subject) DO UPDATE SET busy_until = EXCLUDED.busy_until",
        moved,
    )
    return 0.0


def take_back(tx: Transaction, limits: dict[str, Limit]) -> None:
    """Uncount an attempt that turned out to be good."""
    tx.hold(_ALL)
    for subject, limit in limits.items():
        tx.run("UPDATE attempt SET busy_until = busy_until - $2 WHERE subject = $1", subject, _pause(limit))


def _pause(limit: Limit) -> int:
    return int(limit.pause.total_seconds() * 1_000_000)

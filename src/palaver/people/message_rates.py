"""How often each person sends messages: one moment per person, as for sign-in attempts (`sign_in_attempts.py`).

One statement per message, on one row: people don't wait for each other, and all processes count together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId

MICROS_PER_MINUTE = 60_000_000
# From when the next message counts. A moment too far ahead is from before the clock was set back.
_START = """CASE WHEN message_rate.busy_until > CAST($2 AS BIGINT)
    AND message_rate.busy_until <= CAST($2 AS BIGINT) + CAST($4 AS BIGINT)
    THEN message_rate.busy_until ELSE CAST($2 AS BIGINT) END"""


def count_message(tx: Transaction, person_id: PersonId, per_minute: int, now: int) -> float:
    """Count a message and return 0; if it is too many, count nothing and return the seconds to wait."""
    interval = MICROS_PER_MINUTE // per_minute
    counted = tx.execute(
        "INSERT INTO message_rate (person_id, busy_until) VALUES ($1, CAST($2 AS BIGINT) + CAST($3 AS BIGINT))"
        f" ON CONFLICT (person_id) DO UPDATE SET busy_until = {_START} + CAST($3 AS BIGINT)"
        f" WHERE {_START} + CAST($3 AS BIGINT) <= CAST($2 AS BIGINT) + CAST($4 AS BIGINT)",
        person_id,
        now,
        interval,
        per_minute * interval,
    )
    return 0.0 if counted else compute_wait(tx, person_id, per_minute, now)


def compute_wait(tx: Transaction, person_id: PersonId, per_minute: int, now: int) -> float:
    """Return in how many seconds a person may send the next message; 0 if they may now."""
    interval = MICROS_PER_MINUTE // per_minute
    row = tx.fetch_one("SELECT busy_until FROM message_rate WHERE person_id = $1", person_id)
    busy_until = int(row[0]) if row else 0
    if busy_until > now + per_minute * interval:
        return 0.0
    return max(0, busy_until + interval - now - per_minute * interval) / 1_000_000

"""Repairs of what is derived: the row of a session and the marks in its log, computed again from the log and the usage.

Always true: no message and no other entry of a log is added, changed or removed, and a log with a hole is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.sessions import log_table as events

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

_COLUMNS: Final = (
    *("last_seq", "message_count", "last_message_at", "preview", "indexed_seq", "unindexed"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"),
    *("cost_nanos", "cost_status", "unpriced_turns"),
)
_NAMES: Final = {
    "last_seq": "end of the log",
    "message_count": "number of messages",
    "last_message_at": "time of the last message",
    "indexed_seq": "position of the search index",
    "unindexed": "whether the search index is behind",
}
_COUNT_EVENTS: Final = """SELECT COUNT(*), COALESCE(MIN(seq), 0), COALESCE(MAX(seq), 0),
    COALESCE(SUM(CASE WHEN kind = 'message' AND hidden_by IS NULL THEN 1 ELSE 0 END), 0),
    COALESCE(MAX(CASE WHEN kind = 'message' THEN seq ELSE 0 END), 0) FROM event WHERE session_no = $1"""
_SUM_USAGE: Final = """SELECT COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0),
    COALESCE(SUM(cache_read_tokens), 0), COALESCE(SUM(cache_write_tokens), 0), COALESCE(SUM(reasoning_tokens), 0),
    SUM(cost_nanos), COALESCE(SUM(CASE WHEN cost_status = 'unknown' THEN 1 ELSE 0 END), 0),
    COALESCE(SUM(CASE WHEN cost_status = 'estimated' THEN 1 ELSE 0 END), 0),
    COALESCE(SUM(CASE WHEN cost_status = 'actual' THEN 1 ELSE 0 END), 0) FROM usage WHERE session_no = $1"""
# Numbers of a log without a hole: the events next to a hidden one have the numbers beside its own.
_MARK_NEAR_HIDDEN: Final = """UPDATE event SET is_near_hidden = 1 WHERE session_no = $1 AND is_near_hidden IS NULL
    AND seq IN (SELECT seq FROM event WHERE session_no = $1 AND hidden_by IS NOT NULL
        UNION SELECT seq - 1 FROM event WHERE session_no = $1 AND hidden_by IS NOT NULL
        UNION SELECT seq + 1 FROM event WHERE session_no = $1 AND hidden_by IS NOT NULL)"""


def repair_session(tx: Transaction, session_no: int) -> list[str]:
    """Compute again what is derived of one session, and return what was changed, as sentences without a period."""
    row = tx.fetch_one(
        f"SELECT id, {', '.join(_COLUMNS)} FROM session WHERE no = $1 AND is_deleted = 0 {tx.for_update}", session_no
    )
    counts = tx.fetch_one(_COUNT_EVENTS, session_no)
    if row is None or counts is None:
        return []
    session_id, stored = row[0], dict(zip(_COLUMNS, row[1:], strict=True))
    event_count, first, last, visible, last_message = counts
    if first != 1 or last != event_count or stored["last_seq"] > last:
        return []  # entries are missing
    marked = tx.execute(_MARK_NEAR_HIDDEN, session_no)
    right = stored | {"last_seq": last, "message_count": visible} | _compute_usage(tx, session_no, stored)
    right["last_message_at"], right["preview"] = events.find_last_message(tx, session_no)
    is_behind = stored["unindexed"] == 0 and stored["indexed_seq"] < last_message
    if is_behind or stored["indexed_seq"] > last:
        right |= {"indexed_seq": 0, "unindexed": 1}  # it is indexed again in the background
    changed = {name: value for name, value in right.items() if value != stored[name]}
    if changed:
        assignments = ", ".join(f"{name} = ${position}" for position, name in enumerate(changed, start=2))
        tx.execute(f"UPDATE session SET {assignments} WHERE no = $1", session_no, *changed.values())
    sentences = [
        f"conversation {session_id}: {_NAMES.get(name, name.replace('_', ' '))} was {stored[name]}, now {value}"
        for name, value in changed.items()
        if name != "preview"  # words of a conversation don't belong into the output of a check
    ]
    if "preview" in changed:
        sentences.append(f"conversation {session_id}: preview set to its last message")
    if marked:
        sentences.append(f"conversation {session_id}: {marked} entries marked as hidden or next to a hidden one")
    return sentences


def _compute_usage(tx: Transaction, session_no: int, stored: dict[str, object]) -> dict[str, object]:
    """Return the totals of a session if its tokens or its cost are not the sum of its turns."""
    row = tx.fetch_one(_SUM_USAGE, session_no)
    if row is None:
        return {}
    *tokens, nanos, unknown, estimated, actual = (None if value is None else _to_int(value) for value in row)
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    right: dict[str, object] = dict(zip(names, tokens, strict=True))
    if all(stored[name] == right[name] for name in names) and (stored["cost_nanos"] or 0) == (nanos or 0):
        return {}
    status = "unknown" if not estimated and not actual else "actual" if not estimated else "estimated"
    return right | {
        "cost_nanos": None if status == "unknown" else nanos or 0,
        "cost_status": status,
        "unpriced_turns": unknown,
    }


def _to_int(value: object) -> int:
    return int(str(value))  # PostgreSQL sums integers as decimals

"""Finds where a store breaks what must always be true. The queries run on both engines.

The database itself refuses most of what must not be (unique indexes, foreign keys, checks); these queries find what a
damaged index or a fault in Palaver would leave behind. Each looks at a range of sessions or files, so that a check of a
large store needs little memory and never keeps one state of the database for long.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from palaver.core.columns import update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, fetch_value, list_columns
from palaver.sessions import log_table as events
from palaver.sessions.usage import TOKEN_COUNTERS

# Numbers of the log without a hole, and everything that is counted on the session's row.
_WRONG_COUNTERS = """
    SELECT s.no, s.id, s.last_seq, e.events, e.last, s.message_count, e.visible, s.indexed_seq,
        s.input_tokens + s.output_tokens, COALESCE(u.tokens, 0), COALESCE(s.cost_nanos, 0), COALESCE(u.nanos, 0),
        e.last_message
    FROM session s
    LEFT JOIN (SELECT session_no, COUNT(*) AS events, MAX(seq) AS last, MIN(seq) AS first,
        MAX(CASE WHEN kind = 'message' THEN seq ELSE 0 END) AS last_message,
        SUM(CASE WHEN kind = 'message' AND hidden_by IS NULL THEN 1 ELSE 0 END) AS visible
        FROM event WHERE session_no > $1 AND session_no <= $2 GROUP BY session_no) e ON e.session_no = s.no
    LEFT JOIN (SELECT session_no, SUM(input_tokens + output_tokens) AS tokens, SUM(cost_nanos) AS nanos
        FROM usage WHERE session_no > $1 AND session_no <= $2 GROUP BY session_no) u ON u.session_no = s.no
    WHERE s.no > $1 AND s.no <= $2 AND s.is_deleted = 0 AND (e.events IS NULL OR e.first <> 1 OR e.last <> e.events
        OR s.last_seq <> e.last OR s.message_count <> e.visible
        OR s.input_tokens + s.output_tokens <> COALESCE(u.tokens, 0)
        OR COALESCE(s.cost_nanos, 0) <> COALESCE(u.nanos, 0)
        OR s.indexed_seq > s.last_seq OR (s.unindexed = 0 AND s.indexed_seq < e.last_message))
    ORDER BY s.no LIMIT $3"""
# A hidden event and the events next to it are marked (`hidden_ranges.py`): without the mark, readers would miss some.
_UNMARKED_EVENTS = """SELECT s.no, s.id, MIN(hidden.seq) FROM event hidden JOIN session s ON s.no = hidden.session_no
    JOIN event near ON near.session_no = hidden.session_no AND near.seq IN (hidden.seq - 1, hidden.seq, hidden.seq + 1)
    WHERE hidden.session_no > $1 AND hidden.session_no <= $2 AND hidden.hidden_by IS NOT NULL
        AND s.is_deleted = 0
        AND near.is_near_hidden IS NULL
    GROUP BY s.no, s.id ORDER BY s.id LIMIT $3"""
_LAST_MESSAGES = """SELECT no, id, last_message_at, preview FROM session
    WHERE no > $1 AND no <= $2 AND is_deleted = 0 AND last_seq > 0 ORDER BY no"""
# Each rule: a query for the rows that break it, and the sentence that reports one of them.
ONE_RUNNING_TURN: Final = (
    """SELECT s.id FROM turn t JOIN session s ON s.no = t.session_no
    WHERE t.state = 'running' AND s.no > $1 AND s.no <= $2 GROUP BY s.id HAVING COUNT(*) > 1 ORDER BY s.id LIMIT $3""",
    "conversation {} has more than one running turn",
)
NO_LANE_ON_ENDED_SESSION: Final = (  # ended by a person
    """SELECT l.key, s.id FROM lane l JOIN session s ON s.no = l.session_no
    WHERE s.no > $1 AND s.no <= $2 AND s.end_reason NOT IN ('idle', 'daily') ORDER BY l.key LIMIT $3""",
    "the chat {} continues conversation {}, which has ended",
)


class StoredFile(NamedTuple):
    """The hash and size that the bytes of an attachment must have."""

    no: int
    id: str
    sha256: str
    size: int
    created_at: int  # microseconds since 1970


@dataclass(frozen=True, slots=True)
class WrongSession:
    no: int
    problem: str  # a sentence without a period
    is_repairable: bool = True  # its log knows the truth


def find_next_session_no(tx: Transaction, after: int, count: int) -> int | None:
    """Return the number of the session that ends a range of `count` sessions; None if there are none."""
    return fetch_value(
        tx, "SELECT MAX(no) FROM (SELECT no FROM session WHERE no > $1 ORDER BY no LIMIT $2) AS next", after, count
    )


def find_wrong_counters(tx: Transaction, after: int, up_to: int, limit: int) -> list[WrongSession]:
    """Return the sessions whose log has a hole, or whose row or marks do not match their log."""
    found = [
        *map(_describe_counters, tx.fetch_all(_WRONG_COUNTERS, after, up_to, limit)),
        *(
            WrongSession(no, f"the log of conversation {session_id} lacks the mark of what is hidden at entry {seq}")
            for no, session_id, seq in tx.fetch_all(_UNMARKED_EVENTS, after, up_to, limit)
        ),
    ]
    known = {wrong.no for wrong in found}
    for no, session_id, last_message_at, preview in tx.fetch_all(_LAST_MESSAGES, after, up_to):
        if no not in known and events.find_last_message(tx, no) != (last_message_at, preview):
            found.append(WrongSession(no, f"the list does not show the last message of conversation {session_id}"))
    return found


def _describe_counters(row: Row) -> WrongSession:
    no, session_id, last_seq, event_count, last, message_count, visible, indexed, *usage, last_message = row
    tokens, used, cost, spent = usage
    is_repairable = True
    if event_count is None:
        problem, is_repairable = f"conversation {session_id} has no log", False
    elif last != event_count:
        problem = f"the log of conversation {session_id} has {event_count} entries, but its last number is {last}"
        is_repairable = False
    elif last_seq != last:
        problem = f"conversation {session_id} should end at entry {last_seq}, but its log ends at {last}"
        is_repairable = last_seq < last  # else entries are missing
    elif message_count != visible:
        problem = f"conversation {session_id} counts {message_count} messages, but has {visible}"
    elif tokens != used or cost != spent:
        problem = f"the usage of conversation {session_id} is not the sum of its turns"
    elif indexed > last_seq or indexed < last_message:
        problem = f"the search index of conversation {session_id} is at {indexed}, its log at {last_seq}"
    else:
        problem, is_repairable = f"the log of conversation {session_id} does not begin at 1", False
    return WrongSession(no, problem, is_repairable)


def find_wrong_rows(tx: Transaction, rule: tuple[str, str], after: int, up_to: int, limit: int) -> list[str]:
    """Return a sentence for each row of a range of sessions that breaks a rule."""
    sql, sentence = rule
    return [sentence.format(*row) for row in tx.fetch_all(sql, after, up_to, limit)]


def list_files(tx: Transaction, after: int, limit: int) -> list[StoredFile]:
    """Return the next attachments by number, used or not."""
    sql = f"SELECT {list_columns(StoredFile)} FROM attachment WHERE no > $1 ORDER BY no LIMIT $2"
    return [StoredFile(*row) for row in tx.fetch_all(sql, after, limit)]


def list_lost_lanes(tx: Transaction, limit: int) -> list[str]:
    sql = """SELECT l.key FROM lane l LEFT JOIN session s ON s.no = l.session_no
        WHERE l.session_no IS NOT NULL AND s.no IS NULL LIMIT $1"""
    rows = tx.fetch_all(sql, limit)
    return [f"the chat {key} is on a conversation that does not exist" for (key,) in rows]


def list_schema_names(tx: Transaction) -> set[str]:
    if tx.name == "sqlite":
        rows = tx.fetch_all("SELECT name FROM sqlite_master")
    else:
        sql = """SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace
            UNION SELECT tgname::text FROM pg_trigger"""
        rows = tx.fetch_all(sql)
    return {name for (name,) in rows}


_COLUMNS: Final = (
    *("last_seq", "message_count", "last_message_at", "preview", "indexed_seq", "unindexed"),
    *TOKEN_COUNTERS,
    *("cost_nanos", "cost_status", "unpriced_turns", "estimated_nanos"),
)
_NAMES: Final = {
    "last_seq": "end of the log",
    "message_count": "number of messages",
    "last_message_at": "time of the last message",
    "indexed_seq": "position of the search index",
    "unindexed": "whether the search index is behind",
}
_REASON: Final = "It was open when the backup was made that has been restored."
_COUNT_EVENTS: Final = """SELECT COUNT(*), COALESCE(MIN(seq), 0), COALESCE(MAX(seq), 0),
    COALESCE(SUM(CASE WHEN kind = 'message' AND hidden_by IS NULL THEN 1 ELSE 0 END), 0),
    COALESCE(MAX(CASE WHEN kind = 'message' THEN seq ELSE 0 END), 0) FROM event WHERE session_no = $1"""
_SUM_TOKENS: Final = ", ".join(f"COALESCE(SUM({name}), 0)" for name in TOKEN_COUNTERS)
_SUM_USAGE: Final = f"""SELECT {_SUM_TOKENS}, SUM(cost_nanos),
    CASE WHEN COUNT(estimated_nanos) > 0 THEN SUM(COALESCE(estimated_nanos, cost_nanos)) END,
    COALESCE(SUM(CASE WHEN cost_status = 'unknown' THEN 1 ELSE 0 END), 0),
    COALESCE(SUM(CASE WHEN cost_status = 'estimated' THEN 1 ELSE 0 END), 0),
    COALESCE(SUM(CASE WHEN cost_status = 'actual' THEN 1 ELSE 0 END), 0) FROM usage WHERE session_no = $1"""
# Numbers of a log without a hole: the events next to a hidden one have the numbers beside its own.
_MARK_NEAR_HIDDEN: Final = """UPDATE event SET is_near_hidden = 1 WHERE session_no = $1 AND is_near_hidden IS NULL
    AND seq IN (SELECT seq FROM event WHERE session_no = $1 AND hidden_by IS NOT NULL
        UNION SELECT seq - 1 FROM event WHERE session_no = $1 AND hidden_by IS NOT NULL
        UNION SELECT seq + 1 FROM event WHERE session_no = $1 AND hidden_by IS NOT NULL)"""


def repair_session(tx: Transaction, session_no: int) -> list[str]:
    """Compute again what is derived of one session: its row and the marks in its log, from the log and the usage.

    Returns what was changed, as sentences without a period. Always true: no message and no other entry of a log is
    added, changed or removed, and a log with a hole is left alone.
    """
    row = tx.fetch_one(
        f"SELECT id, {', '.join(_COLUMNS)} FROM session WHERE no = $1 AND is_deleted = 0 {tx.for_update}", session_no
    )
    counts = tx.fetch_one(_COUNT_EVENTS, session_no)
    if row is None or counts is None:
        return []
    session_id, *values = row
    stored = dict(zip(_COLUMNS, values, strict=True))
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
        update_row(tx, "session", "no", session_no, changed)
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
    row = tx.fetch_one(_SUM_USAGE, session_no) or ()
    # PostgreSQL sums integers as decimals.
    *tokens, nanos, estimate, unknown, estimated, actual = (None if value is None else int(str(value)) for value in row)
    right: dict[str, object] = dict(zip(TOKEN_COUNTERS, tokens, strict=True))
    if all(stored[name] == right[name] for name in TOKEN_COUNTERS) and (stored["cost_nanos"] or 0) == (nanos or 0):
        return {}
    status = "unknown" if not estimated and not actual else "actual" if not estimated else "estimated"
    return right | {
        "cost_nanos": None if status == "unknown" else nanos or 0,
        "cost_status": status,
        "unpriced_turns": unknown,
        "estimated_nanos": estimate,
    }


def close_open_work(tx: Transaction, now: int) -> None:
    """End what was open when a backup was made; after a restore, it is unknown what became of it since.

    Nothing is answered or sent a second time; people decide whether to repeat it.
    Queued turns are interrupted. Running ones are left to the recovery at the next start, as if a tool had acted: what
    was answered so far is kept, and they are not run again. Deliveries become uncertain. Notifications to browsers are
    not sent.
    """
    tx.execute("UPDATE turn SET state = 'interrupted', ended_at = $1, error = $2 WHERE state = 'queued'", now, _REASON)
    tx.execute("UPDATE turn SET has_side_effects = 1, lease_until = 0 WHERE state = 'running'")
    tx.execute("DELETE FROM push_message")
    sql = """UPDATE delivery_part SET state = 'uncertain' WHERE state IN ('pending', 'sending')
        AND delivery_no IN (SELECT no FROM delivery WHERE state IN ('pending', 'sending'))"""
    tx.execute(sql)
    sql = """UPDATE delivery SET state = 'uncertain', due_at = NULL, lease_owner = NULL, lease_until = NULL,
        ended_at = $1, error = $2 WHERE state IN ('pending', 'sending')"""
    tx.execute(sql, now, _REASON)

"""Appending to a log: the hot path of the whole store.

A message and the counters that lists need are written together. On an engine that allows it the whole append, usage
included, is one statement.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession
from palaver.domain.ids import SessionId, known_session_id
from palaver.domain.message import preview
from palaver.storage import usage as usages
from palaver.storage.message_rows import MessageRow, encoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.ids import PersonId
    from palaver.domain.message import Message
    from palaver.domain.usage import TurnUsage
    from palaver.storage.engines.base import Transaction

# Makes room in the log and brings the counters up to date: (id, how many, now, human, preview).
_BUMP = """
    UPDATE session SET last_seq = last_seq + $2, message_count = message_count + $2, last_message_at = $3,
        last_human_at = CASE WHEN $4 = 1 THEN $3 ELSE last_human_at END, preview = COALESCE($5, preview),
        redo_seq = NULL"""

# Lists are ordered by what people do. An answer that follows at once does not move its session again, which
# spares two indexes on every turn; one that took its time does.
SETTLED = 5_000_000
_STALE = f"(active_at IS NULL OR active_at < $3 - {SETTLED} OR $4 = 1)"

INSERT = """
    INSERT INTO event (session_no, seq, kind, at, role, content, body, person_id, platform_message_id)"""

INSERT_ONE = INSERT + " VALUES ($1, $2, 'message', $3, $4, $5, $6, $7, $8)"


@cache
def _bump(*, usage: bool, human: bool) -> str:
    """The first step of an append. Parameters: 1–5, then the usage's."""
    counted = f", {usages.totals(7, '$6 = 1')}" if usage else ""
    moved = ", unindexed = 1, active_at = $3" if human else ""
    return f"{_BUMP}{counted}{moved} WHERE id = $1 RETURNING no, last_seq, unindexed = 0 OR {_STALE}"


@cache
def _append_whole(*, usage: bool, several: bool) -> str:
    """Everything an append does, as one statement. Parameters: 1–5, five columns, then the usage's."""
    steps, bump, fresh = [], _BUMP_AND_MOVE, ""
    if usage:
        steps.append(f"used AS ({usages.recorded(11, '$1', '$3')} RETURNING 1)")
        bump += f", {usages.totals(11, 'fresh.n = 1')}"
        fresh = " FROM (SELECT COUNT(*) AS n FROM used) AS fresh"
    steps.append(f"bumped AS ({bump}{fresh} WHERE id = $1 RETURNING no, last_seq)")
    if several:
        rows = (
            "SELECT no, last_seq - $2 + m.n, 'message', $3, m.role, m.content, m.body, m.person_id, m.platform_id"
            " FROM bumped, unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[]) WITH ORDINALITY"
            " AS m (role, content, body, person_id, platform_id, n) ORDER BY m.n"
        )
    else:
        rows = "SELECT no, last_seq, 'message', $3, $6, $7, $8, $9, $10 FROM bumped"
    return f"WITH {', '.join(steps)}, stored AS ({INSERT} {rows}) SELECT last_seq FROM bumped"


_BUMP_AND_MOVE = f"{_BUMP}, unindexed = 1, active_at = CASE WHEN {_STALE} THEN $3 ELSE active_at END"

# A lane's session, as long as it goes on: not ended, not past the horizon of the reset policy ($6).
_ON_LANE = """WHERE no = (SELECT session_no FROM route WHERE key = $1 AND shared = 0) AND ended_at IS NULL
    AND shared = 0 AND COALESCE(last_human_at, created_at) >= $6"""
_BUMP_ON_LANE = f"{_BUMP}, unindexed = 1, active_at = $3 {_ON_LANE} RETURNING no, last_seq, id"
_WHOLE_ON_LANE = f"""WITH bumped AS ({_BUMP_ON_LANE}), stored AS ({INSERT}
    SELECT no, last_seq, 'message', $3, $7, $8, $9, $10, $11 FROM bumped) SELECT no, last_seq, id FROM bumped"""

PREVIEWED = frozenset({"user", "assistant"})
_Bump = tuple[str, int, int, int, str | None]


def append(
    tx: Transaction,
    session_id: str,
    messages: Sequence[Message],
    now: int,
    *,
    human: bool = False,
    usage: TurnUsage | None = None,
    person_id: PersonId | None = None,
) -> int:
    """Append messages in order, with the usage of their turn; the sequence number of the last one.

    A session that is not there (any more) is an error: a late write brings nothing back.
    """
    rows = [encoded(message, person_id) for message in messages]
    bump = (known_session_id(session_id), len(rows), now, int(human), _shown(rows))
    last = (_append_in_one if tx.bundles else _append_in_steps)(tx, bump, rows, usage)
    if last is None:
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
    return last


def append_on_lane(
    tx: Transaction, key: str, not_before: int, message: Message, now: int, *, human: bool
) -> tuple[SessionId, int] | None:
    """Append to the session a lane is on, if it is one person's and its last activity is not too long ago.

    The session's id and the message's number; None when there is no such session, and nothing happened.
    """
    row = encoded(message, None)
    bump = (key, 1, now, int(human), _shown([row]), not_before)
    found = tx.one(_WHOLE_ON_LANE, *bump, *row) if tx.bundles else tx.one(_BUMP_ON_LANE, *bump)
    if found is None:
        return None
    no, seq, session_id = found
    if not tx.bundles:
        tx.run(INSERT_ONE, no, seq, now, *row)
    return SessionId(session_id), int(seq)


def _append_in_steps(tx: Transaction, bump: _Bump, rows: list[MessageRow], usage: TurnUsage | None) -> int | None:
    session_id, count, now, human, _ = bump
    params: tuple[object, ...] = bump
    if usage is not None:
        used = usages.values(usage)
        fresh = tx.run(usages.recorded(3, "$1", "$2"), session_id, now, *used[:-1])
        params = (*bump, fresh, *used)
    bumped = tx.one(_bump(usage=usage is not None, human=human == 1), *params)
    if bumped is None:
        return None
    no, last, moves = bumped
    if moves and not human:
        tx.run("UPDATE session SET unindexed = 1, active_at = $2 WHERE no = $1", no, now)
    if count == 1:
        tx.run(INSERT_ONE, no, last, now, *rows[0])
    else:
        tx.many(INSERT_ONE, [(no, last - count + i, now, *row) for i, row in enumerate(rows, 1)])
    return int(last)


def _append_in_one(tx: Transaction, bump: _Bump, rows: list[MessageRow], usage: TurnUsage | None) -> int | None:
    several = len(rows) > 1
    columns = [list(column) for column in zip(*rows, strict=True)] if several else rows[0]
    used = () if usage is None else usages.values(usage)
    row = tx.one(_append_whole(usage=usage is not None, several=several), *bump, *columns, *used)
    return None if row is None else int(row[0])


def _shown(rows: list[MessageRow]) -> str | None:
    """The preview that lists show from now on; None when nothing was said aloud."""
    for role, text, *_ in reversed(rows):
        if text and role in PREVIEWED and (shown := preview(text)):
            return shown
    return None

"""The log of each session: reading it back, noting what happened, hiding and showing messages.

Hidden messages stay stored; nothing in the log is ever deleted but with its whole session. Messages are appended in
`append.py`.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import NoSuchSession, NothingToRedo, NothingToUndo
from palaver.domain.events import EventKind
from palaver.domain.ids import known_session_id
from palaver.domain.message import preview
from palaver.domain.session import Undone
from palaver.storage.append import INSERT, INSERT_ONE, PREVIEWED
from palaver.storage.message_rows import EVENT, encoded, event_from_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.domain.events import Event
    from palaver.domain.ids import PersonId
    from palaver.domain.message import Message
    from palaver.storage.engines.base import Row, Transaction

_BY_NUMBER = "session_no = $1"
_BY_ID = "session_no = (SELECT no FROM session WHERE id = $1)"  # one statement is one round trip
_SHOWN = "kind = 'message' AND hidden_by IS NULL"


def note(
    tx: Transaction,
    session_no: int,
    kind: EventKind,
    now: int,
    person_id: PersonId | None = None,
    **facts: object,
) -> int:
    """Append something that is not a message; its sequence number."""
    row = tx.one("UPDATE session SET last_seq = last_seq + 1 WHERE no = $1 RETURNING last_seq", session_no)
    if row is None:
        raise NoSuchSession
    tx.run(
        INSERT + " VALUES ($1, $2, $3, $4, NULL, NULL, $5, $6, NULL)",
        session_no,
        row[0],
        kind.value,
        now,
        json.dumps(facts) if facts else None,
        person_id,
    )
    return int(row[0])


def transcript(tx: Transaction, session_id: str, limit: int | None = None) -> list[dict[str, Any]]:
    """The visible messages in log order as dicts for a model; the last `limit` of them, if given."""
    session_id = known_session_id(session_id)
    if limit is None:
        rows = tx.all(f"SELECT role, content, body FROM event WHERE {_BY_ID} AND {_SHOWN} ORDER BY seq", session_id)
    else:
        newest = _newest_first(tx, session_id, LAST, limit, whose=_BY_ID)
        rows = [(row[3], row[4], row[5]) for row in islice(newest, limit)]
        rows.reverse()
    if not rows and tx.one("SELECT 1 FROM session WHERE id = $1", session_id) is None:
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
    return [
        {"role": role, "content": content} if body is None else {"role": role, "content": content, **json.loads(body)}
        for role, content, body in rows
    ]


LAST = 2**62  # after every place in a log
_MOST_AT_ONCE = 1000


def _newest_first(
    tx: Transaction, session: object, before: int, expected: int, *, whose: str = _BY_NUMBER, least: int = 0
) -> Iterator[Row]:
    """The visible messages before a place in the log, back to `least`, newest first, as `EVENT` selects them.

    What was hidden together is stepped over together, so the cost does not depend on how much that was.
    """
    step = min(expected + 8, _MOST_AT_ONCE)
    while True:
        rows = tx.all(
            f"{EVENT} WHERE {whose} AND seq < $2 AND seq >= $3 ORDER BY seq DESC LIMIT $4", session, before, least, step
        )
        for row in rows:
            if row[1] == "message" and row[8] is None:
                yield row
        if len(rows) < step:
            return
        before, hidden_by = rows[-1][0], rows[-1][8]
        if hidden_by is not None:
            before = min(before, _first_hidden(tx, session, hidden_by, whose))
        step = min(step * 2, _MOST_AT_ONCE)


def _first_hidden(tx: Transaction, session: object, hidden_by: int, whose: str) -> int:
    """From where on an undo or a rewrite has hidden every message before it."""
    row = tx.one(f"SELECT body FROM event WHERE {whose} AND seq = $2", session, hidden_by)
    return int(json.loads(row[0])["first"]) if row else hidden_by


def messages(tx: Transaction, session_no: int, *, before: int | None = None, limit: int | None = None) -> list[Event]:
    """The last visible messages before a place in the log, oldest first."""
    newest = _newest_first(tx, session_no, LAST if before is None else before, limit or _MOST_AT_ONCE)
    return [event_from_row(row) for row in reversed(list(islice(newest, limit)))]


def context(
    tx: Transaction, session_no: int, *, kept_from: int, upto: int, most: int = 2000
) -> tuple[list[Event], bool]:
    """What a turn that answers message `upto` is to see, from `kept_from` on, and whether something was left out.

    Answers that stand later in the log are among it, what people said later is not. Of more than `most` messages only
    the last are given. Where they begin moves on half of `most` at a time, so that turns in between begin alike.
    """
    rows = list(islice(_newest_first(tx, session_no, LAST, most, least=kept_from), most + 1))
    left_out = len(rows) > most
    if left_out:
        row = tx.one("SELECT message_count FROM session WHERE no = $1", session_no)
        count, half = row[0] if row else len(rows), max(most // 2, 1)
        begin = -(-(count - most) // half) * half  # among all visible messages, whose places only an undo changes
        rows = rows[: count - begin]
    found = [event_from_row(row) for row in reversed(rows) if row[3] != "user" or row[0] <= upto]
    return found, left_out


def log(tx: Transaction, session_no: int, *, after: int = 0, limit: int = 1000) -> list[Event]:
    """Everything that happened after a place in the log, hidden messages included."""
    found = tx.all(f"{EVENT} WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3", session_no, after, limit)
    return [event_from_row(row) for row in found]


def at(tx: Transaction, session_no: int, seqs: Sequence[int]) -> list[Event]:
    """The events with these numbers, as far as there are any."""
    rows = (tx.one(f"{EVENT} WHERE session_no = $1 AND seq = $2", session_no, seq) for seq in seqs)
    return [event_from_row(row) for row in rows if row is not None]


def last_seq(tx: Transaction, session_no: int) -> int:
    """The number of the last event."""
    row = tx.one("SELECT last_seq FROM session WHERE no = $1", session_no)
    if row is None:
        raise NoSuchSession
    return int(row[0])


def undo(tx: Transaction, session_no: int, turns: int, now: int, person_id: PersonId | None = None) -> Undone:
    """Hide the last `turns` turns: each a user message and all that follows it."""
    previous = _redo_seq(tx, session_no)
    newest = _newest_first(tx, session_no, LAST, turns * 4)
    starts = list(islice(((row[0], row[4]) for row in newest if row[3] == "user"), turns))
    if not starts:
        raise NothingToUndo
    first, prompt = starts[-1]
    seq = note(tx, session_no, EventKind.UNDONE, now, person_id, turns=len(starts), first=first, previous=previous)
    hidden = tx.run(
        f"UPDATE event SET hidden_by = $3 WHERE session_no = $1 AND seq >= $2 AND {_SHOWN}",
        session_no,
        first,
        seq,
    )
    tx.run("UPDATE session SET redo_seq = $2 WHERE no = $1", session_no, seq)
    _drop_compaction(tx, session_no, first)
    recount(tx, session_no, -hidden)
    return Undone(turns=len(starts), messages=hidden, prompt=prompt or "")


def redo(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> Undone:
    """Show again what the last undo hid, unless the conversation has moved on."""
    undo_seq = _redo_seq(tx, session_no)
    row = tx.one("SELECT body FROM event WHERE session_no = $1 AND seq = $2", session_no, undo_seq or 0)
    if undo_seq is None or row is None:
        raise NothingToRedo
    facts = json.loads(row[0])
    shown = tx.run(
        "UPDATE event SET hidden_by = NULL WHERE session_no = $1 AND seq >= $2 AND seq < $3 AND hidden_by = $3",
        session_no,
        facts["first"],
        undo_seq,
    )
    note(tx, session_no, EventKind.REDONE, now, person_id, undone=undo_seq, turns=facts["turns"])
    tx.run("UPDATE session SET redo_seq = $2 WHERE no = $1", session_no, facts["previous"])
    recount(tx, session_no, shown)
    prompt = tx.one("SELECT content FROM event WHERE session_no = $1 AND seq = $2", session_no, facts["first"])
    return Undone(turns=facts["turns"], messages=shown, prompt=(prompt and prompt[0]) or "")


def rewrite(
    tx: Transaction, session_no: int, new: Sequence[Message], now: int, person_id: PersonId | None = None
) -> None:
    """Make the visible transcript read as given: what differs is hidden, what is new is appended."""
    if tx.one(f"SELECT 1 FROM session WHERE no = $1 {tx.lock}", session_no) is None:
        raise NoSuchSession
    old = tx.all(
        f"SELECT seq, role, content, body FROM event WHERE session_no = $1 AND {_SHOWN} ORDER BY seq",
        session_no,
    )
    rows = [encoded(message, None) for message in new]
    same = 0
    while same < min(len(old), len(rows)) and old[same][1:] == rows[same][:3]:
        same += 1
    if same == len(old) == len(rows):
        return
    first = old[same][0] if same < len(old) else LAST
    counts = {"hidden": len(old) - same, "added": len(rows) - same}
    seq = note(tx, session_no, EventKind.REWRITTEN, now, person_id, first=first, **counts)
    hidden = tx.run(
        f"UPDATE event SET hidden_by = $3 WHERE session_no = $1 AND seq >= $2 AND {_SHOWN}", session_no, first, seq
    )
    _drop_compaction(tx, session_no, first)
    added = rows[same:]
    tx.many(INSERT_ONE, [(session_no, seq + i, now, *row) for i, row in enumerate(added, 1)])
    tx.run(
        "UPDATE session SET last_seq = last_seq + $2, redo_seq = NULL, unindexed = 1,"
        " active_at = COALESCE(active_at, $3)"
        " WHERE no = $1",
        session_no,
        len(added),
        now,
    )
    recount(tx, session_no, len(added) - hidden)


def _drop_compaction(tx: Transaction, session_no: int, first: int) -> None:
    """Let no summary stand for messages that are hidden, from `first` on: the context is whole again."""
    row = tx.one(
        "SELECT e.body FROM session s JOIN event e ON e.session_no = s.no AND e.seq = s.compaction_seq WHERE s.no = $1",
        session_no,
    )
    if row is not None and json.loads(row[0])["kept_from"] > first:
        tx.run("UPDATE session SET compaction_seq = NULL WHERE no = $1", session_no)


def recount(tx: Transaction, session_no: int, change: int) -> None:
    """Bring the counters that lists show in step with what is visible now."""
    last, shown = None, ""
    for row in _newest_first(tx, session_no, LAST, 8):
        last = row[2] if last is None else last
        if row[4] and row[3] in PREVIEWED and (shown := preview(row[4])):
            break
    tx.run(
        "UPDATE session SET message_count = message_count + $2, last_message_at = $3, preview = $4 WHERE no = $1",
        session_no,
        change,
        last,
        shown,
    )


def copy(tx: Transaction, from_no: int, to_no: int, *, before: int) -> int:
    """Copy the visible messages before a place in one log to the end of another; how many they were."""
    row = tx.one("SELECT last_seq FROM session WHERE no = $1", to_no)
    assert row is not None  # noqa: S101
    copied = tx.run(
        INSERT + " SELECT $2, $3 + ROW_NUMBER() OVER (ORDER BY seq), kind, at, role, content, body, person_id,"
        f" platform_message_id FROM event WHERE session_no = $1 AND seq < $4 AND {_SHOWN} ORDER BY seq",
        from_no,
        to_no,
        row[0],
        before,
    )
    tx.run("UPDATE session SET last_seq = last_seq + $2, unindexed = 1 WHERE no = $1", to_no, copied)
    recount(tx, to_no, copied)
    return copied


def end_of_turn(tx: Transaction, session_no: int, seq: int) -> int | None:
    """Where the turn that contains this visible message ends (exclusive); None when there is no such message."""
    if tx.one(f"SELECT 1 FROM event WHERE session_no = $1 AND seq = $2 AND {_SHOWN}", session_no, seq) is None:
        return None
    row = tx.one(
        f"SELECT seq FROM event WHERE session_no = $1 AND seq > $2 AND {_SHOWN} AND role = 'user' ORDER BY seq LIMIT 1",
        session_no,
        seq,
    )
    return row[0] if row else LAST


def _redo_seq(tx: Transaction, session_no: int) -> int | None:
    row = tx.one(f"SELECT redo_seq FROM session WHERE no = $1 {tx.lock}", session_no)
    if row is None:
        raise NoSuchSession
    return None if row[0] is None else int(row[0])

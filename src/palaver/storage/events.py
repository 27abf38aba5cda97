"""The log of each session: appending, reading back, hiding.

A message and the counters that lists need are written together. On an engine that allows it the whole
append, usage included, is one statement. Hidden messages stay stored; nothing in the log is ever deleted but
with its whole session.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import InvalidMessage, NoSuchSession, NothingToRedo, NothingToUndo
from palaver.domain.events import Event, EventKind
from palaver.domain.ids import PersonId, SessionId, known_session_id
from palaver.domain.message import Author, Message, preview
from palaver.domain.session import Undone
from palaver.domain.text import is_storable, storable
from palaver.storage import usage as usages
from palaver.storage.values import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from palaver.domain.usage import TurnUsage
    from palaver.storage.engine import Row, Transaction

_SHOWN = "kind = 'message' AND hidden_by IS NULL"

# Makes room in the log and brings the counters up to date: (id, how many, now, human, preview).
_BUMP = """
    UPDATE session SET last_seq = last_seq + $2, message_count = message_count + $2, last_message_at = $3,
        last_human_at = CASE WHEN $4 = 1 THEN $3 ELSE last_human_at END, preview = COALESCE($5, preview),
        redo_seq = NULL"""

# Lists are ordered by what people do. An answer that follows at once does not move its session again, which
# spares two indexes on every turn; one that took its time does.
SETTLED = 5_000_000
_STALE = f"(active_at IS NULL OR active_at < $3 - {SETTLED} OR $4 = 1)"

_INSERT = """
    INSERT INTO event (session_no, seq, kind, at, role, content, body, person_id, platform_message_id)"""

_ONE = _INSERT + " VALUES ($1, $2, 'message', $3, $4, $5, $6, $7, $8)"


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
    return f"WITH {', '.join(steps)}, stored AS ({_INSERT} {rows}) SELECT last_seq FROM bumped"


_BUMP_AND_MOVE = f"{_BUMP}, unindexed = 1, active_at = CASE WHEN {_STALE} THEN $3 ELSE active_at END"

# A lane's session, as long as it goes on: not ended, not past the horizon of the reset policy ($6).
_ON_LANE = """WHERE no = (SELECT session_no FROM route WHERE key = $1 AND shared = 0) AND ended_at IS NULL
    AND shared = 0 AND COALESCE(last_human_at, created_at) >= $6"""
_BUMP_ON_LANE = f"{_BUMP}, unindexed = 1, active_at = $3 {_ON_LANE} RETURNING no, last_seq, id"
_WHOLE_ON_LANE = f"""WITH bumped AS ({_BUMP_ON_LANE}), stored AS ({_INSERT}
    SELECT no, last_seq, 'message', $3, $7, $8, $9, $10, $11 FROM bumped) SELECT no, last_seq, id FROM bumped"""

_PREVIEWED = frozenset({"user", "assistant"})
_EncodedRow = tuple[str, str | None, str | None, str | None, str | None]
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
    rows = [_encoded(message, person_id) for message in messages]
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
    row = _encoded(message, None)
    bump = (key, 1, now, int(human), _shown([row]), not_before)
    found = tx.one(_WHOLE_ON_LANE, *bump, *row) if tx.bundles else tx.one(_BUMP_ON_LANE, *bump)
    if found is None:
        return None
    no, seq, session_id = found
    if not tx.bundles:
        tx.run(_ONE, no, seq, now, *row)
    return SessionId(session_id), int(seq)


def _append_in_steps(tx: Transaction, bump: _Bump, rows: list[_EncodedRow], usage: TurnUsage | None) -> int | None:
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
        tx.run(_ONE, no, last, now, *rows[0])
    else:
        tx.many(_ONE, [(no, last - count + i, now, *row) for i, row in enumerate(rows, 1)])
    return int(last)


def _append_in_one(tx: Transaction, bump: _Bump, rows: list[_EncodedRow], usage: TurnUsage | None) -> int | None:
    several = len(rows) > 1
    columns = [list(column) for column in zip(*rows, strict=True)] if several else rows[0]
    used = () if usage is None else usages.values(usage)
    row = tx.one(_append_whole(usage=usage is not None, several=several), *bump, *columns, *used)
    return None if row is None else int(row[0])


def _shown(rows: list[_EncodedRow]) -> str | None:
    """The preview that lists show from now on; None when nothing was said aloud."""
    for role, text, *_ in reversed(rows):
        if text and role in _PREVIEWED and (shown := preview(text)):
            return shown
    return None


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
        _INSERT + " VALUES ($1, $2, $3, $4, NULL, NULL, $5, $6, NULL)",
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
    found = tx.one("SELECT no FROM session WHERE id = $1", known_session_id(session_id))
    if found is None:
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
    if limit is None:
        rows = tx.all(
            f"SELECT role, content, body FROM event WHERE session_no = $1 AND {_SHOWN} ORDER BY seq", found[0]
        )
    else:
        rows = [(row[3], row[4], row[5]) for row in islice(_newest_first(tx, found[0], LAST, limit), limit)]
        rows.reverse()
    return [
        {"role": role, "content": content} if body is None else {"role": role, "content": content, **json.loads(body)}
        for role, content, body in rows
    ]


_EVENT = "SELECT seq, kind, at, role, content, body, person_id, platform_message_id, hidden_by FROM event"
LAST = 2**62  # after every place in a log
_MOST_AT_ONCE = 1000


def _newest_first(tx: Transaction, session_no: int, before: int, expected: int) -> Iterator[Row]:
    """The visible messages before a place in the log, newest first, as `_EVENT` selects them.

    What was hidden together is stepped over together, so the cost does not depend on how much that was.
    """
    step = min(expected + 8, _MOST_AT_ONCE)
    while True:
        rows = tx.all(
            f"{_EVENT} WHERE session_no = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", session_no, before, step
        )
        for row in rows:
            if row[1] == "message" and row[8] is None:
                yield row
        if len(rows) < step:
            return
        before, hidden_by = rows[-1][0], rows[-1][8]
        if hidden_by is not None:
            before = min(before, _first_hidden(tx, session_no, hidden_by))
        step = min(step * 2, _MOST_AT_ONCE)


def _first_hidden(tx: Transaction, session_no: int, hidden_by: int) -> int:
    """From where on an undo or a rewrite has hidden every message before it."""
    row = tx.one("SELECT body FROM event WHERE session_no = $1 AND seq = $2", session_no, hidden_by)
    return int(json.loads(row[0])["first"]) if row else hidden_by


def messages(tx: Transaction, session_no: int, *, before: int | None = None, limit: int | None = None) -> list[Event]:
    """The last visible messages before a place in the log, oldest first."""
    newest = _newest_first(tx, session_no, LAST if before is None else before, limit or _MOST_AT_ONCE)
    return [event_from_row(row) for row in reversed(list(islice(newest, limit)))]


def log(tx: Transaction, session_no: int, *, after: int = 0, limit: int = 1000) -> list[Event]:
    """Everything that happened after a place in the log, hidden messages included."""
    found = tx.all(f"{_EVENT} WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3", session_no, after, limit)
    return [event_from_row(row) for row in found]


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
    rows = [_encoded(message, None) for message in new]
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
    added = rows[same:]
    tx.many(_ONE, [(session_no, seq + i, now, *row) for i, row in enumerate(added, 1)])
    tx.run(
        "UPDATE session SET last_seq = last_seq + $2, redo_seq = NULL, unindexed = 1,"
        " active_at = COALESCE(active_at, $3)"
        " WHERE no = $1",
        session_no,
        len(added),
        now,
    )
    recount(tx, session_no, len(added) - hidden)


def recount(tx: Transaction, session_no: int, change: int) -> None:
    """Bring the counters that lists show in step with what is visible now."""
    last, shown = None, ""
    for row in _newest_first(tx, session_no, LAST, 8):
        last = row[2] if last is None else last
        if row[4] and row[3] in _PREVIEWED and (shown := preview(row[4])):
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
        _INSERT + " SELECT $2, $3 + ROW_NUMBER() OVER (ORDER BY seq), kind, at, role, content, body, person_id,"
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


def event_from_row(row: Row) -> Event:
    """An event as it was stored."""
    seq, kind, at, role, content, body, person_id, platform_message_id, hidden_by = row
    facts: dict[str, Any] = json.loads(body) if body else {}
    message = None
    if kind == EventKind.MESSAGE:
        message = decoded(role, content, facts, platform_message_id)
        facts = {}
    return Event(
        seq=seq,
        kind=EventKind(kind),
        at=moment(at),
        message=message,
        facts=facts,
        person_id=None if person_id is None else PersonId(person_id),
        hidden=hidden_by is not None,
    )


def decoded(role: str, content: str | None, body: Mapping[str, Any], platform_message_id: str | None) -> Message:
    """A message as it was said."""
    extra = dict(body)
    author = extra.pop("author", None)
    whole = extra.pop("content", content)
    return Message(
        role,
        whole,
        None if author is None else Author(author["name"], author.get("id")),
        platform_message_id,
        extra,
    )


def _redo_seq(tx: Transaction, session_no: int) -> int | None:
    row = tx.one(f"SELECT redo_seq FROM session WHERE no = $1 {tx.lock}", session_no)
    if row is None:
        raise NoSuchSession
    return None if row[0] is None else int(row[0])


def _encoded(message: Message, person_id: PersonId | None) -> _EncodedRow:
    """The columns of a message. What the text column cannot hold exactly is kept whole in the JSON."""
    content = message.content
    body: dict[str, Any] = dict(message.extra)
    text: str | None
    if content is None or (isinstance(content, str) and is_storable(content)):
        text = content
    else:
        body["content"] = content
        text = storable(message.text)
    if message.author is not None:
        body["author"] = message.author.to_dict()
    return (message.role, text, _json(body) if body else None, person_id, message.platform_message_id)


def _json(body: dict[str, Any]) -> str:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"a message holds only what JSON can hold: {error}") from None

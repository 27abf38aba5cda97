"""What people read of conversations: parts of a log, how far somebody has come, and what goes on in a session.

A part of a log leaves out hidden messages and keeps everything else that happened. A mark only ever moves on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.events import EventKind
from palaver.domain.ids import PersonId
from palaver.domain.inbound import place_of
from palaver.domain.session_summary import Excerpt, Overview
from palaver.domain.turn import BusyPolicy
from palaver.storage import session_settings
from palaver.storage.lanes import TAKES_PLACE
from palaver.storage.message_rows import EVENT, event_from_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.domain.events import Event
    from palaver.domain.session import Session
    from palaver.storage.engines.base import Row, Transaction

_READABLE = "session_no = $1 AND (kind <> 'message' OR hidden_by IS NULL)"


# -- sessions -----------------------------------------------------------------------------------------------


def overviews(tx: Transaction, found: Sequence[Session], person_id: PersonId) -> list[Overview]:
    """Sessions as a page shows them to somebody, in the same order; in two statements, however many they are."""
    if not found:
        return []
    places = ", ".join(f"${number}" for number in range(2, len(found) + 2))
    ids = [session.id for session in found]
    rows = {
        row[0]: row
        for row in tx.all(
            "SELECT s.id, s.last_seq, s.chosen_model, s.busy_policy, s.toolsets_off, COALESCE(m.seq, 0), s.no,"
            " CASE WHEN s.shared = 0"
            " THEN (SELECT p.name FROM person p WHERE p.audience_no = s.audience_no LIMIT 1) END,"
            f" CASE WHEN {TAKES_PLACE} THEN 1 ELSE 0 END FROM session s"
            f" LEFT JOIN read_mark m ON m.session_no = s.no AND m.person_id = $1 WHERE s.id IN ({places})",
            person_id,
            *ids,
        )
    }
    busy = _busy(tx, [row[6] for row in rows.values()])
    return [_overview(session, rows[session.id], busy) for session in found if session.id in rows]


def _busy(tx: Transaction, numbers: Sequence[int]) -> dict[tuple[int, str], int]:
    """How many turns run and wait in these sessions, by session and state."""
    if not numbers:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(numbers) + 1))
    counted = tx.all(
        f"SELECT session_no, state, COUNT(*) FROM turn WHERE session_no IN ({places})"
        " AND state IN ('queued', 'running') GROUP BY session_no, state",
        *numbers,
    )
    return {(no, state): count for no, state, count in counted}


def _overview(session: Session, row: Row, busy: dict[tuple[int, str], int]) -> Overview:
    _, last_seq, model, policy, toolsets_off, read, no, owner, takes_place = row
    return Overview(
        session=session,
        last_seq=last_seq,
        read_seq=min(read, last_seq),
        chosen_model=model,
        busy=None if policy is None else BusyPolicy(policy),
        toolsets_off=session_settings.names_from(toolsets_off),
        running=bool(busy.get((no, "running"))),
        queued=busy.get((no, "queued"), 0),
        owner=owner,
        takes_place=bool(takes_place) and place_of(session.origin) is not None,
    )


# -- marks --------------------------------------------------------------------------------------------------


def mark(tx: Transaction, session_no: int, person_id: PersonId, seq: int, now: int) -> int:
    """Somebody has seen everything up to a place in a log; how far they have come, which is never back."""
    row = tx.one(
        "INSERT INTO read_mark (session_no, person_id, seq, at) SELECT no, $2, CASE WHEN last_seq < $3 THEN last_seq"
        " ELSE CAST($3 AS BIGINT) END, $4 FROM session WHERE no = $1 ON CONFLICT (session_no, person_id) DO UPDATE"
        " SET seq = CASE WHEN excluded.seq > read_mark.seq THEN excluded.seq ELSE read_mark.seq END, at = excluded.at"
        " RETURNING seq",
        session_no,
        person_id,
        seq,
        now,
    )
    return int(row[0]) if row else 0


def marked(tx: Transaction, session_no: int, person_id: PersonId) -> int:
    """How far somebody has come; 0 when they have not begun."""
    row = tx.one("SELECT seq FROM read_mark WHERE session_no = $1 AND person_id = $2", session_no, person_id)
    return int(row[0]) if row else 0


def marks(tx: Transaction, session_no: int) -> dict[PersonId, int]:
    """How far everybody has come in a session."""
    rows = tx.all("SELECT person_id, seq FROM read_mark WHERE session_no = $1", session_no)
    return {PersonId(person_id): int(seq) for person_id, seq in rows}


# -- parts of a log -----------------------------------------------------------------------------------------


def last(tx: Transaction, session_no: int, *, before: int | None, limit: int) -> Excerpt:
    """What comes before a place in a log, or its end."""
    found, more = _backwards(tx, session_no, 2**62 if before is None else before, limit)
    after = before is not None and bool(_forwards(tx, session_no, before - 1, 1)[0])
    return _excerpt(tx, found, more_before=more, more_after=after)


def following(tx: Transaction, session_no: int, *, after: int, limit: int) -> Excerpt:
    """What comes after a place in a log."""
    found, more = _forwards(tx, session_no, after, limit)
    before = bool(_backwards(tx, session_no, after + 1, 1)[0])
    return _excerpt(tx, found, more_before=before, more_after=more)


def around(tx: Transaction, session_no: int, *, seq: int, limit: int) -> Excerpt:
    """What stands around a place in a log, that place included."""
    half = max(limit // 2, 1)
    earlier, more_before = _backwards(tx, session_no, seq, half)
    later, more_after = _forwards(tx, session_no, seq - 1, max(limit - len(earlier), 1))
    return _excerpt(tx, [*earlier, *later], more_before=more_before, more_after=more_after)


def _backwards(tx: Transaction, session_no: int, before: int, limit: int) -> tuple[list[Event], bool]:
    rows = tx.all(f"{EVENT} WHERE {_READABLE} AND seq < $2 ORDER BY seq DESC LIMIT $3", session_no, before, limit + 1)
    return [event_from_row(row) for row in reversed(rows[:limit])], len(rows) > limit


def _forwards(tx: Transaction, session_no: int, after: int, limit: int) -> tuple[list[Event], bool]:
    rows = tx.all(f"{EVENT} WHERE {_READABLE} AND seq > $2 ORDER BY seq LIMIT $3", session_no, after, limit + 1)
    return [event_from_row(row) for row in rows[:limit]], len(rows) > limit


def whole(tx: Transaction, session_no: int, *, after: int, limit: int) -> Excerpt:
    """The log itself after a place in it, hidden messages included."""
    rows = tx.all(f"{EVENT} WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3", session_no, after, limit + 1)
    found = [event_from_row(row) for row in rows[:limit]]
    return _excerpt(tx, found, more_before=after > 0, more_after=len(rows) > limit)


def question_at(tx: Transaction, session_no: int, seq: int) -> Event | None:
    """The visible message of a person with this number."""
    row = tx.one(f"{EVENT} WHERE {_READABLE} AND seq = $2", session_no, seq)
    event = event_from_row(row) if row else None
    asked = event is not None and event.kind is EventKind.MESSAGE and event.message and event.message.role == "user"
    return event if asked else None


def names(tx: Transaction, people: Iterable[PersonId]) -> dict[PersonId, str]:
    """What these people are called."""
    wanted = sorted(set(people))
    if not wanted:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(wanted) + 1))
    rows = tx.all(f"SELECT id, name FROM person WHERE id IN ({places})", *wanted)
    return {PersonId(person_id): name for person_id, name in rows}


def _excerpt(tx: Transaction, found: list[Event], *, more_before: bool, more_after: bool) -> Excerpt:
    known = names(tx, (event.person_id for event in found if event.person_id is not None))
    return Excerpt(events=found, more_before=more_before, more_after=more_after, names=known)

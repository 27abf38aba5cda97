"""What those who have a page open must be told of: sessions that have changed or gone, and who may see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.ids import PersonId, SessionId
from palaver.storage import events, sessions, transcript_queries, turns
from palaver.storage.session_rows import COLUMNS, found_from_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from palaver.domain.events import Event
    from palaver.domain.session_summary import Overview
    from palaver.domain.turn import Turn
    from palaver.storage.engines.base import Transaction

_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A session as it is now, and everybody who may see it, with how far each has read."""

    overview: Overview  # without anybody's mark
    members: frozenset[PersonId]
    marks: Mapping[PersonId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departed:
    """A session that was deleted, and everybody who could see it."""

    no: int
    session_id: SessionId
    members: frozenset[PersonId]


def changed(tx: Transaction, numbers: Iterable[int], ids: Iterable[str] = ()) -> list[Changed]:
    """Sessions by number or id; those that are gone are left out."""
    found = []
    wanted: list[tuple[str, object]] = [*(("s.no", no) for no in numbers), *(("s.id", each) for each in ids)]
    for column, value in wanted:
        row = tx.one(f"SELECT {COLUMNS}, s.no, s.audience_no FROM session s WHERE {column} = $1", value)
        if row is not None:
            found.append(found_from_row(row))
    told: list[Changed] = []
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]
        overviews = {
            each.session.id: each for each in transcript_queries.overviews(tx, [f.session for f in some], PersonId(""))
        }
        told += [
            Changed(
                overview=overviews[each.session.id],
                members=_members(tx, each.audience_no),
                marks=transcript_queries.marks(tx, each.no),
            )
            for each in some
        ]
    return told


def last_departed(tx: Transaction) -> int:
    """The number of the last session that has gone."""
    row = tx.one("SELECT MAX(no) FROM departed")
    return int(row[0] or 0) if row else 0


def departed(tx: Transaction, after: int) -> list[Departed]:
    """The sessions that have gone since."""
    rows = tx.all("SELECT no, session_id, audience_no FROM departed WHERE no > $1 ORDER BY no", after)
    return [
        Departed(no=no, session_id=SessionId(session_id), members=_members(tx, audience_no))
        for no, session_id, audience_no in rows
    ]


def _members(tx: Transaction, audience_no: int) -> frozenset[PersonId]:
    rows = tx.all("SELECT person_id FROM audience_member WHERE audience_no = $1", audience_no)
    return frozenset(PersonId(person_id) for (person_id,) in rows)


# -- one conversation ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """What somebody has missed in a conversation, as one state of the store."""

    last_seq: int
    events: Sequence[Event]
    names: Mapping[PersonId, str]
    turns: Sequence[Turn]  # of those they had been told of
    asked_at: int | None  # where the oldest turn that is open was asked for


def missed(
    tx: Transaction, session_id: str, person_id: PersonId | None, after: int | None, told: Iterable[str], limit: int
) -> Missed:
    """The next events after a place, if this person may see the session (None: whoever may see everything)."""
    no = sessions.seen(tx, session_id, person_id).no
    last = events.last_seq(tx, no)
    found = [] if after is None else events.log(tx, no, after=after, limit=limit)
    known = [turn for turn_id in told if (turn := turns.get(tx, turn_id)) is not None and turn.session_id == session_id]
    return Missed(
        last_seq=last,
        events=found,
        names=transcript_queries.names(tx, (event.person_id for event in found if event.person_id is not None)),
        turns=known,
        asked_at=min((turn.input_seq for _, turn in turns.open_turns(tx, no)), default=None),
    )


def still_seen(tx: Transaction, session_ids: Sequence[str]) -> dict[str, frozenset[PersonId]]:
    """Who may see each of these sessions; those that are gone are left out."""
    found: dict[str, set[PersonId]] = {}
    for start in range(0, len(session_ids), _AT_ONCE):
        some = session_ids[start : start + _AT_ONCE]
        places = ", ".join(f"${number}" for number in range(1, len(some) + 1))
        rows = tx.all(
            "SELECT s.id, m.person_id FROM session s LEFT JOIN audience_member m ON m.audience_no = s.audience_no"
            f" WHERE s.id IN ({places})",
            *some,
        )
        for session_id, person_id in rows:
            found.setdefault(session_id, set()).add(PersonId(person_id or ""))
    return {session_id: frozenset(members) for session_id, members in found.items()}

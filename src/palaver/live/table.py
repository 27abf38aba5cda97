"""Reads for open pages: the sessions that have changed or were deleted, who may see them, and what a page missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.engines.base import build_placeholders, fetch_value
from palaver.core.ids import PersonId, SessionId
from palaver.people import table as people
from palaver.sessions import (
    hidden_ranges as read_marks,
    list_table as session_summaries,
    log_table as events,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.table import SELECT_SESSION, make_session_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.sessions.events import Event
    from palaver.sessions.model import SessionSummary
    from palaver.sessions.turn import Turn

_MAX_SESSIONS_PER_STATEMENT = 100


# -- the lists of all pages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSession:
    """A session as it is now, the people who may see it, and how far each of them has read."""

    summary: SessionSummary  # its `read_seq` is not set: it differs for each person
    members: frozenset[PersonId]
    read_seqs: Mapping[PersonId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedSession:
    """A session that was deleted, and the people who could see it."""

    no: int  # of the deletion, not of the session
    session_id: SessionId
    members: frozenset[PersonId]


def load_changed_sessions(
    tx: Transaction, session_nos: Iterable[int], session_ids: Iterable[str] = ()
) -> list[ChangedSession]:
    """Return sessions by number or id; deleted ones are left out."""
    conditions: list[tuple[str, object]] = [
        *(("s.no", no) for no in session_nos),
        *(("s.id", session_id) for session_id in session_ids),
    ]
    session_rows = []
    for column, value in conditions:
        row = tx.fetch_one(
            f"{SELECT_SESSION} WHERE {column} = $1 AND s.is_deleted = 0",
            value,
        )
        if row is not None:
            session_rows.append(make_session_row(row))
    changed: list[ChangedSession] = []
    for start in range(0, len(session_rows), _MAX_SESSIONS_PER_STATEMENT):
        batch = session_rows[start : start + _MAX_SESSIONS_PER_STATEMENT]
        summaries = {
            summary.session.id: summary
            for summary in session_summaries.load_summaries(tx, [row.session for row in batch], PersonId(""))
        }
        changed += [
            ChangedSession(
                summary=summaries[row.session.id],
                members=_load_members(tx, row.audience_no),
                read_seqs=read_marks.list_read_seqs(tx, row.no),
            )
            for row in batch
        ]
    return changed


def get_last_deletion_no(tx: Transaction) -> int:
    """Return the number of the last deletion, from which `list_deleted_after` counts."""
    return fetch_value(tx, "SELECT MAX(no) FROM deleted_session") or 0


def list_deleted_after(tx: Transaction, after: int) -> list[DeletedSession]:
    """Return the sessions that were deleted after deletion number `after`."""
    rows = tx.fetch_all("SELECT no, session_id, audience_no FROM deleted_session WHERE no > $1 ORDER BY no", after)
    return [
        DeletedSession(no=no, session_id=SessionId(session_id), members=_load_members(tx, audience_no))
        for no, session_id, audience_no in rows
    ]


def list_viewers(tx: Transaction, session_ids: Sequence[str]) -> dict[str, frozenset[PersonId]]:
    """Return the people who may see each of these sessions; deleted sessions are left out."""
    viewers: dict[str, set[PersonId]] = {}
    for start in range(0, len(session_ids), _MAX_SESSIONS_PER_STATEMENT):
        batch = session_ids[start : start + _MAX_SESSIONS_PER_STATEMENT]
        rows = tx.fetch_all(
            "SELECT s.id, m.person_id FROM session s LEFT JOIN audience_member m ON m.audience_no = s.audience_no"
            f" WHERE s.id IN ({build_placeholders(len(batch))})",
            *batch,
        )
        for session_id, person_id in rows:
            viewers.setdefault(session_id, set()).add(PersonId(person_id or ""))
    return {session_id: frozenset(person_ids) for session_id, person_ids in viewers.items()}


def _load_members(tx: Transaction, audience_no: int) -> frozenset[PersonId]:
    rows = tx.fetch_all("SELECT person_id FROM audience_member WHERE audience_no = $1", audience_no)
    return frozenset(PersonId(person_id) for (person_id,) in rows)


# -- one session --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedUpdates:
    """What a page has missed in a session, all read from one state of the database."""

    last_seq: int
    events: Sequence[Event]
    names: Mapping[PersonId, str]
    turns: Sequence[Turn]  # the current state of the turns that the page knows
    oldest_open_seq: int | None  # the message that the oldest open turn answers


def load_missed_updates(
    tx: Transaction,
    session_id: str,
    person_id: PersonId | None,
    after: int | None,
    known_turn_ids: Iterable[str],
    limit: int,
) -> MissedUpdates:
    """Return what follows event `after`, if this person may see the session (None: the asker may see everything)."""
    no = sessions.get_visible(tx, session_id, person_id).no
    last_seq = events.get_last_seq(tx, no)
    missed_events = [] if after is None else events.list_events(tx, no, after=after, limit=limit)
    known_turns = [
        turn
        for turn_id in known_turn_ids
        if (turn := turns.find(tx, turn_id)) is not None and turn.session_id == session_id
    ]
    return MissedUpdates(
        last_seq=last_seq,
        events=missed_events,
        names=people.load_names(tx, (event.person_id for event in missed_events if event.person_id is not None)),
        turns=known_turns,
        oldest_open_seq=min((turn.input_seq for _, turn in turns.list_open(tx, no)), default=None),
    )

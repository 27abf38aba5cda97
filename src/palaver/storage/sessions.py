"""Sessions: beginning, finding, changing, deleting. Lists are in `session_lists.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput, NoSuchSession, TitleTaken
from palaver.domain.events import EventKind
from palaver.domain.ids import known_session_id, new_session_id
from palaver.domain.session import StartReason
from palaver.domain.titles import base_of, clean_title, numbered, title_slot
from palaver.storage import deliveries, events, people
from palaver.storage.session_rows import COLUMNS, WIDTH, SessionRow, found_from_row
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.ids import PersonId, ProjectId, SessionKey
    from palaver.domain.session import EndReason, Session
    from palaver.domain.source import SessionSource
    from palaver.domain.titles import TitleSlot
    from palaver.storage.engines.base import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a new session stands."""

    key: SessionKey
    source: SessionSource
    audience_no: int
    shared: bool


def create(
    tx: Transaction,
    place: Place,
    reason: StartReason,
    now: int,
    *,
    previous: Session | None = None,
    parent_no: int | None = None,
) -> int:
    """Begin a session and note why; its number."""
    row = tx.one(
        "INSERT INTO session (id, key, platform, chat_type, source, audience_no, shared, created_at, start_reason,"
        " started_after_activity, parent_no) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING no",
        new_session_id(from_micros(now)),
        place.key,
        str(place.source.platform),
        place.source.chat_type.value,
        source_json(place.source),
        place.audience_no,
        int(place.shared),
        now,
        reason.value,
        int(previous is not None and previous.message_count > 0),
        parent_no,
    )
    assert row is not None  # noqa: S101
    if previous is None:
        events.note(tx, row[0], EventKind.STARTED, now, reason=reason.value)
    else:
        events.note(tx, row[0], EventKind.STARTED, now, reason=reason.value, previous=previous.id)
    return int(row[0])


def source_json(source: SessionSource) -> str:
    """A source as it is stored."""
    return json.dumps(source.to_dict(), separators=(",", ":"))


def end(tx: Transaction, session_no: int, reason: EndReason, now: int, *, unless_on: str | None = None) -> None:
    """End a session; the first reason stands. One that another lane is still on goes on."""
    ended = tx.run(
        "UPDATE session SET ended_at = $2, end_reason = $3 WHERE no = $1 AND ended_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM route r WHERE r.session_no = $1 AND r.key <> $4)",
        session_no,
        now,
        reason.value,
        unless_on or "",
    )
    if ended:
        events.note(tx, session_no, EventKind.ENDED, now, reason=reason.value)


def reopen(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> None:
    """Let an ended session go on."""
    if tx.run(
        "UPDATE session SET ended_at = NULL, end_reason = NULL WHERE no = $1 AND ended_at IS NOT NULL",
        session_no,
    ):
        events.note(tx, session_no, EventKind.REOPENED, now, person_id)


def get(tx: Transaction, session_id: str) -> SessionRow:
    """A session by its id."""
    row = tx.one(f"SELECT {COLUMNS}, s.no, s.audience_no FROM session s WHERE s.id = $1", known_session_id(session_id))
    if row is None:
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
    return found_from_row(row)


def number_of(tx: Transaction, session_id: str) -> int:
    """The number of a session that is there."""
    row = tx.one("SELECT no FROM session WHERE id = $1", session_id)
    if row is None:
        raise NoSuchSession
    return int(row[0])


def by_number(tx: Transaction, session_no: int) -> SessionRow:
    """A session by its number."""
    row = tx.one(f"SELECT {COLUMNS}, s.no, s.audience_no FROM session s WHERE s.no = $1", session_no)
    if row is None:
        raise NoSuchSession
    return found_from_row(row)


# -- finding, for somebody ----------------------------------------------------------------------------------


def seen(tx: Transaction, session_id: str, person_id: PersonId | None) -> SessionRow:
    """A session by its id, if this person may see it (None: whoever may see everything)."""
    row = tx.one(
        f"SELECT {COLUMNS}, s.no, s.audience_no FROM session s WHERE s.id = $1 AND ($2 = '' OR EXISTS (SELECT 1"
        " FROM audience_member m WHERE m.person_id = $2 AND m.audience_no = s.audience_no))",
        known_session_id(session_id),
        person_id or "",
    )
    if row is None:
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
    return found_from_row(row)


def number_seen(tx: Transaction, session_id: str, person_id: PersonId | None) -> int:
    """The number of a session, if this person may see it (None: whoever may see everything)."""
    row = tx.one(
        "SELECT s.no FROM session s WHERE s.id = $1 AND ($2 = '' OR EXISTS (SELECT 1"
        " FROM audience_member m WHERE m.person_id = $2 AND m.audience_no = s.audience_no))",
        known_session_id(session_id),
        person_id or "",
    )
    if row is None:
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
    return int(row[0])


def with_id_prefix(tx: Transaction, prefix: str, audiences: Sequence[int] | None, limit: int) -> list[SessionRow]:
    """Sessions whose id begins like this, among these audiences (None: among all)."""
    end_of_range = prefix + "￿"
    if audiences is None:
        rows = tx.all(
            f"SELECT {COLUMNS}, s.no, s.audience_no FROM session s WHERE s.id >= $1 AND s.id < $2"
            " ORDER BY s.id DESC LIMIT $3",
            prefix,
            end_of_range,
            limit,
        )
        return [found_from_row(row) for row in rows]
    found: list[SessionRow] = []
    for audience_no in audiences:
        rows = tx.all(
            f"SELECT {COLUMNS}, s.no, s.audience_no FROM session s WHERE s.audience_no = $4 AND s.id >= $1"
            " AND s.id < $2 ORDER BY s.id DESC LIMIT $3",
            prefix,
            end_of_range,
            limit,
            audience_no,
        )
        found += [found_from_row(row) for row in rows]
    return found[:limit]


def titled(tx: Transaction, slot: TitleSlot, audiences: Sequence[int] | None, *, exact: bool) -> list[SessionRow]:
    """The newest session of a line of titles in each audience, the best of them first.

    With `exact`, those with just this number. Among all audiences (None), of up to a few.
    """
    number = "AND s.title_number = $2" if exact else "AND s.title_number >= $2"
    wanted = slot.number if exact else 1
    newest = "ORDER BY s.title_number DESC, s.active_at DESC"
    select = f"SELECT {COLUMNS}, s.no, s.audience_no, s.title_number FROM session s WHERE s.title_base = $1 {number}"
    if audiences is None:
        rows = tx.all(f"{select} {newest} LIMIT 50", slot.base, wanted)
        rows = list({row[WIDTH + 1]: row for row in reversed(rows)}.values())
    else:
        found = (
            tx.one(f"{select} AND s.audience_no = $3 {newest} LIMIT 1", slot.base, wanted, audience_no)
            for audience_no in audiences
        )
        rows = [row for row in found if row is not None]
    rows.sort(key=lambda row: (row[WIDTH + 2], row[9] or 0), reverse=True)
    return [found_from_row(row) for row in rows]


# -- changes ------------------------------------------------------------------------------------------------


def rename(tx: Transaction, found: SessionRow, title: str | None, now: int, by: PersonId | None) -> Session:
    """Give a session a title (None takes it away), unique for its owner."""
    clean = None if title is None else clean_title(title)
    if clean == found.session.title:
        return found.session
    slot = None if clean is None else title_slot(clean)
    if clean is not None and slot is not None:
        taken = [each for each in titled(tx, slot, _titles_among(tx, found), exact=True) if each.no != found.no]
        if taken:
            free = next_title(tx, found, clean)
            raise TitleTaken(
                f"you already have a conversation called {taken[0].session.title!r}; {free!r} is free",
                title=clean,
                free=free,
            )
    tx.run(
        "UPDATE session SET title = $2, title_base = $3, title_number = $4 WHERE no = $1",
        found.no,
        clean,
        slot and slot.base,
        slot and slot.number,
    )
    events.note(tx, found.no, EventKind.RENAMED, now, by, title=clean, was=found.session.title)
    return by_number(tx, found.no).session


def next_title(tx: Transaction, found: SessionRow, title: str) -> str:
    """The title itself when it is free for this session's owner, otherwise the next number of its line."""
    wanted = base_of(clean_title(title))
    among = _titles_among(tx, found)
    while line := titled(tx, title_slot(wanted), among, exact=False):
        number = title_slot(line[0].session.title or "").number + 1
        following = numbered(wanted, number)
        if not titled(tx, title_slot(following), among, exact=True):
            return following
        wanted = base_of(following)  # so long a title that its number shortens it: go on along the shorter line
    return wanted


def _titles_among(tx: Transaction, found: SessionRow) -> list[int]:
    return people.titles_among(tx, found.audience_no, shared=found.session.shared)


def mark(tx: Transaction, found: SessionRow, kind: EventKind, now: int, person_id: PersonId | None) -> Session:
    """Pin, unpin, archive or unarchive; doing it twice changes nothing."""
    column, value = {
        EventKind.PINNED: ("pinned_at", now),
        EventKind.UNPINNED: ("pinned_at", None),
        EventKind.ARCHIVED: ("archived_at", now),
        EventKind.UNARCHIVED: ("archived_at", None),
    }[kind]
    state = found.session.pinned if column == "pinned_at" else found.session.archived
    if state == (value is not None):
        return found.session
    tx.run(f"UPDATE session SET {column} = $2 WHERE no = $1", found.no, value)
    events.note(tx, found.no, kind, now, person_id)
    return by_number(tx, found.no).session


def move(
    tx: Transaction,
    found: SessionRow,
    project_id: ProjectId | None,
    project_no: int | None,
    now: int,
    by: PersonId | None,
) -> Session:
    """Put a session into a project, or take it out."""
    if found.session.project_id == project_id:
        return found.session
    tx.run("UPDATE session SET project_no = $2 WHERE no = $1", found.no, project_no)
    events.note(tx, found.no, EventKind.MOVED, now, by, project=project_id, was=found.session.project_id)
    return by_number(tx, found.no).session


def fork(
    tx: Transaction, found: SessionRow, at: int | None, now: int, *, person_id: PersonId | None, audience_no: int
) -> SessionRow:
    """A new session that begins with a copy of this one, up to and including the turn that `at` belongs to."""
    before = 2**62 if at is None else events.end_of_turn(tx, found.no, at)
    if before is None:
        raise InvalidInput(f"there is no message number {at} in this conversation", at=at)
    place = Place(
        key=found.session.key,
        source=found.session.origin,
        audience_no=audience_no,
        shared=found.session.shared and audience_no == found.audience_no,
    )
    no = create(tx, place, StartReason.FORK, now, previous=found.session, parent_no=found.no)
    events.copy(tx, found.no, no, before=before)
    tx.run(
        "UPDATE session SET active_at = CASE WHEN message_count > 0 THEN CAST($2 AS BIGINT) END, last_human_at = $2"
        " WHERE no = $1",
        no,
        now,
    )
    new = by_number(tx, no)
    events.note(tx, found.no, EventKind.FORKED, now, person_id, into=new.session.id, at=at)
    return new


def delete(tx: Transaction, found: SessionRow) -> None:
    """Delete a session with its whole log. Only what it cost is remembered, and others' deliveries go on."""
    tx.one(f"SELECT 1 FROM session WHERE no = $1 {tx.lock}", found.no)  # nothing more comes of it meanwhile
    addresses = deliveries.open_at(tx, found.no)
    if tx.name == "sqlite":  # elsewhere the index goes with its event
        tx.run("DELETE FROM search WHERE rowid IN (SELECT no FROM event WHERE session_no = $1)", found.no)
    tx.run("DELETE FROM session WHERE no = $1", found.no)
    deliveries.go_on_at(tx, addresses)

"""Lanes: which session a place is on, and every move from one session to another.

A lane's key is its address (`domain/keys.py`). A move ends the old session with a reason, never deletes it,
and is written down, so that `restore` can take it back, one move after the other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from palaver.domain import policy as policies
from palaver.domain.errors import NothingToRestore
from palaver.domain.ids import SessionId, SessionKey
from palaver.domain.keys import DmScope
from palaver.domain.message import Author, Message
from palaver.domain.session import EndReason, Recorded, SessionEntry, StartReason
from palaver.domain.source import SessionSource
from palaver.storage import append, people, session_activity, sessions
from palaver.storage.engines.base import Conflict
from palaver.storage.session_rows import COLUMNS, SessionRow, found_from_row
from palaver.storage.timestamps import EVER, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from palaver.domain.gateway_config import GatewayConfig
    from palaver.domain.ids import PersonId
    from palaver.domain.session import Session
    from palaver.storage.engines.base import Transaction


@dataclass(slots=True, kw_only=True)
class Arrival:
    """Something arrives from a source, now."""

    source: SessionSource
    config: GatewayConfig
    now: datetime
    busy_since: Callable[[SessionId], datetime | None]  # since when background work runs, if any does

    @property
    def at(self) -> int:
        """The present moment as stored."""
        return to_micros(self.now)


_CURRENT = f"""SELECT {COLUMNS}, s.no, s.audience_no FROM route r JOIN session s ON s.no = r.session_no
    WHERE r.key = $1"""


def key_of(tx: Transaction, arrival: Arrival) -> SessionKey:
    """The key of the lane this arrival belongs to."""
    person = None
    if arrival.config.dm_scope_at(arrival.source) is DmScope.PERSON:
        resident = people.find(tx, arrival.source)
        person = resident.person.id if resident else None
    return arrival.config.session_key(arrival.source, person=person)


def current(tx: Transaction, key: str) -> SessionRow | None:
    """The session a lane is on."""
    row = tx.one(_CURRENT, key)
    return found_from_row(row) if row else None


def _held(tx: Transaction, key: str) -> SessionRow | None:
    """The session a lane is on, and nobody may move the lane before this transaction ends."""
    row = tx.one(f"{_CURRENT} {tx.lock}", key)
    return found_from_row(row) if row else None


def audience_of(tx: Transaction, key: str) -> int:
    """The audience of a lane; 0, which is nobody's, when there is no such lane."""
    row = tx.one("SELECT audience_no FROM route WHERE key = $1", key)
    return int(row[0]) if row else 0


# A copy has its original's key, but nobody at that place knows it, until they go on with it there.
TAKES_PLACE = """(s.start_reason <> 'fork' OR EXISTS (SELECT 1 FROM route r WHERE r.session_no = s.no
    AND r.key = s.key))"""


def takes_place(tx: Transaction, session_no: int) -> bool:
    """Whether the place that a session's key names is where it takes place, now or earlier."""
    return tx.one(f"SELECT 1 FROM session s WHERE s.no = $1 AND {TAKES_PLACE}", session_no) is not None


def entry(tx: Transaction, key: str) -> SessionEntry | None:
    """The lane's entry as it is."""
    found = current(tx, key)
    return SessionEntry(SessionKey(key), found.session) if found else None


def entered(tx: Transaction, arrival: Arrival) -> SessionEntry | None:
    """The lane's entry, when it is on a session that goes on; None when one has to begin."""
    key = key_of(tx, arrival)
    found = _goes_on(tx, key, arrival)
    return SessionEntry(key, found.session) if found else None


def enter(tx: Transaction, arrival: Arrival, *, force_new: bool = False) -> SessionEntry:
    """The lane's entry; a session begins when there is none, when the policy says so, or when it must."""
    resident = (
        people.find_or_add(tx, arrival.source, arrival.at)
        if arrival.config.dm_scope_at(arrival.source) is DmScope.PERSON
        else None
    )
    key = arrival.config.session_key(arrival.source, person=resident.person.id if resident else None)
    found = _held(tx, key)
    if found is None or found.session.ended_at is not None:
        reason = StartReason.FIRST
    elif force_new:
        reason = StartReason.FORCED
    else:
        due = _due(found, arrival)
        if due is None:
            return SessionEntry(key, found.session)
        reason = StartReason(due.value)
    return _begin(tx, key, arrival, found, reason)


def reset(tx: Transaction, key: str, now: int, reason: StartReason = StartReason.MANUAL) -> SessionEntry | None:
    """End the lane's session and begin another in the same place; None when the lane does not exist."""
    found = _held(tx, key)
    lane = tx.one("SELECT source, audience_no, shared FROM route WHERE key = $1", key)
    if found is None or lane is None:
        return None
    source, audience_no, shared = lane
    place = sessions.Place(
        key=SessionKey(key),
        source=SessionSource.from_dict(json.loads(source)),
        audience_no=audience_no,
        shared=bool(shared),
    )
    no = sessions.create(tx, place, reason, now, previous=found.session)
    _move(tx, key, found.no, no, EndReason(reason.value), now)
    return SessionEntry(SessionKey(key), sessions.by_number(tx, no).session, is_new=True)


def switch(tx: Transaction, key: str, target: SessionRow, now: int, by: PersonId | None = None) -> SessionEntry | None:
    """Put a lane on another session, which goes on with its own totals; None when the lane does not exist."""
    found = _held(tx, key)
    if found is None:
        return None
    if found.no != target.no:
        _move(tx, key, found.no, target.no, EndReason.SWITCHED, now)
    sessions.reopen(tx, target.no, now, by)
    session_activity.touch(tx, target.no, now)  # whoever goes there is there: the reset policy counts from now
    return SessionEntry(SessionKey(key), sessions.by_number(tx, target.no).session)


def restore(tx: Transaction, key: str, now: int, by: PersonId | None = None) -> SessionEntry:
    """Take the lane's last move back."""
    found = _held(tx, key)
    if found is None:
        raise NothingToRestore
    change = tx.one(
        "SELECT no, from_no FROM route_change WHERE key = $1 AND undone_at IS NULL AND from_no <> $2"
        " ORDER BY no DESC LIMIT 1",
        key,
        found.no,
    )
    if change is None:
        raise NothingToRestore
    change_no, from_no = change
    _point(tx, key, found.no, from_no, now)
    sessions.end(tx, found.no, EndReason.RESTORED, now, unless_on=key)
    sessions.reopen(tx, from_no, now, by)
    session_activity.touch(tx, from_no, now)
    tx.run(
        "UPDATE route_change SET undone_at = $3 WHERE key = $1 AND no >= $2 AND undone_at IS NULL", key, change_no, now
    )
    return SessionEntry(SessionKey(key), sessions.by_number(tx, from_no).session)


def last_move(tx: Transaction, key: str) -> int | None:
    """When the lane made the move that `restore` would take back; None when there is none."""
    row = tx.one(
        "SELECT c.at FROM route_change c JOIN route r ON r.key = c.key WHERE c.key = $1 AND c.undone_at IS NULL"
        " AND c.from_no <> r.session_no ORDER BY c.no DESC LIMIT 1",
        key,
    )
    return int(row[0]) if row else None


def say(tx: Transaction, arrival: Arrival, message: Message, *, human: bool) -> Recorded:
    """Enter the lane and append the message, as one change."""
    shortly = say_shortly(tx, arrival, message, human=human)
    if shortly is not None:
        return shortly
    entry = enter(tx, arrival)
    person_id = None
    if entry.session.shared or arrival.config.is_shared(arrival.source):
        message, person_id = _authored(tx, entry.session, arrival, message)
    seq = append.append(tx, entry.session_id, [message], arrival.at, human=human, person_id=person_id)
    return Recorded(
        session_key=entry.session_key,
        session_id=entry.session_id,
        seq=seq,
        began=entry.session.start_reason if entry.is_new else None,
        after_activity=entry.is_new and entry.reset_had_activity,
    )


def say_shortly(tx: Transaction, arrival: Arrival, message: Message, *, human: bool) -> Recorded | None:
    """The same by one changing statement, in one person's session that goes on; None otherwise."""
    key = key_of(tx, arrival)
    horizon = policies.horizon(arrival.config.reset_policy_for(arrival.source), arrival.now)
    not_before = EVER if horizon is None else to_micros(horizon)
    said = append.append_on_lane(tx, key, not_before, message, arrival.at, human=human)
    if said is None:
        return None
    session_id, seq = said
    return Recorded(session_key=key, session_id=session_id, seq=seq, began=None, after_activity=False)


def say_in(
    tx: Transaction, found: SessionRow, arrival: Arrival, message: Message, person_id: PersonId | None
) -> Recorded:
    """Append what somebody says in a conversation they look at, whatever lane it is on; an ended one goes on."""
    sessions.reopen(tx, found.no, arrival.at, person_id)
    if found.session.shared:
        message, person_id = _authored(tx, found.session, arrival, message)
    seq = append.append(tx, found.session.id, [message], arrival.at, human=True, person_id=person_id)
    return Recorded(
        session_key=found.session.key, session_id=found.session.id, seq=seq, began=None, after_activity=False
    )


def _authored(tx: Transaction, session: Session, arrival: Arrival, message: Message) -> tuple[Message, PersonId | None]:
    """Where several people speak, a message carries its author, and whoever speaks may see a session they share.

    One person's session that goes on in a shared lane stays that person's.
    """
    resident = people.find_or_add(tx, arrival.source, arrival.at)
    signed = _signed(message, arrival.source)
    if resident is None:
        return signed, None
    if session.shared:
        people.join(tx, sessions.get(tx, session.id).audience_no, resident.person.id, arrival.at)
    return signed, resident.person.id


def _signed(message: Message, source: SessionSource) -> Message:
    if message.author is not None or not (source.user_name or source.participant):
        return message
    return replace(message, author=Author(source.user_name or "", source.participant))


def _goes_on(tx: Transaction, key: str, arrival: Arrival) -> SessionRow | None:
    found = current(tx, key)
    if found is None or found.session.ended_at is not None or _due(found, arrival) is not None:
        return None
    return found


def _due(found: SessionRow, arrival: Arrival) -> policies.ResetReason | None:
    policy = arrival.config.reset_policy_for(arrival.source)
    if policy.mode is policies.ResetMode.NONE:
        return None
    session = found.session
    return policies.due(
        policy,
        last_activity=session.last_human_at or session.created_at,
        now=arrival.now,
        busy_since=arrival.busy_since(session.id),
    )


def _begin(
    tx: Transaction, key: SessionKey, arrival: Arrival, found: SessionRow | None, reason: StartReason
) -> SessionEntry:
    now = arrival.at
    shared = arrival.config.is_shared(arrival.source)
    audience_no = _audience(tx, key, arrival, shared=shared)
    place = sessions.Place(key=key, source=arrival.source, audience_no=audience_no, shared=shared)
    no = sessions.create(tx, place, reason, now, previous=found.session if found else None)
    if found is None:
        _open_lane(tx, place, no, now)
    elif reason is StartReason.FIRST:
        _point(tx, key, found.no, no, now)
    else:
        _move(tx, key, found.no, no, EndReason(reason.value), now)
    return SessionEntry(key, sessions.by_number(tx, no).session, is_new=True)


def _audience(tx: Transaction, key: str, arrival: Arrival, *, shared: bool) -> int:
    """Who will see a session that begins in this lane."""
    resident = people.find_or_add(tx, arrival.source, arrival.at)
    if not shared and resident is not None:
        return resident.audience_no
    row = tx.one("SELECT audience_no FROM route WHERE key = $1 AND shared = 1", key)
    audience_no = int(row[0]) if row else people.new_audience(tx, arrival.at)
    if resident is not None:
        people.join(tx, audience_no, resident.person.id, arrival.at)
    return audience_no


def _open_lane(tx: Transaction, place: sessions.Place, session_no: int, now: int) -> None:
    """A new lane, or one whose session was deleted."""
    opened = tx.run(
        "INSERT INTO route (key, session_no, source, audience_no, shared, updated_at) VALUES ($1, $2, $3, $4, $5, $6)"
        " ON CONFLICT (key) DO UPDATE SET session_no = excluded.session_no, source = excluded.source,"
        " audience_no = excluded.audience_no, shared = excluded.shared, updated_at = excluded.updated_at"
        " WHERE route.session_no IS NULL",
        place.key,
        session_no,
        sessions.source_json(place.source),
        place.audience_no,
        int(place.shared),
        now,
    )
    if not opened:  # another process was quicker
        raise Conflict


def _move(tx: Transaction, key: str, from_no: int, to_no: int, reason: EndReason, now: int) -> None:
    """Point a lane at another session, end the one it leaves, and write the move down."""
    _point(tx, key, from_no, to_no, now)
    sessions.end(tx, from_no, reason, now, unless_on=key)
    tx.run(
        "INSERT INTO route_change (key, from_no, to_no, reason, at) VALUES ($1, $2, $3, $4, $5)",
        key,
        from_no,
        to_no,
        reason.value,
        now,
    )


def _point(tx: Transaction, key: str, from_no: int, to_no: int, now: int) -> None:
    if not tx.run(
        "UPDATE route SET session_no = $3, updated_at = $4 WHERE key = $1 AND session_no = $2",
        key,
        from_no,
        to_no,
        now,
    ):
        raise Conflict  # another process moved it first

"""Turns that run: claimed, kept under a lease, ended, and taken over from the dead.

Always true: a session has one running turn at most, by a unique index; whoever runs a turn holds a lease, and every
change it makes is refused (`LeaseLost`) once the lease has gone to somebody else. Sessions take turns: one turn of
each that waits comes before a second turn of any.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import LeaseLost
from palaver.domain.ids import PersonId, SessionId, TurnId
from palaver.domain.text import storable
from palaver.domain.turn import StopRequest, TurnKind, TurnState
from palaver.storage.turns import QUEUED, quotes_in, quoting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from palaver.storage.engines.base import Transaction

CLAIMS = "palaver turns"  # held by whoever claims, so that limits hold exactly
_PAGE = 50


# -- claiming -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A turn that somebody runs, and the right to write for it."""

    turn_no: int
    turn_id: TurnId
    session_no: int
    session_id: SessionId
    platform: str  # where the session takes place, and who may see it: what is used is theirs, also when it is gone
    audience_no: int
    owner: str
    attempt: int
    kind: TurnKind
    input_seq: int
    person_id: PersonId | None
    address: str | None
    reply_to: str | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """Who claims, until when, and how much."""

    owner: str
    until: int
    most: int  # free workers
    concurrency: int  # turns running at once, in all processes
    per_person: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a worker has to know: what it has claimed, what waits, and what people want of what it runs."""

    waiting: bool  # something could be claimed now
    next_due: int | None  # when the next of those that wait for their time is due
    wishes: Mapping[TurnId, StopRequest]
    claimed: Sequence[Lease] = ()


# Not yet. What was asked for in the future was asked for before the clock was set back, and waits no longer.
_WAITS = "due_at > $1 AND created_at <= $1"


def survey(tx: Transaction, owner: str, now: int) -> Survey:
    """What there is to do."""
    first = tx.one(f"SELECT 1 FROM turn WHERE state = 'queued' AND NOT ({_WAITS}) ORDER BY round, no LIMIT 1", now)
    due = tx.one(
        f"SELECT due_at FROM turn WHERE state = 'queued' AND due_at > 0 AND {_WAITS} ORDER BY due_at LIMIT 1", now
    )
    wished = tx.all(
        "SELECT id, wish FROM turn WHERE state = 'running' AND lease_owner = $1 AND wish IS NOT NULL", owner
    )
    return Survey(
        waiting=first is not None,
        next_due=due[0] if due else None,
        wishes={TurnId(turn_id): StopRequest(wish) for turn_id, wish in wished},
    )


def claim(tx: Transaction, claimer: Claimer, now: int) -> list[Lease]:
    """Take the turns that are next, within the limits."""
    tx.hold(CLAIMS)
    running = tx.all("SELECT session_no, person_id FROM turn WHERE state = 'running'")
    busy = {session_no for session_no, _ in running}
    people: dict[str | None, int] = {}
    for _, person_id in running:
        people[person_id] = people.get(person_id, 0) + 1
    free = min(claimer.most, claimer.concurrency - len(running))
    claimed: list[Lease] = []
    after = (-1, -1)
    while len(claimed) < free:
        rows = tx.all(
            f"SELECT t.round, t.no, t.session_no, t.person_id, {_WAITS} FROM turn t WHERE t.state = 'queued'"
            f" AND (t.round, t.no) > ($2, $3) ORDER BY t.round, t.no LIMIT {_PAGE}",
            now,
            *after,
        )
        for row in rows:
            round_, no, session_no, person_id, waits = row
            after = (round_, no)
            if session_no in busy or (person_id is not None and people.get(person_id, 0) >= claimer.per_person):
                continue
            busy.add(session_no)  # claimed, or first in its session and not yet due: those behind it wait too
            lease = None if waits else _take(tx, no, claimer, now)
            if lease is None:
                continue
            people[person_id] = people.get(person_id, 0) + 1
            claimed.append(lease)
            if len(claimed) == free:
                break
        if len(rows) < _PAGE:
            break
    return claimed


# What a lease is made of.
_COLUMNS = "id, session_no, attempt, kind, input_seq, person_id, address, reply_to, facts, " + ", ".join(
    f"(SELECT s.{column} FROM session s WHERE s.no = turn.session_no)" for column in ("id", "platform", "audience_no")
)


def _take(tx: Transaction, turn_no: int, claimer: Claimer, now: int) -> Lease | None:
    """A lease on a turn; None when it has just been dropped, steered or deleted, which needs nobody's claim."""
    row = tx.one(
        "UPDATE turn SET state = 'running', attempt = attempt + 1, lease_owner = $2, lease_until = $3, started_at = $4"
        f" WHERE no = $1 AND state = 'queued' RETURNING {_COLUMNS}",
        turn_no,
        claimer.owner,
        claimer.until,
        now,
    )
    return _lease(turn_no, claimer.owner, row) if row else None


def _lease(turn_no: int, owner: str, row: Sequence[Any]) -> Lease:
    return Lease(
        turn_no=turn_no,
        turn_id=TurnId(row[0]),
        session_no=row[1],
        session_id=SessionId(row[9]),
        platform=row[10],
        audience_no=row[11],
        owner=owner,
        attempt=row[2],
        kind=TurnKind(row[3]),
        input_seq=row[4],
        person_id=row[5],
        address=row[6],
        reply_to=row[7],
        facts=json.loads(row[8]) if row[8] else {},
    )


# -- under a lease ------------------------------------------------------------------------------------------

_MINE = "no = $1 AND state = 'running' AND lease_owner = $2 AND attempt = $3"


def _mine(lease: Lease) -> tuple[int, str, int]:
    return lease.turn_no, lease.owner, lease.attempt


def extend(tx: Transaction, leases: Iterable[Lease], until: int) -> set[int]:
    """Keep these turns for longer; the numbers of those that are still the owner's."""
    return {
        lease.turn_no
        for lease in leases
        if tx.run(f"UPDATE turn SET lease_until = $4 WHERE {_MINE}", *_mine(lease), until)
    }


def check(tx: Transaction, lease: Lease) -> None:
    """Refuse to go on when the lease has gone to somebody else."""
    if tx.one(f"SELECT 1 FROM turn WHERE {_MINE} {tx.lock}", *_mine(lease)) is None:
        raise LeaseLost


def mark_acted(tx: Transaction, lease: Lease) -> None:
    """From here on this turn is not repeated by itself."""
    if not tx.run(f"UPDATE turn SET acted = 1 WHERE {_MINE}", *_mine(lease)):
        raise LeaseLost


# What whoever a run answers says meanwhile, where it is answered. Another person's words are not done in their name,
# and nobody waits in one place for an answer that is sent to another.
_STEERING = f"""session_no = $1 AND {QUEUED} AND steers = 1 AND kind = 'answer'
    AND COALESCE(person_id, '') = $2 AND COALESCE(address, $3) = $3"""


def _steering(lease: Lease) -> tuple[int, str, str]:
    return lease.session_no, lease.person_id or "", lease.address or ""


def any_steering(tx: Transaction, lease: Lease) -> bool:
    """Whether there is something to be said to a run."""
    return tx.one(f"SELECT 1 FROM turn WHERE {_STEERING} LIMIT 1", *_steering(lease)) is not None


def take_steering(tx: Transaction, lease: Lease, now: int) -> list[int]:
    """Take over the turns that were meant for this one; the numbers of the messages they would have answered."""
    rows = tx.all(f"SELECT no, input_seq, facts FROM turn WHERE {_STEERING} ORDER BY no {tx.lock}", *_steering(lease))
    if not rows:
        return []
    tx.many(
        "UPDATE turn SET state = 'done', ended_at = $2 WHERE no = $1 AND state = 'queued'",
        [(no, now) for no, _, _ in rows],
    )
    mine = tx.one(f"SELECT facts FROM turn WHERE {_MINE}", *_mine(lease))
    if mine is None:
        raise LeaseLost
    quoted = [seq for _, _, facts in rows if facts for seq in quotes_in(json.loads(facts))]
    tx.run(
        f"UPDATE turn SET input_seq = $4, facts = $5 WHERE {_MINE}",
        *_mine(lease),
        rows[-1][1],
        quoting(mine[0], quoted),
    )
    return [int(input_seq) for _, input_seq, _ in rows]


def end(tx: Transaction, lease: Lease, state: TurnState, now: int, error: str | None = None) -> None:
    """The run is over."""
    ended = tx.run(
        "UPDATE turn SET state = $4, ended_at = $5, error = $6, lease_owner = NULL, lease_until = NULL, wish = NULL"
        f" WHERE {_MINE}",
        *_mine(lease),
        state.value,
        now,
        None if error is None else storable(error),
    )
    if not ended:
        raise LeaseLost


def release(tx: Transaction, lease: Lease) -> None:
    """Give a turn back as if it had never begun: whoever runs next takes it."""
    released = tx.run(
        "UPDATE turn SET state = 'queued', attempt = attempt - 1, acted = 0, lease_owner = NULL, lease_until = NULL,"
        f" started_at = NULL WHERE {_MINE}",
        *_mine(lease),
    )
    if not released:
        raise LeaseLost


# -- after a death ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A running turn that nobody runs any more."""

    lease: Lease
    acted: bool
    wish: StopRequest | None


def orphans(tx: Transaction, now: int, is_dead: Callable[[str], bool]) -> list[Orphan]:
    """Turns whose lease has run out, or whose owner is known to be dead. Held until this transaction ends."""
    rows = tx.all(
        f"SELECT no, lease_owner, lease_until, acted, wish, {_COLUMNS} FROM turn WHERE state = 'running' {tx.lock}"
    )
    return [
        Orphan(lease=_lease(no, owner, row), acted=bool(acted), wish=None if wish is None else StopRequest(wish))
        for no, owner, until, acted, wish, *row in rows
        if until < now or is_dead(owner)
    ]


def any_orphan(tx: Transaction, now: int, is_dead: Callable[[str], bool]) -> bool:
    """Whether there is one."""
    rows = tx.all("SELECT lease_owner, lease_until FROM turn WHERE state = 'running'")
    return any(until < now or is_dead(owner) for owner, until in rows)


def requeue(tx: Transaction, lease: Lease) -> None:
    """Let another worker begin it again."""
    requeued = tx.run(
        f"UPDATE turn SET state = 'queued', lease_owner = NULL, lease_until = NULL WHERE {_MINE}", *_mine(lease)
    )
    if not requeued:
        raise LeaseLost

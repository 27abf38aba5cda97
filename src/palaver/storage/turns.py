"""Turns: waiting, being claimed, running under a lease, ending.

Always true: a session has one running turn at most, by a unique index; whoever runs a turn holds a lease, and every
change it makes is refused (`LeaseLost`) once the lease has gone to somebody else. Sessions take turns: one turn of
each that waits comes before a second turn of any.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import LeaseLost
from palaver.domain.ids import PersonId, SessionId, TurnId, new_turn_id
from palaver.domain.text import storable
from palaver.domain.turn import Turn, TurnKind, TurnState, Wish
from palaver.storage.values import moment, moment_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from palaver.storage.engine import Row, Transaction

CLAIMS = "palaver turns"  # held by whoever claims, so that limits hold exactly
QUEUED = "state IN ('queued', 'running') AND state = 'queued'"  # in one session: as the index of open turns has it
_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The turns of one session that have not ended."""

    running: int | None = None  # the number of the one that runs
    running_acted: bool = False
    running_person: PersonId | None = None
    running_address: str | None = None
    queued: int = 0
    since: int | None = None  # when the oldest of them was asked for
    last_queued: int | None = None  # the number of the newest that waits
    last_kind: TurnKind = TurnKind.ANSWER
    last_due: int = 0  # when that one is due
    last_person: PersonId | None = None
    last_address: str | None = None

    @property
    def any(self) -> bool:
        """Whether the agent is busy here, or about to be."""
        return self.running is not None or self.queued > 0


FREE = Open()

_OPEN = """SELECT t.no, t.state, t.acted, t.created_at, t.due_at, t.person_id, t.address, t.kind FROM turn t
    WHERE t.session_no = {whose} AND t.state IN ('queued', 'running') ORDER BY t.no"""
_OPEN_IN = _OPEN.format(whose="$1")
_OPEN_ON = _OPEN.format(whose="(SELECT r.session_no FROM route r WHERE r.key = $1)")


def open_in(tx: Transaction, session_no: int) -> Open:
    """What runs and waits in a session."""
    return _open(tx.all(_OPEN_IN, session_no))


def held_open_in(tx: Transaction, session_no: int) -> Open:
    """The same, and nobody may say more there before this transaction ends."""
    tx.one(f"SELECT 1 FROM session WHERE no = $1 {tx.lock}", session_no)
    return open_in(tx, session_no)


def open_on(tx: Transaction, key: str) -> Open:
    """What runs and waits in the session that a lane is on."""
    return _open(tx.all(_OPEN_ON, key))


def _open(rows: Sequence[Row]) -> Open:
    if not rows:
        return FREE
    running = next((row for row in rows if row[1] == "running"), None)
    queued = [row for row in rows if row[1] == "queued"]
    last = queued[-1] if queued else None
    return Open(
        running=running[0] if running else None,
        running_acted=bool(running and running[2]),
        running_person=running[5] if running else None,
        running_address=running[6] if running else None,
        queued=len(queued),
        since=rows[0][3],
        last_queued=last[0] if last else None,
        last_kind=TurnKind(last[7]) if last else TurnKind.ANSWER,
        last_due=last[4] if last else 0,
        last_person=last[5] if last else None,
        last_address=last[6] if last else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A turn to be queued."""

    session_no: int
    input_seq: int
    kind: TurnKind = TurnKind.ANSWER
    person_id: PersonId | None = None
    address: str | None = None
    reply_to: str | None = None
    facts: Mapping[str, Any] | None = None
    steers: bool = False
    due_at: int = 0  # at once, whatever the clock says later


_ROUND = """COALESCE(
    (SELECT MAX(round) + 1 FROM turn WHERE session_no = $2 AND state IN ('queued', 'running')),
    (SELECT MIN(round) FROM turn WHERE state = 'queued'),
    (SELECT MAX(round) FROM turn WHERE state = 'running'), 0)"""


def enqueue(tx: Transaction, wanted: Wanted, now: int) -> TurnId:
    """Let a turn wait for a worker."""
    turn_id = new_turn_id()
    tx.run(
        "INSERT INTO turn (id, session_no, kind, input_seq, person_id, address, reply_to, facts, steers, due_at,"
        f" created_at, state, round) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'queued', {_ROUND}",
        turn_id,
        wanted.session_no,
        wanted.kind.value,
        wanted.input_seq,
        wanted.person_id,
        wanted.address,
        wanted.reply_to,
        json.dumps(wanted.facts) if wanted.facts else None,
        int(wanted.steers),
        wanted.due_at,
        now,
    )
    return turn_id


def collect(tx: Transaction, turn_no: int, wanted: Wanted) -> TurnId | None:
    """Let a turn that still waits answer one more message; None when it has begun meanwhile, or waits elsewhere."""
    row = tx.one(
        "UPDATE turn SET input_seq = $3, due_at = $4, reply_to = $5 WHERE no = $1 AND session_no = $2"
        " AND state = 'queued' RETURNING id",
        turn_no,
        wanted.session_no,
        wanted.input_seq,
        wanted.due_at,
        wanted.reply_to,
    )
    return TurnId(row[0]) if row else None


# -- claiming -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A turn that somebody runs, and the right to write for it."""

    turn_no: int
    turn_id: TurnId
    session_no: int
    session_id: SessionId
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
    wishes: Mapping[TurnId, Wish]
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
        wishes={TurnId(turn_id): Wish(wish) for turn_id, wish in wished},
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


def _take(tx: Transaction, turn_no: int, claimer: Claimer, now: int) -> Lease | None:
    """A lease on a turn; None when it has just been dropped, steered or deleted, which needs nobody's claim."""
    row = tx.one(
        "UPDATE turn SET state = 'running', attempt = attempt + 1, lease_owner = $2, lease_until = $3, started_at = $4"
        " WHERE no = $1 AND state = 'queued' RETURNING id, session_no, attempt, kind, input_seq, person_id, address,"
        " reply_to, facts, (SELECT s.id FROM session s WHERE s.no = session_no)",
        turn_no,
        claimer.owner,
        claimer.until,
        now,
    )
    return _lease(turn_no, claimer.owner, row) if row else None


def _lease(turn_no: int, owner: str, row: Row) -> Lease:
    return Lease(
        turn_no=turn_no,
        turn_id=TurnId(row[0]),
        session_no=row[1],
        session_id=SessionId(row[9]),
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
    rows = tx.all(f"SELECT no, input_seq FROM turn WHERE {_STEERING} ORDER BY no {tx.lock}", *_steering(lease))
    if not rows:
        return []
    tx.many(
        "UPDATE turn SET state = 'done', ended_at = $2 WHERE no = $1 AND state = 'queued'",
        [(no, now) for no, _ in rows],
    )
    if not tx.run(f"UPDATE turn SET input_seq = $4 WHERE {_MINE}", *_mine(lease), rows[-1][1]):
        raise LeaseLost
    return [int(input_seq) for _, input_seq in rows]


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
    wish: Wish | None


def orphans(tx: Transaction, now: int, is_dead: Callable[[str], bool]) -> list[Orphan]:
    """Turns whose lease has run out, or whose owner is known to be dead. Held until this transaction ends."""
    rows = tx.all(
        "SELECT id, session_no, attempt, kind, input_seq, person_id, address, reply_to, facts,"
        " (SELECT s.id FROM session s WHERE s.no = turn.session_no), no, lease_owner, lease_until, acted, wish"
        f" FROM turn WHERE state = 'running' {tx.lock}"
    )
    return [
        Orphan(
            lease=_lease(row[10], row[11], row),
            acted=bool(row[13]),
            wish=None if row[14] is None else Wish(row[14]),
        )
        for row in rows
        if row[12] < now or is_dead(row[11])
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


# -- for whoever asks ---------------------------------------------------------------------------------------


def wish(tx: Transaction, session_no: int, wished: Wish) -> TurnId | None:
    """Ask the run of a session to stop; None when nothing runs."""
    row = tx.one(
        "UPDATE turn SET wish = $2 WHERE session_no = $1 AND state = 'running' RETURNING id", session_no, wished.value
    )
    return TurnId(row[0]) if row else None


def drop_queued(tx: Transaction, session_no: int, now: int, why: str) -> int:
    """Let everything that waits in a session end unanswered; how many they were."""
    return tx.run(
        f"UPDATE turn SET state = 'interrupted', ended_at = $2, error = $3 WHERE session_no = $1 AND {QUEUED}",
        session_no,
        now,
        why,
    )


_TURN = """SELECT t.id, s.id, t.kind, t.state, t.input_seq, t.attempt, t.person_id, t.created_at, t.ended_at, t.error,
    t.no FROM turn t JOIN session s ON s.no = t.session_no"""


def get(tx: Transaction, turn_id: str) -> Turn | None:
    """A turn by its id."""
    row = tx.one(f"{_TURN} WHERE t.id = $1", turn_id)
    return _turn(row) if row else None


def open_turns(tx: Transaction, session_no: int) -> list[tuple[int, Turn]]:
    """What runs and waits in a session, in order, with numbers."""
    rows = tx.all(f"{_TURN} WHERE t.session_no = $1 AND t.state IN ('queued', 'running') ORDER BY t.no", session_no)
    return [(row[10], _turn(row)) for row in rows]


def newer(tx: Transaction, session_no: int, after: int, limit: int = 1000) -> list[tuple[int, Turn]]:
    """The first turns asked for after one with this number."""
    rows = tx.all(f"{_TURN} WHERE t.session_no = $1 AND t.no > $2 ORDER BY t.no LIMIT $3", session_no, after, limit)
    return [(row[10], _turn(row)) for row in rows]


def by_numbers(tx: Transaction, numbers: Iterable[int]) -> list[tuple[int, Turn]]:
    """Some turns by their numbers."""
    found = (tx.one(f"{_TURN} WHERE t.no = $1", no) for no in numbers)
    return [(row[10], _turn(row)) for row in found if row is not None]


def settled_before(tx: Transaction, session_no: int, seq: int) -> int:
    """The newest turn before all open ones that has ended and answered nothing after a place in the log, or 0."""
    still_open = tx.one(
        "SELECT no FROM turn WHERE session_no = $1 AND state IN ('queued', 'running') ORDER BY no LIMIT 1", session_no
    )
    row = tx.one(
        "SELECT no FROM turn WHERE session_no = $1 AND no < $3 AND input_seq <= $2 AND ended_at IS NOT NULL"
        " ORDER BY no DESC LIMIT 1",
        session_no,
        seq,
        still_open[0] if still_open else 2**62,
    )
    return int(row[0]) if row else 0


def depth(tx: Transaction) -> tuple[int, int]:
    """How many turns run and how many wait, in the whole store."""
    row = tx.one(
        "SELECT (SELECT COUNT(*) FROM turn WHERE state = 'running'), (SELECT COUNT(*) FROM turn WHERE state = 'queued')"
    )
    assert row is not None  # noqa: S101
    return int(row[0]), int(row[1])


def _turn(row: Row) -> Turn:
    return Turn(
        id=TurnId(row[0]),
        session_id=SessionId(row[1]),
        kind=TurnKind(row[2]),
        state=TurnState(row[3]),
        input_seq=row[4],
        attempt=row[5],
        person_id=row[6],
        created_at=moment(row[7]),
        ended_at=moment_or_none(row[8]),
        error=row[9],
    )

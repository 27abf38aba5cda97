"""Turns: what runs and waits in a conversation, asked for, stopped and looked at. Running them is in `leases.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.domain.delivery import Address
from palaver.domain.ids import PersonId, SessionId, TurnId, new_turn_id
from palaver.domain.turn import GATHERED, QUOTES, StopRequest, Turn, TurnKind, TurnState
from palaver.storage.timestamps import from_micros, from_micros_or_none

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from palaver.storage.engines.base import Row, Transaction

QUEUED = "state IN ('queued', 'running') AND state = 'queued'"  # in one session: as the index of open turns has it


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
    last_since: int = 0  # when that one was asked for
    last_due: int = 0  # when it is due
    last_gathered: int = 0  # how many messages it answers
    last_steers: bool = False
    last_person: PersonId | None = None
    last_address: str | None = None

    @property
    def any(self) -> bool:
        """Whether the agent is busy here, or about to be."""
        return self.running is not None or self.queued > 0


FREE = Open()

_OPEN = """SELECT t.no, t.state, t.acted, t.created_at, t.due_at, t.person_id, t.address, t.kind, t.facts,
    t.steers FROM turn t WHERE t.session_no = {whose} AND t.state IN ('queued', 'running') ORDER BY t.no"""
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
        last_since=last[3] if last else 0,
        last_due=last[4] if last else 0,
        last_steers=bool(last and last[9]),
        last_gathered=gathered_in(json.loads(last[8]) if last[8] else {}) if last else 0,
        last_person=last[5] if last else None,
        last_address=last[6] if last else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
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


def enqueue(tx: Transaction, wanted: TurnRequest, now: int) -> TurnId:
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


def collect(tx: Transaction, turn_no: int, wanted: TurnRequest) -> TurnId | None:
    """Let a turn that still waits answer one more message; None when it has begun meanwhile, or waits elsewhere."""
    before = tx.one(f"SELECT facts FROM turn WHERE no = $1 {tx.lock}", turn_no)
    facts: dict[str, Any] = json.loads(before[0]) if before and before[0] else {}
    facts[GATHERED] = gathered_in(facts) + 1
    row = tx.one(
        "UPDATE turn SET input_seq = $3, due_at = $4, reply_to = COALESCE($5, reply_to), facts = $6"
        " WHERE no = $1 AND session_no = $2 AND state = 'queued' RETURNING id",
        turn_no,
        wanted.session_no,
        wanted.input_seq,
        wanted.due_at,
        wanted.reply_to,
        quoting(json.dumps(facts), quotes_in(wanted.facts)),
    )
    return TurnId(row[0]) if row else None


def gathered_in(facts: Mapping[str, Any]) -> int:
    """How many messages a turn with these facts answers together."""
    return int(facts.get(GATHERED, 1))


# -- what is quoted before an answer ------------------------------------------------------------------------


def quotes_in(facts: Mapping[str, Any] | None) -> tuple[int, ...]:
    """The messages that are quoted before the answer of a turn with these facts."""
    return tuple((facts or {}).get(QUOTES, ()))


def quoting(facts: str | None, more: Sequence[int]) -> str | None:
    """The facts of a turn, as stored, with more messages that are quoted before its answer."""
    if not more:
        return facts
    known: dict[str, Any] = json.loads(facts) if facts else {}
    return json.dumps(known | {QUOTES: [*quotes_in(known), *more]})


def quotes_of(tx: Transaction, turn_no: int) -> tuple[int, ...]:
    """The messages that are quoted before the answer of a turn."""
    row = tx.one("SELECT facts FROM turn WHERE no = $1", turn_no)
    return quotes_in(json.loads(row[0])) if row and row[0] else ()


# -- for whoever asks ---------------------------------------------------------------------------------------


def wish(tx: Transaction, session_no: int, wished: StopRequest) -> TurnId | None:
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
    t.no, t.steers, t.address, t.facts FROM turn t JOIN session s ON s.no = t.session_no"""


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
        created_at=from_micros(row[7]),
        ended_at=from_micros_or_none(row[8]),
        error=row[9],
        steers=bool(row[11]),
        goes_to=Address.parse(row[12]).platform if row[12] else None,
        quotes=quotes_in(json.loads(row[13])) if row[13] else (),
    )

"""Turns: queues, stops and reads them. Claiming and running them is in `turn_leases.py`."""

from __future__ import annotations

import json
from dataclasses import field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, fetch_number, fetch_value
from palaver.core.ids import PersonId, TurnId, new_turn_id
from palaver.people.person_data import ErasureStep, Follows, PersonColumn, Stays
from palaver.sessions.delivery import Address
from palaver.sessions.turn import (
    ALBUM_ID_KEY,
    BACKLOG_KEY,
    MERGED_COUNT_KEY,
    QUOTED_SEQS_KEY,
    StopRequest,
    Turn,
    TurnKind,
    TurnState,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Both conditions, so that the partial index on the open turns of a session is used.
IS_QUEUED = "state IN ('queued', 'running') AND state = 'queued'"
MAX_LOADED_TURNS = 50  # of those that are open in one session, unless the caller asks for more


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    no: int
    state: TurnState
    created_at: int
    due_at: int
    person_id: PersonId | None
    address: str | None
    kind: TurnKind
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_steering: bool

    @property
    def merged_count(self) -> int:
        return get_merged_count(self.facts)

    @property
    def album_id(self) -> str | None:
        return get_album_id(self.facts)

    @property
    def is_queued(self) -> bool:
        return self.state is TurnState.QUEUED

    @property
    def is_backlog(self) -> bool:
        return bool(self.facts.get(BACKLOG_KEY))


@dataclass(frozen=True, slots=True)
class OpenTurns:
    """The turns of one session that have not ended, in order: the newest, and how many there are in all."""

    turns: Sequence[OpenTurn] = ()
    oldest: OpenTurn | None = None
    count: int = 0

    @property
    def is_busy(self) -> bool:
        """Return whether the agent is answering in this session, or about to."""
        return bool(self.turns)

    @property
    def running(self) -> OpenTurn | None:
        known = (*self.turns, self.oldest) if self.oldest is not None else ()
        return next((turn for turn in known if turn.state is TurnState.RUNNING), None)

    @property
    def queued_count(self) -> int:
        return self.count - (self.running is not None)

    @property
    def last_queued(self) -> OpenTurn | None:
        last = self.turns[-1] if self.turns else None
        return last if last is not None and last.is_queued else None

    def count_newest_live(self) -> int:
        """Count the queued turns that have come since the last one of a backlog."""
        queued = (turn for turn in reversed(self.turns) if turn.is_queued)
        return sum(1 for _ in takewhile(lambda turn: not turn.is_backlog, queued))

    def is_last_of_album(self, album_id: str | None) -> bool:
        return album_id is not None and self.last_queued is not None and self.last_queued.album_id == album_id


NO_OPEN_TURNS = OpenTurns()
_OPEN = Columns(OpenTurn)
_SELECT_OPEN = f"""SELECT {_OPEN.format_select("t")}
    FROM turn t WHERE t.session_no = {{session}} AND t.state IN ('queued', 'running') ORDER BY t.no"""
_IN_SESSION = "$1"
_ON_LANE = "(SELECT l.session_no FROM lane l WHERE l.key = $1)"


def load_open(tx: Transaction, session_no: int, limit: int = MAX_LOADED_TURNS) -> OpenTurns:
    return _load_open(tx, _IN_SESSION, session_no, limit)


def lock_and_load_open(tx: Transaction, session_no: int) -> OpenTurns:
    """Load the open turns, and keep others from adding messages or turns until this transaction ends."""
    tx.fetch_one(f"SELECT 1 FROM session WHERE no = $1 {tx.for_update}", session_no)
    return load_open(tx, session_no)


def load_open_on_lane(tx: Transaction, key: str, limit: int = MAX_LOADED_TURNS) -> OpenTurns:
    return _load_open(tx, _ON_LANE, key, limit)


def _load_open(tx: Transaction, session: str, owner: int | str, limit: int) -> OpenTurns:
    select = _SELECT_OPEN.format(session=session)
    rows = tx.fetch_all(f"{select} DESC LIMIT $2", owner, limit)
    if not rows:
        return NO_OPEN_TURNS
    newest = tuple(_OPEN.decode(row) for row in reversed(rows))
    if len(newest) < limit:
        return OpenTurns(newest, newest[0], len(newest))
    oldest = tx.fetch_one(f"{select} LIMIT 1", owner)
    count = f"SELECT COUNT(*) FROM turn t WHERE t.session_no = {session} AND t.state IN ('queued', 'running')"
    return OpenTurns(newest, _OPEN.decode(oldest or rows[-1]), fetch_number(tx, count, owner))


def list_open_seqs(tx: Transaction, session_no: int) -> list[int]:
    """List the messages of a session that wait for their answer."""
    sql = "SELECT input_seq FROM turn WHERE session_no = $1 AND state IN ('queued', 'running') AND kind = 'answer'"
    return [seq for (seq,) in tx.fetch_all(sql, session_no)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    session_no: int
    input_seq: int
    kind: TurnKind = TurnKind.ANSWER
    person_id: PersonId | None = None
    address: str | None = None
    reply_to: str | None = None
    facts: Mapping[str, Any] | None = None
    is_steering: bool = False
    due_at: int = 0  # 0: at once, even if the clock is set back


# A session's next turn is one round after its last open one; a session without open turns joins the current round.
_NEXT_ROUND = """COALESCE(
    (SELECT MAX(queue_round) + 1 FROM turn WHERE session_no = $2 AND state IN ('queued', 'running')),
    (SELECT MIN(queue_round) FROM turn WHERE state = 'queued'),
    (SELECT MAX(queue_round) FROM turn WHERE state = 'running'), 0)"""


def enqueue(tx: Transaction, request: TurnRequest, now: int) -> TurnId:
    turn_id = new_turn_id()
    tx.execute(
        "INSERT INTO turn (id, session_no, kind, input_seq, person_id, address, reply_to, facts, is_steering, due_at,"
        " created_at, state, queue_round)"
        f" SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'queued', {_NEXT_ROUND}",
        turn_id,
        request.session_no,
        request.kind.value,
        request.input_seq,
        request.person_id,
        request.address,
        request.reply_to,
        json.dumps(request.facts) if request.facts else None,
        int(request.is_steering),
        request.due_at,
        now,
    )
    return turn_id


def add_to_queued(tx: Transaction, turn_no: int, request: TurnRequest) -> TurnId | None:
    """Let a queued turn answer one more message; None if it has started, or belongs to another session."""
    before = fetch_value(tx, f"SELECT facts FROM turn WHERE no = $1 {tx.for_update}", turn_no)
    facts: dict[str, Any] = json.loads(before) if before else {}
    facts[MERGED_COUNT_KEY] = get_merged_count(facts) + 1
    new_facts = add_quoted_seqs(json.dumps(facts), get_quoted_seqs(request.facts))
    values = (request.input_seq, request.due_at, request.reply_to, new_facts)
    sql = """UPDATE turn SET input_seq = $3, due_at = $4, reply_to = COALESCE($5, reply_to), facts = $6
        WHERE no = $1 AND session_no = $2 AND state = 'queued' RETURNING id"""
    return fetch_value(tx, sql, turn_no, request.session_no, *values)


def request_stop(
    tx: Transaction, session_no: int, request: StopRequest, person_id: PersonId | None = None
) -> TurnId | None:
    """Ask the running turn of a session to stop, for a person, and return its id; None if nothing runs."""
    sql = "UPDATE turn SET stop_request = $2, stopped_by = $3 WHERE session_no = $1 AND state = 'running' RETURNING id"
    return fetch_value(tx, sql, session_no, request.value, person_id)


def withhold_answers(tx: Transaction, person_id: PersonId, address: str) -> None:
    """Let the answers to a person's open turns not be sent to an address."""
    sql = "UPDATE turn SET address = NULL WHERE person_id = $1 AND address = $2 AND state IN ('queued', 'running')"
    tx.execute(sql, person_id, address)


def cancel_queued(tx: Transaction, session_no: int, now: int, reason: str) -> int:
    """End all queued turns of a session unanswered; return how many."""
    sql = f"UPDATE turn SET state = 'interrupted', ended_at = $2, error = $3 WHERE session_no = $1 AND {IS_QUEUED}"
    return tx.execute(sql, session_no, now, reason)


def drop_queued_message(
    tx: Transaction, session_no: int, seq: int, previous_seq: int | None, now: int, reason: str
) -> None:
    """Let no queued turn answer a message that was deleted: end its turn, or let it answer the message before.

    `previous_seq` is the message before it in the session, which a turn for several messages answers, too.
    """
    sql = f"""SELECT no, facts FROM turn WHERE session_no = $1 AND input_seq = $2 AND kind = 'answer' AND {IS_QUEUED}
        ORDER BY no DESC LIMIT 1 {tx.for_update}"""
    row = tx.fetch_one(sql, session_no, seq)
    if row is None:
        return
    no, stored_facts = row
    facts = json.loads(stored_facts) if stored_facts else {}
    count = get_merged_count(facts)
    if count > 1 and previous_seq is not None:
        left = json.dumps(facts | {MERGED_COUNT_KEY: count - 1})
        tx.execute("UPDATE turn SET input_seq = $2, facts = $3 WHERE no = $1", no, previous_seq, left)
        return
    sql = f"UPDATE turn SET state = 'interrupted', ended_at = $2, error = $3 WHERE no = $1 AND {IS_QUEUED}"
    tx.execute(sql, no, now, reason)


def is_queued_at(tx: Transaction, session_no: int, seq: int) -> bool:
    """Return whether a turn that has not started yet will see this message."""
    sql = f"SELECT 1 FROM turn WHERE session_no = $1 AND input_seq >= $2 AND kind = 'answer' AND {IS_QUEUED} LIMIT 1"
    return tx.fetch_one(sql, session_no, seq) is not None


def get_merged_count(facts: Mapping[str, Any]) -> int:
    """Return how many messages a turn with these facts answers."""
    return int(facts.get(MERGED_COUNT_KEY, 1))


def get_album_id(facts: Mapping[str, Any] | None) -> str | None:
    album_id = (facts or {}).get(ALBUM_ID_KEY)
    return album_id if isinstance(album_id, str) else None


def get_quoted_seqs(facts: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return the messages that a turn with these facts quotes before its answer."""
    return tuple((facts or {}).get(QUOTED_SEQS_KEY, ()))


def add_quoted_seqs(facts_json: str | None, seqs: Sequence[int]) -> str | None:
    """Return the stored facts of a turn with more messages to quote before its answer."""
    if not seqs:
        return facts_json
    facts: dict[str, Any] = json.loads(facts_json) if facts_json else {}
    return json.dumps(facts | {QUOTED_SEQS_KEY: [*get_quoted_seqs(facts), *seqs]})


def parse_quoted_seqs(facts_json: str | None) -> tuple[int, ...]:
    return get_quoted_seqs(json.loads(facts_json)) if facts_json else ()


def load_quoted_seqs(tx: Transaction, turn_no: int) -> tuple[int, ...]:
    return parse_quoted_seqs(fetch_value(tx, "SELECT facts FROM turn WHERE no = $1", turn_no))


_COLUMNS = Columns(Turn, without={"delivers_to", "quoted_seqs"}, session_id="s.id")
_SELECT = f"""SELECT t.no, {_COLUMNS.format_select("t")}, t.address, t.facts
    FROM turn t JOIN session s ON s.no = t.session_no"""


def _list_turns(tx: Transaction, condition: str, *params: object) -> list[tuple[int, Turn]]:
    return [_numbered_turn_from_row(row) for row in tx.fetch_all(f"{_SELECT} WHERE {condition}", *params)]


def find(tx: Transaction, turn_id: str) -> Turn | None:
    return next((turn for _, turn in _list_turns(tx, "t.id = $1", turn_id)), None)


def find_last_address(tx: Transaction, session_no: int) -> str | None:
    """Return where the newest turn of a session is answered; None if it is read here only, or there is none."""
    sql = "SELECT address FROM turn WHERE session_no = $1 ORDER BY no DESC LIMIT 1"
    return fetch_value(tx, sql, session_no)


def list_open(tx: Transaction, session_no: int) -> list[tuple[int, Turn]]:
    return _list_turns(tx, "t.session_no = $1 AND t.state IN ('queued', 'running') ORDER BY t.no", session_no)


def list_after(tx: Transaction, session_no: int, after: int, limit: int = 1000) -> list[tuple[int, Turn]]:
    return _list_turns(tx, "t.session_no = $1 AND t.no > $2 ORDER BY t.no LIMIT $3", session_no, after, limit)


def list_between(tx: Transaction, session_no: int, first: int, last: int) -> list[tuple[int, Turn]]:
    """Return the turns of a session from number `first` to number `last`."""
    return _list_turns(tx, "t.session_no = $1 AND t.no BETWEEN $2 AND $3 ORDER BY t.no", session_no, first, last)


def list_start_times(tx: Transaction, session_no: int, limit: int) -> list[int]:
    """Return when the newest turns of a session were queued, the newest first."""
    sql = "SELECT created_at FROM turn WHERE session_no = $1 ORDER BY no DESC LIMIT $2"
    return [row[0] for row in tx.fetch_all(sql, session_no, limit)]


def find_last_ended(tx: Transaction, session_no: int, seq: int) -> int:
    """Return the number of the last turn before all open ones that answered a message up to `seq`, or 0.

    A follower that has read the log up to `seq` needs no turn up to that one.
    """
    sql = f"""SELECT no FROM turn WHERE session_no = $1 AND input_seq <= $2 AND ended_at IS NOT NULL AND no < COALESCE(
        (SELECT MIN(no) FROM turn WHERE session_no = $1 AND state IN ('queued', 'running')), {2**62})
        ORDER BY no DESC LIMIT 1"""
    return fetch_number(tx, sql, session_no, seq)


def _numbered_turn_from_row(row: Row) -> tuple[int, Turn]:
    no, *columns, address, facts = row
    platform = Address.from_text(address).platform if address else None
    return no, _COLUMNS.decode(columns, delivers_to=platform, quoted_seqs=parse_quoted_seqs(facts))


PERSON_DATA: Final = (
    PersonColumn("turn", merge=Follows("state IN ('queued', 'running')"), erase=ErasureStep.SHARED),
    PersonColumn(
        "turn", "stopped_by", merge=Stays("says who stopped it, under the id of that time"), erase=ErasureStep.SHARED
    ),
)

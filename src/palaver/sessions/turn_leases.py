"""Turns that run: claims them, keeps them under a lease, ends them, and finds those whose worker died.

Always true: a session has at most one running turn, by a unique index. A worker holds a lease on each turn it runs;
once the lease has gone to another worker, every change it makes is refused (`LeaseLost`). Sessions take turns: one
turn of each session that waits comes before a second turn of any.

Drafts: the answer of a running turn so far, stored so that a crash does not lose what the person has seen.

The open turns of a person who loses access: the queued ones end, with the reason in the log; a running one stops.

What is queued later, or by a message that is being stored at this moment, is refused when it is claimed.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.errors import LeaseLost
from palaver.core.ids import PersonId, SessionId, TurnId
from palaver.core.text import make_storable
from palaver.people.model import Role
from palaver.sessions import log_table as events
from palaver.sessions.delivery import Address
from palaver.sessions.draft import Draft, Piece
from palaver.sessions.events import EventKind
from palaver.sessions.turn import (
    MAX_SHARED_CRASHES,
    InterruptReason,
    StopRequest,
    TurnKind,
    TurnState,
    compute_trial_uptime,
)
from palaver.sessions.turns_table import IS_QUEUED, add_quoted_seqs, parse_quoted_seqs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


CLAIM_LOCK = "palaver turns"  # one process claims at a time, so that the limits hold exactly
_PAGE_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLease:
    """A turn that a worker runs, and its right to write for it."""

    turn_no: int
    turn_id: TurnId
    session_no: int
    session_id: SessionId
    platform: str  # copied from the session, with its audience: usage is recorded even after the session is deleted
    audience_no: int
    owner: str
    attempt: int
    kind: TurnKind
    input_seq: int
    person_id: PersonId | None
    address: str | None
    reply_to: str | None
    facts: Mapping[str, Any]
    crash_count: int = 0  # attempts that died after they had called the agent
    person_role: Role | None = None  # of the person whom they were linked to, if so; None: there is no such person

    @property
    def runs_alone(self) -> bool:
        """Return whether the worker runs nothing beside it, because it may be what kills the process."""
        return self.crash_count >= MAX_SHARED_CRASHES


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    owner: str
    lease_until: int
    max_turns: int  # the worker's free slots
    max_running: int  # in all processes together
    max_running_per_person: int
    is_idle: bool = True  # the worker runs nothing
    uptime: timedelta = timedelta.max  # of the worker


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSummary:
    """The turns that a worker could claim, has claimed, and should stop."""

    has_queued: bool  # a turn could be claimed now
    next_due_at: int | None  # when the next of the turns that wait for their time is due
    stop_requests: Mapping[TurnId, StopRequest]  # for turns that this worker runs
    claimed: Sequence[TurnLease] = ()


# Not due yet. A turn that was created in the future was created before the clock was set back; it waits no longer.
_IS_WAITING = "due_at > $1 AND created_at <= $1"
_IS_STOPPED = "state = 'running' AND stop_request IS NOT NULL"


def find_work(tx: Transaction, owner: str | None, now: int) -> WorkSummary:
    """Find out what there is to claim, and to stop for `owner`, if there is a worker that runs something."""
    sql = f"""SELECT
        (SELECT 1 FROM turn WHERE state = 'queued' AND NOT ({_IS_WAITING}) ORDER BY queue_round, no LIMIT 1),
        (SELECT due_at FROM turn WHERE state = 'queued' AND due_at > 0 AND {_IS_WAITING} ORDER BY due_at LIMIT 1),
        (SELECT 1 FROM turn WHERE {_IS_STOPPED} AND lease_owner = $2 LIMIT 1)"""
    row = tx.fetch_one(sql, now, owner)
    assert row is not None  # noqa: S101
    first, next_due_at, has_stop_request = row
    sql = f"SELECT id, stop_request FROM turn WHERE {_IS_STOPPED} AND lease_owner = $1"
    stop_rows = tx.fetch_all(sql, owner) if has_stop_request else []
    return WorkSummary(
        has_queued=first is not None,
        next_due_at=next_due_at,
        stop_requests={TurnId(turn_id): StopRequest(request) for turn_id, request in stop_rows},
    )


def find_longest_wait(tx: Transaction, now: int) -> int:
    """Return for how many microseconds one of the next turns could have been claimed and was not; 0 if there is none.

    Turns behind a running one in the same session wait for that.
    """
    sql = f"""SELECT MIN(since) FROM
        (SELECT session_no, CASE WHEN due_at > created_at THEN due_at ELSE created_at END AS since
        FROM turn WHERE state = 'queued' AND NOT ({_IS_WAITING}) ORDER BY queue_round, no LIMIT {_PAGE_SIZE}) q
        WHERE NOT EXISTS (SELECT 1 FROM turn r WHERE r.session_no = q.session_no AND r.state = 'running')"""
    since: int | None = fetch_value(tx, sql, now)
    return 0 if since is None else max(0, now - since)


_CANDIDATE = f"t.no, t.session_no, t.person_id, {_IS_WAITING}, t.crash_count"
_FIRST_TURNS = f"""SELECT {_CANDIDATE} FROM turn t WHERE t.state = 'queued'
    ORDER BY t.queue_round, t.no LIMIT {_PAGE_SIZE}"""
# The first open turn of each session, one look-up for each, however many turns wait behind it.
_HEADS = f"""WITH RECURSIVE open_session (session_no) AS (
        SELECT MIN(session_no) FROM turn WHERE state IN ('queued', 'running')
        UNION ALL
        SELECT (SELECT MIN(n.session_no) FROM turn n
            WHERE n.state IN ('queued', 'running') AND n.session_no > o.session_no)
        FROM open_session o WHERE o.session_no IS NOT NULL)
    SELECT {_CANDIDATE} FROM open_session o JOIN turn t ON t.no = (SELECT MIN(h.no) FROM turn h
        WHERE h.session_no = o.session_no AND h.state IN ('queued', 'running'))
    WHERE t.state = 'queued' ORDER BY t.queue_round, t.no"""


def claim_turns(tx: Transaction, request: ClaimRequest, now: int) -> list[TurnLease]:
    tx.lock_name(CLAIM_LOCK)
    running = tx.fetch_all("SELECT session_no, person_id FROM turn WHERE state = 'running'")
    busy_sessions = {session_no for session_no, _ in running}
    running_per_person: dict[str | None, int] = {}
    for _, person_id in running:
        running_per_person[person_id] = running_per_person.get(person_id, 0) + 1
    free = min(request.max_turns, request.max_running - len(running))
    claimed: list[TurnLease] = []
    for no, session_no, person_id, is_waiting, crash_count in _list_candidates(tx, now):
        if len(claimed) >= free:
            break
        person_count = running_per_person.get(person_id, 0)
        if session_no in busy_sessions or (person_id is not None and person_count >= request.max_running_per_person):
            continue
        must_wait = is_waiting or request.uptime < compute_trial_uptime(crash_count)
        runs_alone = crash_count >= MAX_SHARED_CRASHES and not must_wait
        if runs_alone and (claimed or not request.is_idle):
            break  # what runs here ends first
        busy_sessions.add(session_no)  # claimed, or first in its session and not yet due: those behind it wait too
        lease = None if must_wait else _claim(tx, no, request, now)
        if lease is None:
            continue
        running_per_person[person_id] = person_count + 1
        claimed.append(lease)
        if runs_alone:
            break
    return claimed


def _list_candidates(tx: Transaction, now: int) -> Iterator[Sequence[Any]]:
    """List turns to claim in their order: the next ones and, behind those, the first one of each session."""
    rows = tx.fetch_all(_FIRST_TURNS, now)
    yield from rows
    if len(rows) == _PAGE_SIZE:
        yield from tx.fetch_all(_HEADS, now)


_OF_SESSION = "(SELECT s.{} FROM session s WHERE s.no = turn.session_no)"
_LEASE = Columns(
    TurnLease,
    types={Role},
    turn_no="no",
    turn_id="id",
    owner="lease_owner",
    session_id=_OF_SESSION.format("id"),
    platform=_OF_SESSION.format("platform"),
    audience_no=_OF_SESSION.format("audience_no"),
    facts="COALESCE(facts, '{}')",
    person_role="(SELECT COALESCE(m.role, p.role) FROM person p LEFT JOIN person m ON m.id = p.merged_into"
    " WHERE p.id = turn.person_id)",
)
_LEASE_COLUMNS = _LEASE.format_select()


def _claim(tx: Transaction, turn_no: int, request: ClaimRequest, now: int) -> TurnLease | None:
    """Claim a turn; None if it is just being canceled, given to a run or deleted, which needs no claim lock."""
    sql = f"""UPDATE turn SET state = 'running', attempt = attempt + 1, lease_owner = $2, lease_until = $3,
        started_at = $4 WHERE no = (SELECT no FROM turn WHERE no = $1 AND state = 'queued' {tx.skip_locked})
        RETURNING {_LEASE_COLUMNS}"""
    row = tx.fetch_one(sql, turn_no, request.owner, request.lease_until, now)
    return _LEASE.decode(row) if row else None


def claim_if_next(tx: Transaction, turn_id: TurnId, request: ClaimRequest, now: int) -> TurnLease | None:
    """Claim a turn that this transaction has queued, if `claim_turns` would begin with it.

    None leaves it to that: another turn comes first, a limit is reached, or another process claims at this moment.
    """
    if not tx.try_lock_name(CLAIM_LOCK):
        return None
    sql = f"""UPDATE turn SET state = 'running', attempt = attempt + 1, lease_owner = $2, lease_until = $3,
        started_at = $1 WHERE id = $4 AND (SELECT COUNT(*) FROM turn r WHERE r.state = 'running') < $5
        AND (person_id IS NULL
            OR (SELECT COUNT(*) FROM turn r WHERE r.state = 'running' AND r.person_id = turn.person_id) < $6)
        AND no = (SELECT q.no FROM turn q WHERE q.state = 'queued' AND NOT ({_IS_WAITING})
            AND NOT EXISTS (SELECT 1 FROM turn r WHERE r.session_no = q.session_no AND r.state = 'running')
            ORDER BY q.queue_round, q.no LIMIT 1)
        RETURNING {_LEASE_COLUMNS}"""
    limits = request.max_running, request.max_running_per_person
    row = tx.fetch_one(sql, now, request.owner, request.lease_until, turn_id, *limits)
    return _LEASE.decode(row) if row else None


_HAS_LEASE = "no = $1 AND state = 'running' AND lease_owner = $2 AND attempt = $3"


def _make_lease_params(lease: TurnLease) -> tuple[int, str, int]:
    return lease.turn_no, lease.owner, lease.attempt


def _change(tx: Transaction, lease: TurnLease, assignments: str, *params: object) -> None:
    """Change a turn; raise `LeaseLost` if the lease has gone to another worker. The parameters begin at `$4`."""
    if not tx.execute(f"UPDATE turn SET {assignments} WHERE {_HAS_LEASE}", *_make_lease_params(lease), *params):
        raise LeaseLost


def extend_leases(tx: Transaction, leases: Iterable[TurnLease], until: int) -> set[int]:
    """Extend leases, and return the turn numbers of those that their worker still held.

    The lease of a turn that another transaction has locked is extended the next time: the others do not wait for it.
    """
    find = f"SELECT no FROM turn WHERE {_HAS_LEASE}"
    extend = f"UPDATE turn SET lease_until = $4 WHERE no = ({find} {tx.skip_locked})"
    params = {lease.turn_no: _make_lease_params(lease) for lease in leases}
    return {no for no, each in params.items() if tx.execute(extend, *each, until) or tx.fetch_one(find, *each)}


def check_lease(tx: Transaction, lease: TurnLease) -> None:
    """Raise `LeaseLost` if the lease has gone to another worker."""
    if tx.fetch_one(f"SELECT 1 FROM turn WHERE {_HAS_LEASE} {tx.for_update}", *_make_lease_params(lease)) is None:
        raise LeaseLost


def mark_begun(tx: Transaction, lease: TurnLease) -> None:
    """Record that this attempt calls the agent: if its process dies now, that counts."""
    _change(tx, lease, "begun_attempt = attempt")


def mark_side_effects(tx: Transaction, lease: TurnLease) -> None:
    """Record that a tool with side effects has started: from now on this turn is not repeated automatically."""
    _change(tx, lease, "has_side_effects = 1")


# Messages that the person whom a run answers sends meanwhile, from the address that the answer goes to. The run does
# not act on another person's words in this person's name, and no one waits in one chat for an answer sent to another.
_IS_STEERING = f"""session_no = $1 AND {IS_QUEUED} AND is_steering = 1 AND kind = 'answer'
    AND COALESCE(person_id, '') = $2 AND COALESCE(address, $3) = $3"""


def _make_steering_params(lease: TurnLease) -> tuple[int, str, str]:
    return lease.session_no, lease.person_id or "", lease.address or ""


def has_steering_turns(tx: Transaction, lease: TurnLease) -> bool:
    return tx.fetch_one(f"SELECT 1 FROM turn WHERE {_IS_STEERING} LIMIT 1", *_make_steering_params(lease)) is not None


def take_steering_turns(tx: Transaction, lease: TurnLease, now: int) -> list[int]:
    """End the queued turns that steer this run, and return the seqs of their messages for the run to answer."""
    sql = f"SELECT no, input_seq, facts FROM turn WHERE {_IS_STEERING} ORDER BY no {tx.for_update}"
    rows = tx.fetch_all(sql, *_make_steering_params(lease))
    if not rows:
        return []
    end = "UPDATE turn SET state = 'done', ended_at = $2 WHERE no = $1 AND state = 'queued'"
    tx.execute_many(end, [(no, now) for no, _, _ in rows])
    own_facts = fetch_value(tx, f"SELECT facts FROM turn WHERE {_HAS_LEASE}", *_make_lease_params(lease))
    quoted_seqs = [seq for _, _, facts in rows for seq in parse_quoted_seqs(facts)]
    _, last_seq, _ = rows[-1]
    _change(tx, lease, "input_seq = $4, facts = $5", last_seq, add_quoted_seqs(own_facts, quoted_seqs))
    return [int(input_seq) for _, input_seq, _ in rows]


def find_stopper(tx: Transaction, lease: TurnLease) -> PersonId | None:
    """Return the person who asked to stop a running turn, or whose message interrupted it."""
    return fetch_value(tx, "SELECT stopped_by FROM turn WHERE no = $1", lease.turn_no)


def end_turn(tx: Transaction, lease: TurnLease, state: TurnState, now: int, error: str | None = None) -> None:
    _change(
        tx,
        lease,
        "state = $4, ended_at = $5, error = $6, lease_owner = NULL, lease_until = NULL, stop_request = NULL",
        state.value,
        now,
        None if error is None else make_storable(error),
    )


def has_ended_at(tx: Transaction, lease: TurnLease, ended_at: int) -> bool:
    sql = "SELECT 1 FROM turn WHERE no = $1 AND attempt = $2 AND ended_at = $3"
    return tx.fetch_one(sql, lease.turn_no, lease.attempt, ended_at) is not None


def release_turn(tx: Transaction, lease: TurnLease) -> None:
    """Put a turn back into the queue as if it had never started."""
    _change(
        tx,
        lease,
        "state = 'queued', attempt = attempt - 1, begun_attempt = 0, has_side_effects = 0, lease_owner = NULL,"
        " lease_until = NULL, started_at = NULL",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanTurn:
    """A running turn whose worker is gone."""

    lease: TurnLease
    has_begun: bool  # the agent was called
    has_side_effects: bool
    stop_request: StopRequest | None


# A first attempt is not marked, which would cost every turn a write: a call whose cost is held shows that it has begun,
# and so does what the agent has said.
_HAS_BEGUN = """(begun_attempt = attempt
    OR EXISTS (SELECT 1 FROM model_call c
        WHERE c.turn_id = turn.id AND c.owner = turn.lease_owner AND c.attempt = turn.attempt)
    OR EXISTS (SELECT 1 FROM draft d WHERE d.turn_no = turn.no AND d.attempt = turn.attempt))"""
_SELECT_RUNNING = (
    f"SELECT lease_until, has_side_effects, stop_request, {_HAS_BEGUN}, {_LEASE.format_select()} FROM turn"
)


def list_orphans(tx: Transaction, now: int, is_owner_dead: Callable[[str], bool]) -> list[OrphanTurn]:
    """List and lock the turns whose lease has expired or whose worker is known to be dead."""
    rows = tx.fetch_all(f"{_SELECT_RUNNING} WHERE state = 'running' {tx.skip_locked}")
    orphans = ((lease_until, _orphan_from_row(row)) for lease_until, *row in rows)
    return [orphan for lease_until, orphan in orphans if lease_until < now or is_owner_dead(orphan.lease.owner)]


def load_orphan(tx: Transaction, lease: TurnLease) -> OrphanTurn:
    """Load and lock the turn of a run that broke off while its worker lives on."""
    row = tx.fetch_one(f"{_SELECT_RUNNING} WHERE {_HAS_LEASE} {tx.for_update}", *_make_lease_params(lease))
    if row is None:
        raise LeaseLost
    _, *columns = row
    return _orphan_from_row(columns)


def _orphan_from_row(row: Sequence[Any]) -> OrphanTurn:
    has_side_effects, stop_request, has_begun, *lease_columns = row
    return OrphanTurn(
        lease=_LEASE.decode(lease_columns),
        has_begun=bool(has_begun or has_side_effects),
        has_side_effects=bool(has_side_effects),
        stop_request=None if stop_request is None else StopRequest(stop_request),
    )


def has_orphan(tx: Transaction, now: int, is_owner_dead: Callable[[str], bool]) -> bool:
    rows = tx.fetch_all("SELECT lease_owner, lease_until FROM turn WHERE state = 'running'")
    return any(until < now or is_owner_dead(owner) for owner, until in rows)


def requeue_turn(tx: Transaction, lease: TurnLease, crash_count: int, due_at: int) -> None:
    """Let another worker run an orphan again, at once or, with `due_at`, from that time on."""
    released = "state = 'queued', lease_owner = NULL, lease_until = NULL"
    _change(tx, lease, f"{released}, crash_count = $4, due_at = $5", crash_count, due_at)


def append_pieces(tx: Transaction, lease: TurnLease, pieces: Sequence[Piece]) -> None:
    """Store the pieces that were added since the last call. The caller has checked the lease in this transaction."""
    body = json.dumps([piece.to_dict() for piece in pieces], separators=(",", ":"))
    sql = "INSERT INTO draft (turn_no, session_no, attempt, body) VALUES ($1, $2, $3, $4)"
    tx.execute(sql, lease.turn_no, lease.session_no, lease.attempt, body)


def list_pieces_after(tx: Transaction, turn_no: int, attempt: int, after: int) -> tuple[list[Piece], int]:
    """Return the pieces of an attempt that were stored after row `after`, and the number of the last row."""
    sql = "SELECT no, body FROM draft WHERE turn_no = $1 AND no > $2 AND attempt = $3 ORDER BY no"
    rows = tx.fetch_all(sql, turn_no, after, attempt)
    pieces = [Piece.from_dict(piece) for _, body in rows for piece in json.loads(body)]
    return pieces, max((no for no, _ in rows), default=after)


def find_first_piece_row(tx: Transaction, turn_no: int, attempt: int) -> int:
    """Return the number of the first row of an attempt, or 0 if there is none.

    It differs from before if the turn was released and started again, which does not count as another attempt.
    """
    return fetch_value(tx, "SELECT MIN(no) FROM draft WHERE turn_no = $1 AND attempt = $2", turn_no, attempt) or 0


def load_draft(tx: Transaction, lease: TurnLease) -> Draft:
    draft = Draft()
    draft.extend(list_pieces_after(tx, lease.turn_no, lease.attempt, 0)[0])
    return draft


def delete_draft(tx: Transaction, turn_no: int) -> None:
    """Delete the draft of a turn that has ended or starts again."""
    tx.execute("DELETE FROM draft WHERE turn_no = $1", turn_no)


def list_guests_with_open_turns(tx: Transaction) -> list[PersonId]:
    sql = """SELECT DISTINCT p.id FROM turn t JOIN person p ON p.id = t.person_id
        WHERE t.state IN ('queued', 'running') AND p.role = 'guest' ORDER BY p.id"""
    return [person_id for (person_id,) in tx.fetch_all(sql)]


def end_open_turns(
    tx: Transaction,
    person_id: PersonId,
    ended_by: PersonId,
    now: int,
    *,
    is_concerned: Callable[[Address | None], bool] | None = None,
) -> None:
    """End a person's queued turns and stop the running one: all, or those whose answers go to a concerned address.

    `ended_by` is the person who takes the access away.
    """
    tx.lock_name(CLAIM_LOCK)  # so that none is claimed meanwhile: each is queued, or runs and can be stopped
    sql = """SELECT no, id, session_no, state, input_seq, address FROM turn
        WHERE person_id = $1 AND state IN ('queued', 'running') ORDER BY no"""
    stop = "UPDATE turn SET stop_request = $2, stopped_by = $3 WHERE no = $1 AND state = 'running'"
    end = "UPDATE turn SET state = 'interrupted', ended_at = $2, error = $3 WHERE no = $1 AND state = 'queued'"
    reason = InterruptReason.ACCESS_ENDED
    for no, turn_id, session_no, state, input_seq, address in tx.fetch_all(sql, person_id):
        if is_concerned is not None and not is_concerned(Address.from_text(address) if address else None):
            continue
        if state == "running":
            tx.execute(stop, no, StopRequest.STOP.value, ended_by)
        elif tx.execute(end, no, now, reason.explain()):
            facts = {"turn": turn_id, "input_seq": input_seq, "reason": reason.value}
            events.append_event(tx, session_no, EventKind.TURN_INTERRUPTED, now, person_id, **facts)

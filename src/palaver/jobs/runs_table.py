"""Runs of jobs: queued at a slot, started as a turn, ended exactly once.

Always true, by unique indexes: a job has one run for a slot, and at most one that has not ended. A run that was started
ends with its turn (`jobs/run_end.py`), in the same transaction.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros, to_micros
from palaver.core.columns import Columns, insert_row, update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_number, fetch_value
from palaver.core.errors import JobRunning
from palaver.core.ids import new_job_run_id
from palaver.core.text import make_storable
from palaver.core.texts import edit_text, store_text
from palaver.jobs.model import JobResult, JobRun, JobRunKind, JobRunState, LastRun
from palaver.sessions import delivery_queries, turn_leases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from palaver.jobs.table import JobRow
    from palaver.sessions.turn_leases import TurnLease


IS_OPEN: Final = "state IN ('queued', 'running')"
MAX_REASON_CHARS: Final = 1000
MAX_REFUSED_TOOLS: Final = 20  # that are recorded for one run
MAX_TOOL_NAME_CHARS: Final = 80
MAX_COST_SAMPLE_RUNS: Final = 10

_RUN_COLUMNS: Final = Columns(JobRun, without=("job_id", "session_id", "deliveries"))
_LAST_RUN_COLUMNS: Final = Columns(LastRun)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run, and what the modules that end it need to know beside it."""

    no: int
    run: JobRun
    job_no: int
    cause: str | None  # by which equal failures are recognized
    reported_failure: str | None  # what the agent itself has reported
    session_no: int | None
    turn_no: int | None
    start_after: int


_ROW_COLUMNS: Final = Columns(RunRow, without=("run",))
_SELECT = f"""SELECT {_RUN_COLUMNS.format_select("r")}, {_ROW_COLUMNS.format_select("r")}, j.id, s.id
    FROM job_run r JOIN job j ON j.no = r.job_no AND j.is_deleted = 0 LEFT JOIN session s ON s.no = r.session_no"""


# -- reading ------------------------------------------------------------------------------------------------


def find_run(tx: Transaction, run_id: str) -> RunRow | None:
    """Find a run of any job, without its deliveries."""
    row = tx.fetch_one(f"{_SELECT} WHERE r.id = $1", run_id)
    return _make_run_row(row) if row else None


def find_open(tx: Transaction, job_no: int) -> RunRow | None:
    """Find the run of a job that has not ended."""
    row = tx.fetch_one(f"{_SELECT} WHERE r.job_no = $1 AND r.{IS_OPEN}", job_no)
    return _make_run_row(row) if row else None


def has_run_at(tx: Transaction, job_no: int, slot: datetime) -> bool:
    return tx.fetch_one("SELECT 1 FROM job_run WHERE job_no = $1 AND slot = $2", job_no, to_micros(slot)) is not None


def list_runs(tx: Transaction, job_no: int, *, limit: int, before: int | None = None) -> list[JobRun]:
    """List runs of a job with their deliveries, the newest first; those with a slot before a moment only."""
    sql = f"{_SELECT} WHERE r.job_no = $1 AND r.slot < $2 ORDER BY r.slot DESC LIMIT $3"
    rows = tx.fetch_all(sql, job_no, 2**62 if before is None else before, limit)
    run_rows = [_make_run_row(row) for row in rows]
    turn_nos = [row.turn_no for row in run_rows if row.turn_no is not None]
    by_turn = delivery_queries.list_statuses_of_turns(tx, turn_nos)
    return [replace(row.run, deliveries=tuple(by_turn.get(row.turn_no or 0, ()))) for row in run_rows]


def list_running_sessions(tx: Transaction, person_id: str) -> list[int]:
    """List the conversations of a person's runs that have started and not ended."""
    sql = """SELECT r.session_no FROM job_run r JOIN job j ON j.no = r.job_no
        WHERE r.state = 'running' AND r.session_no IS NOT NULL AND j.person_id = $1"""
    rows = tx.fetch_all(sql, person_id)
    return [session_no for (session_no,) in rows]


def count_running(tx: Transaction) -> int:
    return fetch_number(tx, "SELECT COUNT(*) FROM job_run WHERE state = 'running'")


_SELECT_STARTABLE = f"{_SELECT} WHERE r.state = 'queued' AND r.start_after <= $1"
_OLDEST_FIRST = "ORDER BY r.start_after, r.no LIMIT 1"
_BUSY_PEOPLE = """SELECT busy_job.person_id FROM job_run busy JOIN job busy_job ON busy_job.no = busy.job_no
    WHERE busy.state = 'running' GROUP BY busy_job.person_id HAVING COUNT(*) >= $2"""


def find_startable(tx: Transaction, now: int, person_share: int) -> RunRow | None:
    """Find the run that is to start next: the one that has waited longest, of a person with few runs under way.

    Only if there is none, it is one of a person who has `person_share` runs under way. The search reads at most the
    runs of the people who have so many, and a person has a limited number of jobs.
    """
    row = tx.fetch_one(
        f"{_SELECT_STARTABLE} AND j.person_id NOT IN ({_BUSY_PEOPLE}) {_OLDEST_FIRST}", now, person_share
    ) or tx.fetch_one(f"{_SELECT_STARTABLE} {_OLDEST_FIRST}", now)
    return _make_run_row(row) if row else None


def find_next_start(tx: Transaction) -> int | None:
    found: int | None = fetch_value(
        tx, "SELECT start_after FROM job_run WHERE state = 'queued' ORDER BY start_after LIMIT 1"
    )
    return found


def find_last_created_at(tx: Transaction) -> int | None:
    """Return when the newest run of any job was queued."""
    found: int | None = fetch_value(tx, "SELECT created_at FROM job_run WHERE no = (SELECT MAX(no) FROM job_run)")
    return found


def list_untold(tx: Transaction, limit: int) -> list[RunRow]:
    """List missed runs that one person is still to be told of, the oldest slot first; none if there is no such person.

    Another transaction that does the same waits until this one ends.
    """
    tx.lock_name("palaver missed runs")
    person_id: str | None = fetch_value(
        tx, "SELECT j.person_id FROM job_run r JOIN job j ON j.no = r.job_no WHERE r.is_untold = 1 LIMIT 1"
    )
    if person_id is None:
        return []
    rows = tx.fetch_all(
        f"{_SELECT} WHERE j.person_id = $1 AND r.is_untold = 1 ORDER BY r.slot, r.no LIMIT $2", person_id, limit
    )
    return [_make_run_row(row) for row in rows]


def has_untold(tx: Transaction) -> bool:
    return tx.fetch_one("SELECT 1 FROM job_run WHERE is_untold = 1 LIMIT 1") is not None


def list_orphans(tx: Transaction, limit: int) -> list[tuple[RunRow, str | None, bool]]:
    """List running runs whose turn was taken out of the queue, or whose conversation was deleted.

    Each comes with the error of its turn, and whether the turn is gone.
    """
    sql = """SELECT r.id, t.error, t.no FROM job_run r LEFT JOIN turn t ON t.no = r.turn_no
        WHERE r.state = 'running' AND (t.no IS NULL OR t.ended_at IS NOT NULL) ORDER BY r.no LIMIT $1"""
    found = tx.fetch_all(sql, limit)
    rows = [(find_run(tx, run_id), error, turn_no is None) for run_id, error, turn_no in found]
    return [(row, error, is_turn_gone) for row, error, is_turn_gone in rows if row is not None]


# -- changing -----------------------------------------------------------------------------------------------


def enqueue(
    tx: Transaction, job_row: JobRow, slot: datetime, kind: JobRunKind, now: int, *, start_after: int | None = None
) -> JobRun:
    """Queue a run of a job that is locked; raise `JobRunning` if the last one has not ended."""
    if find_open(tx, job_row.no) is not None:
        raise JobRunning.say(
            "jobs.running", "The job {name} is already running. Wait until it has ended.", name=repr(job_row.job.name)
        )
    moment = to_micros(slot)
    while kind is JobRunKind.MANUAL and has_run_at(tx, job_row.no, from_micros(moment)):
        moment += 1  # a manual run has no slot of its own: any moment will do
    state, start = JobRunState.QUEUED, now if start_after is None else start_after
    return _insert(tx, job_row, moment, kind, state, now, start_after=start)


def record_missed(
    tx: Transaction, job_row: JobRow, slot: datetime, slot_count: int, reason: str, now: int, *, is_untold: bool
) -> None:
    """Record slots at which the job did not run, from `slot` on, and whether its person is to be told."""
    facts = {"reason": _store_reason(reason), "slot_count": slot_count, "is_untold": int(is_untold)}
    _insert(tx, job_row, to_micros(slot), JobRunKind.SCHEDULED, JobRunState.MISSED, now, **facts)


def record_skipped(tx: Transaction, job_row: JobRow, slot: datetime, reason: str, now: int) -> None:
    _insert(tx, job_row, to_micros(slot), JobRunKind.SCHEDULED, JobRunState.SKIPPED, now, reason=_store_reason(reason))


def mark_started(tx: Transaction, run_no: int, session_no: int, turn_id: str, now: int) -> None:
    sql = """UPDATE job_run SET state = 'running', session_no = $2, started_at = $4,
        turn_no = (SELECT no FROM turn WHERE id = $3) WHERE no = $1 AND state = 'queued'"""
    tx.execute(sql, run_no, session_no, turn_id, now)


def end_run(
    tx: Transaction,
    run_no: int,
    state: JobRunState,
    now: int,
    *,
    reason: str | None = None,
    cause: str | None = None,
    result: JobResult | None = None,
) -> bool:
    """End a run; False if it has ended already."""
    columns = {
        "state": state.value,
        "ended_at": now,
        "reason": None if reason is None else _store_reason(reason),
        "cause": cause,
        "result": None if result is None else result.value,
    }
    return update_row(tx, "job_run", "no", run_no, columns, only=IS_OPEN) > 0


def set_untold(tx: Transaction, run_nos: Sequence[int], *, is_untold: bool) -> None:
    """Record whether the person of missed runs is still to be told of them."""
    tx.execute_many("UPDATE job_run SET is_untold = $2 WHERE no = $1", [(no, int(is_untold)) for no in run_nos])


def end_delays(tx: Transaction, now: int) -> None:
    """Let queued runs start that would wait until the clock is again as late as it was before it was set back."""
    tx.execute("UPDATE job_run SET start_after = $1 WHERE state = 'queued' AND start_after > $1", now)


def set_target_errors(tx: Transaction, run_no: int, target_errors: Mapping[str, str]) -> None:
    update_row(tx, "job_run", "no", run_no, _RUN_COLUMNS.encode({"target_errors": target_errors}))


def _insert(
    tx: Transaction, job_row: JobRow, slot: int, kind: JobRunKind, state: JobRunState, now: int, **further: object
) -> JobRun:
    run_id = new_job_run_id()
    columns = {
        "id": run_id,
        "job_no": job_row.no,
        "slot": slot,
        "slot_count": 1,
        "kind": kind.value,
        "state": state.value,
        "start_after": now,
        "created_at": now,
        "ended_at": now if state.has_ended else None,
        "is_untold": 0,
    }
    insert_row(tx, "job_run", columns | further)
    stored = find_run(tx, run_id)
    assert stored is not None  # noqa: S101
    return stored.run


def _store_reason(reason: str) -> str:
    return make_storable(store_text(edit_text(reason, lambda text: text[:MAX_REASON_CHARS])))


# -- rows ---------------------------------------------------------------------------------------------------


def _make_run_row(row: Row) -> RunRow:
    *_, job_id, session_id = row
    run = _RUN_COLUMNS.decode(row, job_id=job_id, session_id=session_id)
    return _ROW_COLUMNS.decode(row[len(_RUN_COLUMNS) :], run=run)


# ---- reports of a run -------------------------------------------------------------------------------------------
# What a run of a job reports while it runs: that it has failed, and tools that it wanted and was not granted.
#
# Always true: only the worker that holds the lease of the run's turn writes here, and writing the same twice changes
# nothing.


def set_reported_failure(tx: Transaction, lease: TurnLease, reason: str) -> None:
    """Store what the agent reported as the reason of its failure. Raises LeaseLost."""
    turn_leases.check_lease(tx, lease)
    columns = {"reported_failure": make_storable(reason)}
    update_row(tx, "job_run", "turn_no", lease.turn_no, columns, only="state = 'running'")


def add_refused_tool(tx: Transaction, lease: TurnLease, tool_name: str) -> None:
    """Record a tool that the run wanted to use and was not granted. Raises LeaseLost."""
    turn_leases.check_lease(tx, lease)
    sql = f"SELECT no, refused_tools FROM job_run WHERE turn_no = $1 AND state = 'running' {tx.for_update}"
    row = tx.fetch_one(sql, lease.turn_no)
    if row is None:
        return
    run_no, refused_tools = row
    names = list(json.loads(refused_tools)) if refused_tools else []
    name = make_storable(tool_name)[:MAX_TOOL_NAME_CHARS]
    if name in names or len(names) >= MAX_REFUSED_TOOLS:
        return
    tx.execute("UPDATE job_run SET refused_tools = $2 WHERE no = $1", run_no, json.dumps([*names, name]))


# ---- summaries for lists and previews ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CostSample:
    run_count: int
    cost_nanos: int
    has_unknown_cost: bool  # of at least one of them


def load_last_runs(tx: Transaction, job_nos: Sequence[int]) -> dict[int, LastRun]:
    """Return the latest run of each of these jobs that has one, by the number of the job."""
    if not job_nos:
        return {}
    sql = f"""SELECT {_LAST_RUN_COLUMNS.format_select("r")}, r.job_no FROM job j JOIN job_run r ON r.job_no = j.no
        AND r.slot = (SELECT MAX(latest.slot) FROM job_run latest WHERE latest.job_no = j.no)
        WHERE j.no IN ({build_placeholders(len(job_nos))})"""
    rows = tx.fetch_all(sql, *job_nos)
    return {row[-1]: _LAST_RUN_COLUMNS.decode(row) for row in rows}


def load_cost_sample(tx: Transaction, job_no: int) -> CostSample:
    """Return what the latest runs of a job have cost that called a model."""
    sql = f"""SELECT latest.no, u.cost_nanos, u.cost_status FROM (SELECT r.no, r.session_no, t.id AS turn_id
        FROM job_run r JOIN turn t ON t.no = r.turn_no WHERE r.job_no = $1 AND r.state IN ('done', 'failed')
        ORDER BY r.slot DESC LIMIT {MAX_COST_SAMPLE_RUNS}) latest
        JOIN usage u ON u.session_no = latest.session_no AND u.turn_id = latest.turn_id"""
    rows = tx.fetch_all(sql, job_no)
    return CostSample(
        run_count=len({no for no, _, _ in rows}),
        cost_nanos=sum(nanos or 0 for _, nanos, _ in rows),
        has_unknown_cost=any(status == "unknown" for _, _, status in rows),
    )

"""Jobs: prompts that run on a schedule, each on behalf of one person.

Always true, by unique indexes and checks: a person has one job of a name, and only an active job has a next slot. A
slot is passed by `advance` alone, which changes nothing if the job's slot is no longer the one that its caller saw;
reading never does. A job of another person looks exactly like one that does not exist.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros_or_none, to_micros
from palaver.core.columns import Columns, insert_row, update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, fetch_number, fetch_value
from palaver.core.errors import JobNameTaken, JobNotFound, LimitReached
from palaver.core.ids import PersonId, new_job_id
from palaver.core.old_rows import OldRows
from palaver.core.source import SessionSource, encode_source
from palaver.core.text import is_storable, make_name_key, make_storable
from palaver.core.texts import say, store_text
from palaver.jobs.model import MAX_JOB_NAME_CHARS, MAX_JOBS_PER_PERSON, Job, JobFields, JobState
from palaver.money import table as budget_limits
from palaver.people.model import Principal, Role
from palaver.people.person_data import (
    ErasureStep,
    ExportedTable,
    FieldKind,
    Moved,
    PersonColumn,
    derive_fields,
    make_fields,
)
from palaver.sessions import deletion_table as session_deletion, table as sessions
from palaver.sessions.deletions import SESSION_PIECES, Pieces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.sessions.turn_leases import TurnLease


RUNS_PER_PIECE: Final = 300  # a job with up to so many is deleted at once
_OVER = "state = 'ended' AND updated_at < $1 AND NOT EXISTS (SELECT 1 FROM job_run r WHERE r.job_no = job.no)"
_EXPIRED = "proposed_at IS NOT NULL AND proposed_at < $1"
_ENDED_REASON = say("jobs.ended", "It has no further runs.")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job, and what the modules that run it need to know beside it."""

    no: int
    job: Job
    origin_session_no: int | None
    alerted_cause: str | None  # of the failure that its person was last told of
    person_role: Role
    person_audience_no: int  # the audience of the person's own conversations
    person_name: str

    @property
    def principal(self) -> Principal:
        """The person, as the job: its runs act on their behalf."""
        return Principal(self.job.person_id, self.person_role, self.job.id)


JOB_COLUMNS: Final = Columns(Job, without=("origin_session_id", "asked_at"))
_ROW_COLUMNS: Final = Columns(
    JobRow, without=("job",), person_role="p.role", person_audience_no="p.audience_no", person_name="p.name"
)
_SELECT = f"""SELECT {JOB_COLUMNS.format_select("j")}, {_ROW_COLUMNS.format_select("j")}, j.proposed_at, s.id
    FROM job j JOIN person p ON p.id = j.person_id AND j.is_deleted = 0
    LEFT JOIN session s ON s.no = j.origin_session_no AND s.is_deleted = 0"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob(JobFields):
    person_id: PersonId
    origin: SessionSource
    state: JobState
    next_slot: datetime | None  # of an active job
    origin_session_no: int | None = None


# ---- reading ---------------------------------------------------------------------------------------------------


def find_by_id(tx: Transaction, job_id: str) -> JobRow | None:
    """Find the job of any person."""
    return _find(tx, "j.id = $1", job_id)


def find_by_no(tx: Transaction, job_no: int) -> JobRow | None:
    return _find(tx, "j.no = $1", job_no)


def lock(tx: Transaction, job_no: int) -> JobRow | None:
    """Keep others from changing a job and its runs until this transaction ends; return the job as it is from then on.

    None if it was deleted.
    """
    tx.fetch_one(f"SELECT 1 FROM job WHERE no = $1 {tx.for_update}", job_no)
    return find_by_no(tx, job_no)


def get_owned(tx: Transaction, person_id: PersonId, id_or_name: str) -> JobRow:
    """Return one of a person's jobs; another person's job is not found, like one that does not exist."""
    name_key = make_name_key(id_or_name)
    found = is_storable(id_or_name) and (
        _find(tx, "j.person_id = $1 AND j.id = $2", person_id, id_or_name.strip())
        or _find(tx, "j.person_id = $1 AND j.name_key = $2", person_id, name_key)
    )
    if not found:
        raise make_not_found(id_or_name)
    return found


def get_any(tx: Transaction, job_id: str) -> JobRow:
    """Return the job of any person by its id: names are unique only among the jobs of one person."""
    found = find_by_id(tx, job_id.strip()) if is_storable(job_id) else None
    if found is None:
        raise make_not_found(job_id)
    return found


def make_not_found(id_or_name: str) -> JobNotFound:
    text = say(
        "jobs.not_found",
        "Job {name} not found. It may have been deleted, or you don't have access.",
        name=repr(id_or_name),
    )
    return JobNotFound(text, job=id_or_name)


def list_owned(tx: Transaction, person_id: PersonId) -> list[JobRow]:
    """List a person's jobs by name; there are at most `MAX_JOBS_PER_PERSON`."""
    return _list(tx, "j.person_id = $1 ORDER BY j.name_key", person_id)


def list_all(tx: Transaction, *, limit: int, after: int = 0) -> list[JobRow]:
    """List the jobs of all people in the order they were made, those after a number only."""
    return _list(tx, "j.no > $1 ORDER BY j.no LIMIT $2", after, limit)


def list_due(tx: Transaction, now: int, limit: int, after: tuple[int, int] = (0, 0)) -> list[JobRow]:
    """List jobs whose slot has come, the longest due first; those after a slot and number only."""
    condition = "j.next_slot <= $1 AND (j.next_slot, j.no) > ($2, $3) ORDER BY j.next_slot, j.no LIMIT $4"
    return _list(tx, condition, now, *after, limit)


def find_next_slot(tx: Transaction, after: int) -> datetime | None:
    """Return the earliest slot of any job that is later than a moment; None if there is none."""
    return from_micros_or_none(
        fetch_value(tx, "SELECT next_slot FROM job WHERE next_slot > $1 ORDER BY next_slot LIMIT 1", after)
    )


# ---- changing --------------------------------------------------------------------------------------------------


def insert(tx: Transaction, new_job: NewJob, now: int) -> JobRow:
    """Add a job; raises `JobNameTaken` if the person has one of this name, and `LimitReached` if they have too many."""
    tx.lock_name(f"palaver jobs {new_job.person_id}")
    check_name_free(tx, new_job.person_id, new_job.name)
    count = fetch_number(tx, "SELECT COUNT(*) FROM job WHERE person_id = $1 AND is_deleted = 0", new_job.person_id)
    if count >= MAX_JOBS_PER_PERSON:
        text = say(
            "jobs.too_many",
            "You already have {limit} jobs. Delete one before you add another.",
            limit=str(MAX_JOBS_PER_PERSON),
        )
        raise LimitReached(text, what="jobs", limit=MAX_JOBS_PER_PERSON)
    job_id = new_job_id()
    given = {name: getattr(new_job, name) for name in ("person_id", "origin", "state", "next_slot")}
    columns = JOB_COLUMNS.encode({"id": job_id, **given, **new_job.list_fields()})
    columns |= {"name_key": make_name_key(new_job.name), "origin_session_no": new_job.origin_session_no}
    insert_row(tx, "job", {**columns, "created_at": now, "updated_at": now})
    return get_any(tx, job_id)


def check_name_free(tx: Transaction, person_id: PersonId, name: str, *, except_no: int = 0) -> None:
    """Raise `JobNameTaken` if another job of this person has the name."""
    sql = "SELECT id, name FROM job WHERE person_id = $1 AND name_key = $2 AND no <> $3"
    existing = tx.fetch_one(sql, person_id, make_name_key(name), except_no)
    if existing is not None:
        job_id, name = existing
        text = say(
            "jobs.name_taken",
            "You already have a job named {name}. Change it with `jobs edit`, or choose another name.",
            name=repr(name),
        )
        raise JobNameTaken(text, job_id=job_id, name=name)


def update_fields(tx: Transaction, job_row: JobRow, changes: Mapping[str, object], now: int) -> JobRow:
    """Change fields of a job by their names; raises `JobNameTaken` for the name of another job of its person."""
    columns = JOB_COLUMNS.encode(changes)
    if "name" in columns:
        tx.lock_name(f"palaver jobs {job_row.job.person_id}")
        check_name_free(tx, job_row.job.person_id, str(columns["name"]), except_no=job_row.no)
        columns["name_key"] = make_name_key(str(columns["name"]))
    update_row(tx, "job", "no", job_row.no, {**columns, "updated_at": now})
    return get_any(tx, job_row.job.id)


def move_origin(tx: Transaction, job_row: JobRow, origin: SessionSource, session_no: int | None, now: int) -> JobRow:
    """Record that a job that waits for confirmation was proposed again, maybe in another place."""
    columns = {"origin": encode_source(origin), "origin_session_no": session_no, "updated_at": now}
    update_row(tx, "job", "no", job_row.no, columns)
    return get_any(tx, job_row.job.id)


def set_state(
    tx: Transaction, job_no: int, state: JobState, reason: str | None, next_slot: datetime | None, now: int
) -> None:
    """Change the state of a job, and with it its next slot, which only an active job has.

    An active job starts with no failures.
    """
    sql = """UPDATE job SET state = $2, state_reason = $3, next_slot = $4, updated_at = $5,
        failure_count = CASE WHEN $2 = 'active' THEN 0 ELSE failure_count END,
        alerted_cause = CASE WHEN $2 = 'active' THEN NULL ELSE alerted_cause END WHERE no = $1"""
    tx.execute(
        sql,
        job_no,
        state.value,
        None if reason is None else make_storable(store_text(reason)),
        None if next_slot is None else to_micros(next_slot),
        now,
    )


def pause_all(tx: Transaction, person_id: PersonId, reason: str, now: int) -> None:
    columns = {
        "state": "paused",
        "state_reason": make_storable(store_text(reason)),
        "next_slot": None,
        "updated_at": now,
    }
    update_row(tx, "job", "person_id", person_id, columns, only="state = 'active'")


def advance(tx: Transaction, job_row: JobRow, next_slot: datetime | None, now: int, *, runs_left: int | None) -> bool:
    """Pass the slot of an active job; without a next one, the job ends.

    False, and nothing is changed, if the job's slot is no longer the one of `job_row`: another process has passed it,
    or a person has changed the job.
    """
    slot = job_row.job.next_slot
    if slot is None:
        return False
    values: tuple[object, ...]
    if next_slot is None:
        assignments = "next_slot = NULL, state = 'ended', state_reason = $4, updated_at = $5"
        values = (store_text(_ENDED_REASON), now)
    else:
        assignments, values = "next_slot = $4", (to_micros(next_slot),)
    sql = f"UPDATE job SET runs_left = $3, {assignments} WHERE no = $1 AND next_slot = $2 AND state = 'active'"
    return bool(tx.execute(sql, job_row.no, to_micros(slot), runs_left, *values))


def restore_run(tx: Transaction, job_no: int) -> None:
    """Give a job one of its scheduled runs back, which has not started."""
    tx.execute(
        "UPDATE job SET runs_left = runs_left + 1 WHERE no = $1 AND runs_left IS NOT NULL AND state <> 'ended'", job_no
    )


def set_failures(tx: Transaction, job_no: int, failure_count: int, alerted_cause: str | None) -> None:
    """Store how many runs failed in a row, and the cause that the person was last told of."""
    update_row(tx, "job", "no", job_no, {"failure_count": failure_count, "alerted_cause": alerted_cause})


# ---- helpers ---------------------------------------------------------------------------------------------------


def find_free_name(name: str, taken_keys: set[str]) -> str:
    """Return the name itself, or its next free number: `Report 2`."""
    number, free = 2, name
    while make_name_key(free) in taken_keys:
        suffix = f" {number}"
        free = name[: MAX_JOB_NAME_CHARS - len(suffix)] + suffix
        number += 1
    return free


def list_name_keys(tx: Transaction, person_id: PersonId) -> set[str]:
    return {key for (key,) in tx.fetch_all("SELECT name_key FROM job WHERE person_id = $1", person_id)}


def _find(tx: Transaction, condition: str, *params: object) -> JobRow | None:
    row = tx.fetch_one(f"{_SELECT} WHERE {condition}", *params)
    return _make_job_row(row) if row else None


def _list(tx: Transaction, condition: str, *params: object) -> list[JobRow]:
    return [_make_job_row(row) for row in tx.fetch_all(f"{_SELECT} WHERE {condition}", *params)]


def _make_job_row(row: Row) -> JobRow:
    *_, proposed_at, session_id = row
    job = JOB_COLUMNS.decode(row, origin_session_id=session_id, asked_at=from_micros_or_none(proposed_at))
    return _ROW_COLUMNS.decode(row[len(JOB_COLUMNS) :], job=job)


# ---- deleting ---------------------------------------------------------------------------------------------------
# Deletes jobs: one with few runs at once, one with many in pieces, so that no other writer waits for long.
#
# A job with many runs first disappears, in one short transaction: it loses its id, name and prompt, its open run and
# what its person is still to be told of. `is_deleted` keeps it out of everything that looks for jobs and runs. Then
# its runs are deleted piece by piece; a process that dies leaves the rest to the cleanup of any server.
#
# Always true: a reader sees a job with all its runs, or neither. The conversations of the runs stay.


def delete(tx: Transaction, job_no: int) -> None:
    """Delete a job, the list of its runs and its limits, or let it disappear if it has many runs.

    The caller has locked it, so no run is added meanwhile.
    """
    if tx.fetch_one("SELECT 1 FROM job_run WHERE job_no = $1 LIMIT 1 OFFSET $2", job_no, RUNS_PER_PIECE) is None:
        tx.execute("DELETE FROM job WHERE no = $1", job_no)
    else:
        _hide(tx, job_no)
    budget_limits.delete_for_missing_jobs(tx)


def delete_piece(tx: Transaction, job_no: int) -> None:
    """Delete the next runs of a job that has disappeared; when none are left, the job."""
    if tx.fetch_one(f"SELECT 1 FROM job WHERE no = $1 AND is_deleted = 1 {tx.for_update}", job_no) is None:
        return  # another process was faster
    sql = "DELETE FROM job_run WHERE no IN (SELECT no FROM job_run WHERE job_no = $1 ORDER BY slot LIMIT $2)"
    deleted = tx.execute(sql, job_no, RUNS_PER_PIECE)
    if deleted < RUNS_PER_PIECE:
        tx.execute("DELETE FROM job WHERE no = $1", job_no)


def _hide(tx: Transaction, job_no: int) -> None:
    tx.execute("DELETE FROM job_run WHERE job_no = $1 AND state IN ('queued', 'running')", job_no)
    tx.execute("DELETE FROM job_run WHERE job_no = $1 AND is_untold = 1", job_no)
    # Two spaces: no name that a person types has them (`jobs.make_name_key`).
    sql = """UPDATE job SET is_deleted = 1, id = $2, name = '', name_key = $3, prompt = '', state = 'ended',
        state_reason = NULL, next_slot = NULL, origin_session_no = NULL, proposed_change = NULL, proposed_at = NULL,
        proposed_session_no = NULL WHERE no = $1"""
    tx.execute(sql, job_no, f"deleted-{job_no}", f"deleted  {job_no}")


ALL_PIECES: Final[Pieces] = {**SESSION_PIECES, "job": delete_piece}


# ---- old runs and jobs ------------------------------------------------------------------------------------------
# Deletes the history of jobs: old runs, their conversations in which no person has written, and jobs that are over.
#
# The last run of a job stays as long as the job may run again, so that people see how it ended.

_OLD_RUNS = """FROM job_run r JOIN job j ON j.no = r.job_no WHERE r.ended_at IS NOT NULL AND r.ended_at < $1
    AND j.is_deleted = 0
    AND (j.state = 'ended' OR EXISTS (SELECT 1 FROM job_run l WHERE l.job_no = r.job_no AND l.slot > r.slot))"""

# No person has written in it, named it, put it elsewhere or shared it.
_IS_UNTOUCHED = """s.platform = 'cron' AND s.last_human_at IS NULL AND s.title IS NULL AND s.pinned_at IS NULL
    AND s.archived_at IS NULL AND EXISTS (SELECT 1 FROM project p WHERE p.no = s.project_no AND p.name_key = $2)
    AND NOT EXISTS (SELECT 1 FROM share h WHERE h.session_no = s.no)
    AND NOT EXISTS (SELECT 1 FROM lane l WHERE l.session_no = s.no)
    AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_no = s.no AND t.state IN ('queued', 'running'))"""


def has_old(tx: Transaction, before: int) -> bool:
    """Whether there are runs that ended before a moment, or jobs that were over then, and may be deleted."""
    if tx.fetch_one(f"SELECT 1 {_OLD_RUNS} LIMIT 1", before) is not None:
        return True
    return tx.fetch_one(f"SELECT 1 FROM job WHERE {_OVER} LIMIT 1", before) is not None


def delete_old(tx: Transaction, before: int, limit: int, project_key: str) -> int:
    """Delete the oldest of them, at most `limit` and with about as many entries as a piece has; return how many.

    `project_key` is the project in which the conversations of runs begin: one that was moved elsewhere stays.
    """
    runs = tx.fetch_all(f"SELECT r.no, r.session_no, r.turn_no {_OLD_RUNS} ORDER BY r.ended_at LIMIT $2", before, limit)
    run_count, row_count = 0, 0
    for no, session_no, turn_no in runs:
        if session_no is not None:
            row_count += _delete_untouched_session(tx, session_no, turn_no, project_key)
        tx.execute("DELETE FROM job_run WHERE no = $1", no)
        run_count += 1
        if row_count >= session_deletion.ROWS_PER_PIECE:
            break
    if run_count:
        return run_count
    deleted_count = tx.execute(
        f"DELETE FROM job WHERE no IN (SELECT no FROM job WHERE {_OVER} ORDER BY updated_at LIMIT $2)", before, limit
    )
    budget_limits.delete_for_missing_jobs(tx)
    return deleted_count


def _delete_untouched_session(tx: Transaction, session_no: int, turn_no: int | None, project_key: str) -> int:
    """Delete the conversation of a run if no person has touched it; return how many entries."""
    row = sessions.find_by_no(tx, session_no, tx.for_update)
    is_untouched = tx.fetch_one(f"SELECT 1 FROM session s WHERE s.no = $1 AND {_IS_UNTOUCHED}", session_no, project_key)
    if row is None or not is_untouched:
        return 0
    if turn_no is not None:  # what was sent to chats is part of their conversations, which stay
        sql = "UPDATE delivery SET turn_no = NULL WHERE turn_no = $1 AND (session_no IS NULL OR session_no <> $2)"
        tx.execute(sql, turn_no, session_no)
    return session_deletion.delete(tx, row).rows


# ---- proposals --------------------------------------------------------------------------------------------------


def mark_proposed(tx: Transaction, job_no: int, session_no: int, now: int) -> None:
    """Record in which conversation the person is asked, and since when."""
    update_row(tx, "job", "no", job_no, {"proposed_at": now, "proposed_session_no": session_no})


def find_session_no(tx: Transaction, job_no: int) -> int | None:
    """Return the conversation in which the person is asked to confirm a job or its change."""
    found: int | None = fetch_value(
        tx, "SELECT proposed_session_no FROM job WHERE no = $1 AND proposed_at IS NOT NULL", job_no
    )
    return found


def was_proposed_in_turn(tx: Transaction, job_no: int, lease: TurnLease) -> bool:
    """Whether the person was asked in this turn already: by an attempt whose worker died, or by an earlier call."""
    sql = """SELECT 1 FROM job j JOIN turn t ON t.no = $2
        WHERE j.no = $1 AND j.proposed_session_no = t.session_no AND j.proposed_at >= t.created_at"""
    row = tx.fetch_one(sql, job_no, lease.turn_no)
    return row is not None


def mark_decided(tx: Transaction, job_no: int) -> None:
    """Record that the person is no longer asked."""
    update_row(tx, "job", "no", job_no, {"proposed_at": None, "proposed_session_no": None})


def has_expired(tx: Transaction, before: int) -> bool:
    return tx.fetch_one(f"SELECT 1 FROM job WHERE {_EXPIRED} LIMIT 1", before) is not None


def delete_expired(tx: Transaction, before: int, limit: int) -> int:
    """Delete jobs, and drop changes of jobs, that were proposed before a moment; return how many."""
    expired = tx.fetch_all(f"SELECT no, state FROM job WHERE {_EXPIRED} ORDER BY proposed_at LIMIT $2", before, limit)
    for no, state in expired:
        if state == JobState.PROPOSED:
            tx.execute("DELETE FROM job WHERE no = $1", no)
        else:
            tx.execute("UPDATE job SET proposed_change = NULL WHERE no = $1", no)
            mark_decided(tx, no)
    return len(expired)


MAX_PROPOSAL_AGE: Final = timedelta(days=7)  # of jobs that wait for a person's confirmation
OLD_ROWS: Final = {"proposals": OldRows(MAX_PROPOSAL_AGE, has_expired, delete_expired)}
PERSON_DATA: Final = (
    PersonColumn(
        "job",
        merge=Moved(has_unique_names=True),
        erase=ErasureStep.JOBS,
        count="jobs",
        belonging="jobs",
        belonging_only="is_deleted = 0",
    ),
)
EXPORT: Final = ExportedTable(
    table="job",
    fields=(
        *derive_fields(JOB_COLUMNS, state=JobState),
        *make_fields("proposed_at", FieldKind.TIME),
        *make_fields("alerted_cause"),
    ),
    references={
        "origin_session": "(SELECT s.id FROM session s WHERE s.no = t.origin_session_no AND s.is_deleted = 0)",
        "proposed_session": "(SELECT s.id FROM session s WHERE s.no = t.proposed_session_no)",
    },
    only="t.is_deleted = 0",
    report_kind="jobs",
)

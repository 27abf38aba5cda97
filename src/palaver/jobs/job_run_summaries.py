"""What lists and previews of jobs say about their runs: the latest one, and what the latest ones have cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.ids import JobRunId
from palaver.core.statements import build_placeholders
from palaver.core.timestamps import from_micros, from_micros_or_none
from palaver.jobs.model import JobResult, JobRunState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction

MAX_COST_SAMPLE_RUNS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The latest run of a job, as lists show it."""

    id: JobRunId
    slot: datetime
    state: JobRunState
    result: JobResult | None
    reason: str | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class CostSample:
    """What the latest runs of a job have cost."""

    run_count: int
    cost_nanos: int
    has_unknown_cost: bool  # of at least one of them


def load_last_runs(tx: Transaction, job_nos: Sequence[int]) -> dict[int, LastRun]:
    """Return the latest run of each of these jobs that has one, by the number of the job."""
    if not job_nos:
        return {}
    rows = tx.fetch_all(
        "SELECT r.job_no, r.id, r.slot, r.state, r.result, r.reason, r.ended_at FROM job j"
        " JOIN job_run r ON r.job_no = j.no"
        " AND r.slot = (SELECT MAX(latest.slot) FROM job_run latest WHERE latest.job_no = j.no)"
        f" WHERE j.no IN ({build_placeholders(len(job_nos))})",
        *job_nos,
    )
    return {
        job_no: LastRun(
            id=JobRunId(run_id),
            slot=from_micros(slot),
            state=JobRunState(state),
            result=None if result is None else JobResult(result),
            reason=reason,
            ended_at=from_micros_or_none(ended_at),
        )
        for job_no, run_id, slot, state, result, reason, ended_at in rows
    }


def load_cost_sample(tx: Transaction, job_no: int) -> CostSample:
    """Return what the latest runs of a job have cost that called a model."""
    rows = tx.fetch_all(
        "SELECT latest.no, u.cost_nanos, u.cost_status FROM (SELECT r.no, r.session_no, t.id AS turn_id FROM job_run r"
        " JOIN turn t ON t.no = r.turn_no WHERE r.job_no = $1 AND r.state IN ('done', 'failed')"
        f" ORDER BY r.slot DESC LIMIT {MAX_COST_SAMPLE_RUNS}) latest"
        " JOIN usage u ON u.session_no = latest.session_no AND u.turn_id = latest.turn_id",
        job_no,
    )
    return CostSample(
        run_count=len({no for no, _, _ in rows}),
        cost_nanos=sum(nanos or 0 for _, nanos, _ in rows),
        has_unknown_cost=any(status == "unknown" for _, _, status in rows),
    )

"""Jobs and their runs as JSON-ready data, for the API and the terminal.

Times of a schedule are in the job's time zone, all others in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from decimal import Decimal

    from palaver.jobs.details import JobDetails, JobOptions, JobPreview, JobSummary, NamedItem
    from palaver.jobs.job_run_summaries import LastRun
    from palaver.jobs.model import Job, JobRun
    from palaver.sessions.delivery import DeliveryStatus


def summary_to_json(summary: JobSummary) -> dict[str, Any]:
    """Return a job as it is listed."""
    return _job_to_json(summary.job, summary.words, summary.person_name, summary.last_run)


def details_to_json(details: JobDetails) -> dict[str, Any]:
    """Return a job with its prompt, what it means, and the change that waits for confirmation."""
    change = details.proposed_change
    return {
        **_job_to_json(details.job, details.words, details.person_name, details.last_run),
        "preview": preview_to_json(details.preview),
        "proposed_change": None if change is None else preview_to_json(change),
    }


def preview_to_json(preview: JobPreview) -> dict[str, Any]:
    return {
        "name": preview.name,
        "prompt": preview.prompt,
        "schedule": preview.schedule,
        "words": preview.words,
        "timezone": preview.timezone,
        "next_slots": [slot.isoformat() for slot in preview.next_slots],
        "runs_left": preview.runs_left,
        "runs_per_day": preview.runs_per_day,
        "cost_per_run_usd": _format_dollars(preview.cost_per_run),
        "cost_per_day_usd": _format_dollars(preview.cost_per_day),
        "cost_basis": preview.cost_basis.value,
        "targets": items_to_json(preview.targets),
        "toolsets": items_to_json(preview.toolsets),
        "model": preview.model,
        "used_model": preview.used_model,
        "profile": preview.profile,
    }


def options_to_json(options: JobOptions) -> dict[str, Any]:
    return {
        "timezone": options.timezone,
        "toolsets": items_to_json(options.toolsets),
        "default_toolsets": list(options.default_toolsets),
        "targets": items_to_json(options.targets),
    }


def run_to_json(run: JobRun) -> dict[str, Any]:
    """Return a run: how it ended, what came out of it, and what reached each target."""
    return {
        "id": run.id,
        "slot": run.slot.isoformat(),
        "slot_count": run.slot_count,
        "kind": run.kind.value,
        "state": run.state.value,
        "reason": run.reason,
        "result": None if run.result is None else run.result.value,
        "refused_tools": list(run.refused_tools),
        "deliveries": [_delivery_to_json(each) for each in run.deliveries],
        "target_errors": [{"target": target, "error": error} for target, error in run.target_errors.items()],
        "session_id": run.session_id,
        "created_at": run.created_at.isoformat(),
        "started_at": _format_time(run.started_at),
        "ended_at": _format_time(run.ended_at),
    }


def items_to_json(items: Iterable[NamedItem]) -> list[dict[str, str]]:
    return [{"name": item.name, "words": item.words} for item in items]


def _job_to_json(job: Job, words: str, person_name: str, last_run: LastRun | None) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "person_id": job.person_id,
        "person_name": person_name,
        "prompt": job.prompt,
        "schedule": job.schedule,
        "words": words,
        "timezone": job.timezone,
        "runs_left": job.runs_left,
        "targets": list(job.targets),
        "toolsets": list(job.toolsets),
        "model": job.model,
        "profile": job.profile,
        "state": job.state.value,
        "state_reason": job.state_reason,
        "has_proposed_change": job.proposed_change is not None,
        "asked_at": _format_time(job.asked_at),
        "next_slot": _format_time(job.next_slot),
        "failure_count": job.failure_count,
        "origin_platform": str(job.origin.platform),
        "origin_session_id": job.origin_session_id,
        "last_run": None if last_run is None else _last_run_to_json(last_run),
        "created_at": job.created_at.isoformat(),
        "updated_at": job.updated_at.isoformat(),
    }


def _last_run_to_json(last_run: LastRun) -> dict[str, Any]:
    return {
        "id": last_run.id,
        "slot": last_run.slot.isoformat(),
        "state": last_run.state.value,
        "result": None if last_run.result is None else last_run.result.value,
        "reason": last_run.reason,
        "ended_at": _format_time(last_run.ended_at),
    }


def _delivery_to_json(delivery: DeliveryStatus) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "target": delivery.target,
        "platform": str(delivery.platform),
        "state": delivery.state.value,
        "error": delivery.error,
        "ended_at": _format_time(delivery.ended_at),
    }


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _format_dollars(dollars: Decimal | None) -> str | None:
    """Write an estimate with six decimals; None stays unknown."""
    return None if dollars is None else f"{dollars:.6f}"

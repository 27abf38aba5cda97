"""Jobs: prompts that the agent works on by a schedule, and their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from palaver.jobs import wire
from palaver.jobs.model import JOB_FIELDS, FieldDeclaration, JobDetails, JobDraft
from palaver.jobs.service import MAX_PAGE_RUNS, get_priced_job, load_prices, preview_priced_job
from palaver.jobs.wire import JobDetailsJson, JobOptionsJson, JobPreviewJson, JobRunJson, JobRunsJson, JobsJson
from palaver.sessions.conversations import build_person_source
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, IncludeAll, require_scope
from palaver.web.errors import error_responses
from palaver.web.state import ActionIn, Moment, RequestModel, ShortText, State, WebState, with_fields

if TYPE_CHECKING:
    from palaver.people.model import SignedInPerson

router = make_router("jobs", "/api/jobs", responses=error_responses(401))

# Making the agent work needs the same scope as writing to it.
_RUNS_AGENT = [require_scope("chat")]

JobId = Annotated[str, Path(description="The id of a job.", examples=["j_1a2b3c4d"])]


def _make_type(declared: FieldDeclaration) -> Any:
    if declared.kind == "names":
        return Annotated[list[ShortText], Field(max_length=declared.maximum)]
    if declared.kind == "count":
        return Annotated[int, Field(ge=0, le=declared.maximum)]
    return Annotated[str, Field(max_length=max(2 * declared.maximum, 1000))]  # its exact limit is checked further down


@with_fields(
    {
        name: (
            _make_type(each) | None,
            Field(None, description=each.help, examples=None if each.example is None else [each.example]),
        )
        for name, each in JOB_FIELDS.items()
    }
)
class JobFieldsIn(RequestModel):
    """The fields of a job.

    In a change, a field that is missing or null stays as it is; null resets the model, the profile and `repeat`.
    """

    def to_draft(self) -> JobDraft:
        """Return the fields that the request gives; null resets one to its default."""
        values: dict[str, Any] = {}
        for name in self.model_fields_set & JOB_FIELDS.keys():
            value, reset_value = getattr(self, name), JOB_FIELDS[name].reset_value
            if isinstance(value, list):
                value = tuple(value)
            values[name] = value if reset_value is None else value or reset_value
        return JobDraft(**values)


class JobIn(JobFieldsIn):
    """A new job. `prompt` and `schedule` are required."""

    session_id: ShortText | None = Field(
        None, description="The conversation in which it is made; its target `origin` leads there."
    )


class JobPreviewIn(JobIn):
    """A new job or a change of one, to look at before it is made."""

    job_id: ShortText | None = Field(None, description="The job that it changes.")


@router.get("")
async def list_jobs(
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    cursor: Annotated[str, Query(max_length=100)] | None = None,
) -> JobsJson:
    """List your jobs by name."""
    page = await state.gateway.jobs.list(caller.principal, everything=include_all, cursor=cursor)
    return {"jobs": [wire.summary_to_json(each) for each in page], "next_cursor": page.cursor}


@router.post("", status_code=201, dependencies=_RUNS_AGENT, responses=error_responses(404))
async def create_job(state: State, caller: Caller, body: JobIn) -> JobDetailsJson:
    """Make a job. You can have one job of a name."""
    source = build_person_source(caller.person)
    created = await state.gateway.jobs.add(caller.principal, body.to_draft(), source, session_id=body.session_id)
    return await _show_changed(state, caller, created)


@router.post("/preview", dependencies=[require_scope("read")], responses=error_responses(404))
async def preview_job(state: State, caller: Caller, body: JobPreviewIn, include_all: IncludeAll) -> JobPreviewJson:
    """Check a new job or a change of one, and get it in words, with its next times and what it may cost."""
    preview = await preview_priced_job(
        state.gateway.jobs,
        state.gateway.job_environment.prices,
        caller.principal,
        body.to_draft(),
        build_person_source(caller.person),
        session_id=body.session_id,
        job=body.job_id,
        everything=include_all,
    )
    return wire.preview_to_json(preview)


@router.get("/options")
async def get_job_options(state: State, caller: Caller) -> JobOptionsJson:
    """Get what you can choose from when you make a job."""
    options = await state.gateway.jobs.get_options(caller.principal)
    return wire.options_to_json(options)


@router.get("/{job_id}", responses=error_responses(404))
async def get_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> JobDetailsJson:
    """Get a job, and what it means."""
    prices = state.gateway.job_environment.prices
    details = await get_priced_job(state.gateway.jobs, prices, caller.principal, job_id, everything=include_all)
    return wire.details_to_json(details)


@router.patch("/{job_id}", dependencies=_RUNS_AGENT, responses=error_responses(404))
async def update_job(
    state: State, caller: Caller, include_all: IncludeAll, job_id: JobId, body: JobFieldsIn
) -> JobDetailsJson:
    """Change a job. A paused job stays paused; one that has ended and gets further times is active again."""
    changed = await state.gateway.jobs.edit(caller.principal, job_id, body.to_draft(), everything=include_all)
    return await _show_changed(state, caller, changed, include_all=include_all)


@router.delete("/{job_id}", status_code=204, responses=error_responses(404))
async def delete_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> None:
    """Delete a job and stop its run. The conversations of its runs stay."""
    await state.gateway.jobs.remove(caller.principal, job_id, everything=include_all)
    state.gateway.wake()


@router.post("/{job_id}/pause", responses=error_responses(404))
async def pause_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> JobDetailsJson:
    """Pause a job. A run that is under way goes on."""
    changed = await state.gateway.jobs.pause(caller.principal, job_id, everything=include_all)
    return await _show_changed(state, caller, changed, include_all=include_all)


@router.post("/{job_id}/resume", dependencies=_RUNS_AGENT, responses=error_responses(404))
async def resume_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> JobDetailsJson:
    """Let a job run again from its next time on."""
    changed = await state.gateway.jobs.resume(caller.principal, job_id, everything=include_all)
    return await _show_changed(state, caller, changed, include_all=include_all)


@router.post("/{job_id}/confirm", dependencies=_RUNS_AGENT, responses=error_responses(404))
async def confirm_job(
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    job_id: JobId,
    asked_at: Annotated[
        Moment, Query(description="The `asked_at` that you have seen: it fails if the agent has asked again since.")
    ]
    | None = None,
) -> JobDetailsJson:
    """Confirm a job, or the change of one, that the agent has proposed."""
    jobs = state.gateway.jobs
    changed = await jobs.confirm(caller.principal, job_id, everything=include_all, asked_at=asked_at)
    return await _show_changed(state, caller, changed, include_all=include_all)


@router.post("/{job_id}/reject", status_code=204, responses=error_responses(404))
async def reject_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> None:
    """Reject what the agent has proposed. A job that was only proposed is deleted."""
    await state.gateway.jobs.reject(caller.principal, job_id, everything=include_all)


@router.post("/{job_id}/run", status_code=202, dependencies=_RUNS_AGENT, responses=error_responses(404))
async def run_job(
    state: State, caller: Caller, include_all: IncludeAll, job_id: JobId, action: ActionIn | None = None
) -> JobRunJson:
    """Run a job now, besides its schedule. Repeating it with the same key returns the same run."""
    key = None if action is None else action.key
    run = await state.gateway.jobs.run_now(caller.principal, job_id, key=key, everything=include_all)
    state.gateway.wake()
    return wire.run_to_json(run)


@router.get("/{job_id}/runs", responses=error_responses(404))
async def list_job_runs(
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    job_id: JobId,
    before: Annotated[Moment, Query(description="Only runs whose `slot` is earlier.")] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_RUNS)] = 20,
) -> JobRunsJson:
    """List the runs of a job, the newest first."""
    runs = await state.gateway.jobs.list_runs(
        caller.principal, job_id, limit=limit, before=before, everything=include_all
    )
    return {"runs": [wire.run_to_json(run) for run in runs]}


async def _show_changed(
    state: WebState, caller: SignedInPerson, changed: JobDetails, *, include_all: bool = False
) -> JobDetailsJson:
    gateway = state.gateway
    gateway.wake()
    prices = gateway.job_environment.prices
    return wire.details_to_json(
        await load_prices(gateway.jobs, prices, caller.principal, changed, everything=include_all)
    )

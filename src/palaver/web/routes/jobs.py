"""Jobs: prompts that the agent works on by a schedule, and their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from pydantic import Field, StringConstraints

from palaver.jobs import conversation_jobs as priced_reads, wire as job_json
from palaver.jobs.fields import MAX_REPEAT
from palaver.jobs.model import (
    DEFAULT_CHOICE,
    MAX_JOB_NAME_CHARS,
    MAX_PROMPT_CHARS,
    MAX_TARGETS,
    JobDraft,
    JobResult,
    JobRunKind,
    JobRunState,
    JobState,
)
from palaver.jobs.service import MAX_PAGE_RUNS
from palaver.jobs.wire import CostBasis
from palaver.sessions.conversations import build_person_source
from palaver.sessions.delivery import DeliveryState
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, IncludeAll, require_scope
from palaver.web.errors import error_responses
from palaver.web.session_schemas import ActionIn
from palaver.web.state import Moment, RequestModel, ResponseModel, ShortText, State, Time

if TYPE_CHECKING:
    from palaver.people.model import SignedInPerson
    from palaver.web.state import WebState

router = make_router("jobs", "/api/jobs", responses=error_responses(401))

# Making the agent work needs the same scope as writing to it.
_RUNS_AGENT = [require_scope("chat")]

JobId = Annotated[str, Path(description="The id of a job.", examples=["j_1a2b3c4d"])]


class NamedItemOut(ResponseModel):
    """A target or a toolset, and what it is in words."""

    name: str
    words: str


class JobPreviewOut(ResponseModel):
    """A job as it is or will be, in words."""

    name: str
    prompt: str
    schedule: str = Field(description="As it is stored.", examples=["0 7 * * MON-FRI"])
    words: str = Field(
        description="The schedule in words, with the time zone.", examples=["every weekday at 07:00 (Europe/Vienna)"]
    )
    timezone: str
    next_slots: list[Time] = Field(description="Its next times, at most three.")
    runs_left: int | None = Field(description="Scheduled runs that are left; null: without end.")
    runs_per_day: float | None = Field(description="On average; null: it runs once.")
    cost_per_run_usd: str | None = Field(description="Estimated, in US dollars; null: unknown, which is not free.")
    cost_per_day_usd: str | None = Field(
        description="Estimated, in US dollars; of a job that runs once, of its run. Null: unknown, which is not free."
    )
    cost_basis: CostBasis = Field(
        description="`runs`: the average of its last runs. `estimate`: by the length of its prompt. `unknown`: the"
        " price of the model is not known."
    )
    targets: list[NamedItemOut]
    toolsets: list[NamedItemOut]
    model: str | None = Field(description="The model that it has chosen; null: the default.")
    used_model: str = Field(description="The model that answers.")
    profile: str | None


class LastRunOut(ResponseModel):
    """The latest run of a job."""

    id: str
    slot: Time
    state: JobRunState
    result: JobResult | None
    reason: str | None
    ended_at: Time | None


class JobOut(ResponseModel):
    """A job."""

    id: str
    name: str
    person_id: str = Field(description="On whose behalf it runs.")
    person_name: str
    prompt: str
    schedule: str
    words: str = Field(description="The schedule in words, with the time zone.")
    timezone: str
    runs_left: int | None = Field(description="Scheduled runs that are left; null: without end.")
    targets: list[str]
    toolsets: list[str] = Field(description="The toolsets that its runs may use.")
    model: str | None
    profile: str | None
    state: JobState
    state_reason: str | None = Field(description="Why it is paused or has ended, if there is more to say.")
    has_proposed_change: bool = Field(description="The agent has proposed a change that waits for confirmation.")
    asked_at: Time | None = Field(description="When you were asked to confirm what the agent has proposed.")
    next_slot: Time | None = Field(description="Its next scheduled time; null unless it is active.")
    failure_count: int = Field(description="How many runs have failed in a row.")
    origin_platform: str = Field(description="Where it was made.")
    origin_session_id: str | None = Field(description="The conversation in which it was made.")
    last_run: LastRunOut | None
    created_at: Time
    updated_at: Time


class JobDetailsOut(JobOut):
    """A job, and what it means."""

    preview: JobPreviewOut
    proposed_change: JobPreviewOut | None = Field(
        description="The job as it would be with the change that the agent proposes."
    )


class JobsOut(ResponseModel):
    """Jobs by name; with `all`, those of all people, the oldest first."""

    jobs: list[JobOut]
    next_cursor: str | None = Field(description="Pass this to get the next page; null on the last page.")


class JobOptionsOut(ResponseModel):
    """What you can choose from when you make a job."""

    timezone: str = Field(description="Your time zone, or the server's if you have chosen none.")
    toolsets: list[NamedItemOut] = Field(description="The toolsets that you can grant.")
    default_toolsets: list[str]
    targets: list[NamedItemOut] = Field(description="Targets to choose from; others can be written, too.")


class RunDeliveryOut(ResponseModel):
    """What became of one message with the answer of a run."""

    id: str
    target: str = Field(description="Where it goes, such as `telegram:42`.")
    platform: str
    state: DeliveryState
    error: str | None
    ended_at: Time | None


class TargetErrorOut(ResponseModel):
    """A target that nothing could be sent to."""

    target: str
    error: str


class JobRunOut(ResponseModel):
    """One run of a job: how it ended, what came out of it, and what was delivered."""

    id: str
    slot: Time = Field(description="The scheduled time; of a manual run, when it was asked for.")
    slot_count: int = Field(description="More than 1: this many times from `slot` on were missed together.")
    kind: JobRunKind
    state: JobRunState
    reason: str | None = Field(description="Why it failed, was missed or skipped.")
    result: JobResult | None = Field(description="`silent`: the agent had nothing to report, and nothing was sent.")
    refused_tools: list[str] = Field(description="Tools that the agent wanted to use and the job was not granted.")
    deliveries: list[RunDeliveryOut]
    target_errors: list[TargetErrorOut]
    session_id: str | None = Field(description="The conversation of the run.")
    created_at: Time
    started_at: Time | None
    ended_at: Time | None


class JobRunsOut(ResponseModel):
    """Runs of a job, the newest first."""

    runs: list[JobRunOut]


_Name = Annotated[str, StringConstraints(max_length=MAX_JOB_NAME_CHARS * 4)]
_Prompt = Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARS * 2)]
_Names = Annotated[list[ShortText], Field(max_length=100)]


class JobFieldsIn(RequestModel):
    """The fields of a job.

    In a change, a field that is missing or null stays as it is; null resets the model, the profile and `repeat`.
    """

    name: _Name | None = Field(None, description="By default the first words of the prompt.")
    prompt: _Prompt | None = None
    schedule: ShortText | None = Field(
        None,
        description="`30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone,"
        " or a time such as `2026-12-24 18:00`.",
        examples=["0 7 * * MON-FRI"],
    )
    timezone: ShortText | None = Field(None, description="An IANA name; yours by default.", examples=["Europe/Vienna"])
    targets: Annotated[list[ShortText], Field(max_length=MAX_TARGETS)] | None = Field(
        None,
        description="Where the answer goes: `origin` (where the job is made, the default), `local`, a platform (its"
        " home channel) or `platform:chat[:thread]`.",
    )
    toolsets: _Names | None = Field(None, description="`history` and `memory` by default, if you may use them.")
    repeat: Annotated[int, Field(ge=0, le=MAX_REPEAT)] | None = Field(
        None, description="How many scheduled runs it has; 0 or null: without end."
    )
    model: ShortText | None = None
    profile: ShortText | None = None


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
) -> JobsOut:
    """List your jobs by name."""
    page = await state.gateway.jobs.list(caller.principal, everything=include_all, cursor=cursor)
    jobs = [JobOut.model_validate(job_json.summary_to_json(each)) for each in page]
    return JobsOut(jobs=jobs, next_cursor=page.cursor)


@router.post("", status_code=201, dependencies=_RUNS_AGENT, responses=error_responses(404))
async def create_job(state: State, caller: Caller, body: JobIn) -> JobDetailsOut:
    """Make a job. You can have one job of a name."""
    source = build_person_source(caller.person)
    draft = _to_draft(body)
    created = await state.gateway.jobs.add(caller.principal, draft, source, session_id=body.session_id)
    return await _load_changed(state, caller, created.job.id, include_all=False)


@router.post("/preview", dependencies=[require_scope("read")], responses=error_responses(404))
async def preview_job(state: State, caller: Caller, body: JobPreviewIn, include_all: IncludeAll) -> JobPreviewOut:
    """Check a new job or a change of one, and get it in words, with its next times and what it may cost."""
    preview = await priced_reads.preview_job(
        state.gateway.jobs,
        state.gateway.job_environment.prices,
        caller.principal,
        _to_draft(body),
        build_person_source(caller.person),
        session_id=body.session_id,
        job=body.job_id,
        everything=include_all,
    )
    return JobPreviewOut.model_validate(job_json.preview_to_json(preview))


@router.get("/options")
async def get_job_options(state: State, caller: Caller) -> JobOptionsOut:
    """Get what you can choose from when you make a job."""
    options = await state.gateway.jobs.get_options(caller.principal)
    return JobOptionsOut.model_validate(job_json.options_to_json(options))


@router.get("/{job_id}", responses=error_responses(404))
async def get_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> JobDetailsOut:
    """Get a job, and what it means."""
    return await _load_details(state, caller, job_id, include_all=include_all)


@router.patch("/{job_id}", dependencies=_RUNS_AGENT, responses=error_responses(404))
async def update_job(
    state: State, caller: Caller, include_all: IncludeAll, job_id: JobId, body: JobFieldsIn
) -> JobDetailsOut:
    """Change a job. A paused job stays paused; one that has ended and gets further times is active again."""
    await state.gateway.jobs.edit(caller.principal, job_id, _to_draft(body), everything=include_all)
    return await _load_changed(state, caller, job_id, include_all=include_all)


@router.delete("/{job_id}", status_code=204, responses=error_responses(404))
async def delete_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> None:
    """Delete a job and stop its run. The conversations of its runs stay."""
    await state.gateway.jobs.remove(caller.principal, job_id, everything=include_all)
    state.gateway.wake()


@router.post("/{job_id}/pause", responses=error_responses(404))
async def pause_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> JobDetailsOut:
    """Pause a job. A run that is under way goes on."""
    await state.gateway.jobs.pause(caller.principal, job_id, everything=include_all)
    return await _load_changed(state, caller, job_id, include_all=include_all)


@router.post("/{job_id}/resume", dependencies=_RUNS_AGENT, responses=error_responses(404))
async def resume_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> JobDetailsOut:
    """Let a job run again from its next time on."""
    await state.gateway.jobs.resume(caller.principal, job_id, everything=include_all)
    return await _load_changed(state, caller, job_id, include_all=include_all)


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
) -> JobDetailsOut:
    """Confirm a job, or the change of one, that the agent has proposed."""
    await state.gateway.jobs.confirm(caller.principal, job_id, everything=include_all, asked_at=asked_at)
    return await _load_changed(state, caller, job_id, include_all=include_all)


@router.post("/{job_id}/reject", status_code=204, responses=error_responses(404))
async def reject_job(state: State, caller: Caller, include_all: IncludeAll, job_id: JobId) -> None:
    """Reject what the agent has proposed. A job that was only proposed is deleted."""
    await state.gateway.jobs.reject(caller.principal, job_id, everything=include_all)


@router.post("/{job_id}/run", status_code=202, dependencies=_RUNS_AGENT, responses=error_responses(404))
async def run_job(
    state: State, caller: Caller, include_all: IncludeAll, job_id: JobId, action: ActionIn | None = None
) -> JobRunOut:
    """Run a job now, besides its schedule. Repeating it with the same key returns the same run."""
    key = None if action is None else action.key
    run = await state.gateway.jobs.run_now(caller.principal, job_id, key=key, everything=include_all)
    state.gateway.wake()
    return _to_run_out(job_json.run_to_json(run))


@router.get("/{job_id}/runs", responses=error_responses(404))
async def list_job_runs(
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    job_id: JobId,
    before: Annotated[Moment, Query(description="Only runs whose `slot` is earlier.")] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_RUNS)] = 20,
) -> JobRunsOut:
    """List the runs of a job, the newest first."""
    runs = await state.gateway.jobs.list_runs(
        caller.principal, job_id, limit=limit, before=before, everything=include_all
    )
    return JobRunsOut(runs=[_to_run_out(job_json.run_to_json(run)) for run in runs])


async def _load_changed(state: WebState, caller: SignedInPerson, job_id: str, *, include_all: bool) -> JobDetailsOut:
    state.gateway.wake()
    return await _load_details(state, caller, job_id, include_all=include_all)


async def _load_details(state: WebState, caller: SignedInPerson, job_id: str, *, include_all: bool) -> JobDetailsOut:
    gateway = state.gateway
    details = await priced_reads.get_job(
        gateway.jobs, gateway.job_environment.prices, caller.principal, job_id, everything=include_all
    )
    return JobDetailsOut.model_validate(job_json.details_to_json(details))


def _to_draft(body: JobFieldsIn) -> JobDraft:
    """Return the fields that a request gives; null resets one to its default."""
    given = body.model_fields_set
    values: dict[str, Any] = {
        name: getattr(body, name) for name in ("name", "prompt", "schedule", "timezone") if name in given
    }
    values |= {
        name: tuple(getattr(body, name))
        for name in ("targets", "toolsets")
        if name in given and getattr(body, name) is not None
    }
    values |= {name: getattr(body, name) or DEFAULT_CHOICE for name in ("model", "profile") if name in given}
    if "repeat" in given:
        values["repeat"] = body.repeat or 0
    return JobDraft(**values)


def _to_run_out(run: dict[str, Any]) -> JobRunOut:
    return JobRunOut.model_validate(run)

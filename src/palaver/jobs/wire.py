"""Jobs and their runs as JSON, for the API, `palaver jobs --json` and the replies of `/jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from palaver.core.wire import Doc, FormFieldJson, Time, TypedDict, build_json
from palaver.jobs.model import (
    JOB_FIELDS,
    CostBasis,
    JobDetails,
    JobFieldsJson,
    JobOptions,
    JobPreview,
    JobResult,
    JobRun,
    JobRunKind,
    JobRunState,
    JobState,
    JobSummary,
)
from palaver.sessions.delivery import DeliveryState

if TYPE_CHECKING:
    from decimal import Decimal


class NamedItemJson(TypedDict):
    """A target or a toolset, and what it is in words."""

    name: str
    words: str


class JobPreviewJson(JobFieldsJson):
    """A job as it is or will be, in words."""

    next_slots: Annotated[list[Time], Doc("Its next times, at most three.")]
    runs_per_day: Annotated[float | None, Doc("On average; null: it runs once.")]
    cost_per_run_usd: Annotated[str | None, Doc("Estimated, in US dollars; null: unknown, which is not free.")]
    cost_per_day_usd: Annotated[
        str | None,
        Doc("Estimated, in US dollars; of a job that runs once, of its run. Null: unknown, which is not free."),
    ]
    cost_basis: Annotated[
        CostBasis,
        Doc(
            "`runs`: the average of its last runs. `estimate`: by the length of its prompt. `unknown`: the price of the"
            " model is not known."
        ),
    ]
    targets: list[NamedItemJson]
    toolsets: list[NamedItemJson]
    used_model: Annotated[str, Doc("The model that answers.")]


class LastRunJson(TypedDict):
    """The latest run of a job."""

    id: str
    slot: Time
    state: JobRunState
    result: JobResult | None
    reason: str | None
    ended_at: Time | None


class JobJson(JobFieldsJson):
    """A job."""

    id: str
    person_id: Annotated[str, Doc("On whose behalf it runs.")]
    person_name: str
    targets: list[str]
    toolsets: Annotated[list[str], Doc("The toolsets that its runs may use.")]
    state: JobState
    state_reason: Annotated[str | None, Doc("Why it is paused or has ended, if there is more to say.")]
    has_proposed_change: Annotated[bool, Doc("The agent has proposed a change that waits for confirmation.")]
    asked_at: Annotated[Time | None, Doc("When you were asked to confirm what the agent has proposed.")]
    next_slot: Annotated[Time | None, Doc("Its next scheduled time; null unless it is active.")]
    failure_count: Annotated[int, Doc("How many runs have failed in a row.")]
    origin_platform: Annotated[str, Doc("Where it was made.")]
    origin_session_id: Annotated[str | None, Doc("The conversation in which it was made.")]
    last_run: LastRunJson | None
    created_at: Time
    updated_at: Time


class JobDetailsJson(JobJson):
    """A job, and what it means."""

    preview: JobPreviewJson
    proposed_change: Annotated[
        JobPreviewJson | None, Doc("The job as it would be with the change that the agent proposes.")
    ]


class JobsJson(TypedDict):
    """Jobs by name; with `all`, those of all people, the oldest first."""

    jobs: list[JobJson]
    next_cursor: Annotated[str | None, Doc("Pass this to get the next page; null on the last page.")]


class JobOptionsJson(TypedDict):
    """What you can choose from when you make a job."""

    timezone: Annotated[str, Doc("Your time zone, or the server's if you have chosen none.")]
    toolsets: Annotated[list[NamedItemJson], Doc("The toolsets that you can grant.")]
    default_toolsets: list[str]
    targets: Annotated[list[NamedItemJson], Doc("Targets to choose from; others can be written, too.")]
    fields: Annotated[list[FormFieldJson], Doc("What a job can have besides, as a text each.")]


class RunDeliveryJson(TypedDict):
    """What became of one message with the answer of a run."""

    id: str
    target: Annotated[str, Doc("Where it goes, such as `telegram:42`.")]
    platform: str
    state: DeliveryState
    error: str | None
    ended_at: Time | None


class TargetErrorJson(TypedDict):
    """A target that nothing could be sent to."""

    target: str
    error: str


class JobRunJson(TypedDict):
    """One run of a job: how it ended, what came out of it, and what was delivered."""

    id: str
    slot: Annotated[Time, Doc("The scheduled time; of a manual run, when it was asked for.")]
    slot_count: Annotated[int, Doc("More than 1: this many times from `slot` on were missed together.")]
    kind: JobRunKind
    state: JobRunState
    reason: Annotated[str | None, Doc("Why it failed, was missed or skipped.")]
    result: Annotated[JobResult | None, Doc("`silent`: the agent had nothing to report, and nothing was sent.")]
    refused_tools: Annotated[list[str], Doc("Tools that the agent wanted to use and the job was not granted.")]
    deliveries: list[RunDeliveryJson]
    target_errors: list[TargetErrorJson]
    session_id: Annotated[str | None, Doc("The conversation of the run.")]
    created_at: Time
    started_at: Time | None
    ended_at: Time | None


class JobRunsJson(TypedDict):
    """Runs of a job, the newest first."""

    runs: list[JobRunJson]


def summary_to_json(summary: JobSummary) -> JobJson:
    return build_json(JobJson, summary.job, **_list_further_keys(summary))


def details_to_json(details: JobDetails) -> JobDetailsJson:
    """Return a job with what it means, and the change that waits for confirmation."""
    change = details.proposed_change
    return build_json(
        JobDetailsJson,
        details.job,
        **_list_further_keys(details),
        preview=preview_to_json(details.preview),
        proposed_change=None if change is None else preview_to_json(change),
    )


def preview_to_json(preview: JobPreview) -> JobPreviewJson:
    values = {name: getattr(preview, name) for name in JobPreview.__slots__}
    costs = {
        "cost_per_run_usd": _format_dollars(preview.cost_per_run),
        "cost_per_day_usd": _format_dollars(preview.cost_per_day),
    }
    return build_json(JobPreviewJson, preview.fields, **values, **costs)


def options_to_json(options: JobOptions) -> JobOptionsJson:
    form_fields = [
        {"name": name, "label": declared.label, "help": declared.help, "max_chars": declared.maximum}
        for name, declared in JOB_FIELDS.items()
        if declared.label is not None
    ]
    return build_json(JobOptionsJson, options, fields=form_fields)


def run_to_json(run: JobRun) -> JobRunJson:
    """Return a run: how it ended, what came out of it, and what reached each target."""
    errors = [{"target": target, "error": error} for target, error in run.target_errors.items()]
    return build_json(JobRunJson, run, target_errors=errors)


def _list_further_keys(summary: JobSummary) -> dict[str, object]:
    """Return the keys that are no field of the job."""
    return {
        "words": summary.words,
        "person_name": summary.person_name,
        "has_proposed_change": summary.job.proposed_change is not None,
        "origin_platform": str(summary.job.origin.platform),
        "last_run": summary.last_run,
    }


def _format_dollars(dollars: Decimal | None) -> str | None:
    """Write an estimate with six decimals; None stays unknown."""
    return None if dollars is None else f"{dollars:.6f}"

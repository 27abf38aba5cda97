"""Tools to make and change jobs: prompts that run on a schedule, for the person who asks.

Making and changing a job are proposals: nothing runs before the person has confirmed it. The tools never wait for that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import Tool
from palaver.agent.tool_arguments import (
    DATA_NOTICE,
    Arguments,
    build_schema,
    define_tool,
    quote_data,
    text_argument,
    translate_errors,
)
from palaver.agent.toolsets import SCHEDULE_TOOLSET
from palaver.core.dataclass import dataclass
from palaver.jobs.model import (
    JOB_FIELDS,
    FieldDeclaration,
    JobDraft,
    JobProposal,
    JobSummary,
    format_cost_per_day,
    list_labeled_fields,
)
from palaver.sessions.context import quote_chat_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from palaver.jobs.conversation_jobs import ConversationJobs


MAX_LISTED_JOBS: Final = 50
_MAX_SHOWN_PROMPT_CHARS = 300
MAX_REASON_CHARS: Final = 500
_RECORDED = "Recorded: this run counts as failed. Stop here: call no more tools, and answer with one short sentence."
_REQUIRED_FIELDS: Final = ("name", "prompt", "schedule")
_JOB_HELP: Final = "the name or the id of the job"


def _make_schema(declared: FieldDeclaration) -> dict[str, Any]:
    description = {"description": declared.agent_help}
    if declared.kind == "names":
        return {"type": "array", "maxItems": declared.maximum, "items": {"type": "string"}, **description}
    if declared.kind == "count":
        return {"type": "integer", "minimum": 1, "maximum": declared.maximum, **description}
    return {"type": "string", "maxLength": declared.maximum, **description}


_FIELDS: Final = {name: _make_schema(each) for name, each in JOB_FIELDS.items() if each.agent_help is not None}


@dataclass(frozen=True, slots=True)
class NoArguments:
    pass


@dataclass(frozen=True, slots=True)
class JobArguments:
    job: str = text_argument(_JOB_HELP)


@dataclass(frozen=True, slots=True)
class FailureArguments:
    reason: str = text_argument("what went wrong, in one sentence for the person", max_chars=MAX_REASON_CHARS)


def make_schedule_tools(jobs: ConversationJobs) -> tuple[Tool, ...]:
    async def create(values: Mapping[str, Any]) -> str:
        draft = _read_draft(Arguments(values, *_FIELDS), required=_REQUIRED_FIELDS)
        draft = replace(draft, toolsets=draft.toolsets or ())  # what the model did not ask for is not granted
        with translate_errors():
            return _format_proposal(await jobs.propose(draft))

    async def change(values: Mapping[str, Any]) -> str:
        arguments = Arguments(values, "job", *_FIELDS)
        job = arguments.get_text("job")
        with translate_errors():
            return _format_proposal(await jobs.propose_change(job, _read_draft(arguments)))

    @define_tool("List the person's jobs: schedule, state, next run.", NoArguments, toolset=SCHEDULE_TOOLSET)
    async def list_jobs(_: NoArguments) -> str:
        return _format_jobs(await jobs.list_jobs())

    @define_tool(
        "Pause a job at once, when the person asks for it. They can resume it at any time.",
        JobArguments,
        toolset=SCHEDULE_TOOLSET,
    )
    async def pause_job(arguments: JobArguments) -> str:
        line = await jobs.pause(arguments.job)
        return f"Paused: {_format_job(line)}\nIt runs again when the person resumes it (`/jobs resume`)."

    def tool(
        name: str, description: str, run: Callable[[Mapping[str, Any]], Awaitable[str]], parameters: Mapping[str, Any]
    ) -> Tool:
        return Tool(name=name, description=description, parameters=parameters, run=run, toolset=SCHEDULE_TOOLSET)

    return (
        tool(
            "create_job",
            "Propose a job: a prompt that runs by itself on a schedule, such as a reminder or a daily report. The"
            " person must confirm it before it runs; they are asked here, with its times and its cost."
            f" Toolsets that can be granted: {', '.join(jobs.grantable_toolsets) or 'none'}.",
            create,
            build_schema(_REQUIRED_FIELDS, **_FIELDS),
        ),
        tool(
            "change_job",
            "Propose a change of a job: give only what changes. The person must confirm it; until then, the job stays"
            " as it is.",
            change,
            build_schema(["job"], job={"type": "string", "description": _JOB_HELP}, **_FIELDS),
        ),
        list_jobs,
        pause_job,
    )


# ---- arguments and results -------------------------------------------------------------------------------------


def _read_draft(arguments: Arguments, required: Sequence[str] = ()) -> JobDraft:
    values: dict[str, Any] = {}
    for name in _FIELDS:
        declared = JOB_FIELDS[name]
        if declared.kind == "names":
            values[name] = arguments.get_texts(name, max_count=declared.maximum)
        elif declared.kind == "count":
            values[name] = arguments.get_integer(name, maximum=declared.maximum)
        else:
            values[name] = arguments.get_text(name, required=name in required) or None
    return JobDraft(**values)


def _format_proposal(proposal: JobProposal) -> str:
    what = "The change is proposed and not made yet" if proposal.is_change else "Proposed, and not active yet"
    job, preview = proposal.fields, proposal.preview
    times = [f"{slot:%a %Y-%m-%d %H:%M}" for slot in preview.next_slots]
    repeat = "" if job.runs_left is None else f", {job.runs_left} {'time' if job.runs_left == 1 else 'times'}"
    lines = [
        f"{what}. The person was asked in this conversation to confirm or reject it; say so in a sentence or two, with"
        " its times, and don't claim that it is done.",
        f"- Job: {proposal.job_id} {quote_chat_text(job.name)}",
        f"- Runs: {preview.words}{repeat}",
        f"- Next times: {', '.join(times) or 'none'}",
        f"- Output goes to: {', '.join(map(quote_chat_text, job.targets))}",
        f"- Tools: {', '.join(job.toolsets) or 'none'}",
        *(f"- {label}: {quote_chat_text(value)}" for label, value in list_labeled_fields(job)),
        f"- Estimated cost: {format_cost_per_day(preview.cost_per_day)}",
    ]
    return "\n".join(lines)


def _format_jobs(lines: Sequence[JobSummary]) -> str:
    if not lines:
        return "There are no jobs here."
    more = f" Only the first {MAX_LISTED_JOBS} are listed." if len(lines) > MAX_LISTED_JOBS else ""
    return "\n".join(
        [f"{len(lines)} found.{more} {DATA_NOTICE}", *(f"- {_format_job(line)}" for line in lines[:MAX_LISTED_JOBS])]
    )


def _format_job(line: JobSummary) -> str:
    job = line.job
    state = f"{job.state}, with a change that the person has not confirmed" if job.proposed_change else str(job.state)
    reason = f" ({job.state_reason})" if job.state_reason else ""
    prompt = quote_data(job.prompt, _MAX_SHOWN_PROMPT_CHARS)
    return f"{job.id} {quote_chat_text(job.name)}: {line.words}, {state}{reason}. Prompt: {prompt}"


# ---- for a run of a job -----------------------------------------------------------------------------------------


def make_run_tools(report: Callable[[str], Awaitable[None]]) -> tuple[Tool, ...]:
    """Make the tools of one run of a job; `report` stores why it has failed."""

    @define_tool(
        "Report that this run could not do its work, for example because a tool is missing or a service did not"
        " answer. The run then counts as failed, and its person is told. Don't use it when there is simply nothing"
        " to report.",
        FailureArguments,
    )
    async def report_failure(arguments: FailureArguments) -> str:
        await report(arguments.reason[:MAX_REASON_CHARS])
        return _RECORDED

    return (report_failure,)

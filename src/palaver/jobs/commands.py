"""/jobs: makes, shows and manages jobs in chats.

In a place where other people read the answers, only the jobs that were made there exist.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.commands.command import (
    CHAT,
    EVERYTHING,
    READ,
    WRITE,
    BadArguments,
    Command,
    CommandReply,
    CommandScopes,
    read_action,
    write_action,
)
from palaver.commands.reply_text import escape_markdown, format_code
from palaver.core.clock import check_timezone
from palaver.core.operation import TransactionRunner
from palaver.jobs import descriptions, service as job_service, wire
from palaver.jobs.cron import join_words
from palaver.jobs.fields import JobEnvironment
from palaver.jobs.model import DEFAULT_CHOICE, JOB_FIELDS, MAX_JOB_NAME_CHARS, JobDraft
from palaver.people import table as people
from palaver.sessions.inbound import find_delivery_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.commands.command import CommandAction, CommandCall
    from palaver.commands.context import CommandContext
    from palaver.jobs.model import JobDetails, JobPreview, JobRun, JobSummary
    from palaver.jobs.service import Jobs

MAX_LISTED_JOBS: Final = 30
SHOWN_RUNS: Final = 5
MAX_VALUE_CHARS: Final = 600
DEFAULT: Final = "default"
FIELDS: Final = {declared.command_word or name: name for name, declared in JOB_FIELDS.items()}  # by their words
# How a name in quotes ends, by its first quote. Phones replace straight quotes by those of their language.
_CLOSING_QUOTES: Final = {'"': '"', "'": "'", "“": "”“", "„": "“”", "‘": "’", "«": "»", "»": "«"}
_NAME_ENDS: Final = {first: re.compile(rf"[{last}](?=\s|$)") for first, last in _CLOSING_QUOTES.items()}
_SCHEDULE_END = re.compile(r":\s")
_ADD_USAGE = "Use `/jobs add every 2h: prompt`, with a name before it in quotes if you like."
_EDIT_USAGE = f"Use `/jobs edit name field value`. Fields: {', '.join(FIELDS)}."


def open_jobs(context: CommandContext) -> Jobs[TransactionRunner]:
    """Return the jobs that a command may know where it runs."""
    environment = JobEnvironment(
        config=context.config,
        rules=context.rules,
        agent=context.agent,
        profile=context.profile,
        prices=context.prices,
    )
    only_chat = None if context.scope.lane_key is None else context.source
    return job_service.Jobs(TransactionRunner(context.tx), environment, context.scope.clock, only_chat=only_chat)


# ---- reading ---------------------------------------------------------------------------------------------------


@read_action("jobs")
def list_jobs(context: CommandContext, *, everything: bool = False) -> CommandReply:
    page = open_jobs(context).list(context.principal, everything=everything)
    data = {"jobs": [wire.summary_to_json(summary) for summary in page]}
    if not page:
        here = "" if context.scope.lane_key is None else " Jobs that you made elsewhere are not shown in this chat."
        return CommandReply(text=f"No jobs yet. {_ADD_USAGE}{here}", data=data)
    lines = [_format_summary(summary, with_person=everything) for summary in page[:MAX_LISTED_JOBS]]
    more = len(page) - MAX_LISTED_JOBS
    lines += [f"- … and {more} more. See them on the page."] if more > 0 else []
    text = "Jobs:\n\n" + "\n".join(lines) + "\n\nUse `/jobs show name` for more, and `/help jobs` for what you can do."
    return CommandReply(text=text, data=data)


@read_action("jobs", uses_prices=True)
def show_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).get(context.principal, job, everything=everything)
    return _reply_with_job(f"**{_escape(details.job.name)}** ({format_code(details.job.id)})", details)


@read_action("jobs")
def show_history(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    jobs = open_jobs(context)
    details = jobs.get(context.principal, job, everything=everything)
    runs = jobs.list_runs(context.principal, job, limit=SHOWN_RUNS, everything=everything)
    data = {"job_id": details.job.id, "runs": [wire.run_to_json(run) for run in runs]}
    name = _escape(details.job.name)
    if not runs:
        return CommandReply(text=f"**{name}** has not run yet.", data=data)
    blocks = [_format_run(run, details.job.timezone) for run in runs]
    return CommandReply(
        text=f"Latest runs of **{name}** ({details.job.timezone}):\n\n" + "\n\n".join(blocks), data=data
    )


# ---- changing --------------------------------------------------------------------------------------------------


@write_action("jobs", uses_prices=True, runs_agent=True)
def add_job(context: CommandContext, *, schedule: str, prompt: str, name: str | None = None) -> CommandReply:
    row = context.session_row
    in_chat = find_delivery_address(context.source) is not None
    session_id = None if in_chat or row is None else context.require_session().session.id
    draft = JobDraft(name=name, prompt=prompt, schedule=schedule)
    details = open_jobs(context).add(context.principal, draft, context.source, session_id=session_id)
    command = format_code(f"/jobs remove {details.job.name}")
    return _reply_with_job(f"Added the job **{_escape(details.job.name)}**. To undo, use {command}.", details)


@write_action("jobs", uses_prices=True, runs_agent=True)
def edit_job(context: CommandContext, *, job: str, field: str, value: str, everything: bool = False) -> CommandReply:
    draft = _make_draft(field, value)
    details = open_jobs(context).edit(context.principal, job, draft, everything=everything)
    return _reply_with_job(f"Changed the job **{_escape(details.job.name)}**.", details)


@write_action("jobs")
def pause_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).pause(context.principal, job, everything=everything)
    command = format_code(f"/jobs resume {details.job.name}")
    return _reply_briefly(f"Paused **{_escape(details.job.name)}**. Use {command} to continue.", details)


@write_action("jobs", runs_agent=True)
def resume_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).resume(context.principal, job, everything=everything)
    next_time = descriptions.describe_next(details.job)
    text = f"**{_escape(details.job.name)}** runs {_escape(details.words)}. Next: {next_time}."
    return _reply_briefly(text, details)


@write_action("jobs", runs_agent=True)
def run_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    jobs = open_jobs(context)
    run = jobs.run_now(context.principal, job, everything=everything)
    details = jobs.get(context.principal, job, everything=everything)
    targets = ", ".join(_escape(target.words) for target in details.preview.targets)
    text = f"Running **{_escape(details.job.name)}** now. The answer goes to: {targets}."
    return CommandReply(text=text, data={"job_id": details.job.id, "run": wire.run_to_json(run)})


@write_action("jobs")
def remove_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    removed = open_jobs(context).remove(context.principal, job, everything=everything)
    text = f"Deleted the job **{_escape(removed.name)}**. The conversations of its runs are kept."
    return CommandReply(text=text, data={"job_id": removed.id, "name": removed.name})


@write_action("jobs", uses_prices=True, runs_agent=True)
def confirm_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).confirm(context.principal, job, everything=everything)
    return _reply_with_job(f"Confirmed: **{_escape(details.job.name)}**.", details)


@write_action("jobs")
def reject_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    rejected = open_jobs(context).reject(context.principal, job, everything=everything)
    what = "the change of" if rejected.proposed_change is not None else "the job"
    text = f"Rejected {what} **{_escape(rejected.name)}**."
    return CommandReply(text=text, data={"job_id": rejected.id, "name": rejected.name})


# ---- the person's time zone --------------------------------------------------------------------------------


@read_action("jobs")
def show_timezone(context: CommandContext) -> CommandReply:
    row = people.find_by_id(context.tx, context.person_id)
    chosen = row.person.timezone if row else None
    used = chosen or context.config.timezone
    origin = "" if chosen else " (the server's)"
    text = f"Your time zone: {used}{origin}. Use `/jobs timezone Europe/Berlin` to change it for new jobs."
    return CommandReply(text=text, data={"timezone": used, "chosen": chosen})


@write_action("jobs")
def set_timezone(context: CommandContext, *, timezone: str | None) -> CommandReply:
    """Set the person's own time zone; None: the gateway's."""
    zone = None if timezone is None else check_timezone(timezone)
    people.set_timezone(context.tx, context.person_id, zone)
    used = zone or context.config.timezone
    text = f"Your time zone is {used} now. New jobs use it; existing jobs keep theirs."
    return CommandReply(text=text, data={"timezone": used, "chosen": zone})


# ---- texts -----------------------------------------------------------------------------------------------------


def _escape(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    return escape_markdown(text, max_chars)


def _format_summary(summary: JobSummary, *, with_person: bool) -> str:
    job = summary.job
    person = f" of {_escape(summary.person_name, 60)}" if with_person else ""
    next_time = f", next {descriptions.describe_next(job)}" if job.next_slot else ""
    last = descriptions.describe_last_run(summary.last_run, job.timezone)
    state = _escape(descriptions.describe_state(job), 200)
    return (
        f"- **{_escape(job.name, MAX_JOB_NAME_CHARS)}**{person} ({format_code(job.id)}): {_escape(summary.words, 200)},"
        f" {state}{next_time}; last run: {last}"
    )


def format_preview(preview: JobPreview) -> str:
    """Write what a person confirms as a list."""
    lines = descriptions.list_preview_lines(preview)
    return "\n".join(f"- **{label}**: {_escape(value)}" for label, value in lines)


def _reply_with_job(heading: str, details: JobDetails) -> CommandReply:
    job = details.job
    state = f"- **State**: {_escape(descriptions.describe_state(job))}"
    text = f"{heading}\n\n{format_preview(details.preview)}\n{state}"
    if details.proposed_change is not None:
        confirm, reject = format_code(f"/jobs confirm {job.name}"), format_code(f"/jobs reject {job.name}")
        change = format_preview(details.proposed_change)
        text += f"\n\nThe agent proposes this change. Use {confirm} or {reject}:\n\n{change}"
    return _reply_briefly(text, details)


def _reply_briefly(text: str, details: JobDetails) -> CommandReply:
    return CommandReply(text=text, data={"job": wire.details_to_json(details)})


def _format_run(run: JobRun, timezone: str) -> str:
    lines = [f"**{descriptions.format_slot(run.slot, timezone)}**"]
    lines += [f"- {label}: {_escape(value)}" for label, value in descriptions.list_run_lines(run)]
    return "\n".join(lines)


# ---- parsing ---------------------------------------------------------------------------------------------------


def _make_draft(word: str, value: str) -> JobDraft:
    name = FIELDS[word]
    declared, lowered = JOB_FIELDS[name], value.strip().lower()
    values: dict[str, Any] = {name: value}
    if declared.kind == "names":
        is_none = name == "toolsets" and lowered == "none"
        values[name] = () if is_none else tuple(each.strip() for each in value.split(",") if each.strip())
    elif declared.kind == "count":
        is_forever = lowered in {"forever", DEFAULT_CHOICE}
        if not is_forever and not (value.isascii() and value.isdecimal() and int(value[:9]) <= declared.maximum):
            raise BadArguments(f"`{word}` takes a number up to {declared.maximum}, or `forever`.")
        values[name] = 0 if is_forever else int(value)
    return JobDraft(**values)


def _split_name(text: str) -> tuple[str | None, str]:
    """Return a name in quotes at the beginning of a text, if there is one, and the rest."""
    end = _NAME_ENDS[text[0]].search(text, 1) if text[:1] in _NAME_ENDS else None
    name = text[1 : end.start()].strip() if end else ""
    return (name, text[end.end() :].strip()) if end and name else (None, text)


def _parse_add(text: str) -> CommandCall:
    name, rest = _split_name(text)
    separator = _SCHEDULE_END.search(rest)
    if separator is None or not rest[separator.end() :].strip() or not rest[: separator.start()].strip():
        raise BadArguments(_ADD_USAGE)
    return add_job.call(schedule=rest[: separator.start()], prompt=rest[separator.end() :].strip(), name=name)


def _parse_edit(text: str) -> CommandCall:
    job, rest = _split_name(text)
    if job is None:
        words = text.split(None)
        position = next((number for number, word in enumerate(words) if number and word.lower() in FIELDS), None)
        if position is None:
            raise BadArguments(_EDIT_USAGE)
        everything = position > 1 and words[position - 1].lower() == EVERYTHING
        job = " ".join(words[: position - everything])
        rest = text.split(None, position)[position]
    else:
        first, *others = rest.split(None, 1) or [""]
        everything = first.lower() == EVERYTHING
        rest = (others or [""])[0] if everything else rest
    field, _, value = rest.partition(" ")
    if field.lower() not in FIELDS or not value.strip():
        raise BadArguments(_EDIT_USAGE)
    return edit_job.call(job=job, field=field.lower(), value=value.strip(), everything=everything)


def _parse_timezone(text: str) -> CommandCall:
    if not text:
        return show_timezone.call()
    return set_timezone.call(timezone=None if text.lower() == DEFAULT_CHOICE else text)


def _parse_list(text: str) -> CommandCall:
    if text.lower() not in {"", EVERYTHING}:
        raise BadArguments("`/jobs list` takes only `everything`, for owners.")
    return list_jobs.call(everything=bool(text))


def _name_parser(verb: str, action: CommandAction[Any]) -> Callable[[str], CommandCall]:
    """Build the parser of a verb that takes the name or the id of a job, for owners followed by `everything`."""

    def parse(text: str) -> CommandCall:
        words = text.split()
        everything = len(words) > 1 and words[-1].lower() == EVERYTHING
        name = " ".join(words[:-1] if everything else words)
        job = _split_name(name)[0] or name
        if not job:
            raise BadArguments(f"Which job? Use `/jobs {verb} name`. Use /jobs to list them.")
        return action.call(job=job, everything=everything)

    return parse


_PARSERS: Final[dict[str, Callable[[str], CommandCall]]] = {
    "list": _parse_list,
    EVERYTHING: lambda _text: list_jobs.call(everything=True),
    "add": _parse_add,
    "edit": _parse_edit,
    "timezone": _parse_timezone,
    **{
        verb: _name_parser(verb, action)
        for verb, action in (
            ("show", show_job),
            ("pause", pause_job),
            ("resume", resume_job),
            ("run", run_job),
            ("remove", remove_job),
            ("history", show_history),
            ("confirm", confirm_job),
            ("reject", reject_job),
        )
    },
}


def _parse_jobs(text: str) -> CommandCall:
    if not text:
        return list_jobs.call()
    verb = text.split(None, 1)[0]
    parse = _PARSERS.get(verb.lower())
    if parse is None:
        raise BadArguments(f"`/jobs` takes one of these: {', '.join(map(format_code, _PARSERS))}.")
    return parse(text[len(verb) :].strip())


JOBS = Command(
    name="jobs",
    scopes=CommandScopes(read=READ, write=WRITE, run=CHAT),
    usage="[add | show | edit | pause | resume | run | remove | history | confirm | reject | timezone] …",
    summary="Let the agent work on a schedule",
    help=(
        "Without arguments, lists your jobs. `/jobs add every 2h: prompt` makes one; schedules are `30m` (once),"
        " `every 2h`, cron such as `0 7 * * MON-FRI`, or `2026-12-24 18:00`. The other words take the name or the id"
        f" of a job. `/jobs edit name field value` changes one; fields are {join_words([*FIELDS])}."
        " `/jobs timezone Europe/Berlin` sets your time zone. Owners write `everything` after the id for the jobs of"
        " other people."
    ),
    example="/jobs add 0 7 * * MON-FRI: Summarize my unread mail",
    parse=_parse_jobs,
)

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
    CommandAction,
    CommandCall,
    CommandReply,
    CommandScopes,
    parse_choice,
    read_action,
    write_action,
)
from palaver.commands.reply_text import describe_undo, escape_markdown, format_code, quote_command
from palaver.core.clock import check_timezone
from palaver.core.operation import TransactionRunner
from palaver.core.texts import join_texts, say
from palaver.jobs import descriptions, service as job_service, wire
from palaver.jobs.cron import join_words
from palaver.jobs.fields import JobEnvironment
from palaver.jobs.model import (
    DEFAULT_CHOICE,
    JOB_FIELDS,
    MAX_JOB_NAME_CHARS,
    JobDetails,
    JobDraft,
    JobPreview,
    JobSummary,
)
from palaver.people import table as people
from palaver.sessions.inbound import find_delivery_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.commands.context import CommandContext
    from palaver.jobs.service import Jobs

MAX_LISTED_JOBS: Final = 30
SHOWN_RUNS: Final = 5
MAX_VALUE_CHARS: Final = 600
FIELDS: Final = {declared.command_word or name: name for name, declared in JOB_FIELDS.items()}  # by their words
# How a name in quotes ends, by its first quote. Phones replace straight quotes by those of their language.
_CLOSING_QUOTES: Final = {'"': '"', "'": "'", "“": "”“", "„": "“”", "‘": "’", "«": "»", "»": "«"}
_NAME_ENDS: Final = {first: re.compile(rf"[{last}](?=\s|$)") for first, last in _CLOSING_QUOTES.items()}
_SCHEDULE_END = re.compile(r":\s")
_ADD_USAGE = say("jobs.add_usage", "Use `/jobs add every 2h: prompt`, with a name before it in quotes if you like.")
_EDIT_USAGE = say("jobs.edit_usage", "Use `/jobs edit name field value`. Fields: {fields}.", fields=", ".join(FIELDS))


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
        text = say("jobs.none", "No jobs yet.") + " " + _ADD_USAGE
        if context.scope.lane_key is not None:
            text += say("jobs.only_here", " Jobs that you made elsewhere are not shown in this chat.")
        return CommandReply(text=text, data=data)
    lines = [_format_summary(summary, with_person=everything) for summary in page[:MAX_LISTED_JOBS]]
    more = len(page) - MAX_LISTED_JOBS
    lines += [say("jobs.more", "- … and {more} more. See them on the page.", more=more)] if more > 0 else []
    text = say(
        "jobs.list",
        "Jobs:\n\n{list}\n\nUse `/jobs show name` for more, and `/help jobs` for what you can do.",
        list=join_texts("\n", lines),
    )
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
        return CommandReply(text=say("jobs.no_runs", "**{name}** has not run yet.", name=name), data=data)
    blocks = []
    for run in runs:
        lines = ["- " + label + ": " + _escape(value) for label, value in descriptions.list_run_lines(run)]
        slot = descriptions.format_slot(run.slot, details.job.timezone)
        blocks.append(join_texts("\n", ["**" + slot + "**", *lines]))
    text = say(
        "jobs.runs",
        "Latest runs of **{name}** ({timezone}):\n\n{list}",
        name=name,
        timezone=details.job.timezone,
        list=join_texts("\n\n", blocks),
    )
    return CommandReply(text=text, data=data)


# ---- changing --------------------------------------------------------------------------------------------------


@write_action("jobs", uses_prices=True, runs_agent=True)
def add_job(context: CommandContext, *, schedule: str, prompt: str, name: str | None = None) -> CommandReply:
    row = context.session_row
    in_chat = find_delivery_address(context.source) is not None
    session_id = None if in_chat or row is None else context.require_session().session.id
    draft = JobDraft(name=name, prompt=prompt, schedule=schedule)
    details = open_jobs(context).add(context.principal, draft, context.source, session_id=session_id)
    text = say("jobs.added", "Added the job **{name}**.", name=_escape(details.job.name))
    return _reply_with_job(text + describe_undo(f"jobs remove {details.job.name}"), details)


@write_action("jobs", uses_prices=True, runs_agent=True)
def edit_job(context: CommandContext, *, job: str, field: str, value: str, everything: bool = False) -> CommandReply:
    draft = _make_draft(field, value)
    details = open_jobs(context).edit(context.principal, job, draft, everything=everything)
    return _reply_with_job(say("jobs.changed", "Changed the job **{name}**.", name=_escape(details.job.name)), details)


@write_action("jobs")
def pause_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).pause(context.principal, job, everything=everything)
    command = quote_command(f"jobs resume {details.job.name}")
    name = _escape(details.job.name)
    text = say("jobs.paused", "Paused **{name}**. Use {command} to continue.", name=name, command=command)
    return _reply_briefly(text, details)


@write_action("jobs", runs_agent=True)
def resume_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).resume(context.principal, job, everything=everything)
    next_time = descriptions.describe_next(details.job)
    text = say(
        "jobs.resumed",
        "**{name}** runs {schedule}. Next: {next}.",
        name=_escape(details.job.name),
        schedule=_escape(details.words),
        next=next_time,
    )
    return _reply_briefly(text, details)


@write_action("jobs", runs_agent=True)
def run_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    jobs = open_jobs(context)
    run = jobs.run_now(context.principal, job, everything=everything)
    details = jobs.get(context.principal, job, everything=everything)
    text = say(
        "jobs.started",
        "Running **{name}** now. The answer goes to: {targets}.",
        name=_escape(details.job.name),
        targets=join_texts(", ", (_escape(target.words) for target in details.preview.targets)),
    )
    return CommandReply(text=text, data={"job_id": details.job.id, "run": wire.run_to_json(run)})


@write_action("jobs")
def remove_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    removed = open_jobs(context).remove(context.principal, job, everything=everything)
    text = say(
        "jobs.removed",
        "Deleted the job **{name}**. The conversations of its runs are kept.",
        name=_escape(removed.name),
    )
    return CommandReply(text=text, data={"job_id": removed.id, "name": removed.name})


@write_action("jobs", uses_prices=True, runs_agent=True)
def confirm_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    details = open_jobs(context).confirm(context.principal, job, everything=everything)
    return _reply_with_job(say("jobs.confirmed", "Confirmed: **{name}**.", name=_escape(details.job.name)), details)


@write_action("jobs")
def reject_job(context: CommandContext, *, job: str, everything: bool = False) -> CommandReply:
    rejected = open_jobs(context).reject(context.principal, job, everything=everything)
    text = say("jobs.rejected", "Rejected the job **{name}**.", name=_escape(rejected.name))
    if rejected.proposed_change is not None:
        text = say("jobs.change_rejected", "Rejected the change of **{name}**.", name=_escape(rejected.name))
    return CommandReply(text=text, data={"job_id": rejected.id, "name": rejected.name})


# ---- the person's time zone --------------------------------------------------------------------------------


@read_action("jobs")
def show_timezone(context: CommandContext) -> CommandReply:
    row = people.find_by_id(context.tx, context.person_id)
    chosen = row.person.timezone if row else None
    used = chosen or context.config.timezone
    text = say(
        "jobs.timezone",
        "Your time zone: {timezone}{origin}. Use `/jobs timezone Europe/Berlin` to change it for new jobs.",
        timezone=used,
        origin="" if chosen else say("jobs.server_timezone", " (the server's)"),
    )
    return CommandReply(text=text, data={"timezone": used, "chosen": chosen})


@write_action("jobs")
def set_timezone(context: CommandContext, *, timezone: str | None) -> CommandReply:
    """Set the person's own time zone; None: the gateway's."""
    zone = None if timezone is None else check_timezone(timezone)
    people.set_timezone(context.tx, context.person_id, zone)
    used = zone or context.config.timezone
    text = say(
        "jobs.timezone_set",
        "Your time zone is {timezone} now. New jobs use it; existing jobs keep theirs.",
        timezone=used,
    )
    return CommandReply(text=text, data={"timezone": used, "chosen": zone})


# ---- texts -----------------------------------------------------------------------------------------------------


def _escape(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    return escape_markdown(text, max_chars)


def _format_summary(summary: JobSummary, *, with_person: bool) -> str:
    job = summary.job
    text: str = f"- **{_escape(job.name, MAX_JOB_NAME_CHARS)}**"
    if with_person:
        text += say("jobs.of", " of {person}", person=_escape(summary.person_name, 60))
    text += f" ({format_code(job.id)}): "
    text += _escape(summary.words, 200) + ", " + _escape(descriptions.describe_state(job), 200)
    if job.next_slot:
        text += say("jobs.next", ", next {time}", time=descriptions.describe_next(job))
    last = descriptions.describe_last_run(summary.last_run, job.timezone)
    return text + say("jobs.last_run", "; last run: {last}", last=last)


def format_preview(preview: JobPreview) -> str:
    """Write what a person confirms as a list."""
    lines = descriptions.list_preview_lines(preview)
    return join_texts("\n", ("- **" + label + "**: " + _escape(value) for label, value in lines))


def _reply_with_job(heading: str, details: JobDetails) -> CommandReply:
    job = details.job
    state = say("jobs.state", "- **State**: {state}", state=_escape(descriptions.describe_state(job)))
    text = join_texts("", (heading, "\n\n", format_preview(details.preview), "\n", state))
    if details.proposed_change is not None:
        confirm, reject = quote_command(f"jobs confirm {job.name}"), quote_command(f"jobs reject {job.name}")
        text += say(
            "jobs.change_proposed",
            "\n\nThe agent proposes this change. Use {confirm} or {reject}:\n\n{change}",
            confirm=confirm,
            reject=reject,
            change=format_preview(details.proposed_change),
        )
    return _reply_briefly(text, details)


def _reply_briefly(text: str, details: JobDetails) -> CommandReply:
    return CommandReply(text=text, data={"job": wire.details_to_json(details)})


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
            raise BadArguments.say(
                "jobs.bad_count",
                "`{field}` takes a number up to {limit}, or `forever`.",
                field=word,
                limit=str(declared.maximum),
            )
        values[name] = 0 if is_forever else int(value)
    return JobDraft(**values)


def _split_name(text: str) -> tuple[str | None, str]:
    """Return a name in quotes at the beginning of a text, if there is one, and the rest."""
    end = _NAME_ENDS[text[0]].search(text, 1) if text[:1] in _NAME_ENDS else None
    name = text[1 : end.start()].strip() if end else ""
    return (name, text[end.end() :].strip()) if end and name else (None, text)


def _parse_add(text: str) -> CommandCall:
    name, rest = _split_name(text)
    schedule, *prompt = _SCHEDULE_END.split(rest, 1)
    if not schedule.strip() or not (prompt and prompt[0].strip()):
        raise BadArguments(_ADD_USAGE)
    return add_job.call(schedule=schedule, prompt=prompt[0].strip(), name=name)


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


def _parse_list(text: str) -> CommandCall:
    if text.lower() not in {"", EVERYTHING}:
        raise BadArguments.say("jobs.list_usage", "`/jobs list` takes only `everything`, for owners.")
    return list_jobs.call(everything=bool(text))


def _name_parser(verb: str, action: CommandAction[Any]) -> Callable[[str], CommandCall]:
    """Build the parser of a verb that takes the name or the id of a job, for owners followed by `everything`."""

    def parse(text: str) -> CommandCall:
        words = text.split()
        everything = len(words) > 1 and words[-1].lower() == EVERYTHING
        name = " ".join(words[:-1] if everything else words)
        job = _split_name(name)[0] or name
        if not job:
            raise BadArguments.say(
                "jobs.which", "Which job? Use `/jobs {verb} name`. Use /jobs to list them.", verb=verb
            )
        return action.call(job=job, everything=everything)

    return parse


_PARSERS: Final[dict[str, Callable[[str], CommandCall]]] = {
    "list": _parse_list,
    EVERYTHING: lambda _text: list_jobs.call(everything=True),
    "add": _parse_add,
    "edit": _parse_edit,
    "timezone": parse_choice(show_timezone, lambda zone: set_timezone.call(timezone=zone), DEFAULT_CHOICE),
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
        verbs = ", ".join(map(format_code, _PARSERS))
        raise BadArguments.say("jobs.verbs", "`/jobs` takes one of these: {verbs}.", verbs=verbs)
    return parse(text[len(verb) :].strip())


JOBS = Command(
    name="jobs",
    scopes=CommandScopes(read=READ, write=WRITE, run=CHAT),
    usage="[add | show | edit | pause | resume | run | remove | history | confirm | reject | timezone] …",
    summary="Let the agent work on a schedule",
    help=say(
        "command.jobs.help",
        "Without arguments, lists your jobs. `/jobs add every 2h: prompt` makes one; schedules are `30m` (once),"
        " `every 2h`, cron such as `0 7 * * MON-FRI`, or `2026-12-24 18:00`. The other words take the name or the id"
        " of a job. `/jobs edit name field value` changes one; fields are {fields}."
        " `/jobs timezone Europe/Berlin` sets your time zone. Owners write `everything` after the id for the jobs of"
        " other people.",
        fields=join_words([*FIELDS]),
    ),
    example="/jobs add 0 7 * * MON-FRI: Summarize my unread mail",
    parse=_parse_jobs,
)

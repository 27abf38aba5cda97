"""`palaver jobs`: prompts that the agent works on by a schedule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import (
    NounCommand,
    NounGroup,
    confirm_or_exit,
    load_cli_settings,
    open_store,
    run_async,
    yes_option,
)
from palaver.cli.output import Column
from palaver.core.dataclass import dataclass
from palaver.core.invocation import format_command
from palaver.core.operation import AsyncRunner, load_all_pages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Sequence

    from palaver.agent.base import ModelPrices
    from palaver.jobs.model import Job, JobDetails, JobDraft, JobPreview, JobRun, JobSummary
    from palaver.jobs.service import Jobs
    from palaver.people.model import Principal

T = TypeVar("T")

_all_option = click.option("--all", "everything", is_flag=True, help="Include the jobs of other people.")
_job_argument = click.argument("job")
_LABEL_WIDTH = 16
_METAVARS = {"prompt": "TEXT", "timezone": "ZONE", "targets": "TARGET", "toolsets": "TOOLSET", "repeat": "N"}
_NOTES = {"targets": " Can be repeated.", "toolsets": " `none` for none. Can be repeated."}  # about their options


@click.group(cls=NounGroup)
def jobs() -> None:
    """Let the agent work on a schedule.

    JOB is the name or the id of a job. You see and manage your own jobs; --all includes those of other people, which
    you name by their ids. Jobs run while `palaver serve` runs.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccess:
    """The jobs of this gateway, and who asks: its owner."""

    jobs: Jobs[AsyncRunner]
    prices: ModelPrices
    principal: Principal

    async def get(self, job: str, *, everything: bool = False) -> JobDetails:
        from palaver.jobs.service import get_priced_job

        return await get_priced_job(self.jobs, self.prices, self.principal, job, everything=everything)


def _run_with_jobs(run: Callable[[JobAccess], Awaitable[T]]) -> T:
    from palaver.app import load_stored_settings, make_jobs

    settings = load_cli_settings()
    with open_store(settings) as store:
        service, environment = make_jobs(store, load_stored_settings(store, settings), settings)
        access = JobAccess(jobs=service, prices=environment.prices, principal=store.get_owner().principal)
        return run_async(lambda: run(access))


def _job_command(run: Callable[..., None]) -> click.Command:
    """Make a command about one job, without other options."""
    return jobs.command()(_job_argument(_all_option(run)))


def _print_lines(lines: list[tuple[str, str]], *, err: bool = False) -> None:
    """Print labels and texts below each other; the texts may be of people."""
    for label, value in lines:
        first, *rest = output.clean_text(value).splitlines() or [""]
        click.echo(f"  {label + ':':<{_LABEL_WIDTH}}{first}", err=err)
        for line in rest:
            click.echo(f"  {'':<{_LABEL_WIDTH}}{line}", err=err)


def _print_preview(preview: JobPreview, *, err: bool = False) -> None:
    from palaver.jobs.descriptions import list_preview_lines

    click.echo(output.clean_line(preview.fields.name), err=err)
    _print_lines(list_preview_lines(preview), err=err)


def _print_server_hint() -> None:
    """Say that nothing runs as long as no server does, if none does."""
    from palaver.cli.running_servers import find_running_server

    if find_running_server(load_cli_settings().home, None) is None:
        command = format_command("serve")
        output.print_hint(
            f"Jobs run only while a server runs. None runs on this folder now: start one with `{command}`."
        )


@jobs.command("list")
@_all_option
def list_jobs(everything: bool) -> None:
    """List your jobs by name.

    With --all, the jobs of all people, oldest first. Times are in the time zone of each job.
    """
    from palaver.jobs.wire import summary_to_json

    summaries = _run_with_jobs(
        lambda access: load_all_pages(partial(access.jobs.list, access.principal, everything=everything))
    )
    command = format_command("jobs add 'every 2h' 'PROMPT'")
    document = {"jobs": [summary_to_json(summary) for summary in summaries]}
    columns = _make_columns(with_person=everything)
    output.print_list(document, columns, summaries, f"No jobs yet. Make one with `{command}`.")


def _make_columns(*, with_person: bool) -> list[Column[JobSummary]]:
    from palaver.jobs.descriptions import describe_last_run, describe_next

    person: Column[JobSummary] = Column("PERSON", lambda each: each.person_name)
    return [
        Column("ID", lambda each: each.job.id, style="dim"),
        *([person] if with_person else []),
        Column("STATE", lambda each: each.job.state + "*" * (each.job.proposed_change is not None)),
        Column("NEXT", lambda each: describe_next(each.job), min_terminal_width=70),
        Column("LAST RUN", lambda each: describe_last_run(each.last_run, each.job.timezone), min_terminal_width=110),
        Column("SCHEDULE", lambda each: each.words, width_divisor=3, min_terminal_width=90),
        Column("NAME", lambda each: each.job.name, fills_width=True),
    ]


@_job_command
def show(job: str, everything: bool) -> None:
    """Show a job: when it runs, what it may cost, where it sends to.

    If the agent has proposed a change, shows the job as it would be.
    """
    from palaver.jobs import descriptions, wire

    details = _run_with_jobs(lambda access: access.get(job, everything=everything))
    if output.wants_json():
        output.print_json({"job": wire.details_to_json(details)})
        return
    _print_preview(details.preview)
    last_run = descriptions.describe_last_run(details.last_run, details.job.timezone)
    _print_lines([("State", descriptions.describe_state(details.job)), ("Last run", last_run), ("Id", details.job.id)])
    if details.proposed_change is not None:
        click.echo("\nThe agent proposes this change:")
        _print_preview(details.proposed_change)


@jobs.command()
@_job_argument
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many runs to show.")
@_all_option
def history(job: str, limit: int, everything: bool) -> None:
    """Show the latest runs of a job, newest first.

    Shows for each run how it ended, its result, and whether it reached each target.
    """
    from palaver.jobs import descriptions, wire

    async def run(access: JobAccess) -> tuple[JobDetails, Sequence[JobRun]]:
        details = await access.jobs.get(access.principal, job, everything=everything)
        runs = await access.jobs.list_runs(access.principal, job, limit=limit, everything=everything)
        return details, runs

    details, runs = _run_with_jobs(run)
    if output.wants_json():
        output.print_json({"job_id": details.job.id, "runs": [wire.run_to_json(each) for each in runs]})
        return
    name = output.clean_line(details.job.name)
    click.echo(f"Runs of {name} ({details.job.timezone}):" if runs else f"{name} has not run yet.")
    for each in runs:
        click.echo(f"\n{descriptions.format_slot(each.slot, details.job.timezone)}")
        _print_lines(descriptions.list_run_lines(each))


@_job_command
def pause(job: str, everything: bool) -> None:
    """Pause a job.

    A run that is under way goes on.
    """
    details = _run_with_jobs(lambda access: access.jobs.pause(access.principal, job, everything=everything))
    _print_details(details, f"Paused {lookup.quote(details.job.name)}.")


@_job_command
def resume(job: str, everything: bool) -> None:
    """Let a paused job run again.

    It runs from its next time on; what it missed is not made up for.
    """
    from palaver.jobs.descriptions import describe_next

    details = _run_with_jobs(lambda access: access.jobs.resume(access.principal, job, everything=everything))
    text = f"{lookup.quote(details.job.name)} runs {details.words}. Next: {describe_next(details.job)}."
    _print_details(details, text)
    _print_server_hint()


@_job_command
def run(job: str, everything: bool) -> None:
    """Run a job now, besides its schedule.

    The server starts it; `jobs history` shows how it went.
    """
    from palaver.jobs.wire import run_to_json

    queued = _run_with_jobs(lambda access: access.jobs.run_now(access.principal, job, everything=everything))
    output.print_result({"job_id": queued.job_id, "run": run_to_json(queued)}, f"Queued the run {queued.id}.")
    _print_server_hint()


@jobs.command()
@_job_argument
@_all_option
@yes_option
def remove(job: str, everything: bool, yes: bool) -> None:
    """Delete a job and stop its run.

    The conversations of its runs stay. Asks for confirmation first.
    """

    async def delete(access: JobAccess) -> Job:
        details = await access.jobs.get(access.principal, job, everything=everything)
        confirm_or_exit(f"Delete the job {lookup.quote(details.job.name)} ({details.words})?", skip=yes)
        return await access.jobs.remove_completely(access.principal, details.job.id, everything=everything)

    removed = _run_with_jobs(delete)
    output.print_result(
        {"deleted": {"id": removed.id, "name": removed.name}}, f"Deleted the job {lookup.quote(removed.name)}."
    )


@jobs.command()
@_job_argument
@_all_option
@yes_option
def confirm(job: str, everything: bool, yes: bool) -> None:
    """Confirm what the agent has proposed: a job, or a change of one.

    Shows it in words and asks first.
    """
    from palaver.jobs.model import JobState

    async def carry_out(access: JobAccess) -> JobDetails:
        details = await access.get(job, everything=everything)
        proposed = details.preview if details.job.state is JobState.PROPOSED else details.proposed_change
        if proposed is not None:  # otherwise there is nothing to look at: confirming says why
            _print_preview(proposed, err=output.wants_json())
            confirm_or_exit("Confirm this?", skip=yes, canceled="Canceled. It still waits for your confirmation.")
        return await access.jobs.confirm(access.principal, details.job.id, everything=everything)

    details = _run_with_jobs(carry_out)
    _print_details(details, f"Confirmed {lookup.quote(details.job.name)}.")
    _print_server_hint()


@_job_command
def reject(job: str, everything: bool) -> None:
    """Reject what the agent has proposed.

    A job that was only proposed is deleted.
    """
    rejected = _run_with_jobs(lambda access: access.jobs.reject(access.principal, job, everything=everything))
    output.print_result(
        {"rejected": {"id": rejected.id, "name": rejected.name}},
        f"Rejected what the agent proposed for {lookup.quote(rejected.name)}.",
    )


def _print_details(details: JobDetails, text: str) -> None:
    from palaver.jobs.wire import details_to_json

    output.print_result({"job": details_to_json(details)}, text)


# ---- adding and editing -----------------------------------------------------------------------------------------


class _FieldCommand(NounCommand):
    """A command with an option for each field of a job that is no argument; they are made when it is used."""

    _has_fields = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._has_fields:
            self._has_fields = True
            argument_count = sum(isinstance(param, click.Argument) for param in self.params)
            self.params[argument_count:argument_count] = _make_field_options({param.name for param in self.params})
        return super().get_params(ctx)


def _make_field_options(known: Container[str | None]) -> list[click.Parameter]:
    from palaver.jobs.model import JOB_FIELDS

    return [
        click.Option(
            [f"--{declared.option or name}", name],
            multiple=declared.kind == "names",
            type=click.IntRange(0) if declared.kind == "count" else None,
            metavar=_METAVARS.get(name, name.upper()),
            help=f"{declared.help}{_NOTES.get(name, '')}",
        )
        for name, declared in JOB_FIELDS.items()
        if name not in known
    ]


@jobs.command(cls=_FieldCommand)
@click.argument("schedule")
@click.argument("prompt")
@yes_option
def add(schedule: str, prompt: str, yes: bool, **fields: Any) -> None:
    """Make a job.

    SCHEDULE is `30m` (once, in 30 minutes), `every 2h`, five fields of cron such as `0 7 * * MON-FRI`, or a time such
    as `2026-12-24 18:00`. Shows when the job will run and what that may cost, and asks for confirmation.
    """
    from palaver.core.source import SessionSource

    draft = _make_draft(schedule=schedule, prompt=prompt, **fields)

    async def run(access: JobAccess) -> JobDetails:
        await _confirm(access, draft, "Make this job?", yes=yes)
        return await access.jobs.add(access.principal, draft, SessionSource.local_cli())

    details = _run_with_jobs(run)
    _print_details(details, f"Made the job {lookup.quote(details.job.name)} ({details.job.id}).")
    _print_server_hint()


@jobs.command(cls=_FieldCommand)
@_job_argument
@_all_option
@yes_option
def edit(job: str, everything: bool, yes: bool, **fields: Any) -> None:
    """Change a job.

    What you leave out stays as it is. Shows the job as it will be, and asks for confirmation. A paused job stays
    paused.
    """
    from palaver.jobs.model import JobDraft

    draft = _make_draft(**fields)
    if draft == JobDraft():
        raise click.UsageError("Say what to change, such as --schedule 'every 3h'.")

    async def run(access: JobAccess) -> JobDetails:
        await _confirm(access, draft, "Change the job to this?", job=job, everything=everything, yes=yes)
        return await access.jobs.edit(access.principal, job, draft, everything=everything)

    details = _run_with_jobs(run)
    _print_details(details, f"Changed the job {lookup.quote(details.job.name)}.")


def _make_draft(**fields: Any) -> JobDraft:
    from palaver.jobs.model import JobDraft

    values = {name: value for name, value in fields.items() if value is not None and value != ()}
    if "toolsets" in values and set(values["toolsets"]) == {"none"}:
        values["toolsets"] = ()
    return JobDraft(**values)


async def _confirm(
    access: JobAccess, draft: JobDraft, question: str, *, yes: bool, job: str | None = None, everything: bool = False
) -> None:
    """Show the job in words, and go on if the person agrees; a job that is not valid is refused before that."""
    from palaver.core.source import SessionSource
    from palaver.jobs.service import preview_priced_job

    preview = await preview_priced_job(
        access.jobs, access.prices, access.principal, draft, SessionSource.local_cli(), job=job, everything=everything
    )
    _print_preview(preview, err=output.wants_json())
    confirm_or_exit(question, skip=yes, canceled="Canceled. Nothing was changed.")

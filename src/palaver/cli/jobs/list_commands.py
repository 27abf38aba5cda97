"""`palaver jobs list|show|history`: jobs and their runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from palaver.cli import output
from palaver.cli.options import json_option, load_cli_settings, open_store
from palaver.cli.output import Column
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from palaver.agent.base import ModelPrices
    from palaver.core.operation import AsyncRunner
    from palaver.jobs.model import JobDetails, JobPreview, JobRun, JobSummary
    from palaver.jobs.service import Jobs
    from palaver.people.model import Principal


T = TypeVar("T")

all_option = click.option("--all", "everything", is_flag=True, help="Include the jobs of other people.")
job_argument = click.argument("job")
_LABEL_WIDTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccess:
    """The jobs of this gateway, and who asks: its owner."""

    jobs: Jobs[AsyncRunner]
    prices: ModelPrices
    principal: Principal

    async def get(self, job: str, *, everything: bool = False) -> JobDetails:
        """Load a job with what it may cost."""
        from palaver.jobs.service import get_priced_job

        return await get_priced_job(self.jobs, self.prices, self.principal, job, everything=everything)


def run_with_jobs(run: Callable[[JobAccess], Coroutine[None, None, T]]) -> T:
    """Open the store and run a coroutine with all jobs, as the owner of this gateway."""
    import asyncio

    from palaver.app import load_stored_settings, make_jobs

    settings = load_cli_settings()
    with open_store(settings) as store:
        jobs, environment = make_jobs(store, load_stored_settings(store, settings), settings)
        access = JobAccess(jobs=jobs, prices=environment.prices, principal=store.get_owner().principal)
        return asyncio.run(run(access))


def print_lines(lines: list[tuple[str, str]], *, err: bool = False) -> None:
    """Print labels and texts below each other; the texts may be of people."""
    for label, value in lines:
        first, *rest = output.clean_text(value).splitlines() or [""]
        click.echo(f"  {label + ':':<{_LABEL_WIDTH}}{first}", err=err)
        for line in rest:
            click.echo(f"  {'':<{_LABEL_WIDTH}}{line}", err=err)


def print_preview(preview: JobPreview, *, err: bool = False) -> None:
    from palaver.jobs.descriptions import list_preview_lines

    click.echo(output.clean_line(preview.fields.name), err=err)
    print_lines(list_preview_lines(preview), err=err)


def print_server_hint() -> None:
    """Say that nothing runs as long as no server does, if none does."""
    from palaver.cli.running_servers import find_running_server

    if find_running_server(load_cli_settings().home, None) is None:
        command = format_command("serve")
        click.echo(
            f"Jobs run only while a server runs. None runs on this folder now: start one with `{command}`.", err=True
        )


# ---- commands ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("ID", style="dim"),
    Column("STATE"),
    Column("NEXT", min_terminal_width=70),
    Column("LAST RUN", min_terminal_width=110),
    Column("SCHEDULE", width_divisor=3, min_terminal_width=90),
    Column("NAME", fills_width=True),
)
_PERSON_COLUMN = Column("PERSON")


@click.command("list")
@all_option
@json_option
def list_jobs(everything: bool) -> None:
    """List your jobs by name.

    With --all, the jobs of all people, oldest first. Times are in the time zone of each job.
    """
    from palaver.jobs.wire import summary_to_json

    async def run(access: JobAccess) -> list[JobSummary]:
        page = await access.jobs.list(access.principal, everything=everything)
        found = list(page)
        while page.cursor is not None:
            page = await access.jobs.list(access.principal, everything=everything, cursor=page.cursor)
            found += page
        return found

    summaries = run_with_jobs(run)
    if output.wants_json():
        output.print_json({"jobs": [summary_to_json(summary) for summary in summaries]})
    elif not summaries:
        command = format_command("jobs add 'every 2h' 'PROMPT'")
        click.echo(f"No jobs yet. Make one with `{command}`.")
    elif everything:
        columns = (*_COLUMNS[:1], _PERSON_COLUMN, *_COLUMNS[1:])
        output.print_table(columns, [_make_row(summary, with_person=True) for summary in summaries])
    else:
        output.print_table(_COLUMNS, [_make_row(summary) for summary in summaries])


@click.command()
@job_argument
@all_option
@json_option
def show(job: str, everything: bool) -> None:
    """Show a job: when it runs, what it may cost, where it sends to.

    If the agent has proposed a change, shows the job as it would be.
    """
    from palaver.jobs import descriptions, wire

    async def run(access: JobAccess) -> JobDetails:
        return await access.get(job, everything=everything)

    details = run_with_jobs(run)
    if output.wants_json():
        output.print_json({"job": wire.details_to_json(details)})
        return
    print_preview(details.preview)
    last_run = descriptions.describe_last_run(details.last_run, details.job.timezone)
    print_lines([("State", descriptions.describe_state(details.job)), ("Last run", last_run), ("Id", details.job.id)])
    if details.proposed_change is not None:
        click.echo("\nThe agent proposes this change:")
        print_preview(details.proposed_change)


@click.command()
@job_argument
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many runs to show.")
@all_option
@json_option
def history(job: str, limit: int, everything: bool) -> None:
    """Show the latest runs of a job, newest first.

    Shows for each run how it ended, its result, and whether it reached each target.
    """
    from palaver.jobs import descriptions, wire

    async def run(access: JobAccess) -> tuple[JobDetails, Sequence[JobRun]]:
        details = await access.jobs.get(access.principal, job, everything=everything)
        runs = await access.jobs.list_runs(access.principal, job, limit=limit, everything=everything)
        return details, runs

    details, runs = run_with_jobs(run)
    if output.wants_json():
        output.print_json({"job_id": details.job.id, "runs": [wire.run_to_json(each) for each in runs]})
        return
    name = output.clean_line(details.job.name)
    click.echo(f"Runs of {name} ({details.job.timezone}):" if runs else f"{name} has not run yet.")
    for each in runs:
        click.echo(f"\n{descriptions.format_slot(each.slot, details.job.timezone)}")
        print_lines(descriptions.list_run_lines(each))


def _make_row(summary: JobSummary, *, with_person: bool = False) -> tuple[str, ...]:
    from palaver.jobs import descriptions

    job = summary.job
    row = (
        job.id,
        f"{job.state}*" if job.proposed_change is not None else str(job.state),
        descriptions.describe_next(job),
        descriptions.describe_last_run(summary.last_run, job.timezone),
        summary.words,
        output.clean_line(job.name),
    )
    return (row[0], output.clean_line(summary.person_name), *row[1:]) if with_person else row

"""`palaver jobs pause|resume|run|remove|confirm|reject`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import lookup, output
from palaver.cli.jobs.job_access import all_option, job_argument, print_preview, print_server_hint, run_with_jobs
from palaver.cli.options import confirm_or_exit, json_option, yes_option

if TYPE_CHECKING:
    from palaver.cli.jobs.job_access import JobAccess
    from palaver.jobs.details import JobDetails
    from palaver.jobs.model import Job, JobRun


@click.command()
@job_argument
@all_option
@json_option
@click.pass_context
def pause(ctx: click.Context, job: str, everything: bool, as_json: bool) -> None:
    """Pause a job.

    A run that is under way goes on.
    """

    async def change(access: JobAccess) -> JobDetails:
        return await access.jobs.pause(access.principal, job, everything=everything)

    details = run_with_jobs(ctx, change)
    _print_details(details, f"Paused {lookup.quote(details.job.name)}.", as_json=as_json)


@click.command()
@job_argument
@all_option
@json_option
@click.pass_context
def resume(ctx: click.Context, job: str, everything: bool, as_json: bool) -> None:
    """Let a paused job run again.

    It runs from its next time on; what it missed is not made up for.
    """
    from palaver.jobs.texts import describe_next

    async def change(access: JobAccess) -> JobDetails:
        return await access.jobs.resume(access.principal, job, everything=everything)

    details = run_with_jobs(ctx, change)
    text = f"{lookup.quote(details.job.name)} runs {details.words}. Next: {describe_next(details.job)}."
    _print_details(details, text, as_json=as_json)
    print_server_hint(ctx)


@click.command()
@job_argument
@all_option
@json_option
@click.pass_context
def run(ctx: click.Context, job: str, everything: bool, as_json: bool) -> None:
    """Run a job now, besides its schedule.

    The server starts it; `jobs history` shows how it went.
    """
    from palaver.jobs.wire import run_to_json

    async def enqueue(access: JobAccess) -> JobRun:
        return await access.jobs.run_now(access.principal, job, everything=everything)

    queued = run_with_jobs(ctx, enqueue)
    if as_json:
        output.print_json({"job_id": queued.job_id, "run": run_to_json(queued)})
    else:
        click.echo(f"Queued the run {queued.id}.")
    print_server_hint(ctx)


@click.command()
@job_argument
@all_option
@yes_option
@json_option
@click.pass_context
def remove(ctx: click.Context, job: str, everything: bool, yes: bool, as_json: bool) -> None:
    """Delete a job and stop its run.

    The conversations of its runs stay. Asks for confirmation first.
    """

    async def delete(access: JobAccess) -> Job:
        details = await access.jobs.get(access.principal, job, everything=everything)
        confirm_or_exit(f"Delete the job {lookup.quote(details.job.name)} ({details.words})?", skip=yes)
        return await access.jobs.remove_completely(access.principal, details.job.id, everything=everything)

    removed = run_with_jobs(ctx, delete)
    if as_json:
        output.print_json({"deleted": {"id": removed.id, "name": removed.name}})
    else:
        click.echo(f"Deleted the job {lookup.quote(removed.name)}.")


@click.command()
@job_argument
@all_option
@yes_option
@json_option
@click.pass_context
def confirm(ctx: click.Context, job: str, everything: bool, yes: bool, as_json: bool) -> None:
    """Confirm what the agent has proposed: a job, or a change of one.

    Shows it in words and asks first.
    """
    from palaver.jobs.model import JobState

    async def carry_out(access: JobAccess) -> JobDetails:
        details = await access.get(job, everything=everything)
        proposed = details.preview if details.job.state is JobState.PROPOSED else details.proposed_change
        if proposed is None:  # nothing to look at: confirming says why
            return await access.jobs.confirm(access.principal, details.job.id, everything=everything)
        print_preview(proposed, err=as_json)
        confirm_or_exit("Confirm this?", skip=yes, canceled="Canceled. It still waits for your confirmation.")
        return await access.jobs.confirm(access.principal, details.job.id, everything=everything)

    details = run_with_jobs(ctx, carry_out)
    _print_details(details, f"Confirmed {lookup.quote(details.job.name)}.", as_json=as_json)
    print_server_hint(ctx)


@click.command()
@job_argument
@all_option
@json_option
@click.pass_context
def reject(ctx: click.Context, job: str, everything: bool, as_json: bool) -> None:
    """Reject what the agent has proposed.

    A job that was only proposed is deleted.
    """

    async def drop(access: JobAccess) -> Job:
        return await access.jobs.reject(access.principal, job, everything=everything)

    rejected = run_with_jobs(ctx, drop)
    if as_json:
        output.print_json({"rejected": {"id": rejected.id, "name": rejected.name}})
    else:
        click.echo(f"Rejected what the agent proposed for {lookup.quote(rejected.name)}.")


def _print_details(details: JobDetails, text: str, *, as_json: bool) -> None:
    from palaver.jobs.wire import details_to_json

    if as_json:
        output.print_json({"job": details_to_json(details)})
    else:
        click.echo(text)

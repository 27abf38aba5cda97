"""`palaver jobs pause|resume|run|remove|confirm|reject`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from palaver.cli import options as lookup, output
from palaver.cli.jobs.list_commands import all_option, job_argument, print_preview, print_server_hint, run_with_jobs
from palaver.cli.options import confirm_or_exit, json_option, yes_option

if TYPE_CHECKING:
    from collections.abc import Container

    from palaver.cli.jobs.list_commands import JobAccess
    from palaver.jobs.model import Job, JobDetails, JobDraft, JobRun


_CANCELED = "Canceled. Nothing was changed."


@click.command()
@job_argument
@all_option
@json_option
def pause(job: str, everything: bool) -> None:
    """Pause a job.

    A run that is under way goes on.
    """

    async def change(access: JobAccess) -> JobDetails:
        return await access.jobs.pause(access.principal, job, everything=everything)

    details = run_with_jobs(change)
    _print_details(details, f"Paused {lookup.quote(details.job.name)}.")


@click.command()
@job_argument
@all_option
@json_option
def resume(job: str, everything: bool) -> None:
    """Let a paused job run again.

    It runs from its next time on; what it missed is not made up for.
    """
    from palaver.jobs.descriptions import describe_next

    async def change(access: JobAccess) -> JobDetails:
        return await access.jobs.resume(access.principal, job, everything=everything)

    details = run_with_jobs(change)
    text = f"{lookup.quote(details.job.name)} runs {details.words}. Next: {describe_next(details.job)}."
    _print_details(details, text)
    print_server_hint()


@click.command()
@job_argument
@all_option
@json_option
def run(job: str, everything: bool) -> None:
    """Run a job now, besides its schedule.

    The server starts it; `jobs history` shows how it went.
    """
    from palaver.jobs.wire import run_to_json

    async def enqueue(access: JobAccess) -> JobRun:
        return await access.jobs.run_now(access.principal, job, everything=everything)

    queued = run_with_jobs(enqueue)
    output.print_result({"job_id": queued.job_id, "run": run_to_json(queued)}, f"Queued the run {queued.id}.")
    print_server_hint()


@click.command()
@job_argument
@all_option
@yes_option
@json_option
def remove(job: str, everything: bool, yes: bool) -> None:
    """Delete a job and stop its run.

    The conversations of its runs stay. Asks for confirmation first.
    """

    async def delete(access: JobAccess) -> Job:
        details = await access.jobs.get(access.principal, job, everything=everything)
        confirm_or_exit(f"Delete the job {lookup.quote(details.job.name)} ({details.words})?", skip=yes)
        return await access.jobs.remove_completely(access.principal, details.job.id, everything=everything)

    removed = run_with_jobs(delete)
    output.print_result(
        {"deleted": {"id": removed.id, "name": removed.name}}, f"Deleted the job {lookup.quote(removed.name)}."
    )


@click.command()
@job_argument
@all_option
@yes_option
@json_option
def confirm(job: str, everything: bool, yes: bool) -> None:
    """Confirm what the agent has proposed: a job, or a change of one.

    Shows it in words and asks first.
    """
    from palaver.jobs.model import JobState

    async def carry_out(access: JobAccess) -> JobDetails:
        details = await access.get(job, everything=everything)
        proposed = details.preview if details.job.state is JobState.PROPOSED else details.proposed_change
        if proposed is None:  # nothing to look at: confirming says why
            return await access.jobs.confirm(access.principal, details.job.id, everything=everything)
        print_preview(proposed, err=output.wants_json())
        confirm_or_exit("Confirm this?", skip=yes, canceled="Canceled. It still waits for your confirmation.")
        return await access.jobs.confirm(access.principal, details.job.id, everything=everything)

    details = run_with_jobs(carry_out)
    _print_details(details, f"Confirmed {lookup.quote(details.job.name)}.")
    print_server_hint()


@click.command()
@job_argument
@all_option
@json_option
def reject(job: str, everything: bool) -> None:
    """Reject what the agent has proposed.

    A job that was only proposed is deleted.
    """

    async def drop(access: JobAccess) -> Job:
        return await access.jobs.reject(access.principal, job, everything=everything)

    rejected = run_with_jobs(drop)
    output.print_result(
        {"rejected": {"id": rejected.id, "name": rejected.name}},
        f"Rejected what the agent proposed for {lookup.quote(rejected.name)}.",
    )


def _print_details(details: JobDetails, text: str) -> None:
    from palaver.jobs.wire import details_to_json

    output.print_result({"job": details_to_json(details)}, text)


# ---- adding and editing -----------------------------------------------------------------------------------------


class _FieldCommand(click.Command):
    """A command with an option for each field of a job that is no argument; they are made when it is used."""

    _has_fields = False

    @property
    def params(self) -> list[click.Parameter]:
        if not self._has_fields:
            self._has_fields = True
            argument_count = sum(isinstance(param, click.Argument) for param in self._params)
            known = {param.name for param in self._params}
            self._params[argument_count:argument_count] = _make_field_options(known)
        return self._params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:
        self._params = params


def _make_field_options(known: Container[str | None]) -> list[click.Parameter]:
    from palaver.jobs.model import JOB_FIELDS

    return [
        click.Option(
            [f"--{declared.option or name}", name],
            multiple=declared.kind == "names",
            type=click.IntRange(0) if declared.kind == "count" else None,
            metavar="N" if declared.kind == "count" else (declared.option or name).upper(),
            help=f"{declared.help} Can be repeated." if declared.kind == "names" else declared.help,
        )
        for name, declared in JOB_FIELDS.items()
        if name not in known
    ]


@click.command(cls=_FieldCommand)
@click.argument("schedule")
@click.argument("prompt")
@yes_option
@json_option
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

    details = run_with_jobs(run)
    _print_details(details, f"Made the job {lookup.quote(details.job.name)} ({details.job.id}).")
    print_server_hint()


@click.command(cls=_FieldCommand)
@job_argument
@all_option
@yes_option
@json_option
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
        question = "Change the job to this?"
        await _confirm(access, draft, question, job=job, everything=everything, yes=yes)
        return await access.jobs.edit(access.principal, job, draft, everything=everything)

    details = run_with_jobs(run)
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
    print_preview(preview, err=output.wants_json())
    confirm_or_exit(question, skip=yes, canceled=_CANCELED)

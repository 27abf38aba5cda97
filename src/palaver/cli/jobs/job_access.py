"""Opens the jobs of this gateway for the person at the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from palaver.cli import output
from palaver.cli.options import load_cli_settings, open_store
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from palaver.agent.prices import ModelPrices
    from palaver.core.operation import AsyncRunner
    from palaver.jobs.details import JobDetails, JobPreview
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
        from palaver.jobs.prices import get_job

        return await get_job(self.jobs, self.prices, self.principal, job, everything=everything)


def run_with_jobs(ctx: click.Context, run: Callable[[JobAccess], Coroutine[None, None, T]]) -> T:
    """Open the store and run a coroutine with all jobs, as the owner of this gateway."""
    import asyncio

    from palaver.app import load_stored_settings, make_jobs

    settings = load_cli_settings(ctx)
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
    from palaver.jobs.texts import list_preview_lines

    click.echo(output.clean_line(preview.name), err=err)
    print_lines(list_preview_lines(preview), err=err)


def print_server_hint(ctx: click.Context) -> None:
    """Say that nothing runs as long as no server does, if none does."""
    from palaver.cli.running_servers import find_running_server

    if find_running_server(load_cli_settings(ctx).home, None) is None:
        command = format_command("serve")
        click.echo(
            f"Jobs run only while a server runs. None runs on this folder now: start one with `{command}`.", err=True
        )

"""`palaver jobs`: prompts that the agent works on by a schedule."""

from __future__ import annotations

import click

from palaver.cli.jobs.change_commands import add, confirm, edit, pause, reject, remove, resume, run
from palaver.cli.jobs.list_commands import history, list_jobs, show


@click.group()
def jobs() -> None:
    """Let the agent work on a schedule.

    JOB is the name or the id of a job. You see and manage your own jobs; --all includes those of other people, which
    you name by their ids. Jobs run while `palaver serve` runs.
    """


jobs.add_command(add)
jobs.add_command(list_jobs)
jobs.add_command(show)
jobs.add_command(edit)
jobs.add_command(pause)
jobs.add_command(resume)
jobs.add_command(run)
jobs.add_command(remove)
jobs.add_command(history)
jobs.add_command(confirm)
jobs.add_command(reject)

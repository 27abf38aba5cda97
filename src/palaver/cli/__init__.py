"""The command line: `palaver` and its commands, one module for each noun.

A command parses its arguments, calls the store through the owner's view, and prints. Only `errors` turns errors
into exit codes. Commands import heavy modules only when they run: `palaver --version` and `--help` load neither
the database nor the settings.
"""

from __future__ import annotations

import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palaver import __version__
from palaver.cli.backup import backup, backups, restore
from palaver.cli.budget import budget
from palaver.cli.chat import chat
from palaver.cli.config import config
from palaver.cli.errors import detect_closed_output, run_and_get_exit_code
from palaver.cli.export_command import export_command
from palaver.cli.import_command import import_command
from palaver.cli.jobs import jobs
from palaver.cli.memories import memories
from palaver.cli.people import people
from palaver.cli.platforms import platforms
from palaver.cli.profiles import profiles
from palaver.cli.projects import projects
from palaver.cli.prompts import prompts
from palaver.cli.serve import serve
from palaver.cli.sessions import sessions
from palaver.cli.shares import shares
from palaver.cli.status import doctor, migrate, status, upgrade
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Sequence


class Program(click.Group):
    """The root command; it turns everything that a command raises into an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit the process with its exit code."""
        argv = list(sys.argv[1:] if args is None else args)
        run = super().main
        sys.exit(
            run_and_get_exit_code(
                lambda: run(argv, prog_name, complete_var, standalone_mode=False, **extra),
                as_json="--json" in takewhile("--".__ne__, argv),
            )
        )

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with detect_closed_output():  # --help already prints while click parses
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with detect_closed_output():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _insert_default_command(args))


def _insert_default_command(args: list[str]) -> list[str]:
    """Insert `chat` where no command is given: `--home X -m hi` becomes `--home X chat -m hi`."""
    position = 0
    while position < len(args) and args[position].startswith("--home"):
        position += 1 if "=" in args[position] else 2
    first = args[position] if position < len(args) else ""
    if first in {"--help", "--version"} or (first and not first.startswith("-")):
        return args
    return [*args[:position], chat.name or "", *args[position:]]


@click.group(cls=Program)
@click.version_option(__version__, prog_name="palaver")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="The folder with config.yaml and the database. [default: PALAVER_HOME, or ~/.palaver]",
)
@click.pass_context
def program(ctx: click.Context, home: Path | None) -> None:
    """Palaver: one AI agent, wherever you chat.

    Without a command, Palaver starts a chat in the terminal.
    """
    ctx.obj = home and home.expanduser()


program.add_command(chat)
program.add_command(serve)
program.add_command(status)
program.add_command(doctor)
program.add_command(sessions)
program.add_command(projects)
program.add_command(prompts)
program.add_command(import_command)
program.add_command(export_command)
program.add_command(memories)
program.add_command(jobs)
program.add_command(shares)
program.add_command(people)
program.add_command(budget)
program.add_command(platforms)
program.add_command(config)
program.add_command(profiles)
program.add_command(backup)
program.add_command(backups)
program.add_command(restore)
program.add_command(migrate)
program.add_command(upgrade)


def main() -> None:
    """Run the `palaver` program."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows a question mark
    program.main(prog_name=format_command(), complete_var="_PALAVER_COMPLETE")

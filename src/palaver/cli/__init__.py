"""The terminal: `palaver` and its commands, one file for each noun.

A command parses, calls the store through the owner's view, and prints. What goes wrong becomes an exit code
in `errors` and nowhere else. Nothing heavy is loaded before a command needs it: `palaver --version` and
`--help` touch neither the database nor the settings.
"""

from __future__ import annotations

import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palaver import __version__
from palaver.cli.chat import chat
from palaver.cli.errors import exit_code_of, reader_may_leave
from palaver.cli.memories import memories
from palaver.cli.people import people
from palaver.cli.projects import projects
from palaver.cli.serve import serve
from palaver.cli.sessions import sessions
from palaver.cli.status import status

if TYPE_CHECKING:
    from collections.abc import Sequence


class Program(click.Group):
    """The root command: what any command raises ends here, as an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and leave the process with its exit code."""
        given = list(sys.argv[1:] if args is None else args)
        run = super().main
        sys.exit(
            exit_code_of(
                lambda: run(given, prog_name, complete_var, standalone_mode=False, **extra),
                as_json="--json" in takewhile("--".__ne__, given),
            )
        )

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse; `--help` prints here already."""
        with reader_may_leave():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with reader_may_leave():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command it is `chat`."""
        return super().parse_args(ctx, _with_command(args))


def _with_command(args: list[str]) -> list[str]:
    """The same with `chat` where a command would stand and none does: `--home X -m hi` is `--home X chat -m hi`."""
    own = 0
    while own < len(args) and args[own].startswith("--home"):
        own += 1 if "=" in args[own] else 2
    first = args[own] if own < len(args) else ""
    if first in {"--help", "--version"} or (first and not first.startswith("-")):
        return args
    return [*args[:own], chat.name or "", *args[own:]]


@click.group(cls=Program)
@click.version_option(__version__, prog_name="palaver")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="The folder with config.yaml and the database. [default: PALAVER_HOME, else ~/.palaver]",
)
@click.pass_context
def program(ctx: click.Context, home: Path | None) -> None:
    """Palaver: a gateway between people and one AI agent.

    Without a command: chat.
    """
    ctx.obj = home and home.expanduser()


program.add_command(chat)
program.add_command(serve)
program.add_command(status)
program.add_command(sessions)
program.add_command(projects)
program.add_command(memories)
program.add_command(people)


def main() -> None:
    """The `palaver` program."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows a question mark
    program.main(prog_name="palaver")

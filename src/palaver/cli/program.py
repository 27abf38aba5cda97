"""The root command: it finds the commands, and imports the module of one when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import click
from click.exceptions import NoSuchCommand

from palaver import __version__
from palaver.cli import VERSION_TEXT
from palaver.cli.errors import detect_closed_output, run_and_get_exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS_BY_MODULE: Final = {
    **{name: (name,) for name in ("budget", "chat", "config", "deliveries", "jobs", "memories", "people", "platforms")},
    **{name: (name,) for name in ("profiles", "projects", "prompts", "serve", "sessions", "shares")},
    "backup": ("backup", "backups", "restore"),
    "export_command": ("export",),
    "import_command": ("import",),
    "status": ("status", "doctor", "migrate", "upgrade"),
}
_MODULES: Final = {command: module for module, commands in _COMMANDS_BY_MODULE.items() for command in commands}


class Program(click.Group):
    """The root command. It imports a command when it is called, and turns what one raises into an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = _MODULES[cmd_name]
        command: click.Command = getattr(import_module(f"palaver.cli.{module}"), module if "_" in module else cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=_MODULES, ctx=ctx) from None

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
    return [*args[:position], "chat", *args[position:]]


@click.group(cls=Program)
@click.version_option(__version__, message=VERSION_TEXT)
@click.option(
    "--home",
    type=click.Path(file_okay=False),
    metavar="PATH",
    help="The folder with config.yaml and the database. [default: PALAVER_HOME, or ~/.palaver]",
)
@click.pass_context
def program(ctx: click.Context, home: str | None) -> None:
    """Palaver: one AI agent, wherever you chat.

    Without a command, Palaver starts a chat in the terminal.
    """
    if home is not None:
        from pathlib import Path

        ctx.obj = Path(home).expanduser()

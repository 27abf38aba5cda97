"""Options that mean the same everywhere, and how the store is opened for the person at the terminal.

That person runs the gateway on their own machine: they are its owner, and see everybody's conversations
unless they ask for their own (`--mine`). They are asked before what cannot be taken back.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.config import Settings
    from palaver.services.view import SessionView

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document for programs.")
mine_option = click.option(
    "--mine", is_flag=True, help="Only your own conversations and those you take part in, not everybody's."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
session_argument = click.argument("session")


def settings_of(ctx: click.Context) -> Settings:
    """The settings of the home folder that was named on the command line, or of the usual one."""
    from palaver.config import load_settings

    home: Path | None = ctx.find_root().obj
    return load_settings(os.environ, home)


@contextmanager
def view_of(ctx: click.Context, *, mine: bool = False, settings: Settings | None = None) -> Iterator[SessionView]:
    """What the owner of this gateway sees, while the store is open."""
    from palaver.app import open_store

    with open_store(settings or settings_of(ctx)) as store:
        yield store.seen_by(store.owner().principal, everything=not mine)


def ask_first(question: str, *, yes: bool) -> None:
    """Go on only when the person says so, or has said so with --yes."""
    if yes:
        return
    if not can_ask():
        raise click.UsageError("nobody can be asked here; --yes does it without asking")
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    if not agreed:
        click.echo("nothing was deleted", err=True)
        click.get_current_context().exit(1)


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin is not None and sys.stdin.isatty()

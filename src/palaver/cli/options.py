"""Options that several commands share, and opening the store for the person at the terminal.

That person runs the gateway on their own machine: they are its owner and see everybody's conversations, unless
they ask for their own with `--mine`. Commands ask them before they delete anything.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from palaver.config import Settings
    from palaver.core.errors import UpgradeRequired
    from palaver.sessions.store import SessionStore
    from palaver.sessions.view import SessionView

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
mine_option = click.option("--mine", is_flag=True, help="Only conversations you own or take part in, not everybody's.")
yes_option = click.option("--yes", is_flag=True, help="Skip the confirmation.")
session_argument = click.argument("session")
platform_option = click.option(
    "--platform", metavar="PLATFORM", help="Only from this platform, such as telegram; local is the terminal."
)
_DAY = click.DateTime(["%Y-%m-%d"])


def _add_local_zone(_ctx: click.Context, _option: click.Parameter, day: datetime | None) -> datetime | None:
    return None if day is None else day.astimezone()


after_option = click.option(
    "--after", type=_DAY, metavar="DATE", callback=_add_local_zone, help="Only from this day (2026-01-31) or later."
)
before_option = click.option(
    "--before", type=_DAY, metavar="DATE", callback=_add_local_zone, help="Only from before this day (2026-01-31)."
)


def load_cli_settings(ctx: click.Context) -> Settings:
    """Load the settings from the folder given with --home, or from the default one."""
    from palaver.config import load_settings

    home: Path | None = ctx.find_root().obj
    return load_settings(os.environ, home)


def open_store(settings: Settings) -> SessionStore:
    """Open the store for a command; if it has to be upgraded first, ask the person at the terminal."""
    from palaver import app
    from palaver.core.engine_upgrade import Upgrade
    from palaver.core.errors import UpgradeRequired

    try:
        return app.open_store(settings)
    except UpgradeRequired as error:
        if not is_interactive():
            raise
        confirm_upgrade(error, skip=False)
        return app.open_store(settings, upgrade=Upgrade.ALONE)


def confirm_upgrade(error: UpgradeRequired, *, skip: bool) -> None:
    """Explain why the database has to be upgraded, and ask; the command ends if the answer is no."""
    if not skip and is_interactive():
        click.echo(str(error), err=True)
    confirm_or_exit("Upgrade the database now?", skip=skip, canceled="Canceled. Nothing was changed.")


def load_current_settings(ctx: click.Context) -> Settings:
    """Load the settings with those of the database, for a command that does not open the store otherwise."""
    from palaver.app import load_stored_settings

    settings = load_cli_settings(ctx)
    with open_store(settings) as store:
        return load_stored_settings(store, settings).settings


@contextmanager
def open_view(ctx: click.Context, *, mine: bool = False, settings: Settings | None = None) -> Iterator[SessionView]:
    """Open the store and yield the owner's view of it: everything, or with `mine` only their own sessions."""
    with open_store(settings or load_cli_settings(ctx)) as store:
        yield store.seen_by(store.get_owner().principal, everything=not mine)


def confirm_or_exit(question: str, *, skip: bool, canceled: str = "Canceled. Nothing was deleted.") -> None:
    """Ask a yes/no question, and end the command with exit code 1 if the answer is no."""
    if skip:
        return
    if not is_interactive():
        raise click.UsageError("This needs a confirmation, but stdin is not a terminal. Use --yes to skip it.")
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    if not confirmed:
        click.echo(canceled, err=True)
        click.get_current_context().exit(1)


def is_interactive() -> bool:
    """Return whether stdin is a terminal, so that a command can ask questions."""
    return sys.stdin is not None and sys.stdin.isatty()

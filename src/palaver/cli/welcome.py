"""`palaver` alone: where the data is, what is in it, and what can be done now."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from palaver import __version__
from palaver.cli.options import settings_of, view_of
from palaver.cli.output import line

if TYPE_CHECKING:
    from palaver.config import Settings

COUNTED = 50  # conversations, at most

_NOW = """\
There is no chat in the terminal yet. What works now:

  palaver sessions list            the conversations, newest first
  palaver sessions show SESSION    read one
  palaver sessions search WORDS    find what was said
  palaver sessions --help          rename, pin, archive, move, export, undo, delete
  palaver projects --help          folders for conversations
"""


def welcome(ctx: click.Context) -> None:
    """One screen for whoever starts Palaver without a command."""
    settings = settings_of(ctx)
    with view_of(ctx, settings=settings) as view:
        page = view.list(limit=COUNTED + 1)
    many = f"{COUNTED}+" if len(page) > COUNTED else str(len(page))
    recent = f"{many} recent conversation{'' if len(page) == 1 else 's'}" if page else "no conversations yet"
    file = settings.home / "config.yaml"
    click.echo(f"Palaver {__version__}\n")
    click.echo(f"Data      {line(database(settings))}")
    click.echo(f"Settings  {line(str(file))}{'' if file.exists() else ' (not there: the defaults hold)'}")
    click.echo(f"In it     {recent}\n")
    click.echo(_NOW, nl=False)


def database(settings: Settings) -> str:
    """Where the conversations are kept; of a server's address only what is no secret."""
    if settings.database_url.startswith("sqlite:///"):
        return settings.database_url.removeprefix("sqlite:///")
    parts = urlsplit(settings.database_url)
    return f"PostgreSQL, database {parts.path.strip('/') or '(default)'} on {parts.hostname or 'this machine'}"

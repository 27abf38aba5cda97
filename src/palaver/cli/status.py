"""`palaver status`: where the data is, what is in it, and which agent answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from palaver import __version__
from palaver.cli.options import settings_of, view_of
from palaver.cli.output import line

if TYPE_CHECKING:
    from palaver.config import Settings

COUNTED = 50  # conversations, at most


@click.command()
@click.pass_context
def status(ctx: click.Context) -> None:
    """Where the data is, what is in it, and which agent answers."""
    from palaver.agent.selection import choose_agent

    settings = settings_of(ctx)
    agent = choose_agent(settings.agent, os.environ)
    with view_of(ctx, settings=settings) as view:
        page = view.list(limit=COUNTED + 1)
    many = f"{COUNTED}+" if len(page) > COUNTED else str(len(page))
    recent = f"{many} recent conversation{'' if len(page) == 1 else 's'}" if page else "no conversations yet"
    file = settings.home / "config.yaml"
    click.echo(f"Palaver {__version__}\n")
    click.echo(f"Data      {line(database(settings))}")
    click.echo(f"Settings  {line(str(file))}{'' if file.exists() else ' (not there: the defaults hold)'}")
    click.echo(f"In it     {recent}")
    click.echo(f"Agent     {line(agent.description)}")


def database(settings: Settings) -> str:
    """Where the conversations are kept; of a server's address only what is no secret."""
    if settings.database_url.startswith("sqlite:///"):
        return settings.database_url.removeprefix("sqlite:///")
    parts = urlsplit(settings.database_url)
    return f"PostgreSQL, database {parts.path.strip('/') or '(default)'} on {parts.hostname or 'this machine'}"

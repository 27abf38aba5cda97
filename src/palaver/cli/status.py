"""`palaver status`: database, config file, recent conversations and agent."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from palaver import __version__
from palaver.cli.options import load_cli_settings, open_store
from palaver.cli.output import clean_line
from palaver.delivery.health_model import STATE_WORDS

if TYPE_CHECKING:
    from palaver.config import Settings

MAX_SESSIONS_COUNTED = 50  # beyond that, the output says "50+"


@click.command()
@click.pass_context
def status(ctx: click.Context) -> None:
    """Show the database, config file, recent conversations, agent and chat platforms."""
    from palaver.app import describe_agent, load_stored_settings
    from palaver.delivery.health import load_health

    settings = load_cli_settings(ctx)
    with open_store(settings) as store:
        loaded = load_stored_settings(store, settings)
        agent = describe_agent(loaded, settings)
        page = store.seen_by(store.get_owner().principal, everything=True).list(limit=MAX_SESSIONS_COUNTED + 1)
        accounts = load_health(store, loaded.settings.gateway.chat_accounts)
    count = f"{MAX_SESSIONS_COUNTED}+" if len(page) > MAX_SESSIONS_COUNTED else str(len(page))
    config_file = settings.home / "config.yaml"
    missing = "" if config_file.exists() else " (not found, using defaults)"
    click.echo(f"Palaver {__version__}\n")
    click.echo(f"Database       {clean_line(describe_database(settings))}")
    click.echo(f"Config file    {clean_line(str(config_file))}{missing}")
    click.echo(f"Conversations  {f'{count} recent' if page else 'none yet'}")
    click.echo(f"Retention      {loaded.settings.turns.retention.describe()}")
    click.echo(f"Agent          {clean_line(agent)}")
    for account in accounts:
        click.echo(f"{'Platforms' if account is accounts[0] else '':14} {account.label}: {STATE_WORDS[account.state]}")


def describe_database(settings: Settings) -> str:
    """Return the path of the SQLite file, or the server and database name without user and password."""
    if settings.database_url.startswith("sqlite:///"):
        return settings.database_url.removeprefix("sqlite:///")
    parts = urlsplit(settings.database_url)
    return f"PostgreSQL, database {parts.path.strip('/') or '(default)'} on {parts.hostname or 'this machine'}"

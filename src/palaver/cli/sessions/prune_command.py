"""`palaver sessions prune`: deletes conversations that were not used for long, after showing what would go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.cli.options import (
    confirm_or_exit,
    json_option,
    load_current_settings,
    open_store,
    platform_option,
    yes_option,
)
from palaver.core.errors import InvalidInput
from palaver.core.source import Platform

if TYPE_CHECKING:
    from datetime import timedelta

    from palaver.operation.retention import PruneReport


def _parse_age(_ctx: click.Context, _option: click.Parameter, text: str) -> timedelta:
    from palaver.operation.retention import parse_age

    try:
        return parse_age(text)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.option(
    "--older-than",
    "age",
    required=True,
    metavar="AGE",
    callback=_parse_age,
    help="How long a conversation was not used: 90d, 12w, 6m or 1y.",
)
@platform_option
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@yes_option
@json_option
@click.pass_context
def prune(ctx: click.Context, age: timedelta, platform: str | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete everybody's conversations that were not used for long.

    What counts is the last activity, not when a conversation began. Pinned conversations stay, and so do those in
    which something runs, waits or is on its way. This can't be undone.
    """
    import asyncio

    from palaver.operation.retention import Retention

    settings = load_current_settings(ctx)
    name = None if platform is None else str(Platform(platform))
    with open_store(settings) as store:
        retention = Retention(store, lambda: settings.turns.retention)
        owner = store.get_owner().principal
        report = asyncio.run(retention.prune(owner, age, platform=name, dry_run=True))
        if not dry_run and report.sessions:
            if not yes:
                output.print_hint(_describe(report, "would be deleted"))
            confirm_or_exit(f"Delete {output.format_count(report.sessions, 'conversation')}?", skip=yes)
            report = asyncio.run(retention.prune(owner, age, platform=name, dry_run=False))
    if as_json:
        output.print_json(report.to_dict() | {"is_dry_run": dry_run})
    elif not report.sessions:
        click.echo("No conversation is that old, or those that are can't be deleted because they are pinned or in use.")
    else:
        click.echo(_describe(report, "would be deleted" if dry_run else "deleted"))


def _describe(report: PruneReport, verb: str) -> str:
    count = output.format_count(report.sessions, "conversation")
    messages = output.format_count(report.messages, "message")
    size = f"{report.bytes / 1_000_000:,.1f} MB"
    times = [output.format_timestamp(moment) for moment in (report.oldest, report.newest) if moment is not None]
    return f"{count} {verb}: {messages}, about {size}, last used between {' and '.join(times)}."

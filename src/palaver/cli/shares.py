"""`palaver shares`: the copies of conversations that anyone with a link can read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import click

from palaver.cli import output
from palaver.cli.options import (
    confirm_or_exit,
    json_option,
    load_cli_settings,
    load_current_settings,
    open_store,
    yes_option,
)
from palaver.cli.output import Column
from palaver.core.invocation import format_command
from palaver.people.model import is_loopback
from palaver.sessions.view_wire import share_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from palaver.config import Settings
    from palaver.people.model import Principal
    from palaver.sessions.share import Share
    from palaver.sessions.shares import Shares

T = TypeVar("T")

_COLUMNS = (
    Column("ID", style="dim"),
    Column("CREATED"),
    Column("EXPIRES"),
    Column("SHARED BY", width_divisor=4),
    Column("MESSAGES", align="right"),
    Column("TITLE", fills_width=True),
)


@click.group()
def shares() -> None:
    """Manage shared links: copies of conversations that anyone with the link can read."""


@shares.command("list")
@click.option("--mine", is_flag=True, help="Only what you share, not everybody's.")
@json_option
def list_shares(mine: bool) -> None:
    """List what is shared, newest first."""

    async def run(service: Shares, owner: Principal) -> list[Share]:
        page = await service.list(owner, everything=not mine)
        found = list(page)
        while page.cursor is not None:
            page = await service.list(owner, everything=not mine, cursor=page.cursor)
            found += page
        return found

    found = _run_with_shares(run)
    if output.wants_json():
        output.print_json({"shares": [share_to_json(share) for share in found]})
    elif found:
        now = datetime.now(UTC)
        output.print_table(_COLUMNS, [_make_row(share, now) for share in found])
        output.print_hint(f"For the link of one, run {format_command('shares link ID')}")
    else:
        click.echo("Nothing is shared.")


@shares.command("link")
@click.argument("share_id", metavar="SHARE")
@json_option
def print_link(share_id: str) -> None:
    """Print the link of a shared copy again.

    SHARE is an id from `palaver shares list`. Anyone with the link can read the copy.
    """

    async def run(service: Shares, owner: Principal) -> Share:
        return await service.get(owner, share_id, everything=True)

    link = _find_server_url(load_current_settings()) + _run_with_shares(run).path
    if output.wants_json():
        output.print_json({"link": link})
        return
    click.echo(link)
    if is_loopback(urlsplit(link).hostname or ""):
        output.print_hint("It works only on this machine. Set web.public_url to the server's address.")


def _find_server_url(settings: Settings) -> str:
    """Return the address under which others reach the server, or would reach it if it was running."""
    from palaver.cli.running_servers import find_page_url
    from palaver.web.sockets import DEFAULT_PORT

    return find_page_url(settings) or f"http://localhost:{settings.web.port or DEFAULT_PORT}"


def _parse_expiry(_ctx: click.Context, _argument: click.Parameter, text: str) -> datetime | None:
    if text == "never":
        return None
    if match := re.fullmatch(r"([0-9]{1,5})d", text):
        return datetime.now(UTC) + timedelta(days=int(match[1]))
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007  (a day of the calendar)
        return datetime.combine(day + timedelta(days=1), time()).astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is not valid. Use never, 7d or a date such as 2026-12-31.") from None


@shares.command("expire")
@click.argument("share_id", metavar="SHARE")
@click.argument("expires_at", metavar="WHEN", callback=_parse_expiry)
@json_option
def expire_share(share_id: str, expires_at: datetime | None) -> None:
    """Change when the link of a shared copy expires. It may be another person's.

    SHARE is an id from `palaver shares list`. WHEN is never, a number of days from now (7d), or the last day on which
    the link works (2026-12-31). An expired copy is deleted 7 days later; until then, its link can be prolonged.
    """

    async def run(service: Shares, owner: Principal) -> Share:
        return await service.set_expiry(owner, share_id, expires_at, everything=True)

    share = _run_with_shares(run)
    if output.wants_json():
        output.print_json(share_to_json(share))
    elif share.expires_at is None:
        click.echo("The link no longer expires.")
    else:
        click.echo(f"The link expires on {share.expires_at.astimezone():%Y-%m-%d at %H:%M}.")


@shares.command("end")
@click.argument("share_id", metavar="SHARE")
@yes_option
@json_option
def end_share(share_id: str, yes: bool) -> None:
    """Stop sharing a copy. It may be another person's.

    SHARE is an id from `palaver shares list`. The link stops working.
    """
    confirm_or_exit(f"Stop sharing {output.clean_line(share_id)}? Its link will stop working.", skip=yes)

    async def run(service: Shares, owner: Principal) -> None:
        await service.revoke(owner, share_id, everything=True)

    _run_with_shares(run)
    output.print_result({"ended": share_id}, "No longer shared. The link has stopped working.")


def _run_with_shares(run: Callable[[Shares, Principal], Coroutine[None, None, T]]) -> T:
    """Open the store and run a coroutine with all shares, as the owner of this gateway."""
    import asyncio

    from palaver.sessions.shares import Shares

    with open_store(load_cli_settings()) as store:
        return asyncio.run(run(Shares(store), store.get_owner().principal))


def _format_expiry(share: Share, now: datetime) -> str:
    if share.expires_at is None:
        return "never"
    return "expired" if share.expires_at <= now else f"{share.expires_at.astimezone():%Y-%m-%d %H:%M}"


def _make_row(share: Share, now: datetime) -> tuple[str, ...]:
    return (
        share.id,
        output.format_relative_time(share.created_at, now),
        _format_expiry(share, now),
        output.clean_line(share.person_name),
        str(share.message_count),
        output.clean_line(share.title or "untitled"),
    )

"""`palaver shares`: the copies of conversations that anyone with a link can read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import click

from palaver.cli import output
from palaver.cli.options import (
    NounGroup,
    confirm_or_exit,
    load_cli_settings,
    load_current_settings,
    open_store,
    run_async,
    yes_option,
)
from palaver.cli.output import Column
from palaver.core.invocation import format_command
from palaver.core.operation import load_all_pages
from palaver.people.model import Principal, is_loopback
from palaver.sessions.view_wire import share_to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.sessions.share import Share
    from palaver.sessions.shares import Shares

T = TypeVar("T")

_COLUMNS: tuple[Column[Share], ...] = (
    Column("ID", lambda each: each.id, style="dim"),
    Column("CREATED", lambda each: each.created_at),
    Column("EXPIRES", lambda each: _format_expiry(each.expires_at)),
    Column("SHARED BY", lambda each: each.person_name, width_divisor=4),
    Column("MESSAGES", lambda each: each.message_count, align="right"),
    Column("TITLE", lambda each: each.title or "untitled", fills_width=True),
)


@click.group(cls=NounGroup)
def shares() -> None:
    """Manage shared links: copies of conversations that anyone with the link can read."""


@shares.command("list")
@click.option("--mine", is_flag=True, help="Only what you share, not everybody's.")
def list_shares(mine: bool) -> None:
    """List what is shared, newest first."""
    found = _run_with_shares(lambda service, owner: load_all_pages(partial(service.list, owner, everything=not mine)))
    output.print_list({"shares": [share_to_json(share) for share in found]}, _COLUMNS, found, "Nothing is shared.")
    if found and not output.wants_json():
        output.print_hint(f"For the link of one, run {format_command('shares link ID')}")


@shares.command("link")
@click.argument("share_id", metavar="SHARE")
def print_link(share_id: str) -> None:
    """Print the link of a shared copy again.

    SHARE is an id from `palaver shares list`. Anyone with the link can read the copy.
    """
    from palaver.cli.running_servers import find_page_url
    from palaver.web.sockets import DEFAULT_PORT

    share = _run_with_shares(lambda service, owner: service.get(owner, share_id, everything=True))
    settings = load_current_settings()
    url = find_page_url(settings) or f"http://localhost:{settings.web.port or DEFAULT_PORT}"  # if it was running
    link = url + share.path
    output.print_result({"link": link}, link)
    if is_loopback(urlsplit(link).hostname or "") and not output.wants_json():
        output.print_hint("It works only on this machine. Set web.public_url to the server's address.")


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
def expire_share(share_id: str, expires_at: datetime | None) -> None:
    """Change when the link of a shared copy expires. It may be another person's.

    SHARE is an id from `palaver shares list`. WHEN is never, a number of days from now (7d), or the last day on which
    the link works (2026-12-31). An expired copy is deleted 7 days later; until then, its link can be prolonged.
    """
    share = _run_with_shares(lambda service, owner: service.set_expiry(owner, share_id, expires_at, everything=True))
    until = share.expires_at
    expiry = "no longer expires" if until is None else f"expires on {until.astimezone():%Y-%m-%d at %H:%M}"
    output.print_result(share_to_json(share), f"The link {expiry}.")


@shares.command("end")
@click.argument("share_id", metavar="SHARE")
@yes_option
def end_share(share_id: str, yes: bool) -> None:
    """Stop sharing a copy. It may be another person's.

    SHARE is an id from `palaver shares list`. The link stops working.
    """
    confirm_or_exit(f"Stop sharing {output.clean_line(share_id)}? Its link will stop working.", skip=yes)
    _run_with_shares(lambda service, owner: service.revoke(owner, share_id, everything=True))
    output.print_result({"ended": share_id}, "No longer shared. The link has stopped working.")


def _run_with_shares(run: Callable[[Shares, Principal], Awaitable[T]]) -> T:
    from palaver.sessions.shares import Shares

    with open_store(load_cli_settings()) as store:
        return run_async(lambda: run(Shares(store), store.get_owner().principal))


def _format_expiry(expires_at: datetime | None) -> str:
    if expires_at is None:
        return "never"
    return "expired" if expires_at <= datetime.now(UTC) else f"{expires_at.astimezone():%Y-%m-%d %H:%M}"

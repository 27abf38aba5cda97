"""`palaver platforms list` and `palaver platforms show`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.cli.options import json_option, load_cli_settings, open_store
from palaver.cli.output import Column
from palaver.cli.platforms.accounts import account_argument, account_to_json, find_account, load_accounts
from palaver.cli.running_servers import find_running_server
from palaver.core.invocation import format_command
from palaver.delivery.model import STATE_LABELS, AccountState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.cli.platforms.accounts import Account

_COLUMNS = (
    Column("ACCOUNT"),
    Column("STATE"),
    Column("SINCE"),
    Column("LAST MESSAGE", min_terminal_width=80),
    Column("WAITING", align="right", min_terminal_width=60),
    Column("UNCERTAIN", align="right", min_terminal_width=100),
    Column("PROBLEM", fills_width=True),
)


@click.command("list")
@json_option
def list_platforms() -> None:
    """List all accounts, with their state and what waits to be sent."""
    accounts, is_server_running = _load_accounts()
    if output.wants_json():
        documents = [account_to_json(each) for each in accounts]
        output.print_json({"server_running": is_server_running, "accounts": documents})
        return
    if accounts:
        now = datetime.now(UTC)
        output.print_table(_COLUMNS, [_make_row(each, now) for each in accounts])
    else:
        click.echo("No chat platforms are set up.")
    if not is_server_running:
        output.print_hint(f"No server is running here. Start one with `{format_command('serve')}`.")


@click.command()
@account_argument
@json_option
def show(account: str) -> None:
    """Show everything about an account.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work.
    """
    accounts, is_server_running = _load_accounts()
    found = find_account(accounts, account)
    if output.wants_json():
        output.print_json(account_to_json(found))
        return
    _print_account(found)
    if not is_server_running:
        output.print_hint(f"No server is running here. Start one with `{format_command('serve')}`.")


def _load_accounts() -> tuple[Sequence[Account], bool]:
    """Return all accounts, and whether a server runs that could connect them."""

    settings = load_cli_settings()
    with open_store(settings) as store:
        accounts = load_accounts(settings, store)
    runs_account = any(each.health.state is not AccountState.OFF for each in accounts)  # maybe on another machine
    return accounts, runs_account or find_running_server(settings.home, None) is not None


def _make_row(account: Account, now: datetime) -> tuple[str, ...]:
    health, status = account.health, account.health.status
    return (
        health.short_name,
        STATE_LABELS[health.state],
        output.format_relative_time(status.since, now) if status else "",
        output.format_relative_time(status.last_message_at, now) if status else "never",
        str(health.waiting),
        str(health.uncertain),
        output.clean_line(account.problem or ""),
    )


def _print_account(account: Account) -> None:
    health, status = account.health, account.health.status
    lines = [("Account", health.label), ("State", STATE_LABELS[health.state])]
    if status is not None:
        lines += [
            ("Since", output.format_timestamp(status.since)),
            *([("Name there", status.name)] if status.name else []),
            ("Last message", output.format_timestamp(status.last_message_at) if status.last_message_at else "none yet"),
            *(("Warning", warning) for warning in status.warnings),
            *(("Details", detail) for detail in status.details),
        ]
        if health.state is AccountState.LINKING:
            lines.append(("To link it", format_command(f"platforms link {health.short_name}")))
        if status.error is not None and status.error_at is not None:
            lines.append(("Last error", f"{output.format_timestamp(status.error_at)}: {status.error}"))
    if health.home_channel is not None:
        name = f"{health.home_channel.name}, " if health.home_channel.name else ""
        lines.append(("Home channel", f"{name}{health.home_channel.target}"))
    if account.settings_problem is not None:
        lines.append(("Settings", account.settings_problem))
    lines += [
        ("Waiting", f"{output.format_count(health.waiting, 'message')} to be sent"),
        ("Last 24 hours", f"{health.failed:,} not delivered, {health.uncertain:,} with unknown delivery status"),
    ]
    if health.delivery_error is not None:
        lines.append(("", health.delivery_error))
    for name, text in lines:
        click.echo(f"{name:13}  {output.clean_line(text)}".rstrip())

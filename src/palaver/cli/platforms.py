"""`palaver platforms`: the accounts on chat platforms, whether they are connected, and what is wrong.

It reads the database, so it works beside a running server and on any machine that uses the same database.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import json_output, output
from palaver.cli.options import json_option, load_cli_settings
from palaver.cli.output import Column
from palaver.cli.running_servers import find_running_server
from palaver.domain.platform_health import STATE_WORDS, AccountState
from palaver.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.platform_health import AccountHealth

_COLUMNS = (
    Column("ACCOUNT"),
    Column("STATE"),
    Column("SINCE"),
    Column("LAST MESSAGE", min_terminal_width=80),
    Column("WAITING", align="right", min_terminal_width=60),
    Column("UNCERTAIN", align="right", min_terminal_width=100),
    Column("PROBLEM", fills_width=True),
)


@dataclass(frozen=True, slots=True)
class _Account:
    """An account, and what is wrong with the settings that this terminal sees."""

    health: AccountHealth
    settings_problem: str | None

    @property
    def problem(self) -> str | None:
        """What a person has to know first: why it does not run, or what is missing."""
        status = self.health.status
        if self.health.state is AccountState.OFF:
            return self.settings_problem
        if status is None:
            return None
        if self.health.state is not AccountState.LIVE:
            return status.error
        return next(iter(status.warnings), None)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def platforms(ctx: click.Context, as_json: bool) -> None:
    """Show the accounts on chat platforms, and whether they are connected.

    Without a command, lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_platforms, as_json=as_json)


@platforms.command("list")
@json_option
@click.pass_context
def list_platforms(ctx: click.Context, as_json: bool) -> None:
    """List all accounts, with their state and what waits to be sent."""
    accounts, is_server_running = _load_accounts(ctx)
    if as_json:
        documents = [json_output.account_to_json(each.health, each.settings_problem) for each in accounts]
        output.print_json({"server_running": is_server_running, "accounts": documents})
        return
    if accounts:
        now = datetime.now(UTC)
        output.print_table(_COLUMNS, [_make_row(each, now) for each in accounts])
    else:
        click.echo("No chat platforms are set up.")
    if not is_server_running:
        output.print_hint(f"No server is running here. Start one with `{format_command('serve')}`.")


@platforms.command()
@click.argument("account")
@json_option
@click.pass_context
def show(ctx: click.Context, account: str, as_json: bool) -> None:
    """Show everything about an account.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work.
    """
    accounts, is_server_running = _load_accounts(ctx)
    platform, _, name = account.partition("@")
    found = [each for each in accounts if (each.health.platform, each.health.account) == (platform.lower(), name)]
    if not found:
        known = ", ".join(_format_name(each.health) for each in accounts) or "none"
        raise click.UsageError(f"There is no account {output.clean_line(account)!r}. Accounts: {known}.")
    if as_json:
        output.print_json(json_output.account_to_json(found[0].health, found[0].settings_problem))
        return
    _print_account(found[0])
    if not is_server_running:
        output.print_hint(f"No server is running here. Start one with `{format_command('serve')}`.")


def _load_accounts(ctx: click.Context) -> tuple[Sequence[_Account], bool]:
    """Return all accounts, and whether a server runs that could connect them."""
    from palaver.app import list_accounts, open_store
    from palaver.services.platforms.health import load_health

    settings = load_cli_settings(ctx)
    problems = {account.key: account.problem for account in list_accounts(settings, os.environ)}
    with open_store(settings) as store:
        found = load_health(store, {*problems, *settings.gateway.chat_accounts})
    accounts = [_Account(health, problems.get((health.platform, health.account))) for health in found]
    runs_account = any(health.state is not AccountState.OFF for health in found)  # maybe on another machine
    return accounts, runs_account or find_running_server(settings.home, None) is not None


def _make_row(account: _Account, now: datetime) -> tuple[str, ...]:
    health, status = account.health, account.health.status
    return (
        _format_name(health),
        STATE_WORDS[health.state],
        output.format_relative_time(status.since, now) if status else "",
        output.format_relative_time(status.last_message_at, now) if status else "never",
        str(health.waiting),
        str(health.uncertain),
        output.clean_line(account.problem or ""),
    )


def _print_account(account: _Account) -> None:
    health, status = account.health, account.health.status
    lines = [("Account", health.label), ("State", STATE_WORDS[health.state])]
    if status is not None:
        lines += [
            ("Since", output.format_timestamp(status.since)),
            *([("Name there", status.name)] if status.name else []),
            ("Last message", output.format_timestamp(status.last_message_at) if status.last_message_at else "none yet"),
            *(("Warning", warning) for warning in status.warnings),
        ]
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


def _format_name(health: AccountHealth) -> str:
    return f"{health.platform}@{health.account}" if health.account else str(health.platform)

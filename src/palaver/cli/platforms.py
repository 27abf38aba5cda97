"""`palaver platforms`: the accounts on chat platforms, whether they are connected, and what is wrong.

It reads the database, so it works beside a running server and on any machine that uses the same database.
"""

from __future__ import annotations

import shutil
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.cli.linking_screen import LinkingScreen
from palaver.cli.options import NounGroup, json_option, load_cli_settings, open_store, run_async
from palaver.cli.output import Column
from palaver.cli.running_servers import find_running_server
from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountNotRunning
from palaver.core.invocation import format_command
from palaver.delivery.model import STATE_LABELS, AccountHealth, AccountState, AccountStatus
from palaver.delivery.wire import account_to_flat_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from palaver.config import Settings
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.sessions.store import SessionStore

CONNECTION_SECONDS = 120.0  # that connecting or testing an account may take; signing in may take a minute
POLL_SECONDS = 0.5  # between two looks at an account that is being linked
_CLEAR_SCREEN = "\x1b[H\x1b[2J"

_account_argument = click.argument("account")


@click.group(cls=NounGroup, invoke_without_command=True)
@json_option
@click.pass_context
def platforms(ctx: click.Context) -> None:
    """Show the accounts on chat platforms, and connect, test and link them.

    Without a command, lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_platforms)


@dataclass(frozen=True, slots=True)
class Account:
    """An account, and how this terminal would set it up."""

    health: AccountHealth
    configured: ConfiguredAccount | None  # None: it is not set up here

    @property
    def settings_problem(self) -> str | None:
        """The reason that it can't be connected with the settings that this terminal sees."""
        return None if self.configured is None else self.configured.problem

    @property
    def last_message_at(self) -> datetime | None:
        return None if self.health.status is None else self.health.status.last_message_at

    @property
    def problem(self) -> str | None:
        """The most urgent problem: why it does not run, what to do, or what is missing."""
        status = self.health.status
        if self.health.state is AccountState.OFF:
            return self.settings_problem
        if status is None:
            return None
        if self.health.state is AccountState.LINKING:
            return f"Link it with: {format_command(f'platforms link {self.health.short_name}')}"
        if self.health.state is not AccountState.LIVE:
            return status.error
        return next(iter(status.warnings), None)


def _load_accounts(settings: Settings, store: SessionStore) -> Sequence[Account]:
    """Return all accounts that are set up, run in some process, or have deliveries that wait or went wrong."""
    from palaver.app import list_accounts, load_stored_settings
    from palaver.delivery.health import load_health

    loaded = load_stored_settings(store, settings)
    configured = {account.key: account for account in list_accounts(loaded)}
    found = load_health(store, {*configured, *loaded.settings.gateway.chat_accounts})
    return [Account(health, configured.get(health.key)) for health in found]


def _find_account(accounts: Sequence[Account], name: str) -> Account:
    """Return the account that a person names, such as `telegram` or `telegram@work`."""
    platform, _, account = name.partition("@")
    found = next((each for each in accounts if each.health.key == (platform.lower(), account)), None)
    if found is None:
        known = ", ".join(each.health.short_name for each in accounts) or "none"
        raise click.UsageError(f"There is no account {output.clean_line(name)!r}. Accounts: {known}.")
    return found


def _account_to_json(account: Account) -> dict[str, object]:
    return {**account_to_flat_json(account.health), "settings_problem": account.settings_problem}


_COLUMNS: tuple[Column[Account], ...] = (
    Column("ACCOUNT", lambda each: each.health.short_name),
    Column("STATE", lambda each: STATE_LABELS[each.health.state]),
    Column("SINCE", lambda each: None if each.health.status is None else each.health.status.since),
    Column("LAST MESSAGE", lambda each: each.last_message_at or "never", min_terminal_width=80),
    Column("WAITING", lambda each: each.health.waiting, align="right", min_terminal_width=60),
    Column("UNCERTAIN", lambda each: each.health.uncertain, align="right", min_terminal_width=100),
    Column("PROBLEM", lambda each: each.problem, fills_width=True),
)


@platforms.command("list")
def list_platforms() -> None:
    """List all accounts, with their state and what waits to be sent."""
    accounts, is_server_running = _load_accounts_and_server()
    documents = [_account_to_json(each) for each in accounts]
    document = {"server_running": is_server_running, "accounts": documents}
    output.print_list(document, _COLUMNS, accounts, "No chat platforms are set up.")
    _print_server_hint(is_server_running)


@platforms.command()
@_account_argument
def show(account: str) -> None:
    """Show everything about an account.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work.
    """
    accounts, is_server_running = _load_accounts_and_server()
    found = _find_account(accounts, account)
    output.print_result(_account_to_json(found), "\n".join(_describe_account(found)))
    _print_server_hint(is_server_running)


def _load_accounts_and_server() -> tuple[Sequence[Account], bool]:
    """Return all accounts, and whether a server runs that could connect them."""
    settings = load_cli_settings()
    with open_store(settings) as store:
        accounts = _load_accounts(settings, store)
    runs_account = any(each.health.state is not AccountState.OFF for each in accounts)  # maybe on another machine
    return accounts, runs_account or find_running_server(settings.home, None) is not None


def _print_server_hint(is_server_running: bool) -> None:
    if not is_server_running and not output.wants_json():
        output.print_hint(f"No server is running here. Start one with `{format_command('serve')}`.")


def _describe_account(account: Account) -> Iterator[str]:
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
        yield f"{name:13}  {output.clean_line(text)}".rstrip()


@platforms.command()
@_account_argument
def connect(account: str) -> None:
    """Connect an account now, instead of after its pause.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work. A server has to
    run it. The exit code is 0 when it is connected.
    """
    _connect(account, needs_server=True)


@platforms.command()
@_account_argument
def test(account: str) -> None:
    """Test the connection of an account: sign in, and say what is missing.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work. It works while a
    server runs it, and before one does. The exit code is 0 when it works.
    """
    _connect(account, needs_server=False)


def _connect(name: str, *, needs_server: bool) -> None:
    settings = load_cli_settings()
    with open_store(settings) as store:
        found = _find_account(_load_accounts(settings, store), name)
        is_connected = needs_server and found.health.state is AccountState.LIVE
        status = None if is_connected else run_async(lambda: _test(store, found, needs_server=needs_server))
    health = found.health if status is None else replace(found.health, status=status)
    if output.wants_json():
        output.print_json(_account_to_json(replace(found, health=health)))
    elif is_connected:
        click.echo(f"{health.label} is already connected.")
    else:
        for line in _describe_result(health):
            click.echo(output.clean_line(line))
    if not is_connected and not _is_working(health):
        click.get_current_context().exit(1)


async def _test(store: SessionStore, account: Account, *, needs_server: bool) -> AccountStatus:
    from palaver.gateway.supervisor import probe_without_server, run_connection_test

    try:
        return await run_connection_test(store, account.health.key, wait_seconds=CONNECTION_SECONDS)
    except AccountNotRunning:
        if needs_server or account.configured is None:
            hint = f"No server is running this account. Start one with `{format_command('serve')}`."
            raise AccountNotRunning(hint) from None
    return await probe_without_server(store, account.configured)


def _is_working(health: AccountHealth) -> bool:
    test = health.status and health.status.last_test
    return test is not None and test.error is None and health.state is not AccountState.LINKING


def _describe_result(health: AccountHealth) -> Iterator[str]:
    status = health.status
    assert status is not None  # noqa: S101  (it was just tested)
    assert status.last_test is not None  # noqa: S101
    took = output.format_duration(round(status.last_test.seconds * 1000))
    if status.last_test.error is not None:
        yield f"{health.label} doesn't work ({took}): {status.last_test.error}"
        return
    serve, link = f"`{format_command('serve')}`", f"`{format_command(f'platforms link {health.short_name}')}`"
    if health.state is not AccountState.LINKING:
        yield f"{health.label} works: signed in{f' as {status.name}' if status.name else ''} ({took})."
    elif status.linking is not None:
        yield f"{health.label} waits to be linked. Run {link}."
    else:
        yield f"{health.label} is not linked with a phone yet. Start a server with {serve}, then run {link}."
    for warning in status.warnings:
        yield f"Warning: {warning}"
    for detail in status.details:
        yield f"Details: {detail}"
    if health.state is AccountState.OFF:
        yield f"No server runs it yet. Start one with {serve}."


@platforms.command(cls=click.Command)
@_account_argument
def link(account: str) -> None:
    """Link an account with your phone: shows a QR code or a code to type, until it is linked.

    ACCOUNT is a platform, such as signal, or one of several accounts there, such as signal@work. A server has to run
    it. The exit code is 0 when it is linked.
    """
    from palaver.gateway.supervisor import run_connection_test

    settings = load_cli_settings()
    with open_store(settings) as store:
        health = _find_account(_load_accounts(settings, store), account).health
        if health.state is AccountState.REFUSED:  # connecting it now may ask for a new link
            run_async(lambda: run_connection_test(store, health.key, wait_seconds=CONNECTION_SECONDS))
        status = _follow(store, health)
    if status.state is AccountState.LIVE:
        name = f" as {output.clean_line(status.name)}" if status.name else ""
        click.echo(f"{health.label} is linked and connected{name}.")
        return
    reason = output.clean_line(status.error or STATE_LABELS[status.state])
    click.echo(f"{health.label} is not linked: {reason}", err=True)
    click.get_current_context().exit(1)


def _follow(store: SessionStore, health: AccountHealth) -> AccountStatus:
    """Show what to do, and again whenever it changes; return the status when it is linked, or can't be."""
    from rich.console import Console

    from palaver.gateway.supervisor import load_running_status

    shown, is_terminal = "", output.is_stdout_terminal()
    with Console().screen() if is_terminal else nullcontext():  # what was there before comes back
        while True:
            try:
                status = load_running_status(store, health.key)
            except AccountNotRunning:
                hint = f"No server is running this account. Start one with `{format_command('serve')}`, then link it."
                raise AccountNotRunning(hint) from None
            if status.state in {AccountState.LIVE, AccountState.REFUSED}:
                return status
            text = _draw(health, status, is_terminal=is_terminal)
            if text != shown:
                shown = text
                click.echo(f"{_CLEAR_SCREEN}{text}" if is_terminal else text, nl=not is_terminal, color=True)
            time.sleep(POLL_SECONDS)


def _draw(health: AccountHealth, status: AccountStatus, *, is_terminal: bool) -> str:
    prompt = status.linking
    if prompt is None:
        error = f"\n{output.clean_line(status.error)}" if status.error else ""
        return f"{health.label}: {STATE_LABELS[status.state]}…{error}"
    return LinkingScreen(health.label, prompt).render(
        shutil.get_terminal_size() if is_terminal else None, has_blocks=output.can_print_unicode()
    )

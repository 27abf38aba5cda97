"""`palaver platforms connect` and `palaver platforms test`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.cli.options import json_option, load_cli_settings, open_store
from palaver.cli.platforms.accounts import account_argument, account_to_json, find_account, load_accounts
from palaver.core.invocation import format_command
from palaver.delivery.model import AccountState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.cli.platforms.accounts import Account
    from palaver.delivery.model import AccountHealth, AccountStatus
    from palaver.sessions.store import SessionStore

WAIT_SECONDS = 120.0  # for the result; signing in may take a minute


@click.command()
@account_argument
@json_option
def connect(account: str) -> None:
    """Connect an account now, instead of after its pause.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work. A server has to
    run it. The exit code is 0 when it is connected.
    """
    _run(account, needs_server=True)


@click.command()
@account_argument
@json_option
def test(account: str) -> None:
    """Test the connection of an account: sign in, and say what is missing.

    ACCOUNT is a platform, such as telegram, or one of several accounts there, such as telegram@work. It works while a
    server runs it, and before one does. The exit code is 0 when it works.
    """
    _run(account, needs_server=False)


def _run(name: str, *, needs_server: bool) -> None:
    import asyncio

    settings = load_cli_settings()
    with open_store(settings) as store:
        found = find_account(load_accounts(settings, store), name)
        is_connected = needs_server and found.health.state is AccountState.LIVE
        status = None if is_connected else asyncio.run(_test(store, found, needs_server=needs_server))
    health = found.health if status is None else replace(found.health, status=status)
    if output.wants_json():
        output.print_json(account_to_json(replace(found, health=health)))
    elif is_connected:
        click.echo(f"{health.label} is already connected.")
    else:
        for line in _describe_result(health):
            click.echo(output.clean_line(line))
    if not is_connected and not _is_working(health):
        click.get_current_context().exit(1)


async def _test(store: SessionStore, account: Account, *, needs_server: bool) -> AccountStatus:
    from palaver.core.errors import AccountNotRunning
    from palaver.gateway.supervisor import probe_without_server, run_connection_test

    try:
        return await run_connection_test(store, account.health.key, wait_seconds=WAIT_SECONDS)
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
    if health.state is AccountState.LINKING:
        link = f"`{format_command(f'platforms link {health.short_name}')}`"
        if status.linking is not None:
            yield f"{health.label} waits to be linked. Run {link}."
        else:
            serve = f"`{format_command('serve')}`"
            yield f"{health.label} is not linked with a phone yet. Start a server with {serve}, then run {link}."
        yield from _describe_account(status)
        return
    yield f"{health.label} works: signed in{f' as {status.name}' if status.name else ''} ({took})."
    yield from _describe_account(status)
    if health.state is AccountState.OFF:
        yield f"No server runs it yet. Start one with `{format_command('serve')}`."


def _describe_account(status: AccountStatus) -> Iterator[str]:
    for warning in status.warnings:
        yield f"Warning: {warning}"
    for detail in status.details:
        yield f"Details: {detail}"

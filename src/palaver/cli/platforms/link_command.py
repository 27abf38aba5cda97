"""`palaver platforms link`: shows what to scan or to type on a phone, until the account is linked."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.cli.options import load_cli_settings, open_store
from palaver.cli.platforms.accounts import account_argument, find_account, load_accounts
from palaver.cli.platforms.linking_screen import LinkingScreen
from palaver.core.invocation import format_command
from palaver.delivery.model import STATE_LABELS, AccountState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.delivery.model import AccountHealth, AccountStatus
    from palaver.sessions.store import SessionStore

POLL_SECONDS = 0.5  # between two looks at the account
CONNECT_SECONDS = 120.0  # for an account that has to be connected first
_ENTER_SCREEN = "\x1b[?1049h\x1b[?25l"  # a screen of its own, without a cursor: what was there before comes back
_LEAVE_SCREEN = "\x1b[?25h\x1b[?1049l"
_CLEAR_SCREEN = "\x1b[H\x1b[2J"


@click.command()
@account_argument
def link(account: str) -> None:
    """Link an account with your phone: shows a QR code or a code to type, until it is linked.

    ACCOUNT is a platform, such as signal, or one of several accounts there, such as signal@work. A server has to run
    it. The exit code is 0 when it is linked.
    """

    settings = load_cli_settings()
    with open_store(settings) as store:
        health = find_account(load_accounts(settings, store), account).health
        if health.state is AccountState.REFUSED:  # connecting it now may ask for a new link
            _connect(store, health)
        status = _follow(store, health)
    if status.state is AccountState.LIVE:
        name = f" as {output.clean_line(status.name)}" if status.name else ""
        click.echo(f"{health.label} is linked and connected{name}.")
        return
    reason = output.clean_line(status.error or STATE_LABELS[status.state])
    click.echo(f"{health.label} is not linked: {reason}", err=True)
    click.get_current_context().exit(1)


def _connect(store: SessionStore, health: AccountHealth) -> None:
    import asyncio

    from palaver.gateway.supervisor import run_connection_test

    asyncio.run(run_connection_test(store, health.key, wait_seconds=CONNECT_SECONDS))


def _follow(store: SessionStore, health: AccountHealth) -> AccountStatus:
    """Show what to do, and again whenever it changes; return the status when it is linked, or can't be."""
    shown = ""
    with _open_screen() as is_terminal:
        while True:
            status = _load_status(store, health)
            if status.state in {AccountState.LIVE, AccountState.REFUSED}:
                return status
            text = _draw(health, status, is_terminal=is_terminal)
            if text != shown:
                shown = text
                click.echo(f"{_CLEAR_SCREEN}{text}" if is_terminal else text, nl=not is_terminal, color=True)
            time.sleep(POLL_SECONDS)


def _load_status(store: SessionStore, health: AccountHealth) -> AccountStatus:
    from palaver.core.errors import AccountNotRunning
    from palaver.gateway.supervisor import load_running_status

    try:
        return load_running_status(store, health.key)
    except AccountNotRunning:
        hint = f"No server is running this account. Start one with `{format_command('serve')}`, then link it."
        raise AccountNotRunning(hint) from None


def _draw(health: AccountHealth, status: AccountStatus, *, is_terminal: bool) -> str:
    prompt = status.linking
    if prompt is None:
        error = f"\n{output.clean_line(status.error)}" if status.error else ""
        return f"{health.label}: {STATE_LABELS[status.state]}…{error}"
    return LinkingScreen(health.label, prompt).render(
        shutil.get_terminal_size() if is_terminal else None, has_blocks=output.can_print_unicode()
    )


@contextmanager
def _open_screen() -> Iterator[bool]:
    """Use a screen of its own on a terminal; yield whether it is one."""
    if not output.is_stdout_terminal():
        yield False
        return
    sys.stdout.write(_ENTER_SCREEN)
    try:
        yield True
    finally:
        sys.stdout.write(_LEAVE_SCREEN)
        sys.stdout.flush()

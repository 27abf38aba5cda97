"""The accounts on chat platforms, as the commands find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.core.invocation import format_command
from palaver.delivery.model import AccountState
from palaver.delivery.wire import account_to_flat_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.config import Settings
    from palaver.delivery.model import AccountHealth
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.sessions.store import SessionStore

account_argument = click.argument("account")


@dataclass(frozen=True, slots=True)
class Account:
    """An account, and how this terminal would set it up."""

    health: AccountHealth
    configured: ConfiguredAccount | None  # None: it is not set up here

    @property
    def settings_problem(self) -> str | None:
        """Why it can't be connected with the settings that this terminal sees."""
        return None if self.configured is None else self.configured.problem

    @property
    def problem(self) -> str | None:
        """What a person has to know first: why it does not run, what to do, or what is missing."""
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


def load_accounts(settings: Settings, store: SessionStore) -> Sequence[Account]:
    """Return all accounts that are set up, run in some process, or have deliveries that wait or went wrong."""
    from palaver.app import list_accounts, load_stored_settings
    from palaver.delivery.health import load_health

    loaded = load_stored_settings(store, settings)
    configured = {account.key: account for account in list_accounts(loaded)}
    found = load_health(store, {*configured, *loaded.settings.gateway.chat_accounts})
    return [Account(health, configured.get(health.key)) for health in found]


def find_account(accounts: Sequence[Account], name: str) -> Account:
    """Return the account that a person names, such as `telegram` or `telegram@work`."""
    platform, _, account = name.partition("@")
    found = next((each for each in accounts if each.health.key == (platform.lower(), account)), None)
    if found is None:
        known = ", ".join(each.health.short_name for each in accounts) or "none"
        raise click.UsageError(f"There is no account {output.clean_line(name)!r}. Accounts: {known}.")
    return found


def account_to_json(account: Account) -> dict[str, object]:
    return {**account_to_flat_json(account.health), "settings_problem": account.settings_problem}

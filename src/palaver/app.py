"""The composition root: the only module that builds the concrete classes and connects them.

Entry points import it only when a command needs the store. The web and the platforms receive the objects built here
and build none themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.services.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.config import Settings
    from palaver.domain.profile import WebRules
    from palaver.domain.redact import Redactor
    from palaver.services.gateway import Gateway
    from palaver.services.jobs.job_fields import JobEnvironment
    from palaver.services.jobs.jobs import Jobs
    from palaver.services.operation import AsyncRunner
    from palaver.services.platforms.configured_account import ConfiguredAccount
    from palaver.web.state import WebState


def open_store(settings: Settings, accounts: Sequence[ConfiguredAccount] = ()) -> SessionStore:
    """Open the store that the settings name, and create it if it does not exist yet; a server names its accounts."""
    windows = {account.platform: account.capabilities.reply_window for account in accounts}
    hours = {platform: window.total_seconds() / 3600 for platform, window in windows.items() if window is not None}
    config = replace(settings.gateway, reply_hours=hours, saves_local_files=True)
    return SessionStore.open(settings.database_url, config=config)


def list_accounts(settings: Settings, environ: Mapping[str, str]) -> list[ConfiguredAccount]:
    """Return the accounts on chat platforms that are set up. Only `palaver serve` connects them: a chat never does."""
    from palaver.logs import hide_in_logs
    from palaver.platforms.registry import list_configured_accounts, load_manifests

    accounts = list_configured_accounts(settings, environ, load_manifests())
    hide_in_logs(secret for account in accounts for secret in account.secrets)
    return accounts


def make_gateway(
    store: SessionStore,
    settings: Settings,
    environ: Mapping[str, str],
    accounts: Sequence[ConfiguredAccount] = (),
    *,
    is_server: bool = False,
) -> Gateway:
    """Build a gateway on a store, with the agent that the settings name; it connects the given accounts."""
    from palaver.agent.selection import choose_agent
    from palaver.services.attachments import Attachments
    from palaver.services.gateway import Gateway

    return Gateway(
        store,
        choose_agent(settings.agent, environ),
        profile=settings.agent,
        rules=settings.turns,
        accounts=accounts,
        redactor=_make_redactor(settings),
        files=Attachments(store, settings.home / "attachments"),
        outputs=settings.home / "outputs",
        is_server=is_server,
    )


def make_jobs(
    store: SessionStore, settings: Settings, environ: Mapping[str, str]
) -> tuple[Jobs[AsyncRunner], JobEnvironment]:
    """Build access to the jobs of a store without a gateway, for the terminal; nothing runs there."""
    from palaver.agent.selection import choose_agent
    from palaver.services.jobs.job_fields import JobEnvironment
    from palaver.services.jobs.jobs import Jobs
    from palaver.services.jobs.prices import ModelPrices
    from palaver.services.operation import AsyncRunner

    agent = choose_agent(settings.agent, environ)
    environment = JobEnvironment(
        config=store.config, rules=settings.turns, agent=agent, profile=settings.agent, prices=ModelPrices(agent)
    )
    return Jobs(AsyncRunner(store.engine), environment, store.clock), environment


def make_web_state(gateway: Gateway, rules: WebRules) -> WebState:
    """Build the services that the web's routes use. The caller starts and stops the gateway and `live`."""
    from urllib.parse import urlsplit

    from palaver.services.accounts.accounts import Accounts
    from palaver.services.completions import Completions
    from palaver.services.conversations import Conversations
    from palaver.services.live.clients import LiveClients
    from palaver.services.metrics import MetricsReader
    from palaver.services.policies import Policies
    from palaver.services.shares import Shares
    from palaver.web.state import WebState

    store, attachments = gateway.store, gateway.files
    assert attachments is not None  # noqa: S101  (`make_gateway` always sets it)
    public_url = urlsplit(rules.public_url or "")
    return WebState(
        gateway=gateway,
        accounts=Accounts(store),
        attachments=attachments,
        completions=Completions(gateway, attachments),
        conversations=Conversations(store),
        live=LiveClients(store, gateway.feed),
        metrics=MetricsReader(store, gateway.rules.budgets),
        policies=Policies(store, gateway.rules),
        shares=Shares(store),
        base_path=public_url.path.rstrip("/"),
        public_host=public_url.netloc or None,
        public_url=rules.public_url.rstrip("/") if rules.public_url else None,
        trusted_proxies=rules.trusted_proxies,
    )


def describe_agent(settings: Settings, environ: Mapping[str, str]) -> str:
    """Describe the agent that would answer with these settings, and why."""
    from palaver.agent.selection import choose_agent

    return choose_agent(settings.agent, environ).description


def _make_redactor(settings: Settings) -> Redactor | None:
    """Build what hides people's ids from the agent, if the operator has turned that on."""
    if not settings.gateway.redact_pii:
        return None
    from palaver.config import load_install_secret
    from palaver.domain.redact import Redactor

    return Redactor(load_install_secret(settings.home))

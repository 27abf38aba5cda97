"""The composition root: the only module that builds the concrete classes and connects them.

Entry points import it only when a command needs the store. The web and the platforms receive the objects built here
and build none themselves.
"""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.engines.base import Upgrade
from palaver.core.texts import chat_language
from palaver.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from palaver.agent.base import Agent
    from palaver.config import Settings
    from palaver.config.agent_rules import AgentProfile, PushRules, WebRules, WebToolRules
    from palaver.core.operation import AsyncRunner
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.gateway.gateway import Gateway
    from palaver.jobs.fields import JobEnvironment
    from palaver.jobs.service import Jobs
    from palaver.media.attachments import Attachments
    from palaver.media.web.tools import WebAccess
    from palaver.operation.backups import BackupScheduler
    from palaver.operation.doctor.diagnosis import DoctorEnvironment
    from palaver.push.notifier import PushNotifier
    from palaver.sessions.context import Redactor
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.inbound import SettingsRequest
    from palaver.settings.editor import SettingsEditor
    from palaver.settings.live_settings import LiveSettings
    from palaver.settings.overview import PlatformCatalog
    from palaver.settings.reader import LoadedSettings
    from palaver.transfer.importer import Importer
    from palaver.web.state import WebState


def open_store(
    settings: Settings, accounts: Sequence[ConfiguredAccount] = (), upgrade: Upgrade = Upgrade.REFUSE
) -> SessionStore:
    """Open the store that the settings name, and create it if it does not exist yet; a server names its accounts.

    The settings in the database apply to it, too; `load_stored_settings` returns them.
    """
    config = _make_config(settings, accounts)
    store = SessionStore.open(settings.database_url, config=config, state_folder=settings.home, upgrade=upgrade)
    with ExitStack() as on_failure:
        on_failure.callback(store.close)  # the caller gets no store that it could close
        loaded = load_stored_settings(store, settings)
        chat_language.name = loaded.settings.turns.language
        if loaded.rows:
            store.replace_config(_make_config(loaded.settings, accounts))
        on_failure.pop_all()
    return store


@asynccontextmanager
async def close_store_at_end(store: SessionStore) -> AsyncIterator[None]:
    """Close the store when the block ends: the event loop waits for its threads, and they may wait for a database."""
    import asyncio

    try:
        yield
    finally:
        await asyncio.to_thread(store.close)


def load_stored_settings(store: SessionStore, base: Settings) -> LoadedSettings:
    """Return the settings of config.yaml and the environment with those of the database below them."""
    from palaver.settings.reader import SettingsReader

    return SettingsReader(store.engine, base).load()


def _make_config(settings: Settings, accounts: Sequence[ConfiguredAccount]) -> GatewayConfig:
    windows = {account.platform: account.capabilities.reply_window for account in accounts}
    hours = {platform: window.total_seconds() / 3600 for platform, window in windows.items() if window is not None}
    return replace(settings.gateway, reply_hours=hours, saves_local_files=True)


def use_accounts(store: SessionStore, settings: Settings, accounts: Sequence[ConfiguredAccount]) -> None:
    """Tell a store which accounts its server connects."""
    store.replace_config(_make_config(settings, accounts))


def list_accounts(loaded: LoadedSettings) -> list[ConfiguredAccount]:
    """Return the accounts on chat platforms that are set up. Only `palaver serve` connects them: a chat never does."""
    return make_catalog(loaded.settings).list_accounts(loaded.settings, loaded.unreadable)


def make_catalog(settings: Settings) -> PlatformCatalog:
    from palaver.platforms.settings_catalog import InstalledPlatforms

    return InstalledPlatforms(settings.fixed_layers.environ)


def make_editor(store: SessionStore, base: Settings) -> SettingsEditor:
    from palaver.settings.agent_check import find_agent_problems
    from palaver.settings.editor import SettingsEditor
    from palaver.settings.reader import SettingsReader

    reader = SettingsReader(store.engine, base)
    return SettingsEditor(reader, store.clock, make_catalog(base), [find_agent_problems])


def make_live_settings(gateway: Gateway, base: Settings, loaded: LoadedSettings | None = None) -> LiveSettings:
    """Build what follows the settings and applies them to a gateway. The caller starts and stops it."""
    import asyncio

    from palaver.settings.agent_check import choose_available_agent
    from palaver.settings.editor import SettingsEdit
    from palaver.settings.live_settings import LiveSettings

    editor = make_editor(gateway.store, base)

    async def apply(before: LoadedSettings, after: LoadedSettings) -> None:
        settings, agent = after.settings, gateway.agent
        if settings.agent != before.settings.agent or after.unreadable != before.unreadable:
            environ = base.fixed_layers.environ
            agent = await asyncio.to_thread(choose_available_agent, settings.agent, environ, _explain(after))
        accounts: list[ConfiguredAccount] = []
        if gateway.is_server:
            accounts = await asyncio.to_thread(editor.catalog.list_accounts, settings, after.unreadable)
        gateway.use_settings(
            agent=agent,
            profile=settings.agent,
            rules=settings.turns,
            config=_make_config(settings, accounts),
            redactor=_make_redactor(settings),
        )
        if gateway.is_server:
            gateway.replace_accounts(accounts)

    live_settings = LiveSettings(editor, loaded or editor.reader.load(), apply)

    async def change(request: SettingsRequest) -> None:
        await live_settings.change(request.principal, SettingsEdit(values=request.values, unset=request.unset))

    gateway.inbox.change_settings = change
    return live_settings


def _explain(loaded: LoadedSettings) -> str:
    """Say which secrets of model providers can't be decrypted, and what to do about it."""
    return " ".join(str(each) for each in loaded.problems if each.path[0] in ("providers", "mcp_servers"))


def make_gateway(
    store: SessionStore,
    settings: Settings,
    environ: Mapping[str, str],
    accounts: Sequence[ConfiguredAccount] = (),
    *,
    is_server: bool = False,
    agent: Agent | None = None,
) -> Gateway:
    """Build a gateway on a store, with the agent that the settings name; it connects the given accounts."""
    from palaver.drivers.selection import choose_agent
    from palaver.gateway.gateway import Gateway

    gateway = Gateway(
        store,
        agent or choose_agent(settings.agent, environ),
        profile=settings.agent,
        rules=settings.turns,
        accounts=accounts,
        redactor=_make_redactor(settings),
        files=make_attachments(store, settings),
        outputs=settings.home / "outputs",
        make_web_access=_make_web_access,
        push=make_push_notifier(store, settings, get_rules=lambda: gateway.rules.push),
        environ=environ,
        is_server=is_server,
    )
    return gateway


def make_push_notifier(
    store: SessionStore,
    settings: Settings,
    trusted_hosts: Collection[str] = (),
    get_rules: Callable[[], PushRules] | None = None,
) -> PushNotifier:
    """Build what sends notifications to browsers; tests name the hosts of their push services.

    `get_rules` returns the rules that apply now; without it, those of the settings stay.
    """
    from palaver.push.model import load_push_key
    from palaver.push.notifier import PushNotifier

    public_url = settings.web.public_url or ""
    return PushNotifier(
        store,
        lambda: load_push_key(settings.home),
        get_rules or (lambda: settings.turns.push),
        default_contact=public_url if public_url.startswith("https://") else "mailto:palaver@localhost",
        trusted_hosts=trusted_hosts,
    )


def choose_agent_for(loaded: LoadedSettings, base: Settings) -> Agent:
    """Create the agent of the settings. Raises ConfigError if config.yaml or the environment is wrong.

    With settings from the database that do not work, such as a key that can't be decrypted, it says so in its answers.
    """
    from palaver.drivers.selection import choose_agent
    from palaver.settings.agent_check import choose_available_agent

    environ = base.fixed_layers.environ
    if loaded.settings.agent == base.agent and not loaded.unreadable:
        return choose_agent(base.agent, environ)
    return choose_available_agent(loaded.settings.agent, environ, _explain(loaded))


def make_jobs(store: SessionStore, loaded: LoadedSettings, base: Settings) -> tuple[Jobs[AsyncRunner], JobEnvironment]:
    """Build access to the jobs of a store without a gateway, for the terminal; nothing runs there."""
    from palaver.agent.base import ModelPrices
    from palaver.core.operation import AsyncRunner
    from palaver.jobs.fields import JobEnvironment
    from palaver.jobs.service import Jobs

    settings, agent = loaded.settings, choose_agent_for(loaded, base)
    environment = JobEnvironment(
        config=store.config, rules=settings.turns, agent=agent, profile=settings.agent, prices=ModelPrices(agent)
    )
    return Jobs(AsyncRunner(store.engine), environment, store.clock), environment


def make_attachments(store: SessionStore, settings: Settings) -> Attachments:
    from palaver.media.attachments import Attachments

    return Attachments(store, settings.home / "attachments")


def make_importer(store: SessionStore, attachments: Attachments, profile: AgentProfile) -> Importer:
    from palaver.transfer.importer import Importer
    from palaver.transfer.report import ImportOptions

    options = ImportOptions(profiles=frozenset(profile.profiles), personalities=frozenset(profile.personalities))
    return Importer(store, attachments, options)


def make_backup_scheduler(store: SessionStore, settings: Settings) -> BackupScheduler | None:
    """Build what makes backups of the store by itself; None for a store on a PostgreSQL server."""
    from palaver.core.engines.schema_state import get_sqlite_path
    from palaver.operation.backups import BackupScheduler

    database = get_sqlite_path(settings.database_url)
    return None if database is None else BackupScheduler(store, database, settings.home, settings.backup)


def make_web_state(gateway: Gateway, rules: WebRules, settings: LiveSettings) -> WebState:
    """Build the services that the web's routes use. The caller starts and stops the gateway and `live`."""
    from urllib.parse import urlsplit

    from palaver.accounts.accounts import Accounts
    from palaver.gateway.completions import Completions
    from palaver.live.clients import LiveClients
    from palaver.operation.erasure import Erasures
    from palaver.operation.health_check import HealthCheck
    from palaver.operation.metrics import MetricsReader
    from palaver.operation.retention import Retention
    from palaver.sessions.conversations import Conversations
    from palaver.sessions.shares import Shares
    from palaver.settings.model_providers import ModelCatalog
    from palaver.transfer.archive import PersonArchives, PersonExports
    from palaver.transfer.documents import Documents
    from palaver.transfer.personal_imports import PersonalImports
    from palaver.transfer.uploads import UPLOADS_FOLDER, ImportUploads
    from palaver.turns.commands.status import Policies
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
        documents=Documents(store, attachments),
        erasures=Erasures(store, attachments, gateway.outputs),
        health=HealthCheck(settings.reader.base.home),
        imports=PersonalImports(
            store,
            lambda: make_importer(store, attachments, settings.current.settings.agent),
            ImportUploads(settings.reader.base.home / UPLOADS_FOLDER, store.clock),
            get_max_bytes=lambda: settings.current.settings.web.max_import_mb * 1_000_000,
        ),
        live=LiveClients(store, gateway.feed),
        metrics=MetricsReader(store, lambda: gateway.rules.budgets),
        model_catalog=ModelCatalog(),
        person_exports=PersonExports(PersonArchives(store, attachments), store.clock),
        policies=Policies(store, lambda: gateway.rules),
        retention=Retention(store, lambda: gateway.rules.retention),
        push=gateway.push or make_push_notifier(store, settings.reader.base),
        settings=settings,
        shares=Shares(store),
        base_path=public_url.path.rstrip("/"),
        public_host=public_url.netloc or None,
        public_url=rules.public_url.rstrip("/") if rules.public_url else None,
        trusted_proxies=rules.trusted_proxies,
    )


def make_doctor_environment(
    environ: Mapping[str, str],
    home: Path | None,
    find_server_url: Callable[[Path], str | None],
    find_port_user: Callable[[int], str | None],
) -> DoctorEnvironment:
    """Build what `palaver doctor` checks. Nothing is opened or loaded yet."""
    from palaver.config import find_home, load_settings
    from palaver.operation.doctor.diagnosis import DoctorEnvironment
    from palaver.operation.doctor.finding import FixCommands

    folder = find_home(environ, home)
    return DoctorEnvironment(
        home=folder,
        environ=environ,
        commands=FixCommands(home),
        load_settings=lambda: load_settings(environ, home),
        open_store=open_store,
        load_stored_settings=load_stored_settings,
        list_accounts=list_accounts,
        find_server_url=lambda: find_server_url(folder),
        find_port_user=find_port_user,
    )


def _make_web_access(rules: WebToolRules) -> WebAccess | None:
    """Build what reads the web for the agent; None without the library for it, which models need, too."""
    from importlib.util import find_spec

    if find_spec("httpx2") is None:
        return None
    from palaver.media.web.reader_on_demand import ReaderOnDemand

    return ReaderOnDemand(rules)


def _make_redactor(settings: Settings) -> Redactor | None:
    """Build what hides people's ids from the agent, if the operator has turned that on."""
    if not settings.gateway.redact_pii:
        return None
    from palaver.config import load_install_secret
    from palaver.sessions.context import Redactor

    return Redactor(load_install_secret(settings.home))

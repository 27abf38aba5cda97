"""Settings: `config.yaml` and the environment, read once at start into values.

The package owns the keys of the file, the names of the variables, which of them wins, and the install secret.
`domain.gateway_config`, `domain.policy` and `domain.profile` define the values; their rules are used here, not
repeated.

`document` reads the file, `schema` defines its keys and `validators` their valid values; `validation` checks the
document; `environment` applies the variables; `secret_file` keeps the install secret. This module combines them.

Always true: all problems are reported at once, each with file, line, key and what is allowed, or with the name of the
variable; nothing is guessed; no value that may be a secret is shown. Without a config.yaml neither pydantic nor a
YAML parser is imported. Every key and every variable is in docs/reference/settings.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from palaver.config.agent_rules import (
    DEFAULT_MESSAGES_PER_MINUTE,
    AgentProfile,
    BackupRules,
    CompactionRules,
    McpServer,
    MemoryRules,
    Profile,
    Provider,
    PushRules,
    RetentionRules,
    SearchProvider,
    ToolsetRule,
    TurnRules,
    WebRules,
    WebToolRules,
)
from palaver.config.budget_rules import (
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetUnit,
    TokenPrice,
    parse_dollars,
)
from palaver.config.document import FILE_NAME, read_document
from palaver.config.environment import (
    CHAT_PLATFORMS,
    ENVIRONMENT_VARIABLES,
    EnvironmentVariable,
    apply_overrides,
    find_machine_timezone,
    read_overrides,
)
from palaver.config.layers import FixedLayers, find_variables
from palaver.config.schema import (
    BudgetSection,
    BudgetsSection,
    ConfigFile,
    PeopleSection,
    PriceSection,
    ProfileSection,
    ResetSection,
    ToolsetSection,
    list_setting_keys,
)
from palaver.config.validation import validate_document
from palaver.core.errors import ConfigError
from palaver.core.files import SECRET_BYTES, load_install_secret
from palaver.core.source import ChatType, Platform
from palaver.people.model import DEFAULT_GUEST_COMMANDS, Role
from palaver.sessions.gateway_config import GatewayConfig, HomeChannel
from palaver.sessions.keys import DmScope
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.speech import SpeechRules
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "CHAT_PLATFORMS",
    "ENVIRONMENT_VARIABLES",
    "FILE_NAME",
    "SECRET_BYTES",
    "AccountEntry",
    "EnvironmentVariable",
    "FixedLayers",
    "Settings",
    "build_settings",
    "find_home",
    "list_setting_keys",
    "load_install_secret",
    "load_settings",
]


@dataclass(frozen=True, kw_only=True)
class AccountEntry:
    """An account on a platform as config.yaml describes it. Its settings are checked when it is connected."""

    platform: Platform
    name: str  # empty for the account without a name
    settings: Mapping[str, object] = field(default_factory=dict, repr=False, hash=False)

    @property
    def settings_key(self) -> str:
        """Where its settings are in config.yaml."""
        account = f".accounts.{self.name}" if self.name else ""
        return f"platforms.{self.platform}{account}.settings"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of the operator; fields that may contain a password are left out of the repr."""

    home: Path
    database_url: str = field(repr=False)
    gateway: GatewayConfig
    accounts: tuple[AccountEntry, ...] = ()  # those that are enabled in config.yaml
    disabled_platforms: frozenset[Platform] = frozenset()  # in config.yaml: their environment variables are ignored
    agent: AgentProfile = field(default_factory=AgentProfile, repr=False, hash=False)
    turns: TurnRules = field(default_factory=TurnRules, hash=False)
    web: WebRules = field(default_factory=WebRules)
    backup: BackupRules = field(default_factory=BackupRules)
    fixed_layers: FixedLayers = field(default_factory=FixedLayers, repr=False, compare=False)


def find_home(environ: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the absolute path of the home folder: the given one, PALAVER_HOME, or ~/.palaver."""
    return (home or _expand_path(environ.get("PALAVER_HOME") or "~/.palaver", environ)).absolute()


def load_settings(environ: Mapping[str, str], home: Path | None = None) -> Settings:
    """Read the settings: the environment wins over config.yaml, which wins over the defaults.

    `home` is the folder of config.yaml; by default PALAVER_HOME or ~/.palaver. Nothing is written. Raises ConfigError
    with all problems.
    """
    home = find_home(environ, home)
    document = read_document(home / FILE_NAME)
    file, problems = validate_document(document) if document else (ConfigFile(), [])
    disabled = frozenset(Platform(name) for name, section in file.platforms.items() if not section.enabled)
    overrides, override_problems = read_overrides(environ)
    problems += override_problems
    if not problems:
        file, problems = apply_overrides(file, overrides)
    if problems:
        raise ConfigError("\n".join(problems), file=str(home / FILE_NAME), problems=tuple(problems))
    fixed = FixedLayers(
        data=document.data if document else {},
        lines=document.lines if document else {},
        overrides=overrides,
        variables=find_variables(environ),
        environ=environ,
    )
    return build_settings(file, home, environ, disabled, fixed)


def build_settings(
    file: ConfigFile,
    home: Path,
    environ: Mapping[str, str],
    disabled: frozenset[Platform],
    fixed: FixedLayers,
    *,
    database_url: str | None = None,
) -> Settings:
    """Build the settings from validated values; `database_url` is the database that is open already."""
    return Settings(
        home=home,
        database_url=database_url or _resolve_database_url(file.database_url, home, environ),
        fixed_layers=fixed,
        gateway=_build_gateway_config(file, file.timezone or find_machine_timezone(environ)),
        accounts=tuple(_list_accounts(file)),
        disabled_platforms=disabled,
        agent=_build_agent_profile(file, home, environ),
        turns=_build_turn_rules(file, home, environ),
        backup=BackupRules(every_hours=file.backup.every_hours, keep=file.backup.keep),
        web=WebRules(
            host=file.web.host,
            port=file.web.port,
            public_url=file.web.public_url,
            trusted_proxies=tuple(file.web.trusted_proxies),
            max_import_mb=file.web.max_import_mb,
            shared_link_days=file.web.shared_link_days,
        ),
    )


def _list_accounts(file: ConfigFile) -> Iterator[AccountEntry]:
    """Yield the enabled accounts. A platform has one without a name, unless it has only accounts with names."""
    for name, section in file.platforms.items():
        if not section.enabled:
            continue
        platform = Platform(name)
        if section.settings or not section.accounts:
            yield AccountEntry(platform=platform, name="", settings=MappingProxyType(section.settings))
        for account, subsection in section.accounts.items():
            if subsection.enabled:
                settings = MappingProxyType(subsection.settings)
                yield AccountEntry(platform=platform, name=account, settings=settings)


def _build_gateway_config(file: ConfigFile, timezone: str) -> GatewayConfig:
    sections = {Platform(name): section for name, section in file.platforms.items()}
    homes = {platform: section.home_channel for platform, section in sections.items()}
    accounts = [(account.platform, account.name) for account in _list_accounts(file)]
    return GatewayConfig(
        connected_platforms=tuple(platform for platform, section in sections.items() if section.enabled),
        account_names={
            platform: tuple(name for each, name in accounts if each == platform)
            for platform, section in sections.items()
            if section.enabled and section.accounts
        },
        home_channels={
            platform: HomeChannel(platform, home.chat_id, home.name or "", home.thread_id)
            for platform, home in homes.items()
            if home
        },
        max_file_mb_per_person=file.people.max_file_mb,
        default_reset_policy=_build_reset_policy(file.session_reset, timezone),
        reset_by_type={
            ChatType(name): _build_reset_policy(section, timezone) for name, section in file.reset_by_type.items()
        },
        reset_by_platform={
            Platform(name): _build_reset_policy(section, timezone) for name, section in file.reset_by_platform.items()
        },
        reset_by_profile={
            name: _build_reset_policy(section.session_reset, timezone)
            for name, section in file.profiles.items()
            if section.session_reset.mode is not None
        },
        group_sessions_per_user=file.sessions.group_per_user,
        thread_sessions_per_user=file.sessions.thread_per_user,
        dm_scope=DmScope(file.sessions.dm_scope),
        agent=file.agent,
        timezone=timezone,
        redact_pii=file.privacy.redact_pii,
    )


def _build_reset_policy(section: ResetSection, timezone: str) -> ResetPolicy:
    """Return the policy of a section; a section without a time zone uses `timezone`."""
    return ResetPolicy(
        mode=ResetMode(section.mode),
        idle_minutes=section.idle_minutes,
        at_hour=section.at_hour,
        timezone=section.timezone or timezone,
        notify=section.notify,
    )


def _build_agent_profile(file: ConfigFile, home: Path, environ: Mapping[str, str]) -> AgentProfile:
    providers = {
        name: Provider(api_key=section.api_key, base_url=section.base_url) for name, section in file.providers.items()
    }
    servers = {
        name: McpServer(
            command=section.command,
            args=section.args,
            env=MappingProxyType(section.env),
            url=section.url,
            headers=MappingProxyType(section.headers),
        )
        for name, section in file.mcp_servers.items()
        if section.enabled
    }
    return AgentProfile(
        model=_resolve_model(file.model, home, environ),
        fallback_models=tuple(_resolve_model(name, home, environ) for name in file.fallback_models),
        instructions=file.instructions or "",
        providers=MappingProxyType(providers),
        mcp_servers=MappingProxyType(servers),
        context_windows=MappingProxyType(file.context_windows),
        prices=MappingProxyType({name: _build_price(section) for name, section in file.prices.items()}),
        profiles=MappingProxyType(
            {name: _build_profile(section, home, environ) for name, section in file.profiles.items()}
        ),
        personalities=MappingProxyType(file.personalities),
        speech=SpeechRules(
            transcription=file.speech.transcription,
            speaking=file.speech.speaking,
            voice=file.speech.voice,
            language=file.speech.language,
            transcribe_voice_notes=file.speech.transcribe_voice_notes,
            max_minutes=file.speech.max_minutes,
            transcription_command=file.speech.transcription_command,
            speaking_command=file.speech.speaking_command,
        ),
    )


def _build_price(section: PriceSection) -> TokenPrice:
    return TokenPrice(input_usd=Decimal(section.input), output_usd=Decimal(section.output))


def _build_profile(section: ProfileSection, home: Path, environ: Mapping[str, str]) -> Profile:
    return Profile(
        title=section.title or "",
        picture=section.picture,
        description=section.description or "",
        instructions=section.instructions or "",
        model=None if section.model is None else _resolve_model(section.model, home, environ),
        toolsets=None if section.toolsets is None else frozenset(section.toolsets),
    )


def _build_turn_rules(file: ConfigFile, home: Path, environ: Mapping[str, str]) -> TurnRules:
    """Return the rules for turns; a toolset that is not in the file keeps its default rule."""
    sections = {Platform(name): section for name, section in file.platforms.items()}
    configured = {name: _build_toolset_rule(section) for name, section in file.toolsets.items()}
    disabled = {name for name, section in file.toolsets.items() if not section.enabled}
    toolsets = {**TurnRules().toolsets, **configured}
    return TurnRules(
        budgets=_build_budget_rules(file.budgets, file.timezone or find_machine_timezone(environ)),
        max_running=file.turns.max_running,
        max_running_per_person=file.turns.max_running_per_person,
        max_queued=file.turns.max_queued,
        max_running_jobs=file.jobs.max_running,
        job_keep_days=file.jobs.keep_days,
        model_titles=file.turns.model_titles,
        busy_policy=BusyPolicy(file.turns.busy_policy),
        busy_policy_by_platform=MappingProxyType(
            {platform: BusyPolicy(section.busy_policy) for platform, section in sections.items() if section.busy_policy}
        ),
        merge_window=timedelta(seconds=file.turns.merge_window_seconds),
        timeout=timedelta(minutes=file.turns.timeout_minutes),
        compaction=CompactionRules(
            enabled=file.compaction.enabled,
            at_percent=file.compaction.at_percent,
            keep_exchanges=file.compaction.keep_exchanges,
            notify=file.compaction.notify,
        ),
        memory=MemoryRules(learn=file.memory.learn, max_memories=file.memory.max_memories),
        push=PushRules(enabled=file.push.enabled, show_preview=file.push.show_preview, contact=file.push.contact),
        web=WebToolRules(
            private_hosts=frozenset(file.web.fetch.private_hosts),
            search_provider=SearchProvider(file.web.search.provider) if file.web.search.provider else None,
            search_url=file.web.search.url,
            search_api_key=file.web.search.api_key,
        ),
        retention=RetentionRules(
            max_age=None if file.retention.max_age_days is None else timedelta(days=file.retention.max_age_days),
            max_database_mb=file.retention.max_database_mb,
        ),
        open_platforms=frozenset(platform for platform, section in sections.items() if section.access == "everyone"),
        allowed_users=MappingProxyType(
            {
                platform: frozenset(section.allowed_users)
                for platform, section in sections.items()
                if section.allowed_users
            }
        ),
        messages_per_minute=MappingProxyType(_build_message_limits(file.people)),
        guest_commands=(
            DEFAULT_GUEST_COMMANDS if file.people.guest_commands is None else frozenset(file.people.guest_commands)
        ),
        unstreamed_platforms=frozenset(platform for platform, section in sections.items() if not section.streaming),
        always_active_platforms=frozenset(
            platform for platform, section in sections.items() if section.group_activation == "always"
        ),
        bot_platforms=frozenset(platform for platform, section in sections.items() if section.allow_bots),
        toolsets=MappingProxyType({name: rule for name, rule in toolsets.items() if name not in disabled}),
        models_by_role=MappingProxyType(
            {
                Role(name): tuple(_resolve_model(model, home, environ) for model in models)
                for name, models in file.models_by_role.items()
            }
        ),
    )


def _build_message_limits(section: PeopleSection) -> dict[Role, int]:
    """Return how many messages each role may send a minute; a role without a limit is left out."""
    limits: dict[Role, int | None] = {**DEFAULT_MESSAGES_PER_MINUTE}
    limits |= {Role(name): limit for name, limit in section.messages_per_minute.items()}
    return {role: limit for role, limit in limits.items() if limit is not None}


def _build_budget_rules(section: BudgetsSection, timezone: str) -> BudgetRules:
    limits = [
        *_list_limits(BudgetScope.ALL, "", section.overall),
        *_list_limits(BudgetScope.PERSON, "", section.per_person),
        *_list_limits(BudgetScope.JOB, "", section.per_job),
    ]
    for name, subsection in section.profiles.items():
        limits += _list_limits(BudgetScope.PROFILE, name, subsection)
    return BudgetRules(timezone=timezone, limits=tuple(limits))


def _list_limits(scope: BudgetScope, subject: str, section: BudgetSection) -> Iterator[BudgetLimit]:
    """Yield the limits that a section sets; one that it leaves out is no limit."""
    for period, dollars, tokens in (
        (BudgetPeriod.DAY, section.day_usd, section.day_tokens),
        (BudgetPeriod.MONTH, section.month_usd, section.month_tokens),
    ):
        amounts = ((BudgetUnit.USD, None if dollars is None else parse_dollars(dollars)), (BudgetUnit.TOKENS, tokens))
        for unit, amount in amounts:
            if amount is not None:
                key = BudgetKey(scope, subject, period)
                yield BudgetLimit(key=key, unit=unit, amount=amount, is_from_file=True)


def _build_toolset_rule(section: ToolsetSection) -> ToolsetRule:
    return ToolsetRule(
        platforms=None if section.platforms is None else frozenset(map(Platform, section.platforms)),
        roles=frozenset(map(Role, section.roles)),
    )


def _resolve_model(name: str, home: Path, environ: Mapping[str, str]) -> str:
    """Return the name of a model, with the path of a local model made absolute; a relative path starts at `home`."""
    kind, separator, path = name.partition(":")
    return f"local:{home / _expand_path(path, environ)}" if separator and kind == "local" else name


def _resolve_database_url(url: str, home: Path, environ: Mapping[str, str]) -> str:
    """Return the database URL, with a path made absolute; a relative path starts at `home`."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "sqlite":
        return f"postgresql://{rest}"
    return f"sqlite:///{home / _expand_path(url.removeprefix('sqlite:///'), environ)}"


def _expand_path(path: str, environ: Mapping[str, str]) -> Path:
    """Replace a leading `~` with the user's home folder."""
    if path == "~" or path.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / path[2:]
    return Path(path)

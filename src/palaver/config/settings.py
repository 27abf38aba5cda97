"""The settings of the operator as values, built from the validated file.

What a room uses is a section of the file itself where that is possible; here is what has to be computed: paths are
resolved, and the rules of single platforms, roles and toolsets are collected.
"""

from __future__ import annotations

import itertools
from dataclasses import field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from palaver.config.agent_rules import (
    DEFAULT_MESSAGES_PER_MINUTE,
    AgentProfile,
    BackupRules,
    ResetSection,
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
from palaver.config.environment import find_machine_timezone
from palaver.config.validation import FILE_NAME
from palaver.core.dataclass import dataclass
from palaver.people.model import DEFAULT_GUEST_COMMANDS
from palaver.sessions.gateway_config import GatewayConfig, HomeChannel
from palaver.sessions.policy import ResetPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from palaver.config.schema import BudgetSection, BudgetsSection, ConfigFile, KeyPath
    from palaver.config.setting_templates import SettingPath
    from palaver.core.source import Platform

_K = TypeVar("_K")
# Of the file, which are settings of turns as they are.
_TURN_SECTIONS: Final = ("language", "jobs", "compaction", "memory", "push", "retention", "models_by_role")


@dataclass(frozen=True, kw_only=True)
class AccountEntry:
    """An account on a platform as config.yaml describes it. Its settings are checked when it is connected."""

    platform: Platform
    name: str  # empty for the account without a name
    settings: Mapping[str, object] = field(default_factory=dict, repr=False, hash=False)

    @property
    def settings_path(self) -> SettingPath:
        account = ("accounts", self.name) if self.name else ()
        return ("platforms", str(self.platform), *account, "settings")

    @property
    def settings_key(self) -> str:
        return ".".join(self.settings_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSource:
    """The place of a value. `file` (config.yaml) and `environment` pin it: it can't be changed in the database."""

    kind: Literal["default", "database", "file", "environment"]
    variable: str | None = None  # of the environment
    line: int | None = None  # of config.yaml
    set_at: datetime | None = None  # in the database
    set_by: str | None = None  # the id of a person

    def __str__(self) -> str:
        match self.kind:
            case "environment":
                return f"environment variable {self.variable}"
            case "file":
                return FILE_NAME if self.line is None else f"{FILE_NAME}, line {self.line}"
            case _:
                return self.kind


@dataclass(frozen=True, kw_only=True)
class FixedLayers:
    """The values of config.yaml and the environment: they can be changed only there."""

    data: Mapping[str, object] = field(default_factory=dict, repr=False)  # of config.yaml
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    overrides: Mapping[str, object] = field(default_factory=dict, repr=False)  # of the environment, by key
    variables: Mapping[str, str] = field(default_factory=dict)  # the names of their variables, by key
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of the environment

    def find_pin(self, path: SettingPath) -> SettingSource | None:
        """Return what sets this key; None if it can be changed."""
        variable = self.variables.get(".".join(path))
        if variable is not None:
            return SettingSource(kind="environment", variable=variable)
        is_set, _ = self.find_value(path)
        return SettingSource(kind="file", line=self.lines.get(path)) if is_set else None

    def find_place(self, path: SettingPath) -> str | None:
        """Return the name of the variable that sets this key, or the file and line."""
        pin = self.find_pin(path)
        return None if pin is None else pin.variable or str(pin)

    def find_value(self, path: SettingPath) -> tuple[bool, object]:
        """Return whether config.yaml or the environment sets this key, and the value."""
        key = ".".join(path)
        if key in self.overrides:
            return True, self.overrides[key]
        value: object = self.data
        for part in path:
            if not isinstance(value, dict) or part not in value:
                return False, None
            value = value[part]
        return True, value


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


def build_settings(
    file: ConfigFile,
    home: Path,
    disabled: frozenset[Platform],
    fixed: FixedLayers,
    *,
    database_url: str | None = None,
) -> Settings:
    """Build the settings from validated values; `database_url` is the database that is open already."""
    environ = fixed.environ
    file = _resolve_models(file, home, environ)
    timezone = file.timezone or find_machine_timezone(environ)
    accounts = tuple(_list_accounts(file))
    return Settings(
        home=home,
        database_url=database_url or _resolve_database_url(file.database_url, home, environ),
        fixed_layers=fixed,
        gateway=_build_gateway_config(file, accounts, timezone),
        accounts=accounts,
        disabled_platforms=disabled,
        agent=_build_agent_profile(file),
        turns=_build_turn_rules(file, timezone),
        backup=file.backup,
        web=file.web,
    )


def _list_accounts(file: ConfigFile) -> Iterator[AccountEntry]:
    """Yield the enabled accounts. A platform has one without a name, unless it has only accounts with names."""
    for platform, section in file.platforms.items():
        if not section.enabled:
            continue
        if section.settings or not section.accounts:
            yield AccountEntry(platform=platform, name="", settings=section.settings)
        for name, account in section.accounts.items():
            if account.enabled:
                yield AccountEntry(platform=platform, name=name, settings=account.settings)


def _build_gateway_config(file: ConfigFile, accounts: tuple[AccountEntry, ...], timezone: str) -> GatewayConfig:
    def build_policies(sections: Mapping[_K, ResetSection]) -> dict[_K, ResetPolicy]:
        return {name: _build_reset_policy(section, timezone) for name, section in sections.items()}

    enabled = {platform: section for platform, section in file.platforms.items() if section.enabled}
    own_resets = {name: each.session_reset for name, each in file.profiles.items() if each.session_reset.mode}
    return GatewayConfig(
        connected_platforms=tuple(enabled),
        account_names={
            platform: tuple(each.name for each in accounts if each.platform == platform)
            for platform, section in enabled.items()
            if section.accounts
        },
        home_channels={
            platform: HomeChannel(platform, home.chat_id, home.name or "", home.thread_id)
            for platform, section in file.platforms.items()
            if (home := section.home_channel)
        },
        max_file_mb_per_person=file.people.max_file_mb,
        default_reset_policy=_build_reset_policy(file.session_reset, timezone),
        reset_by_type=build_policies(file.reset_by_type),
        reset_by_platform=build_policies(file.reset_by_platform),
        reset_by_profile=build_policies(own_resets),
        group_sessions_per_user=file.sessions.group_per_user,
        thread_sessions_per_user=file.sessions.thread_per_user,
        dm_scope=file.sessions.dm_scope,
        agent=file.agent,
        timezone=timezone,
        redact_pii=file.privacy.redact_pii,
    )


def _build_reset_policy(section: ResetSection, timezone: str) -> ResetPolicy:
    """Return the policy of a section; a section without a time zone uses `timezone`."""
    return ResetPolicy(**{**vars(section), "timezone": section.timezone or timezone})


def _build_agent_profile(file: ConfigFile) -> AgentProfile:
    """Return the part of the file that is the agent, with prices as numbers, and without servers that are off."""
    values = {each.name: getattr(file, each.name) for each in fields(AgentProfile)}
    values["prices"] = {
        name: TokenPrice(input_usd=Decimal(each.input), output_usd=Decimal(each.output))
        for name, each in file.prices.items()
    }
    values["mcp_servers"] = {name: server for name, server in file.mcp_servers.items() if server.enabled}
    return AgentProfile(**values)


def _build_turn_rules(file: ConfigFile, timezone: str) -> TurnRules:
    """Return the rules for turns; a toolset that is not in the file keeps its default rule."""
    platforms, guest_commands = file.platforms, file.people.guest_commands
    message_limits = {**DEFAULT_MESSAGES_PER_MINUTE, **file.people.messages_per_minute}

    def list_platforms(key: str, value: object) -> frozenset[Platform]:
        return frozenset(platform for platform, section in platforms.items() if getattr(section, key) == value)

    return TurnRules(
        **vars(file.turns),
        **{name: getattr(file, name) for name in _TURN_SECTIONS},
        web=WebToolRules(fetch=file.web.fetch, search=file.web.search),
        budgets=_build_budget_rules(file.budgets, timezone),
        messages_per_minute={role: limit for role, limit in message_limits.items() if limit is not None},
        guest_commands=DEFAULT_GUEST_COMMANDS if guest_commands is None else frozenset(guest_commands),
        busy_policy_by_platform={name: each.busy_policy for name, each in platforms.items() if each.busy_policy},
        allowed_users={name: frozenset(each.allowed_users) for name, each in platforms.items() if each.allowed_users},
        open_platforms=list_platforms("access", "everyone"),
        ignoring_platforms=list_platforms("strangers", "ignore"),
        unstreamed_platforms=list_platforms("streaming", False),
        strict_mention_platforms=list_platforms("group_activation", "each_mention"),
        always_active_platforms=list_platforms("group_activation", "always"),
        bot_platforms=list_platforms("allow_bots", True),
        toolsets=_build_toolset_rules(file),
        chats=file.chats,
    )


def _build_toolset_rules(file: ConfigFile) -> dict[str, ToolsetRule]:
    rules = dict(TurnRules().toolsets)
    for name, section in file.toolsets.items():
        platforms = None if section.platforms is None else frozenset(section.platforms)
        rules[name] = ToolsetRule(platforms=platforms, roles=frozenset(section.roles))
        if not section.enabled:
            del rules[name]
    return rules


def _build_budget_rules(section: BudgetsSection, timezone: str) -> BudgetRules:
    sections = [
        (BudgetScope.ALL, "", section.overall),
        (BudgetScope.PERSON, "", section.per_person),
        (BudgetScope.JOB, "", section.per_job),
        *((BudgetScope.PROFILE, name, each) for name, each in section.profiles.items()),
    ]
    limits = itertools.chain.from_iterable(itertools.starmap(_list_limits, sections))
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
                yield BudgetLimit(key=key, unit=unit, amount=amount)


def _resolve_models(file: ConfigFile, home: Path, environ: Mapping[str, str]) -> ConfigFile:
    """Make the paths of local models absolute; a relative path starts at `home`."""

    def resolve(name: str) -> str:
        kind, separator, path = name.partition(":")
        return f"local:{home / expand_path(path, environ)}" if separator and kind == "local" else name

    return replace(
        file,
        model=resolve(file.model),
        fallback_models=tuple(map(resolve, file.fallback_models)),
        models_by_role={role: tuple(map(resolve, names)) for role, names in file.models_by_role.items()},
        profiles={
            name: replace(each, model=each.model and resolve(each.model)) for name, each in file.profiles.items()
        },
    )


def _resolve_database_url(url: str, home: Path, environ: Mapping[str, str]) -> str:
    """Return the database URL, with a path made absolute; a relative path starts at `home`."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "sqlite":
        return f"postgresql://{rest}"
    return f"sqlite:///{home / expand_path(url.removeprefix('sqlite:///'), environ)}"


def expand_path(path: str, environ: Mapping[str, str]) -> Path:
    """Replace a leading `~` with the user's home folder."""
    if path == "~" or path.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / path[2:]
    return Path(path)

"""Settings: `config.yaml` and the environment, read once at start into values.

The package owns the shape of the file, the names of the variables, which of them wins, and the install secret;
this module puts the parts together. What the values mean is said in `domain.gateway`, `domain.policy` and
`domain.profile`, whose rules are used here, not repeated.

`document` reads the file, `shape` says which keys it may have and `rules` what they may hold; `mistakes` checks the
one against the other; `environment` puts the variables over it. `secret` stands beside them.

Always true: every mistake is found in one go and reported with file, line, key and what is allowed, or with the
variable's name; nothing is guessed; no value that may be a secret is shown. Without a config.yaml neither pydantic
nor a YAML parser is loaded. Every key and every variable is in docs/reference/settings.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from palaver.config.document import FILE_NAME, read_document
from palaver.config.environment import CHAT_PLATFORMS, VARIABLES, Variable, overridden, overrides
from palaver.config.schema import File, ResetSection, ToolsetSection, known_keys
from palaver.config.secret_file import SECRET_BYTES, install_secret
from palaver.config.validation import validated
from palaver.domain.errors import ConfigError
from palaver.domain.gateway_config import GatewayConfig, HomeChannel
from palaver.domain.keys import DmScope
from palaver.domain.person import Role
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.profile import AgentProfile, McpServer, Provider, ToolsetRule, TurnRules, WebRules
from palaver.domain.source import ChatType, Platform
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CHAT_PLATFORMS",
    "FILE_NAME",
    "SECRET_BYTES",
    "VARIABLES",
    "Settings",
    "Variable",
    "install_secret",
    "known_keys",
    "load_settings",
]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything the operator decided, in one value; what may hold a password is left out of its repr."""

    home: Path
    database_url: str = field(repr=False)
    gateway: GatewayConfig
    platform_settings: Mapping[Platform, Mapping[str, object]] = field(repr=False, hash=False)
    agent: AgentProfile = field(default_factory=AgentProfile, repr=False, hash=False)
    turns: TurnRules = field(default_factory=TurnRules, hash=False)
    web: WebRules = field(default_factory=WebRules)


def load_settings(environ: Mapping[str, str], home: Path | None = None) -> Settings:
    """Read the settings: the environment wins over config.yaml, which wins over the defaults.

    `home` is the folder that holds config.yaml; without it, PALAVER_HOME or ~/.palaver. Nothing is written.
    """
    home = (home or _expanded(environ.get("PALAVER_HOME") or "~/.palaver", environ)).absolute()
    document = read_document(home / FILE_NAME)
    file, mistakes = validated(document) if document else (File(), [])
    given, wrong = overrides(environ)
    mistakes += wrong
    if not mistakes:
        file, mistakes = overridden(file, given)
    if mistakes:
        raise ConfigError("\n".join(mistakes), file=str(home / FILE_NAME), mistakes=tuple(mistakes))
    free = {Platform(name): section.settings for name, section in file.platforms.items() if section.settings}
    return Settings(
        home=home,
        database_url=_database_url(file.database_url, home, environ),
        gateway=_gateway(file),
        platform_settings=MappingProxyType({name: MappingProxyType(own) for name, own in free.items()}),
        agent=_agent(file, home, environ),
        turns=_turns(file),
        web=WebRules(
            host=file.web.host,
            port=file.web.port,
            public_url=file.web.public_url,
            trusted_proxies=tuple(file.web.trusted_proxies),
        ),
    )


def _gateway(file: File) -> GatewayConfig:
    """What the file decides about conversations, as the domain knows it."""
    sections = {Platform(name): section for name, section in file.platforms.items()}
    homes = {platform: section.home_channel for platform, section in sections.items()}
    return GatewayConfig(
        connected_platforms=tuple(platform for platform, section in sections.items() if section.enabled),
        home_channels={
            platform: HomeChannel(platform, home.chat_id, home.name or "", home.thread_id)
            for platform, home in homes.items()
            if home
        },
        default_reset_policy=_policy(file.session_reset, file.timezone),
        reset_by_type={ChatType(name): _policy(own, file.timezone) for name, own in file.reset_by_type.items()},
        reset_by_platform={Platform(name): _policy(own, file.timezone) for name, own in file.reset_by_platform.items()},
        group_sessions_per_user=file.sessions.group_per_user,
        thread_sessions_per_user=file.sessions.thread_per_user,
        dm_scope=DmScope(file.sessions.dm_scope),
        agent=file.agent,
        redact_pii=file.privacy.redact_pii,
    )


def _policy(section: ResetSection, timezone: str) -> ResetPolicy:
    """One reset policy; without a time zone of its own it goes by the given one."""
    return ResetPolicy(
        mode=ResetMode(section.mode),
        idle_minutes=section.idle_minutes,
        at_hour=section.at_hour,
        timezone=section.timezone or timezone,
        notify=section.notify,
    )


def _agent(file: File, home: Path, environ: Mapping[str, str]) -> AgentProfile:
    """Which agent answers, as the domain knows it."""
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
        model=_model(file.model, home, environ),
        fallback_models=tuple(_model(name, home, environ) for name in file.fallback_models),
        instructions=file.instructions or "",
        providers=MappingProxyType(providers),
        mcp_servers=MappingProxyType(servers),
        context_windows=MappingProxyType(file.context_windows),
    )


def _turns(file: File) -> TurnRules:
    """How turns run, as the domain knows it; a toolset that the file does not name keeps its own rule."""
    sections = {Platform(name): section for name, section in file.platforms.items()}
    toolsets = {**TurnRules().toolsets, **{name: _toolset(section) for name, section in file.toolsets.items()}}
    off = {name for name, section in file.toolsets.items() if not section.enabled}
    return TurnRules(
        concurrency=file.turns.concurrency,
        per_person=file.turns.per_person,
        queue_limit=file.turns.queue_limit,
        busy=BusyPolicy(file.turns.busy),
        busy_by_platform=MappingProxyType(
            {platform: BusyPolicy(section.busy) for platform, section in sections.items() if section.busy}
        ),
        collect=timedelta(seconds=file.turns.collect_seconds),
        longest=timedelta(minutes=file.turns.longest_minutes),
        open_to_all=frozenset(platform for platform, section in sections.items() if section.access == "everyone"),
        toolsets=MappingProxyType({name: rule for name, rule in toolsets.items() if name not in off}),
    )


def _toolset(section: ToolsetSection) -> ToolsetRule:
    """Where and for whom a toolset is there; without platforms, everywhere."""
    return ToolsetRule(
        platforms=None if section.platforms is None else frozenset(map(Platform, section.platforms)),
        roles=frozenset(map(Role, section.roles)),
    )


def _model(given: str, home: Path, environ: Mapping[str, str]) -> str:
    """The name of a model; the path in one becomes a full one, and one that is relative begins at home."""
    kind, separator, path = given.partition(":")
    return f"local:{home / _expanded(path, environ)}" if separator and kind == "local" else given


def _database_url(given: str, home: Path, environ: Mapping[str, str]) -> str:
    """The address of the database; a path becomes a full one, and one that is relative begins at home."""
    scheme, separator, rest = given.partition("://")
    if separator and scheme != "sqlite":
        return f"postgresql://{rest}"
    return f"sqlite:///{home / _expanded(given.removeprefix('sqlite:///'), environ)}"


def _expanded(path: str, environ: Mapping[str, str]) -> Path:
    """A path, with `~` at its head as the home of the user."""
    if path == "~" or path.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / path[2:]
    return Path(path)

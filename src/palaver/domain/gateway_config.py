"""What the operator has decided about the gateway, as values: platforms, homes, scopes, reset policies.

Owns `HomeChannel` and `GatewayConfig` and the look-ups in them. Reading files and the environment is the
business of `palaver.config`.

Always true: a configuration never changes once it is made, equal configurations hash alike, and every value
in it is one that is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from palaver.domain.errors import ConfigError
from palaver.domain.keys import DmScope, build_session_key, is_shared
from palaver.domain.policy import ResetPolicy
from palaver.domain.source import ChatType, Platform

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId, SessionKey
    from palaver.domain.source import SessionSource

SIDE_BY_SIDE: Final = frozenset({Platform.WEB, Platform.API})  # many conversations at once, each by its id
_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
AGENT_NAMES: Final = "up to 32 small letters, digits, '_' or '-', beginning with a letter or digit, such as main"


@dataclass(frozen=True)
class HomeChannel:
    """Where a platform's messages go when nothing else is said."""

    platform: Platform
    chat_id: str
    name: str = ""
    thread_id: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "platform", Platform(self.platform))
        put(self, "chat_id", _text("chat_id", self.chat_id) or "")
        put(self, "name", _text("name", self.name) or "")
        put(self, "thread_id", _text("thread_id", self.thread_id))
        if not self.chat_id:
            raise ConfigError(
                f"the home channel of {self.platform} needs a chat_id", key="chat_id", platform=self.platform
            )

    @property
    def target(self) -> str:
        """The channel as a delivery target: `platform:chat_id[:thread]`."""
        return ":".join(filter(None, (self.platform, self.chat_id, self.thread_id)))

    def to_dict(self) -> dict[str, str | None]:
        """The channel as JSON-ready fields."""
        return {
            "platform": str(self.platform),
            "chat_id": self.chat_id,
            "name": self.name,
            "thread_id": self.thread_id,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The channel that `to_dict` wrote; an id may also be a whole number."""

        def known(key: str) -> str | None:
            return _text(key, data.get(key))

        return cls(
            Platform(known("platform") or ""),
            known("chat_id") or "",
            known("name") or "",
            known("thread_id"),
        )


@dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    """The operator's decisions; what is not said keeps people apart and forgets nothing."""

    connected_platforms: tuple[Platform, ...] = ()
    home_channels: Mapping[Platform, HomeChannel] = field(default_factory=dict)
    default_reset_policy: ResetPolicy = field(default_factory=ResetPolicy)
    reset_by_type: Mapping[ChatType, ResetPolicy] = field(default_factory=dict)
    reset_by_platform: Mapping[Platform, ResetPolicy] = field(default_factory=dict)
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    dm_scope: DmScope = DmScope.CHAT
    agent: str = "main"
    redact_pii: bool = False

    def __post_init__(self) -> None:
        _check("agent", self.agent, holds=is_agent_name(self.agent), allowed=AGENT_NAMES)
        for key in ("group_sessions_per_user", "thread_sessions_per_user", "redact_pii"):
            value = getattr(self, key)
            _check(key, value, holds=isinstance(value, bool), allowed="true or false")
        homes = {Platform(name): home for name, home in self.home_channels.items()}
        for platform, home in homes.items():
            if home.platform != platform:
                raise ConfigError(
                    f"home_channels: the home channel of {platform} must not be on {home.platform}",
                    key="home_channels",
                    platform=platform,
                )
        connected = dict.fromkeys(map(Platform, self.connected_platforms))
        by_type = {ChatType(name): policy for name, policy in self.reset_by_type.items()}
        by_platform = {Platform(name): policy for name, policy in self.reset_by_platform.items()}
        put = object.__setattr__
        put(self, "connected_platforms", tuple(connected))
        put(self, "home_channels", MappingProxyType(homes))
        put(self, "reset_by_type", MappingProxyType(by_type))
        put(self, "reset_by_platform", MappingProxyType(by_platform))
        put(self, "dm_scope", DmScope(self.dm_scope))

    def __hash__(self) -> int:
        values = (getattr(self, entry.name) for entry in fields(self))
        return hash(tuple(frozenset(v.items()) if isinstance(v, Mapping) else v for v in values))

    def reset_policy_for(self, source: SessionSource) -> ResetPolicy:
        """The policy that holds at `source`."""
        return self.reset_rule(source.platform, source.chat_type)[1]

    def reset_rule(self, platform: Platform | None, chat_type: ChatType) -> tuple[str, ResetPolicy]:
        """The policy that holds in a place, and its key in config.yaml: the platform's, else the chat type's, else
        the default one.

        The first that exists holds as a whole; fields of several policies are never mixed. Where conversations stand
        side by side nobody but a person begins one, so none of them holds.
        """
        if platform in SIDE_BY_SIDE:
            return f"reset_by_platform.{platform}", ResetPolicy()
        if platform is not None and platform in self.reset_by_platform:
            return f"reset_by_platform.{platform}", self.reset_by_platform[platform]
        if chat_type in self.reset_by_type:
            return f"reset_by_type.{chat_type}", self.reset_by_type[chat_type]
        return "session_reset", self.default_reset_policy

    def home_for(self, platform: Platform | str) -> HomeChannel | None:
        """The home channel of a platform, if it has one."""
        return self.home_channels.get(Platform(platform))

    def is_shared(self, source: SessionSource) -> bool:
        """Whether several people may speak in the conversation that `source` belongs to."""
        return is_shared(
            source,
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
            dm_scope=self.dm_scope_at(source),
        )

    def dm_scope_at(self, source: SessionSource) -> DmScope:
        """How far a direct conversation reaches here; on our own pages several go on side by side, each by itself."""
        return DmScope.CHAT if source.platform in SIDE_BY_SIDE else self.dm_scope

    def session_key(self, source: SessionSource, person: PersonId | None = None) -> SessionKey:
        """The address of the conversation that `source` belongs to, under these scopes."""
        return build_session_key(
            source,
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
            dm_scope=self.dm_scope_at(source),
            agent=self.agent,
            person=person,
        )


def is_agent_name(value: object) -> bool:
    """Whether an agent profile may be called this; AGENT_NAMES says the same in words."""
    return isinstance(value, str) and _AGENT.fullmatch(value) is not None


def _text(key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(f"{key}: a home channel holds text or a whole number here, not {type(value).__name__}", key=key)


def _check(key: str, value: object, *, holds: bool, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"{key}: {value!r} is not allowed ({allowed})", key=key, value=value, allowed=allowed)

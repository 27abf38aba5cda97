"""The gateway's configuration as values: platforms, home channels, session scopes, reset policies.

Owns `HomeChannel` and `GatewayConfig` and the lookups in them. `palaver.config` reads files and the environment.

Always true: a configuration never changes after it is created, equal configurations have equal hashes, and every
value in it is valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConfigError
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import say
from palaver.sessions.keys import DmScope, build_session_key, is_shared
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.targets import format_chat_target

if TYPE_CHECKING:
    from palaver.core.ids import PersonId, SessionKey
    from palaver.sessions.delivery import AccountKey

# Where a person has many conversations at once and opens each by its id; elsewhere a chat has one at a time.
MULTI_SESSION_PLATFORMS: Final = frozenset({Platform.WEB, Platform.API})
# Programs send messages on these platforms, so a message from them does not count as human activity.
MACHINE_PLATFORMS: Final = frozenset({Platform.CRON, Platform.WEBHOOK})
_AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
# The type of the keys of each mapping in a configuration.
_KEY_TYPES: Final[Mapping[str, type[str]]] = {
    **dict.fromkeys(("account_names", "home_channels", "reply_hours", "reset_by_platform"), Platform),
    "reset_by_type": ChatType,
    "reset_by_profile": str,
}
AGENT_NAME_RULE: Final = say(
    "allowed.agent_name_rule",
    "up to 32 lowercase letters, digits, '_' or '-', starting with a letter or digit, such as main",
)


@dataclass(frozen=True)
class HomeChannel:
    """The default chat of a platform: messages without another target go there."""

    platform: Platform
    chat_id: str
    name: str = ""
    thread_id: str | None = None
    account: str = ""  # which of our accounts on the platform sends there; empty for the only one

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "platform", Platform(self.platform))
        set_field(self, "chat_id", _to_text("chat_id", self.chat_id) or "")
        set_field(self, "name", _to_text("name", self.name) or "")
        set_field(self, "thread_id", _to_text("thread_id", self.thread_id))
        if not self.chat_id:
            raise ConfigError(
                f"the home channel of {self.platform} needs a chat_id", key="chat_id", platform=self.platform
            )

    @property
    def target(self) -> str:
        """The channel as a delivery target, such as `telegram:42`."""
        return format_chat_target(self.platform, self.chat_id, self.thread_id, self.account)

    def to_dict(self) -> dict[str, str | None]:
        return {
            "platform": str(self.platform),
            "chat_id": self.chat_id,
            "name": self.name,
            "thread_id": self.thread_id,
            **({"account": self.account} if self.account else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read what `to_dict` returned; an id may also be a whole number."""

        values: dict[str, Any] = {each.name: _to_text(each.name, data.get(each.name)) or "" for each in fields(cls)}
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    """The operator's configuration; by default people have separate conversations, which are never reset."""

    connected_platforms: tuple[Platform, ...] = ()  # set up by the operator; a gateway needs an adapter for each
    # The names of several accounts on one platform. A platform that is not in here has one account, without a name.
    account_names: Mapping[Platform, tuple[str, ...]] = field(default_factory=dict)
    home_channels: Mapping[Platform, HomeChannel] = field(default_factory=dict)
    # For how many hours after a person's last message we may write to them, on platforms that limit it.
    reply_hours: Mapping[Platform, float] = field(default_factory=dict)
    default_reset_policy: ResetPolicy = field(default_factory=ResetPolicy)
    reset_by_type: Mapping[ChatType, ResetPolicy] = field(default_factory=dict)
    reset_by_platform: Mapping[Platform, ResetPolicy] = field(default_factory=dict)
    reset_by_profile: Mapping[str, ResetPolicy] = field(default_factory=dict)  # by the name of the profile
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    dm_scope: DmScope = DmScope.CHAT
    agent: str = "main"
    timezone: str = "UTC"  # an IANA name: of people who have chosen none
    redact_pii: bool = False
    max_file_mb_per_person: int = 2000  # of all files that a person has sent
    saves_local_files: bool = False  # the target `local`: this gateway has a folder for files

    def __post_init__(self) -> None:
        _check("agent", self.agent, is_valid=is_agent_name(self.agent), allowed=AGENT_NAME_RULE)
        for key in ("group_sessions_per_user", "thread_sessions_per_user", "redact_pii", "saves_local_files"):
            value = getattr(self, key)
            _check(key, value, is_valid=isinstance(value, bool), allowed="true or false")
        set_field = object.__setattr__
        for name, key_type in _KEY_TYPES.items():
            values = {key_type(key): value for key, value in getattr(self, name).items()}
            set_field(self, name, MappingProxyType(values))
        accounts = {platform: tuple(names) for platform, names in self.account_names.items()}
        set_field(self, "account_names", MappingProxyType(accounts))
        set_field(self, "connected_platforms", tuple(dict.fromkeys(map(Platform, self.connected_platforms))))
        set_field(self, "dm_scope", DmScope(self.dm_scope))
        for platform, home in self.home_channels.items():
            if home.platform != platform:
                raise ConfigError(
                    f"home_channels: the home channel of {platform} must not be on {home.platform}",
                    key="home_channels",
                    platform=platform,
                )

    def __hash__(self) -> int:
        values = (getattr(self, each.name) for each in fields(self))
        return hash(tuple(frozenset(v.items()) if isinstance(v, Mapping) else v for v in values))

    @property
    def chat_platforms(self) -> tuple[Platform, ...]:
        """The platforms set up by the operator that need an adapter."""
        others = {Platform.LOCAL, *MULTI_SESSION_PLATFORMS}
        return tuple(each for each in self.connected_platforms if each not in others)

    @property
    def chat_accounts(self) -> tuple[AccountKey, ...]:
        """The accounts on these platforms that the operator has set up."""
        names = self.account_names
        return tuple((each, account) for each in self.chat_platforms for account in names.get(each, ("",)))

    def to_dict(self) -> dict[str, Any]:
        return {each.name: _to_json(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned; keys that a newer version may have added are ignored."""
        values = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        if "home_channels" in values:
            homes = values["home_channels"].items()
            values["home_channels"] = {name: HomeChannel.from_dict(home) for name, home in homes}
        if "default_reset_policy" in values:
            values["default_reset_policy"] = ResetPolicy.from_dict(values["default_reset_policy"])
        for key in ("reset_by_type", "reset_by_platform", "reset_by_profile"):
            if key in values:
                values[key] = {name: ResetPolicy.from_dict(policy) for name, policy in values[key].items()}
        return cls(**values)

    def get_reset_policy(self, source: SessionSource, profile: str | None = None) -> ResetPolicy:
        """Return the reset policy for conversations at `source` that have chosen this profile."""
        return self.find_reset_rule(source.platform, source.chat_type, profile)[1]

    def find_reset_rule(
        self, platform: Platform | None, chat_type: ChatType, profile: str | None = None
    ) -> tuple[str, ResetPolicy]:
        """Return the reset policy for chats of a type on a platform, and the policy's key in config.yaml.

        The policy of the conversation's profile wins, then that of the platform, of the chat type, and the default. A
        policy applies as a whole; fields of several policies are never mixed. On platforms with several conversations
        at once there is no automatic reset: only a person starts a new one there.
        """
        if platform in MULTI_SESSION_PLATFORMS:
            return f"reset_by_platform.{platform}", ResetPolicy()
        if profile is not None and profile in self.reset_by_profile:
            return format_profile_key(profile), self.reset_by_profile[profile]
        if platform is not None and platform in self.reset_by_platform:
            return f"reset_by_platform.{platform}", self.reset_by_platform[platform]
        if chat_type in self.reset_by_type:
            return f"reset_by_type.{chat_type}", self.reset_by_type[chat_type]
        return "session_reset", self.default_reset_policy

    def list_lane_policies(self, source: SessionSource, profile: str | None = None) -> list[ResetPolicy]:
        """List the policies that may apply to the next message in the lane of a source, whichever chat it is from.

        `profile` is that of the session that the lane is on.
        """
        if profile is not None and profile in self.reset_by_profile:
            return [self.get_reset_policy(source, profile)]
        if source.chat_type is not ChatType.DM or self.get_dm_scope(source) not in {DmScope.PERSON, DmScope.SHARED}:
            return [self.get_reset_policy(source)]
        platforms = (None, *(each for each in self.reset_by_platform if each not in MULTI_SESSION_PLATFORMS))
        return list(dict.fromkeys(self.find_reset_rule(platform, ChatType.DM)[1] for platform in platforms))

    def list_active_policies(self) -> list[ResetPolicy]:
        """List the policies under which conversations are reset somewhere."""
        by_platform = (
            policy for platform, policy in self.reset_by_platform.items() if platform not in MULTI_SESSION_PLATFORMS
        )
        policies = dict.fromkeys(
            (self.default_reset_policy, *self.reset_by_type.values(), *by_platform, *self.reset_by_profile.values())
        )
        return [policy for policy in policies if policy.mode is not ResetMode.NONE]

    def is_shared(self, source: SessionSource) -> bool:
        """Return whether several people may write in the conversation that `source` belongs to."""
        return is_shared(
            source,
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
            dm_scope=self.get_dm_scope(source),
        )

    def get_dm_scope(self, source: SessionSource) -> DmScope:
        """Return the scope of direct messages at `source`; a conversation on the web or the API is always separate."""
        return DmScope.CHAT if source.platform in MULTI_SESSION_PLATFORMS else self.dm_scope

    def build_session_key(self, source: SessionSource, person: PersonId | None = None) -> SessionKey:
        return build_session_key(
            source,
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
            dm_scope=self.get_dm_scope(source),
            agent=self.agent,
            person=person,
        )


def format_profile_key(profile: str) -> str:
    return f"profiles.{profile}.session_reset"


def is_agent_name(value: object) -> bool:
    """Return whether this is a valid name for an agent profile; AGENT_NAME_RULE describes the rule."""
    return isinstance(value, str) and _AGENT_NAME.fullmatch(value) is not None


def _to_text(key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(f"{key}: {type(value).__name__} is not allowed (text or a whole number)", key=key)


def _to_json(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, HomeChannel | ResetPolicy):
        return value.to_dict()
    return str(value) if isinstance(value, str) else value


def _check(key: str, value: object, *, is_valid: bool, allowed: str) -> None:
    if not is_valid:
        raise ConfigError(f"{key}: {value!r} is not allowed ({allowed})", key=key, value=value, allowed=allowed)

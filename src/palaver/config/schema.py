"""The shape of config.yaml: its sections, their keys and the defaults.

Owns which keys exist, which of them the operator names, which are taken as written, and where secrets are kept. What
a key may hold is said in `rules`.

Always true: a section is a plain frozen dataclass, so that the defaults cost no import; pydantic fills it when there
is a file, and refuses a key that is not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, get_args, get_origin, get_type_hints

from palaver.config import validators
from palaver.domain.gateway_config import SIDE_BY_SIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath = tuple[str | int, ...]  # the keys that lead to a value, and the places in lists

# The operator names their keys.
NAMED: Final = frozenset({"platforms", "reset_by_platform", "reset_by_type", "providers", "mcp_servers", "toolsets"})
_AS_WRITTEN: Final = frozenset(
    {
        *("chat_id", "thread_id", "name", "database_url", "timezone", "agent"),
        *("model", "fallback_models", "instructions", "api_key", "command", "args", "env", "headers"),
    }
)
_PRIVATE: Final = frozenset({"providers", "mcp_servers"})  # nearly every text in them may be a secret


class Section:
    """A section of config.yaml: a dataclass that has no other keys than its own."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class ResetSection(Section):
    """When conversations start afresh; without a time zone, by that of the file."""

    mode: Annotated[str, validators.MODE] = "none"
    idle_minutes: Annotated[int, validators.MINUTES] = 1440
    at_hour: Annotated[int, validators.HOUR] = 4
    timezone: Annotated[str | None, validators.ZONE_OR_NOTHING] = None
    notify: Annotated[bool, validators.BOOL] = True


@dataclass(frozen=True, kw_only=True)
class SessionsSection(Section):
    """Who shares a conversation with whom."""

    group_per_user: Annotated[bool, validators.BOOL] = True
    thread_per_user: Annotated[bool, validators.BOOL] = False
    dm_scope: Annotated[str, validators.SCOPE] = "chat"


@dataclass(frozen=True, kw_only=True)
class PrivacySection(Section):
    """What the agent is not told."""

    redact_pii: Annotated[bool, validators.BOOL] = False


@dataclass(frozen=True, kw_only=True)
class HomeSection(Section):
    """The default destination on a platform."""

    chat_id: Annotated[str, validators.TEXT]
    name: Annotated[str | None, validators.TEXT_OR_NOTHING] = None
    thread_id: Annotated[str | None, validators.TEXT_OR_NOTHING] = None


@dataclass(frozen=True, kw_only=True)
class PlatformSection(Section):
    """One platform; named in the file it is switched on, unless it says otherwise."""

    enabled: Annotated[bool, validators.BOOL] = True
    home_channel: HomeSection | None = None
    busy: Annotated[str | None, validators.BUSY_OR_NOTHING] = None
    access: Annotated[str, validators.ACCESS] = "known"
    settings: Annotated[dict[str, object], validators.NULL_IS_EMPTY] = field(default_factory=dict)  # the adapter's own


@dataclass(frozen=True, kw_only=True)
class ProviderSection(Section):
    """How to reach a provider of models."""

    api_key: Annotated[str | None, validators.KEY_OR_NOTHING] = field(default=None, repr=False)
    base_url: Annotated[str | None, validators.ADDRESS_OR_NOTHING] = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class McpSection(Section):
    """A server of tools: a command to start, or an address to connect to."""

    command: Annotated[str | None, validators.COMMAND_OR_NOTHING] = None
    args: Annotated[tuple[Annotated[str, validators.ARGUMENT], ...], validators.NULL_IS_EMPTY_LIST] = field(
        default=(), repr=False
    )
    env: Annotated[
        dict[Annotated[str, validators.VARIABLE_NAME], Annotated[str, validators.ARGUMENT]], validators.NULL_IS_EMPTY
    ] = field(default_factory=dict, repr=False)
    url: Annotated[str | None, validators.ADDRESS_OR_NOTHING] = field(default=None, repr=False)
    headers: Annotated[
        dict[Annotated[str, validators.HEADER_NAME], Annotated[str, validators.HEADER]], validators.NULL_IS_EMPTY
    ] = field(default_factory=dict, repr=False)
    enabled: Annotated[bool, validators.BOOL] = True

    def complaint(self) -> str | None:
        """What does not go together; None when all does."""
        if (self.command is None) == (self.url is None):
            return "give either command or url, one of the two"
        if self.url is not None and (self.args or self.env):
            return "args and env go with command, not with url"
        if self.command is not None and self.headers:
            return "headers go with url, not with command"
        return None


@dataclass(frozen=True, kw_only=True)
class TurnsSection(Section):
    """How many turns run at once, and what happens to messages meanwhile."""

    concurrency: Annotated[int, validators.TURNS] = 8
    per_person: Annotated[int, validators.TURNS] = 3
    queue_limit: Annotated[int, validators.WAITING] = 20
    busy: Annotated[str, validators.BUSY] = "queue"
    collect_seconds: Annotated[float, validators.SECONDS] = 0
    longest_minutes: Annotated[int, validators.TURN_MINUTES] = 30


@dataclass(frozen=True, kw_only=True)
class ToolsetSection(Section):
    """Where and for whom a toolset is there; without platforms, everywhere."""

    enabled: Annotated[bool, validators.BOOL] = True
    platforms: Annotated[tuple[Annotated[str, validators.PLATFORM], ...] | None, validators.SOME] = None
    roles: Annotated[tuple[Annotated[str, validators.ROLE], ...], validators.SOME] = ("owner", "member")


@dataclass(frozen=True, kw_only=True)
class WebSection(Section):
    """Where the web is served."""

    host: Annotated[str, validators.HOST] = "127.0.0.1"
    port: Annotated[int, validators.PORT] = 8765
    public_url: Annotated[str | None, validators.ADDRESS_OR_NOTHING] = None
    trusted_proxies: Annotated[tuple[Annotated[str, validators.NETWORK], ...], validators.NULL_IS_EMPTY_LIST] = ()


def _without_effect(named: dict[str, ResetSection]) -> str | None:
    """Which platforms are given a rule that would never be applied."""
    ours = " and ".join(sorted(SIDE_BY_SIDE & named.keys()))
    return f"conversations on {ours} never start afresh by themselves; leave {ours} out" if ours else None


_Reset = Annotated[ResetSection, validators.NULL_IS_EMPTY]
_ResetByPlatform = Annotated[
    dict[Annotated[str, validators.PLATFORM], _Reset], validators.NULL_IS_EMPTY, validators.Together(_without_effect)
]
_ResetByType = dict[Annotated[str, validators.CHAT_TYPE], _Reset]
_Platforms = dict[Annotated[str, validators.PLATFORM], Annotated[PlatformSection, validators.NULL_IS_EMPTY]]
_Windows = dict[Annotated[str, validators.OF_PROVIDER], Annotated[int, validators.TOKENS]]
_Fallbacks = tuple[Annotated[str, validators.FALLBACK], ...]
_Providers = dict[Annotated[str, validators.PROVIDER], Annotated[ProviderSection, validators.NULL_IS_EMPTY]]
_Mcp = Annotated[McpSection, validators.NULL_IS_EMPTY, validators.Together(McpSection.complaint)]
_McpServers = dict[Annotated[str, validators.SERVER], _Mcp]
_Toolsets = dict[Annotated[str, validators.TOOLSET], Annotated[ToolsetSection, validators.NULL_IS_EMPTY]]


@dataclass(frozen=True, kw_only=True)
class File(Section):
    """The whole of config.yaml; made without arguments, the defaults."""

    database_url: Annotated[str, validators.DATABASE] = "palaver.db"
    timezone: Annotated[str, validators.ZONE] = "UTC"
    session_reset: _Reset = field(default_factory=ResetSection)
    reset_by_platform: _ResetByPlatform = field(default_factory=dict)
    reset_by_type: Annotated[_ResetByType, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    sessions: Annotated[SessionsSection, validators.NULL_IS_EMPTY] = field(default_factory=SessionsSection)
    privacy: Annotated[PrivacySection, validators.NULL_IS_EMPTY] = field(default_factory=PrivacySection)
    agent: Annotated[str, validators.AGENT] = "main"
    model: Annotated[str, validators.MODEL] = "auto"
    fallback_models: Annotated[_Fallbacks, validators.NULL_IS_EMPTY_LIST] = ()
    context_windows: Annotated[_Windows, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    instructions: Annotated[str | None, validators.TEXT_OR_NOTHING] = None
    providers: Annotated[_Providers, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    mcp_servers: Annotated[_McpServers, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    turns: Annotated[TurnsSection, validators.NULL_IS_EMPTY] = field(default_factory=TurnsSection)
    toolsets: Annotated[_Toolsets, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    web: Annotated[WebSection, validators.NULL_IS_EMPTY] = field(default_factory=WebSection)
    platforms: Annotated[_Platforms, validators.NULL_IS_EMPTY] = field(default_factory=dict)


def known_keys() -> tuple[str, ...]:
    """Every key that config.yaml may hold, dotted; `<name>` stands for what the operator names."""
    return tuple(_keys_of(File))


def is_as_written(path: KeyPath) -> bool:
    """Whether a key holds text, such as an id, of which 007 and 1712345678.1200 must not be taken for numbers."""
    if path[0] == "platforms" and path[2:3] == ("settings",):
        return False
    inside = path[:3] if path[0] == "mcp_servers" else path[:1]  # the entries of args, env, headers, fallback_models
    return path[-1] in _AS_WRITTEN or inside[-1] in _AS_WRITTEN


def is_private(path: KeyPath) -> bool:
    """Whether what stands there may be a secret whatever its key is called."""
    return bool(path) and path[0] in _PRIVATE


def dotted(path: KeyPath) -> str:
    """A key as it may stand in a message; where secrets are kept, one that is no plain name may be one by mistake."""
    hidden = {part for part in path if is_private(path) and not re.fullmatch(r"[\w-]{1,32}", str(part))}
    return ".".join("…" if part in hidden else str(part) for part in path)


def _keys_of(section: type, prefix: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(section).items():
        named = "<name>." if get_origin(hint) is dict else ""
        inner = next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
        if isinstance(inner, type):
            yield from _keys_of(inner, f"{prefix}{name}.{named}")
        elif get_origin(hint) is not ClassVar:
            yield f"{prefix}{name}"

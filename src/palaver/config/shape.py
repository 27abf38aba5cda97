"""The shape of config.yaml: its sections, their keys and the defaults.

Owns which keys exist, which of them the operator names, and which are taken as written. What a key may hold is said
in `rules`.

Always true: a section is a plain frozen dataclass, so that the defaults cost no import; pydantic fills it when there
is a file, and refuses a key that is not here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, get_args, get_origin, get_type_hints

from palaver.config import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath = tuple[str | int, ...]  # the keys that lead to a value, and the places in lists

NAMED: Final = frozenset({"platforms", "reset_by_platform", "reset_by_type"})  # the operator names their keys
_AS_WRITTEN: Final = frozenset({"chat_id", "thread_id", "name", "database_url", "timezone", "agent"})


class Section:
    """A section of config.yaml: a dataclass that has no other keys than its own."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class ResetSection(Section):
    """When conversations start afresh; without a time zone, by that of the file."""

    mode: Annotated[str, rules.MODE] = "none"
    idle_minutes: Annotated[int, rules.MINUTES] = 1440
    at_hour: Annotated[int, rules.HOUR] = 4
    timezone: Annotated[str | None, rules.ZONE_OR_NOTHING] = None
    notify: Annotated[bool, rules.BOOL] = True


@dataclass(frozen=True, kw_only=True)
class SessionsSection(Section):
    """Who shares a conversation with whom."""

    group_per_user: Annotated[bool, rules.BOOL] = True
    thread_per_user: Annotated[bool, rules.BOOL] = False
    dm_scope: Annotated[str, rules.SCOPE] = "chat"


@dataclass(frozen=True, kw_only=True)
class PrivacySection(Section):
    """What the agent is not told."""

    redact_pii: Annotated[bool, rules.BOOL] = False


@dataclass(frozen=True, kw_only=True)
class HomeSection(Section):
    """The default destination on a platform."""

    chat_id: Annotated[str, rules.TEXT]
    name: Annotated[str | None, rules.TEXT_OR_NOTHING] = None
    thread_id: Annotated[str | None, rules.TEXT_OR_NOTHING] = None


@dataclass(frozen=True, kw_only=True)
class PlatformSection(Section):
    """One platform; named in the file it is switched on, unless it says otherwise."""

    enabled: Annotated[bool, rules.BOOL] = True
    home_channel: HomeSection | None = None
    settings: Annotated[dict[str, object], rules.NULL_IS_EMPTY] = field(default_factory=dict)  # the adapter's own


_Reset = Annotated[ResetSection, rules.NULL_IS_EMPTY]
_ResetByPlatform = dict[Annotated[str, rules.PLATFORM], _Reset]
_ResetByType = dict[Annotated[str, rules.CHAT_TYPE], _Reset]
_Platforms = dict[Annotated[str, rules.PLATFORM], Annotated[PlatformSection, rules.NULL_IS_EMPTY]]


@dataclass(frozen=True, kw_only=True)
class File(Section):
    """The whole of config.yaml; made without arguments, the defaults."""

    database_url: Annotated[str, rules.DATABASE] = "palaver.db"
    timezone: Annotated[str, rules.ZONE] = "UTC"
    session_reset: _Reset = field(default_factory=ResetSection)
    reset_by_platform: Annotated[_ResetByPlatform, rules.NULL_IS_EMPTY] = field(default_factory=dict)
    reset_by_type: Annotated[_ResetByType, rules.NULL_IS_EMPTY] = field(default_factory=dict)
    sessions: Annotated[SessionsSection, rules.NULL_IS_EMPTY] = field(default_factory=SessionsSection)
    privacy: Annotated[PrivacySection, rules.NULL_IS_EMPTY] = field(default_factory=PrivacySection)
    agent: Annotated[str, rules.AGENT] = "main"
    platforms: Annotated[_Platforms, rules.NULL_IS_EMPTY] = field(default_factory=dict)


def known_keys() -> tuple[str, ...]:
    """Every key that config.yaml may hold, dotted; `<name>` stands for what the operator names."""
    return tuple(_keys_of(File))


def is_as_written(path: KeyPath) -> bool:
    """Whether a key holds an id or a name, of which 007 and 1712345678.1200 must not be taken for numbers."""
    of_an_adapter = path[0] == "platforms" and path[2:3] == ("settings",)
    return path[-1] in _AS_WRITTEN and not of_an_adapter


def _keys_of(section: type, prefix: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(section).items():
        named = "<name>." if get_origin(hint) is dict else ""
        inner = next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
        if isinstance(inner, type):
            yield from _keys_of(inner, f"{prefix}{name}.{named}")
        elif get_origin(hint) is not ClassVar:
            yield f"{prefix}{name}"

"""The configuration of the agent, its turns and the web server, as values.

`palaver.config` reads files and the environment. Keys and headers may be secret: every repr leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from palaver.domain.person import Role
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.domain.source import Platform, SessionSource

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How to reach a model provider."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)  # may contain a password


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An MCP server with tools: a command to start, or a URL to connect to."""

    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """The configuration of one agent: its models, instructions and tool servers."""

    model: str = "auto"
    fallback_models: tuple[str, ...] = ()
    instructions: str = ""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    context_windows: Mapping[str, int] = field(default_factory=dict)  # tokens by model; overrides what Palaver knows


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetRule:
    """On which platforms, and for which roles, a toolset is available."""

    platforms: frozenset[Platform] | None = None  # None: on every platform
    roles: frozenset[Role] = frozenset({Role.OWNER, Role.MEMBER})

    def allows(self, platform: Platform, role: Role) -> bool:
        return role in self.roles and (self.platforms is None or platform in self.platforms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """How many turns run at once, and what happens to messages that arrive during a turn."""

    max_running: int = 8
    max_running_per_person: int = 3
    max_queued: int = 20  # turns that wait in one conversation
    busy_policy: BusyPolicy = BusyPolicy.QUEUE
    busy_policy_by_platform: Mapping[Platform, BusyPolicy] = field(default_factory=dict)
    merge_window: timedelta = timedelta(0)  # messages that follow each other within this time get one answer
    timeout: timedelta = timedelta(minutes=30)  # of one turn
    open_platforms: frozenset[Platform] = frozenset()  # where people without an account may write
    toolsets: Mapping[str, ToolsetRule] = field(
        default_factory=lambda: {"history": ToolsetRule(), "memory": ToolsetRule()}
    )

    def get_busy_policy(self, source: SessionSource) -> BusyPolicy:
        """Return the policy for a message from `source` that arrives while the agent is answering."""
        return self.busy_policy_by_platform.get(source.platform, self.busy_policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRules:
    """Where the web server listens, and which proxies it trusts."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str | None = None  # the URL that people use, if it differs: https://chat.example.org/palaver
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded-* headers are trusted

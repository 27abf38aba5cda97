"""What the operator has decided about the agent and its turns, as values.

Reading files and the environment is the business of `palaver.config`. Keys and headers may be secret: they are left out
of every repr.
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
    """How to reach a provider of models."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)  # it may hold a password


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server of tools: a command to start, or an address to connect to."""

    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """Which agent answers."""

    model: str = "auto"
    fallback_models: tuple[str, ...] = ()
    instructions: str = ""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    context_windows: Mapping[str, int] = field(default_factory=dict)  # tokens, by model; where nobody else knows better


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetRule:
    """Where and for whom a toolset is there; None is everywhere."""

    platforms: frozenset[Platform] | None = None
    roles: frozenset[Role] = frozenset({Role.OWNER, Role.MEMBER})

    def allows(self, platform: Platform, role: Role) -> bool:
        """Whether somebody with this role may use it on this platform."""
        return role in self.roles and (self.platforms is None or platform in self.platforms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """How many turns run at once, and what happens to messages meanwhile."""

    concurrency: int = 8
    per_person: int = 3
    queue_limit: int = 20  # waiting turns in one conversation
    busy: BusyPolicy = BusyPolicy.QUEUE
    busy_by_platform: Mapping[Platform, BusyPolicy] = field(default_factory=dict)
    collect: timedelta = timedelta(0)  # messages that follow each other within this time are answered together
    longest: timedelta = timedelta(minutes=30)  # of one turn
    open_to_all: frozenset[Platform] = frozenset()  # platforms on which strangers may speak
    toolsets: Mapping[str, ToolsetRule] = field(
        default_factory=lambda: {"history": ToolsetRule(), "memory": ToolsetRule()}
    )

    def busy_policy_for(self, source: SessionSource) -> BusyPolicy:
        """What happens to a message from here that arrives while the agent is answering."""
        return self.busy_by_platform.get(source.platform, self.busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRules:
    """Where the web is served, and whom it believes about where a request came from."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str | None = (
        None  # how people reach it from outside, when that differs: https://chat.example.org/palaver
    )
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded-* headers are believed

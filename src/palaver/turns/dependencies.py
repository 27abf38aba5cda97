"""The services that every run of the agent needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from palaver.agent.base import Agent
    from palaver.config.agent_rules import AgentProfile, TurnRules
    from palaver.core.source import Platform
    from palaver.live.feed import Feed
    from palaver.media.attachments import Attachments
    from palaver.money.meter import Budgets
    from palaver.sessions.redact import Redactor
    from palaver.sessions.store import SessionStore
    from palaver.turns.tools import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDependencies:
    store: SessionStore
    agent: Agent
    profile: AgentProfile
    rules: TurnRules
    toolbox: Toolbox
    feed: Feed
    budgets: Budgets
    redactor: Redactor | None = None
    files: Attachments | None = None
    list_connected_platforms: Callable[[], Collection[Platform]] = frozenset
    # Keeps the agent open while a run uses it; the function that it returns ends that.
    acquire_agent: Callable[[], Callable[[], None]] = field(default=lambda: lambda: None)

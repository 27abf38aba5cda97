"""The settings that are in force now. Services share one `CurrentSettings`, and read it where a unit of work starts.

Always true: what has started keeps what it has read; a change replaces all of it at once, and needs to tell nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.agent.base import ModelPrices
from palaver.config.agent_rules import AgentProfile, TurnRules

if TYPE_CHECKING:
    from palaver.agent.base import AgentInfo


class CurrentSettings:
    """The agent, the rules of its turns and its profile, as they are now."""

    def __init__(self, agent: AgentInfo, rules: TurnRules, profile: AgentProfile | None = None) -> None:
        self.replace(agent, rules, profile or AgentProfile())

    def replace(self, agent: AgentInfo, rules: TurnRules, profile: AgentProfile) -> None:
        """Let other settings be in force for everything that starts from now on."""
        self.agent, self.rules, self.profile, self.prices = agent, rules, profile, ModelPrices(agent)

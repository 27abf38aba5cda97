"""Whether the agent of changed settings can be used. Loads no provider's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.config.layers import SettingProblem
from palaver.core.errors import ConfigError
from palaver.drivers.selection import choose_agent
from palaver.drivers.single_model import UnavailableAgent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from palaver.agent.base import Agent
    from palaver.config import Settings
    from palaver.config.agent_rules import AgentProfile
    from palaver.config.setting_templates import SettingPath


MODEL_SECTIONS = frozenset({"model", "fallback_models", "providers", "mcp_servers"})


class AgentCheck:
    """Finds settings with which no agent could answer, such as a model without an API key."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def find_problems(
        self, before: Settings, after: Settings, changed: Collection[SettingPath]
    ) -> Iterator[SettingProblem]:
        if not any(path[0] in MODEL_SECTIONS for path in changed):
            return
        problem = self._find_problem(after.agent)
        if problem is not None and problem != self._find_problem(before.agent):
            yield problem

    def _find_problem(self, profile: AgentProfile) -> SettingProblem | None:
        try:
            choose_agent(profile, self._environ)
        except ConfigError as error:
            return SettingProblem(path=(str(error.facts["key"]),), text=error.text, is_sentence=True)
        return None


def choose_available_agent(profile: AgentProfile, environ: Mapping[str, str], advice: str = "") -> Agent:
    """Create the agent; one that can't be created answers with the reason, so that everything else goes on."""
    try:
        return choose_agent(profile, environ)
    except ConfigError as error:
        return UnavailableAgent(profile.model, f"{error} {advice}".strip())

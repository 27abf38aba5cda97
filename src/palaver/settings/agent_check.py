"""Checks whether the agent of changed settings can be used. Loads no provider's library."""

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


def find_agent_problems(
    before: Settings, after: Settings, changed: Collection[SettingPath]
) -> Iterator[SettingProblem]:
    """Yield a problem with which no agent could answer, such as a model without an API key, unless it was there."""
    if any(path[0] in MODEL_SECTIONS for path in changed):
        problem = _find_problem(after)
        if problem is not None and problem != _find_problem(before):
            yield problem


def _find_problem(settings: Settings) -> SettingProblem | None:
    try:
        choose_agent(settings.agent, settings.fixed_layers.environ)
    except ConfigError as error:
        return SettingProblem(path=(str(error.facts["key"]),), text=error.text, is_sentence=True)
    return None


def choose_available_agent(profile: AgentProfile, environ: Mapping[str, str], advice: str = "") -> Agent:
    """Create the agent; one that can't be created answers with the reason, so that everything else goes on."""
    try:
        return choose_agent(profile, environ)
    except ConfigError as error:
        return UnavailableAgent(profile.model, f"{error} {advice}".strip())

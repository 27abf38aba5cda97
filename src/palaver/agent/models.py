"""Which models a person may choose: those of the agent that the operator allows for their role.

Always true: the default model may be used by everyone. A model that is no longer allowed never keeps a conversation
from being answered: the default answers instead, and the person is told (`profiles.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from palaver.agent.base import AgentInfo
    from palaver.config.agent_rules import TurnRules
    from palaver.people.model import Role


def list_allowed_models(agent: AgentInfo, rules: TurnRules, role: Role) -> list[str]:
    """List the models that a person with this role may choose; the default is the first."""
    named = [name for name in rules.list_named_models(role) if _can_use(agent, name)]
    offered = [name for name in agent.list_models() if is_model_allowed(agent, rules, role, name)]
    return list(dict.fromkeys([*offered, *named]))


def check_model_choice(agent: AgentInfo, rules: TurnRules, role: Role, name: str) -> None:
    """Raise `InvalidInput` for a model that can't be used, and `NotAllowed` for one that is not for this role."""
    agent.check_model(name)
    if not is_model_allowed(agent, rules, role, name):
        allowed = ", ".join(list_allowed_models(agent, rules, role))
        raise NotAllowed(f"model: {name} is not available to you. Choose one of these: {allowed}.", model=name)


def is_model_allowed(agent: AgentInfo, rules: TurnRules, role: Role, name: str) -> bool:
    return name == agent.model or rules.allows_model(role, name)


def _can_use(agent: AgentInfo, name: str) -> bool:
    try:
        agent.check_model(name)
    except InvalidInput:
        return False
    return True

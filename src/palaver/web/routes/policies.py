"""Policies: when conversations restart, and what happens to messages while the agent is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from palaver.agent.wire import ResetPolicyJson
from palaver.core.source import ChatType
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.sessions.turn import BusyPolicy
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.config.agent_rules import PlatformRules

router = make_router("policies", "/api", responses=error_responses(401))


class ResetRuleJson(ResetPolicyJson):
    """A rule for when conversations restart automatically."""

    chat_types: Annotated[list[ChatType], Doc("The types of chats that this rule applies to.")]
    setting_key: Annotated[str, Doc("The setting behind it.", "reset_by_platform.telegram")]
    is_default: Annotated[bool, Doc("The operator has not changed this setting.")]


class PolicyJson(TypedDict):
    """The policies of a platform."""

    platform: Annotated[str | None, Doc("Null for all platforms without policies of their own.")]
    reset_rules: Annotated[list[ResetRuleJson], Doc("Empty if conversations never restart automatically.")]
    busy_policy: Annotated[BusyPolicy, Doc("What happens to a message that arrives while the agent is busy.")]
    busy_setting_key: str
    is_busy_default: bool


class PoliciesJson(TypedDict):
    """The default policies, and those of each platform that is set up or that you have used."""

    default: PolicyJson
    platforms: list[PolicyJson]


@router.get("/policies")
async def list_policies(state: State, caller: Caller) -> PoliciesJson:
    """List when conversations restart, what happens while the agent is busy, and the settings behind both."""
    default, *platforms = map(_policy_to_json, await state.policies.list_rules(caller.principal))
    return {"default": default, "platforms": platforms}


def _policy_to_json(rules: PlatformRules) -> PolicyJson:
    reset_rules = [
        build_json(ResetRuleJson, rule, **build_json(ResetPolicyJson, rule.policy)) for rule in rules.reset_rules
    ]
    return build_json(PolicyJson, rules, reset_rules=reset_rules)

"""Policies: when conversations restart, and what happens to messages while the agent is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from palaver.core.source import ChatType
from palaver.sessions.policy import ResetMode
from palaver.sessions.turn import BusyPolicy
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.state import ResponseModel, State

if TYPE_CHECKING:
    from palaver.config.agent_rules import PlatformRules, ResetRule

router = make_router("policies", "/api", responses=error_responses(401))


class ResetRuleOut(ResponseModel):
    """When conversations restart automatically."""

    chat_types: list[ChatType] = Field(description="The types of chats that this rule applies to.")
    mode: ResetMode
    idle_minutes: int = Field(description="With `idle` and `both`: restart after this long without a human message.")
    at_hour: int = Field(description="With `daily` and `both`: restart at this hour.")
    timezone: str = Field(description="The time zone of `at_hour`.")
    notify: bool = Field(description="Whether Palaver tells the person about a restart.")
    setting_key: str = Field(description="The setting behind it.", examples=["reset_by_platform.telegram"])
    is_default: bool = Field(description="The operator has not changed this setting.")


class PolicyOut(ResponseModel):
    """The policies of a platform."""

    platform: str | None = Field(description="Null for all platforms without policies of their own.")
    reset_rules: list[ResetRuleOut] = Field(description="Empty if conversations never restart automatically.")
    busy_policy: BusyPolicy = Field(description="What happens to a message that arrives while the agent is busy.")
    busy_setting_key: str
    is_busy_default: bool


class PoliciesOut(ResponseModel):
    """The default policies, and those of each platform that is set up or that you have used."""

    default: PolicyOut
    platforms: list[PolicyOut]


@router.get("/policies")
async def list_policies(state: State, caller: Caller) -> PoliciesOut:
    """List when conversations restart, what happens while the agent is busy, and the settings behind both."""
    default, *platforms = map(_to_policy_out, await state.policies.list_rules(caller.principal))
    return PoliciesOut(default=default, platforms=platforms)


def _to_policy_out(rules: PlatformRules) -> PolicyOut:
    return PolicyOut(
        platform=rules.platform,
        reset_rules=[_to_reset_rule_out(each) for each in rules.reset_rules],
        busy_policy=rules.busy_policy,
        busy_setting_key=rules.busy_setting_key,
        is_busy_default=rules.is_busy_default,
    )


def _to_reset_rule_out(rule: ResetRule) -> ResetRuleOut:
    policy = rule.policy
    return ResetRuleOut(
        chat_types=list(rule.chat_types),
        mode=policy.mode,
        idle_minutes=policy.idle_minutes,
        at_hour=policy.at_hour,
        timezone=policy.timezone,
        notify=policy.notify,
        setting_key=rule.setting_key,
        is_default=rule.is_default,
    )

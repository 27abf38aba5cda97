"""Policies: when conversations start afresh, and what happens to messages while the agent is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from pydantic import Field

from palaver.config.yaml_export import conduct_lines
from palaver.domain.policy import ResetMode
from palaver.domain.source import ChatType
from palaver.domain.turn import BusyPolicy
from palaver.services.policies import Policies
from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import Out
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.domain.gateway_config import GatewayConfig
    from palaver.domain.platform_rules import Afresh, Conduct

router = APIRouter(tags=["policies"], responses=answers(401))


class AfreshOut(Out):
    """When conversations start afresh by themselves."""

    chat_types: list[ChatType] = Field(description="In chats of which kinds.")
    mode: ResetMode
    idle_minutes: int = Field(description="With `idle` and `both`: after this long without a human word.")
    at_hour: int = Field(description="With `daily` and `both`: when this hour strikes.")
    timezone: str = Field(description="Where it strikes.")
    notify: bool = Field(description="Whether the person is told.")
    key: str = Field(description="What decides it in config.yaml.", examples=["reset_by_platform.telegram"])
    is_default: bool = Field(description="Nobody has decided anything else.")


class PolicyOut(Out):
    """What holds on a platform."""

    platform: str | None = Field(description="Null is wherever nothing else is said.")
    afresh: list[AfreshOut] = Field(description="Empty where only a person begins a new conversation.")
    busy: BusyPolicy = Field(description="What happens to a message that comes while the agent answers another.")
    busy_key: str
    busy_is_default: bool
    lines: str = Field(description="Lines for config.yaml that say the same for this platform, to be changed.")


class PoliciesOut(Out):
    """What holds where nothing else is said, and on each platform that is set up or that you are known on."""

    default: PolicyOut
    platforms: list[PolicyOut]


@router.get("/policies")
async def list_policies(state: State, signed: SignedIn) -> PoliciesOut:
    """When conversations start afresh, what happens while the agent is busy, and how that is changed."""
    gateway = state.gateway
    found = await Policies(gateway.store, gateway.rules).for_principal(signed.principal)
    default, *platforms = (_policy(each, gateway.store.config) for each in found)
    return PoliciesOut(default=default, platforms=platforms)


def _policy(conduct: Conduct, config: GatewayConfig) -> PolicyOut:
    return PolicyOut(
        platform=conduct.platform,
        afresh=[_afresh(each) for each in conduct.afresh],
        busy=conduct.busy,
        busy_key=conduct.busy_key,
        busy_is_default=conduct.busy_is_default,
        lines=conduct_lines(conduct, connected=conduct.platform in config.connected_platforms),
    )


def _afresh(afresh: Afresh) -> AfreshOut:
    policy = afresh.policy
    return AfreshOut(
        chat_types=list(afresh.chat_types),
        mode=policy.mode,
        idle_minutes=policy.idle_minutes,
        at_hour=policy.at_hour,
        timezone=policy.timezone,
        notify=policy.notify,
        key=afresh.key,
        is_default=afresh.is_default,
    )

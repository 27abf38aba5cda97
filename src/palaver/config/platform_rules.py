"""The rules that apply to conversations on each platform, and which key of config.yaml sets them.

Pure: computed from the configuration with the same lookups that apply it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.source import ChatType, Platform
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS
from palaver.sessions.policy import ResetPolicy
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from palaver.config.agent_rules import TurnRules
    from palaver.sessions.gateway_config import GatewayConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRule:
    """When conversations in chats of certain types are reset."""

    chat_types: tuple[ChatType, ...]
    policy: ResetPolicy
    setting_key: str

    @property
    def is_default(self) -> bool:
        """Whether the operator has not configured a policy for these chats."""
        return self.setting_key == "session_reset" and self.policy == ResetPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformRules:
    """The rules that apply on a platform."""

    platform: Platform | None  # None: every platform without rules of its own
    reset_rules: tuple[ResetRule, ...]  # empty on platforms with several conversations at once: no automatic reset
    busy_policy: BusyPolicy
    busy_setting_key: str

    @property
    def is_busy_default(self) -> bool:
        """Whether the operator has not configured a busy policy."""
        return self.busy_setting_key == "turns.busy_policy" and self.busy_policy is BusyPolicy.QUEUE


def get_platform_rules(config: GatewayConfig, rules: TurnRules, platform: Platform | None) -> PlatformRules:
    """Return the rules that apply on a platform; with None, those of every platform without rules of its own."""
    chat_types_by_key: dict[str, list[ChatType]] = {}
    policies: dict[str, ResetPolicy] = {}
    for chat_type in _list_chat_types(platform):
        key, policy = config.find_reset_rule(platform, chat_type)
        chat_types_by_key.setdefault(key, []).append(chat_type)
        policies[key] = policy
    has_own_policy = platform in rules.busy_policy_by_platform
    return PlatformRules(
        platform=platform,
        reset_rules=tuple(
            ResetRule(chat_types=tuple(chat_types), policy=policies[key], setting_key=key)
            for key, chat_types in chat_types_by_key.items()
        ),
        busy_policy=rules.busy_policy_by_platform[platform] if has_own_policy and platform else rules.busy_policy,
        busy_setting_key=f"platforms.{platform}.busy_policy" if has_own_policy else "turns.busy_policy",
    )


def _list_chat_types(platform: Platform | None) -> tuple[ChatType, ...]:
    """Return the types of chats on a platform whose conversations can be reset automatically."""
    if platform in MULTI_SESSION_PLATFORMS:
        return ()
    return (ChatType.DM,) if platform == Platform.LOCAL else tuple(ChatType)

"""The rules that apply on each platform, and the setting that each comes from."""

from __future__ import annotations

import pytest

from palaver.config.agent_rules import TurnRules, get_platform_rules
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.sessions.gateway_config import GatewayConfig
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.turn import BusyPolicy

DAILY, IDLE, BOTH = (ResetPolicy(mode=mode) for mode in (ResetMode.DAILY, ResetMode.IDLE, ResetMode.BOTH))
CONFIG = GatewayConfig(
    default_reset_policy=BOTH,
    reset_by_type={ChatType.GROUP: DAILY},
    reset_by_platform={Platform.TELEGRAM: IDLE, Platform.WEB: IDLE},
)
RULES = TurnRules(busy_policy=BusyPolicy.STEER, busy_policy_by_platform={Platform.SLACK: BusyPolicy.REJECT})
NOT_GROUP = ("dm", "channel", "thread")


@pytest.mark.parametrize(
    ("platform", "reset_rules"),
    [
        (None, [("session_reset", NOT_GROUP, BOTH), ("reset_by_type.group", ("group",), DAILY)]),
        ("slack", [("session_reset", NOT_GROUP, BOTH), ("reset_by_type.group", ("group",), DAILY)]),
        ("telegram", [("reset_by_platform.telegram", ("dm", "group", "channel", "thread"), IDLE)]),
        ("local", [("session_reset", ("dm",), BOTH)]),
        ("web", []),
        ("api", []),
    ],
)
def test_reset_rules_name_the_setting_they_come_from(
    platform: str | None, reset_rules: list[tuple[str, tuple[str, ...], ResetPolicy]]
) -> None:
    rules = get_platform_rules(CONFIG, RULES, Platform(platform) if platform else None)
    assert [(rule.setting_key, rule.chat_types, rule.policy) for rule in rules.reset_rules] == reset_rules


@pytest.mark.parametrize("platform", ["slack", "telegram", "local"])
def test_the_reported_rules_are_the_applied_rules(platform: str) -> None:
    rules = get_platform_rules(CONFIG, RULES, Platform(platform))
    for rule in rules.reset_rules:
        for chat_type in rule.chat_types:
            source = SessionSource(platform, "1", chat_type=chat_type, thread_id="2", user_id="3")
            assert CONFIG.get_reset_policy(source) == rule.policy
            assert RULES.get_busy_policy(source) is rules.busy_policy


@pytest.mark.parametrize("platform", ["web", "api"])
@pytest.mark.parametrize("chat_type", ["dm", "group"])
def test_conversations_on_the_web_and_the_api_are_never_reset(platform: str, chat_type: str) -> None:
    source = SessionSource(platform, "1", chat_type=chat_type, user_id="3")
    assert CONFIG.get_reset_policy(source).mode is ResetMode.NONE


def test_the_busy_policy_names_the_setting_it_comes_from() -> None:
    slack, telegram = (get_platform_rules(CONFIG, RULES, Platform(name)) for name in ("slack", "telegram"))
    assert (slack.busy_policy, slack.busy_setting_key) == (BusyPolicy.REJECT, "platforms.slack.busy_policy")
    assert (telegram.busy_policy, telegram.busy_setting_key) == (BusyPolicy.STEER, "turns.busy_policy")


def test_rules_that_are_not_configured_are_defaults() -> None:
    unconfigured, configured = (
        get_platform_rules(GatewayConfig(), TurnRules(), None),
        get_platform_rules(CONFIG, RULES, None),
    )
    assert ([rule.is_default for rule in unconfigured.reset_rules], unconfigured.is_busy_default) == ([True], True)
    assert ([rule.is_default for rule in configured.reset_rules], configured.is_busy_default) == ([False, False], False)

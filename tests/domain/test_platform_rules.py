"""What holds for conversations on each platform, and what decides it."""

from __future__ import annotations

import pytest

from palaver.domain.gateway_config import GatewayConfig
from palaver.domain.platform_rules import conduct
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.profile import TurnRules
from palaver.domain.source import ChatType, Platform, SessionSource
from palaver.domain.turn import BusyPolicy

DAILY, IDLE, BOTH = (ResetPolicy(mode=mode) for mode in (ResetMode.DAILY, ResetMode.IDLE, ResetMode.BOTH))
CONFIG = GatewayConfig(
    default_reset_policy=BOTH,
    reset_by_type={ChatType.GROUP: DAILY},
    reset_by_platform={Platform.TELEGRAM: IDLE, Platform.WEB: IDLE},
)
RULES = TurnRules(busy=BusyPolicy.STEER, busy_by_platform={Platform.SLACK: BusyPolicy.REJECT})
OTHERS = ("dm", "channel", "thread")


@pytest.mark.parametrize(
    ("platform", "afresh"),
    [
        (None, [("session_reset", OTHERS, BOTH), ("reset_by_type.group", ("group",), DAILY)]),
        ("slack", [("session_reset", OTHERS, BOTH), ("reset_by_type.group", ("group",), DAILY)]),
        ("telegram", [("reset_by_platform.telegram", ("dm", "group", "channel", "thread"), IDLE)]),
        ("local", [("session_reset", ("dm",), BOTH)]),
        ("web", []),
        ("api", []),
    ],
)
def test_when_conversations_start_afresh_is_told_with_what_decides_it(
    platform: str | None, afresh: list[tuple[str, tuple[str, ...], ResetPolicy]]
) -> None:
    found = conduct(CONFIG, RULES, Platform(platform) if platform else None)
    assert [(each.key, each.chat_types, each.policy) for each in found.afresh] == afresh


@pytest.mark.parametrize("platform", ["slack", "telegram", "local"])
def test_what_is_told_is_what_is_applied(platform: str) -> None:
    told = conduct(CONFIG, RULES, Platform(platform))
    for each in told.afresh:
        for chat_type in each.chat_types:
            source = SessionSource(platform, "1", chat_type=chat_type, thread_id="2", user_id="3")
            assert CONFIG.reset_policy_for(source) == each.policy
            assert RULES.busy_policy_for(source) is told.busy


@pytest.mark.parametrize("platform", ["web", "api"])
@pytest.mark.parametrize("chat_type", ["dm", "group"])
def test_where_conversations_stand_side_by_side_none_starts_afresh(platform: str, chat_type: str) -> None:
    source = SessionSource(platform, "1", chat_type=chat_type, user_id="3")
    assert CONFIG.reset_policy_for(source).mode is ResetMode.NONE


def test_what_happens_while_the_agent_is_busy_is_told_with_what_decides_it() -> None:
    slack, telegram = (conduct(CONFIG, RULES, Platform(name)) for name in ("slack", "telegram"))
    assert (slack.busy, slack.busy_key) == (BusyPolicy.REJECT, "platforms.slack.busy")
    assert (telegram.busy, telegram.busy_key) == (BusyPolicy.STEER, "turns.busy")


def test_what_nobody_decided_is_called_the_default() -> None:
    untouched, decided = conduct(GatewayConfig(), TurnRules(), None), conduct(CONFIG, RULES, None)
    assert ([each.is_default for each in untouched.afresh], untouched.busy_is_default) == ([True], True)
    assert ([each.is_default for each in decided.afresh], decided.busy_is_default) == ([False, False], False)

"""The rules of a platform as lines of config.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.yaml_export import format_platform_rules
from palaver.domain.gateway_config import GatewayConfig
from palaver.domain.platform_rules import get_platform_rules
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.profile import TurnRules
from palaver.domain.source import ChatType, Platform
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from config.conftest import LoadSettings

UNUSUAL = ResetPolicy(
    mode=ResetMode.BOTH, idle_minutes=90, at_hour=0, timezone="America/Argentina/Buenos_Aires", notify=False
)
DAILY = ResetPolicy(mode=ResetMode.DAILY, at_hour=23)
CONFIG = GatewayConfig(
    connected_platforms=(Platform.TELEGRAM,),
    default_reset_policy=UNUSUAL,
    reset_by_type={ChatType.GROUP: DAILY, ChatType.CHANNEL: UNUSUAL},
    reset_by_platform={Platform.SIGNAL: DAILY},
)
RULES = TurnRules(busy_policy=BusyPolicy.INTERRUPT, busy_policy_by_platform={Platform.TELEGRAM: BusyPolicy.STEER})


def test_the_lines_of_the_default_rules_give_the_same_rules(load: LoadSettings) -> None:
    settings = load(format_platform_rules(get_platform_rules(CONFIG, RULES, None), connected=False))
    assert settings.gateway.default_reset_policy == UNUSUAL
    assert settings.gateway.reset_by_type == CONFIG.reset_by_type
    assert settings.turns.busy_policy is BusyPolicy.INTERRUPT


@pytest.mark.parametrize("name", ["telegram", "signal", "local", "web"])
def test_the_lines_of_a_platform_give_the_same_rules(load: LoadSettings, name: str) -> None:
    platform = Platform(name)
    rules = get_platform_rules(CONFIG, RULES, platform)
    connected = platform in CONFIG.connected_platforms
    settings = load(format_platform_rules(rules, connected=connected))
    loaded = get_platform_rules(settings.gateway, settings.turns, platform)
    assert [rule.policy for rule in loaded.reset_rules] == [rule.policy for rule in rules.reset_rules[:1]]
    assert (loaded.busy_policy, loaded.busy_setting_key) == (rules.busy_policy, f"platforms.{name}.busy_policy")
    if name not in {"local", "web"}:  # they are always connected
        assert (platform in settings.gateway.connected_platforms) is connected

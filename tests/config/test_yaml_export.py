"""Lines for config.yaml that say how things are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.yaml_export import conduct_lines
from palaver.domain.gateway_config import GatewayConfig
from palaver.domain.platform_rules import conduct
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.profile import TurnRules
from palaver.domain.source import ChatType, Platform
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from config.conftest import Load

ODD = ResetPolicy(
    mode=ResetMode.BOTH, idle_minutes=90, at_hour=0, timezone="America/Argentina/Buenos_Aires", notify=False
)
DAILY = ResetPolicy(mode=ResetMode.DAILY, at_hour=23)
CONFIG = GatewayConfig(
    connected_platforms=(Platform.TELEGRAM,),
    default_reset_policy=ODD,
    reset_by_type={ChatType.GROUP: DAILY, ChatType.CHANNEL: ODD},
    reset_by_platform={Platform.SIGNAL: DAILY},
)
RULES = TurnRules(busy=BusyPolicy.INTERRUPT, busy_by_platform={Platform.TELEGRAM: BusyPolicy.STEER})


def test_the_lines_of_the_default_give_it_back(load: Load) -> None:
    settings = load(conduct_lines(conduct(CONFIG, RULES, None), connected=False))
    assert settings.gateway.default_reset_policy == ODD
    assert settings.gateway.reset_by_type == CONFIG.reset_by_type
    assert settings.turns.busy is BusyPolicy.INTERRUPT


@pytest.mark.parametrize("name", ["telegram", "signal", "local", "web"])
def test_the_lines_of_a_platform_give_it_what_holds_there_now(load: Load, name: str) -> None:
    platform = Platform(name)
    told = conduct(CONFIG, RULES, platform)
    connected = platform in CONFIG.connected_platforms
    settings = load(conduct_lines(told, connected=connected))
    again = conduct(settings.gateway, settings.turns, platform)
    assert [each.policy for each in again.afresh] == [each.policy for each in told.afresh[:1]]
    assert (again.busy, again.busy_key) == (told.busy, f"platforms.{name}.busy")
    if name not in {"local", "web"}:  # which are always there
        assert (platform in settings.gateway.connected_platforms) is connected

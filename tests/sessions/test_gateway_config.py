"""The gateway's configuration: home channels, session scopes, and which reset policy applies where."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest

from palaver.core.errors import ConfigError, PalaverError
from palaver.core.ids import PersonId
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.sessions.gateway_config import GatewayConfig, HomeChannel
from palaver.sessions.keys import DmScope, build_session_key
from palaver.sessions.policy import ResetMode, ResetPolicy

HOME = HomeChannel(Platform.TELEGRAM, "-100", "Family", "7")
DAILY = ResetPolicy(mode=ResetMode.DAILY)
IDLE = ResetPolicy(mode=ResetMode.IDLE)
BOTH = ResetPolicy(mode=ResetMode.BOTH)


# ---- home channels -----------------------------------------------------------------------------------------


def test_a_home_channel_survives_json() -> None:
    for home in (HOME, HomeChannel(Platform.SLACK, "C1")):
        assert HomeChannel.from_dict(json.loads(json.dumps(home.to_dict()))) == home


def test_the_ids_of_a_home_channel_can_be_numbers() -> None:
    home = HomeChannel.from_dict({"platform": "telegram", "chat_id": -100, "name": "Family", "thread_id": 7})
    assert home == HOME
    assert HomeChannel(Platform.TELEGRAM, cast("str", -100), "Family", cast("str", 7)) == HOME


def test_an_empty_thread_id_counts_as_none() -> None:
    assert HomeChannel(Platform.TELEGRAM, "1", thread_id="").thread_id is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"platform": "telegram"}, "telegram needs a chat_id"),
        ({"platform": "telegram", "chat_id": ""}, "telegram needs a chat_id"),
        ({"platform": "telegram", "chat_id": True}, "chat_id"),
        ({"platform": "telegram", "chat_id": "1", "thread_id": ["7"]}, "thread_id"),
        ({"platform": "not a name", "chat_id": "1"}, "platform"),
        ({"chat_id": "1"}, "platform"),
    ],
)
def test_an_invalid_home_channel_is_rejected(data: dict[str, object], message: str) -> None:
    with pytest.raises(PalaverError, match=message):
        HomeChannel.from_dict(data)


# ---- the configuration -------------------------------------------------------------------------------------


def test_by_default_people_have_separate_conversations_without_resets() -> None:
    config = GatewayConfig()
    assert config.connected_platforms == ()
    assert not config.home_channels
    assert config.default_reset_policy.mode is ResetMode.NONE
    assert (config.group_sessions_per_user, config.thread_sessions_per_user) == (True, False)
    assert (config.dm_scope, config.agent, config.redact_pii) == (DmScope.CHAT, "main", False)


def test_the_order_of_entries_does_not_affect_equality_and_hash() -> None:
    def make(*platforms: Platform) -> GatewayConfig:
        return GatewayConfig(
            connected_platforms=(Platform.TELEGRAM,),
            home_channels={Platform.TELEGRAM: HOME},
            reset_by_platform=dict.fromkeys(platforms, DAILY),
        )

    one = make(Platform.SLACK, Platform.SIGNAL)
    other = make(Platform.SIGNAL, Platform.SLACK)
    assert one == other
    assert hash(one) == hash(other)
    assert one != make(Platform.SLACK)
    assert len({one, other, GatewayConfig()}) == 2


def test_a_configuration_cannot_be_changed() -> None:
    homes = {Platform.TELEGRAM: HOME}
    config = GatewayConfig(home_channels=homes)
    homes[Platform.SLACK] = HomeChannel(Platform.SLACK, "C1")
    assert list(config.home_channels) == ["telegram"]
    with pytest.raises(TypeError):
        cast("dict[Platform, HomeChannel]", config.home_channels)[Platform.SLACK] = HOME
    with pytest.raises(FrozenInstanceError):
        config.agent = "other"  # type: ignore[misc]


def test_replace_does_not_change_the_original() -> None:
    config = GatewayConfig(reset_by_type={ChatType.GROUP: DAILY})
    changed = replace(config, redact_pii=True)
    assert (config.redact_pii, changed.redact_pii) == (False, True)
    assert changed.reset_by_type == config.reset_by_type


def test_enum_values_can_be_given_as_text() -> None:
    fields: dict[str, Any] = {
        "connected_platforms": ["telegram", "Telegram", "slack"],
        "home_channels": {"telegram": HOME},
        "reset_by_type": {"group": DAILY},
        "reset_by_platform": {"slack": IDLE},
        "dm_scope": "person",
    }
    config = GatewayConfig(**fields)
    assert config.connected_platforms == (Platform.TELEGRAM, Platform.SLACK)
    assert config.dm_scope is DmScope.PERSON
    assert config.home_channels[Platform.TELEGRAM] == HOME
    assert config.get_reset_policy(SessionSource("slack", "C1")) is IDLE
    assert config.get_reset_policy(SessionSource("telegram", "1", chat_type="group")) is DAILY


@pytest.mark.parametrize("agent", ["main", "a", "0", "home-2_x", "x" * 32])
def test_a_valid_agent_name_is_accepted(agent: str) -> None:
    assert GatewayConfig(agent=agent).agent == agent


@pytest.mark.parametrize("agent", ["", "Main", "-a", "_a", "a b", "a:b", "ä", "a\n", "x" * 33, None, 7])
def test_an_invalid_agent_name_is_rejected(agent: Any) -> None:
    with pytest.raises(ConfigError, match=r"^agent: .*is not allowed") as caught:
        GatewayConfig(agent=agent)
    assert caught.value.facts["key"] == "agent"
    assert caught.value.facts["value"] == agent


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"redact_pii": "yes"}, "redact_pii"),
        ({"group_sessions_per_user": 1}, "group_sessions_per_user"),
        ({"thread_sessions_per_user": None}, "thread_sessions_per_user"),
        ({"dm_scope": "everywhere"}, "dm_scope"),
        ({"home_channels": {Platform.SLACK: HOME}}, "home_channels"),
    ],
)
def test_an_invalid_value_is_rejected_with_its_key(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        GatewayConfig(**fields)


# ---- lookups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "policy"),
    [
        (SessionSource("telegram", "1", chat_type="group"), BOTH),
        (SessionSource("telegram", "1"), BOTH),
        (SessionSource("slack", "1", chat_type="group"), DAILY),
        (SessionSource("slack", "1", chat_type="channel"), IDLE),
        (SessionSource("slack", "1"), IDLE),
    ],
)
def test_the_platforms_policy_wins_over_the_chat_types_over_the_default(
    source: SessionSource, policy: ResetPolicy
) -> None:
    config = GatewayConfig(
        default_reset_policy=IDLE,
        reset_by_type={ChatType.GROUP: DAILY},
        reset_by_platform={Platform.TELEGRAM: BOTH},
    )
    assert config.get_reset_policy(source) is policy
    assert config.get_reset_policy(source, "work") is policy  # it has no policy of its own


def test_the_profiles_policy_wins_wherever_conversations_restart() -> None:
    never = ResetPolicy()
    config = GatewayConfig(
        default_reset_policy=IDLE,
        reset_by_platform={Platform.TELEGRAM: BOTH},
        reset_by_profile={"work": DAILY, "diary": never},
        dm_scope=DmScope.PERSON,
    )
    telegram, page = SessionSource("telegram", "1"), SessionSource("web", "1")
    assert config.find_reset_rule(telegram.platform, telegram.chat_type, "work") == (
        "profiles.work.session_reset",
        DAILY,
    )
    assert config.get_reset_policy(SessionSource("slack", "1"), "diary") is never
    assert config.get_reset_policy(page, "work").mode is ResetMode.NONE
    assert config.list_lane_policies(telegram, "work") == [DAILY]
    assert config.list_lane_policies(telegram) == [IDLE, BOTH]
    assert config.list_active_policies() == [IDLE, BOTH, DAILY]
    assert GatewayConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_fields_of_two_policies_are_not_mixed() -> None:
    config = GatewayConfig(
        default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=5, timezone="Europe/Berlin"),
        reset_by_platform={Platform.TELEGRAM: DAILY},
    )
    policy = config.get_reset_policy(SessionSource("telegram", "1"))
    assert (policy.mode, policy.idle_minutes, policy.timezone) == (ResetMode.DAILY, 1440, "UTC")


GROUP = SessionSource("telegram", "-100", chat_type="group", user_id="42")
THREAD = SessionSource("telegram", "-100", chat_type="group", user_id="42", thread_id="7")
DM = SessionSource("telegram", "42", user_id="42")


@pytest.mark.parametrize(
    ("fields", "source", "shared"),
    [
        ({}, DM, False),
        ({}, GROUP, False),
        ({}, THREAD, True),
        ({"group_sessions_per_user": False}, GROUP, True),
        ({"thread_sessions_per_user": True}, THREAD, False),
        ({"dm_scope": DmScope.SHARED}, DM, True),
        ({"dm_scope": DmScope.PERSON}, DM, False),
    ],
)
def test_the_session_scopes_decide_whether_a_conversation_is_shared(
    fields: dict[str, Any], source: SessionSource, shared: bool
) -> None:
    assert GatewayConfig(**fields).is_shared(source) is shared


def test_session_keys_follow_the_configuration() -> None:
    config = GatewayConfig(
        group_sessions_per_user=False,
        thread_sessions_per_user=True,
        dm_scope=DmScope.PERSON,
        agent="helper",
    )
    ada = PersonId("p_ada")
    for source in (DM, GROUP, THREAD):
        assert config.build_session_key(source, ada) == build_session_key(
            source,
            group_sessions_per_user=False,
            thread_sessions_per_user=True,
            dm_scope=DmScope.PERSON,
            agent="helper",
            person=ada,
        )
    assert config.build_session_key(DM) == build_session_key(DM, agent="helper")

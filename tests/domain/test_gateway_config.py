"""The operator's decisions: home channels, scopes, which reset policy holds where."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest

from palaver.domain.errors import ConfigError, PalaverError
from palaver.domain.gateway_config import GatewayConfig, HomeChannel
from palaver.domain.ids import PersonId
from palaver.domain.keys import DmScope, build_session_key
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.source import ChatType, Platform, SessionSource

HOME = HomeChannel(Platform.TELEGRAM, "-100", "Family", "7")
DAILY = ResetPolicy(mode=ResetMode.DAILY)
IDLE = ResetPolicy(mode=ResetMode.IDLE)
BOTH = ResetPolicy(mode=ResetMode.BOTH)


# ---- home channels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("home", "target"),
    [
        (HomeChannel(Platform.TELEGRAM, "-100"), "telegram:-100"),
        (HOME, "telegram:-100:7"),
        (HomeChannel(Platform.MATRIX, "!abc:server.org"), "matrix:!abc:server.org"),
        (HomeChannel(Platform.MATRIX, "!abc:server.org", "Ops", "$root"), "matrix:!abc:server.org:$root"),
        (HomeChannel(Platform.SIGNAL, "group:X=="), "signal:group:X=="),
    ],
)
def test_a_home_channel_is_named_by_its_target(home: HomeChannel, target: str) -> None:
    assert home.target == target


def test_a_home_channel_comes_back_from_json() -> None:
    for home in (HOME, HomeChannel(Platform.SLACK, "C1")):
        assert HomeChannel.from_dict(json.loads(json.dumps(home.to_dict()))) == home


def test_the_ids_of_a_home_channel_may_be_numbers() -> None:
    home = HomeChannel.from_dict({"platform": "telegram", "chat_id": -100, "name": "Family", "thread_id": 7})
    assert home == HOME
    assert HomeChannel(Platform.TELEGRAM, cast("str", -100), "Family", cast("str", 7)) == HOME


def test_a_home_channel_without_a_thread_has_none() -> None:
    assert HomeChannel(Platform.TELEGRAM, "1", thread_id="").thread_id is None


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"platform": "telegram"}, "telegram needs a chat_id"),
        ({"platform": "telegram", "chat_id": ""}, "telegram needs a chat_id"),
        ({"platform": "telegram", "chat_id": True}, "chat_id"),
        ({"platform": "telegram", "chat_id": "1", "thread_id": ["7"]}, "thread_id"),
        ({"platform": "not a name", "chat_id": "1"}, "platform"),
        ({"chat_id": "1"}, "platform"),
    ],
)
def test_a_home_channel_that_leads_nowhere_is_refused(data: dict[str, object], named: str) -> None:
    with pytest.raises(PalaverError, match=named):
        HomeChannel.from_dict(data)


# ---- the configuration as a value --------------------------------------------------------------------------


def test_the_defaults_keep_people_apart_and_forget_nothing() -> None:
    config = GatewayConfig()
    assert config.connected_platforms == ()
    assert not config.home_channels
    assert config.default_reset_policy.mode is ResetMode.NONE
    assert (config.group_sessions_per_user, config.thread_sessions_per_user) == (True, False)
    assert (config.dm_scope, config.agent, config.redact_pii) == (DmScope.CHAT, "main", False)


def test_equal_configurations_are_equal_and_hash_alike() -> None:
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


def test_a_configuration_cannot_be_changed_from_inside_or_outside() -> None:
    homes = {Platform.TELEGRAM: HOME}
    config = GatewayConfig(home_channels=homes)
    homes[Platform.SLACK] = HomeChannel(Platform.SLACK, "C1")
    assert list(config.home_channels) == ["telegram"]
    with pytest.raises(TypeError):
        cast("dict[Platform, HomeChannel]", config.home_channels)[Platform.SLACK] = HOME
    with pytest.raises(FrozenInstanceError):
        config.agent = "other"  # type: ignore[misc]


def test_a_changed_copy_leaves_the_original_alone() -> None:
    config = GatewayConfig(reset_by_type={ChatType.GROUP: DAILY})
    changed = replace(config, redact_pii=True)
    assert (config.redact_pii, changed.redact_pii) == (False, True)
    assert changed.reset_by_type == config.reset_by_type


def test_names_may_be_given_as_text() -> None:
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
    assert config.home_for("telegram") == HOME
    assert config.reset_policy_for(SessionSource("slack", "C1")) is IDLE
    assert config.reset_policy_for(SessionSource("telegram", "1", chat_type="group")) is DAILY


@pytest.mark.parametrize("agent", ["main", "a", "0", "home-2_x", "x" * 32])
def test_an_agent_name_is_short_and_plain(agent: str) -> None:
    assert GatewayConfig(agent=agent).agent == agent


@pytest.mark.parametrize("agent", ["", "Main", "-a", "_a", "a b", "a:b", "ä", "a\n", "x" * 33, None, 7])
def test_another_agent_name_is_refused(agent: Any) -> None:
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
def test_a_decision_that_makes_no_sense_is_refused(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        GatewayConfig(**fields)


# ---- look-ups ----------------------------------------------------------------------------------------------


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
def test_the_platform_decides_before_the_chat_type_before_the_default(
    source: SessionSource, policy: ResetPolicy
) -> None:
    config = GatewayConfig(
        default_reset_policy=IDLE,
        reset_by_type={ChatType.GROUP: DAILY},
        reset_by_platform={Platform.TELEGRAM: BOTH},
    )
    assert config.reset_policy_for(source) is policy


def test_fields_of_two_policies_are_never_mixed() -> None:
    config = GatewayConfig(
        default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=5, timezone="Europe/Berlin"),
        reset_by_platform={Platform.TELEGRAM: DAILY},
    )
    found = config.reset_policy_for(SessionSource("telegram", "1"))
    assert (found.mode, found.idle_minutes, found.timezone) == (ResetMode.DAILY, 1440, "UTC")


def test_a_platform_without_a_home_has_none() -> None:
    config = GatewayConfig(home_channels={Platform.TELEGRAM: HOME})
    assert config.home_for(Platform.TELEGRAM) == HOME
    assert config.home_for(Platform.SLACK) is None


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
def test_the_scopes_decide_who_shares_a_conversation(
    fields: dict[str, Any], source: SessionSource, shared: bool
) -> None:
    assert GatewayConfig(**fields).is_shared(source) is shared


def test_the_key_of_a_source_is_built_under_these_scopes() -> None:
    config = GatewayConfig(
        group_sessions_per_user=False,
        thread_sessions_per_user=True,
        dm_scope=DmScope.PERSON,
        agent="helper",
    )
    ada = PersonId("p_ada")
    for source in (DM, GROUP, THREAD):
        assert config.session_key(source, ada) == build_session_key(
            source,
            group_sessions_per_user=False,
            thread_sessions_per_user=True,
            dm_scope=DmScope.PERSON,
            agent="helper",
            person=ada,
        )
    assert config.session_key(DM) == build_session_key(DM, agent="helper")

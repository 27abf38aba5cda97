"""Values from the database as a layer of the settings: below config.yaml and the environment, above the defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from palaver.config import list_setting_keys
from palaver.config.layers import combine_settings, flatten
from palaver.config.setting_templates import find_template, format_path, list_templates, parse_key
from palaver.core.errors import InvalidInput
from palaver.core.source import Platform
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from .conftest import LoadSettings

    Stored = dict[tuple[str, ...], object]

PARTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(PARTS, min_size=1, max_size=5).map(tuple))
def test_a_key_that_is_written_is_read_as_the_same(path: tuple[str, ...]) -> None:
    assert parse_key(format_path(path)) == path


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", 'a."b', "a b", 'a"b"', "x" * 501])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        parse_key(key)


def test_every_key_of_config_yaml_has_a_template_with_a_help_text() -> None:
    keys = {template.key.removesuffix(".<name>") for template in list_templates()}
    assert keys == set(list_setting_keys())
    assert [template.key for template in list_templates() if not template.help] == []


def test_a_full_config_yaml_consists_of_settings(load: LoadSettings, full_config: str) -> None:
    settings = load(full_config)
    paths = [path for path, _ in flatten(settings.fixed_layers.data)]
    unknown = [path for path in paths if find_template(path) is None]
    assert unknown == [("providers", "workshop"), ("platforms", "irc")]  # sections without any value


def test_stored_values_are_used_where_nothing_else_sets_them(load: LoadSettings) -> None:
    base = load("turns: {max_queued: 5}\n", PALAVER_TIMEZONE="Europe/Berlin")
    stored: Stored = {
        ("turns", "max_queued"): 9,
        ("turns", "max_running"): 4,
        ("timezone",): "UTC",
        ("prices", "openai:gpt-5.4", "input"): "1",
        ("prices", "openai:gpt-5.4", "output"): "2",
    }
    combined = combine_settings(base, stored)
    assert combined.problems == ()
    assert combined.settings.turns.max_queued == 5
    assert combined.settings.turns.max_running == 4
    assert combined.settings.gateway.timezone == "Europe/Berlin"
    assert combined.settings.agent.prices["openai:gpt-5.4"].output_usd == 2
    assert base.fixed_layers.find_place(("turns", "max_queued")) == "config.yaml, line 1"
    assert base.fixed_layers.find_place(("timezone",)) == "PALAVER_TIMEZONE"
    assert base.fixed_layers.find_pin(("turns", "max_running")) is None


def test_without_stored_values_the_settings_are_the_same(load: LoadSettings, full_config: str) -> None:
    base = load(full_config)
    assert combine_settings(base, {}).settings == base


def test_stored_values_and_those_of_the_file_make_one_section(load: LoadSettings) -> None:
    base = load("platforms:\n  telegram:\n    access: everyone\nprofiles:\n  work: {description: Work}\n")
    stored: Stored = {
        ("platforms", "telegram", "busy_policy"): "steer",
        ("profiles", "work", "instructions"): "Be exact.",
    }
    settings = combine_settings(base, stored).settings
    assert settings.turns.busy_policy_by_platform[Platform.TELEGRAM] is BusyPolicy.STEER
    assert Platform.TELEGRAM in settings.turns.open_platforms
    assert settings.agent.profiles["work"].description == "Work"
    assert settings.agent.profiles["work"].instructions == "Be exact."


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        ({("turns", "max_running"): 0}, "turns.max_running: 0 is not allowed (a whole number, 1 to 256)"),
        ({("turns", "speed"): 1}, "turns.speed: unknown key (known: "),
        ({("teleport",): True}, "teleport: unknown key (known: "),
        ({("fallback_models",): ["auto"]}, 'fallback_models: "auto" is not allowed (demo, local'),
        ({("mcp_servers", "a", "enabled"): True}, "mcp_servers.a: set either command or url"),
        ({("budgets", "profiles", "x", "day_usd"): "1"}, "budgets.profiles.x: there is no profile x (known: none)"),
    ],
)
def test_a_stored_value_that_is_not_valid_is_left_out_and_reported(
    load: LoadSettings, stored: Stored, problem: str
) -> None:
    base = load("agent: helper\n")
    combined = combine_settings(base, {**stored, ("turns", "max_queued"): 7})
    [found] = combined.problems
    assert str(found).startswith(problem)
    assert combined.settings.turns.max_queued == 7
    assert combined.settings.gateway.agent == "helper"


def test_a_stored_rule_of_a_platform_does_not_connect_it(load: LoadSettings) -> None:
    base = load("agent: helper\n")
    rule: Stored = {("platforms", "telegram", "busy_policy"): "steer"}
    settings = combine_settings(base, rule).settings
    assert settings.gateway.connected_platforms == ()
    assert settings.disabled_platforms == frozenset()  # TELEGRAM_BOT_TOKEN would still connect it
    token: Stored = {("platforms", "telegram", "settings", "bot_token"): "x"}
    assert combine_settings(base, rule | token).settings.gateway.connected_platforms == (Platform.TELEGRAM,)
    off: Stored = {("platforms", "telegram", "enabled"): False}
    assert combine_settings(base, rule | token | off).settings.disabled_platforms == {Platform.TELEGRAM}


def test_the_database_stays_the_one_that_is_open(load: LoadSettings) -> None:
    base = load("database_url: talk.db\n")
    assert combine_settings(base, {("agent",): "helper"}).settings.database_url == base.database_url

"""Environment variables override the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config import CHAT_PLATFORMS, ENVIRONMENT_VARIABLES, load_settings
from palaver.config.agent_rules import Provider
from palaver.core.source import ChatType, Platform
from palaver.sessions.gateway_config import HomeChannel
from palaver.sessions.keys import DmScope
from palaver.sessions.policy import ResetMode, ResetPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from config.conftest import FindProblems, LoadSettings


def test_the_environment_wins_over_the_file(load: LoadSettings, full_config: str) -> None:
    settings = load(
        full_config,
        PALAVER_DATABASE_URL="postgresql://db/talk",
        PALAVER_TIMEZONE="America/New_York",
        PALAVER_SESSION_RESET_MODE="daily",
        PALAVER_SESSION_RESET_IDLE_MINUTES="7",
        PALAVER_SESSION_RESET_AT_HOUR="0",
        PALAVER_DM_SCOPE="shared",
        PALAVER_REDACT_PII="off",
        PALAVER_MODEL="anthropic:claude",
    )
    config = settings.gateway
    assert settings.database_url == "postgresql://db/talk"
    assert config.default_reset_policy == ResetPolicy(
        mode=ResetMode.DAILY, idle_minutes=7, at_hour=0, timezone="America/New_York", notify=False
    )
    assert config.reset_by_platform[Platform.TELEGRAM].timezone == "Asia/Tokyo"
    assert config.reset_by_type[ChatType.GROUP].timezone == "America/New_York"
    assert (config.dm_scope, config.redact_pii) == (DmScope.SHARED, False)
    assert settings.agent.model == "anthropic:claude"


def test_api_keys_can_come_from_the_environment_alone(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": " one\n", "ANTHROPIC_API_KEY": "two", "GOOGLE_API_KEY": "three"}
    assert load_settings(environ, tmp_path).agent.providers == {
        "openai": Provider(api_key="one"),
        "anthropic": Provider(api_key="two"),
        "google": Provider(api_key="three"),
    }


def test_a_variable_changes_only_its_key_of_a_provider(load: LoadSettings, full_config: str) -> None:
    providers = load(full_config, OPENAI_API_KEY="new", GOOGLE_API_KEY="newer").agent.providers
    assert providers == {
        "openai": Provider(api_key="new", base_url="https://eu.example.org/v1"),
        "google": Provider(api_key="newer"),
        "workshop": Provider(),
    }
    with_base_url = load(full_config, OPENAI_BASE_URL="http://127.0.0.1:1234/v1").agent.providers["openai"]
    assert with_base_url == Provider(api_key="007", base_url="http://127.0.0.1:1234/v1")


def test_the_gemini_key_wins_over_the_google_key(load: LoadSettings, full_config: str) -> None:
    providers = load(full_config, GOOGLE_API_KEY="google", GEMINI_API_KEY="gemini").agent.providers
    assert providers["google"] == Provider(api_key="gemini")


def test_an_empty_variable_is_ignored(load: LoadSettings, full_config: str) -> None:
    empty = {variable.name: " " for variable in ENVIRONMENT_VARIABLES}
    assert load(full_config, **empty) == load(full_config)


@pytest.mark.parametrize("platform", CHAT_PLATFORMS)
def test_a_home_channel_can_come_from_the_environment_alone(tmp_path: Path, platform: Platform) -> None:
    name = f"{platform.upper().replace('-', '_')}_HOME_CHANNEL"
    settings = load_settings({name: "1", f"{name}_NAME": "Home", f"{name}_THREAD_ID": "7"}, tmp_path)
    assert settings.gateway.home_channels[platform] == HomeChannel(platform, "1", "Home", "7")
    assert settings.gateway.connected_platforms == ()


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({}, ("-1", "Family", "7")),
        ({"TELEGRAM_HOME_CHANNEL": "-2"}, ("-2", "", None)),
        ({"TELEGRAM_HOME_CHANNEL": "-1"}, ("-1", "Family", "7")),
        ({"TELEGRAM_HOME_CHANNEL": "-2", "TELEGRAM_HOME_CHANNEL_NAME": "Work"}, ("-2", "Work", None)),
        ({"TELEGRAM_HOME_CHANNEL_NAME": "Work"}, ("-1", "Work", "7")),
        ({"TELEGRAM_HOME_CHANNEL_THREAD_ID": "8"}, ("-1", "Family", "8")),
    ],
)
def test_a_variable_changes_only_its_field_unless_it_is_another_chat(
    load: LoadSettings, environ: dict[str, str], home: tuple[str, str, str | None]
) -> None:
    text = "platforms: {telegram: {home_channel: {chat_id: -1, name: Family, thread_id: 7}}}"
    settings = load(text, **environ)
    assert settings.gateway.home_channels[Platform.TELEGRAM] == HomeChannel(Platform.TELEGRAM, *home)
    assert settings.gateway.connected_platforms == (Platform.TELEGRAM,)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("PALAVER_SESSION_RESET_MODE", "weekly", '"weekly" is not allowed (none, idle, daily or both)'),
        ("PALAVER_SESSION_RESET_IDLE_MINUTES", "0", "0 is not allowed (a whole number of minutes, 1 to 52560000)"),
        ("PALAVER_SESSION_RESET_AT_HOUR", "24", "24 is not allowed (0 to 23)"),
        ("PALAVER_SESSION_RESET_AT_HOUR", "4x", '"4x" is not allowed (0 to 23)'),
        ("PALAVER_SESSION_RESET_AT_HOUR", "-1", "-1 is not allowed (0 to 23)"),
        ("PALAVER_TIMEZONE", "Berlin", '"Berlin" is not allowed (an IANA name such as Europe/Berlin or UTC)'),
        ("PALAVER_DM_SCOPE", "all", '"all" is not allowed (chat, platform, person or shared)'),
        ("PALAVER_REDACT_PII", "maybe", '"maybe" is not allowed (true or false)'),
        (
            "PALAVER_MODEL",
            "gpt-5",
            '"gpt-5" is not allowed '
            "(auto, demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5)",
        ),
        (
            "OPENAI_API_KEY",
            "a b",
            "… is not allowed (ASCII characters without spaces, exactly as the provider gave it)",
        ),
        (
            "GOOGLE_API_KEY",
            "naïve",
            "… is not allowed (ASCII characters without spaces, exactly as the provider gave it)",
        ),
        (
            "OPENAI_BASE_URL",
            "ftp://ada:pw@example.org",
            "ftp://… is not allowed (a URL that begins with http:// or https://)",
        ),
        ("OPENAI_BASE_URL", "example.org", "… is not allowed (a URL that begins with http:// or https://)"),
        ("SLACK_HOME_CHANNEL_THREAD_ID", "7", "this needs a home channel (set SLACK_HOME_CHANNEL)"),
        ("WHATSAPP_WEB_HOME_CHANNEL_NAME", "Me", "this needs a home channel (set WHATSAPP_WEB_HOME_CHANNEL)"),
    ],
)
def test_a_problem_in_the_environment_names_the_variable(
    find_problems: FindProblems, name: str, value: str, problem: str
) -> None:
    assert find_problems("", **{name: value}) == [f"{name}: {problem}"]

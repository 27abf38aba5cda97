"""The settings of a Slack app: what is wrong is named with the click that fixes it, and never shown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from palaver.platforms.slack.manifest import MANIFEST, SlackSettings

from .slack_server import APP_TOKEN, SIGNING_SECRET, TOKEN

GOOD = {"bot_token": TOKEN, "app_token": APP_TOKEN, "signing_secret": SIGNING_SECRET}


def read_error(**fields: Any) -> str:
    with pytest.raises(ValidationError) as failed:
        SlackSettings.model_validate({**GOOD, **fields})
    return str(failed.value.errors(include_input=False))


def test_two_tokens_are_enough() -> None:
    settings = SlackSettings.model_validate({"bot_token": f" {TOKEN}\n", "app_token": APP_TOKEN})
    assert settings.bot_token.get_secret_value() == TOKEN
    assert (settings.mode, settings.api_url) == ("socket", "https://slack.com/api")
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"bot_token": ""}, "empty"),
        ({"bot_token": "xoxb-your-token"}, "placeholder"),
        ({"bot_token": APP_TOKEN}, "starts with xoxb-"),
        ({"bot_token": "xoxp-1234567890-1234567890"}, "OAuth & Permissions"),
        ({"app_token": TOKEN}, "connections:write"),
        ({"app_token": None}, "The mode socket needs app_token (or SLACK_APP_TOKEN)"),
        ({"mode": "http", "signing_secret": None}, "The mode http needs signing_secret (or SLACK_SIGNING_SECRET)"),
        ({"signing_secret": "not hexadecimal"}, "Signing Secret"),
        ({"api_url": "slack.com"}, "https://slack.com/api"),
        ({"api_url": "https://slack.com:99999/api"}, "https://slack.com/api"),
    ],
)
def test_a_wrong_setting_says_where_to_find_the_right_one(fields: dict[str, Any], words: str) -> None:
    assert words in read_error(**fields)


def test_http_needs_no_app_token() -> None:
    fields = {"bot_token": TOKEN, "signing_secret": SIGNING_SECRET.upper(), "mode": "http"}
    settings = SlackSettings.model_validate(fields)
    assert settings.app_token is None


def test_the_manifest_names_the_variables() -> None:
    assert MANIFEST.environment["SLACK_BOT_TOKEN"] == "bot_token"
    assert MANIFEST.environment["SLACK_APP_TOKEN"] == "app_token"
    assert set(MANIFEST.environment.values()) <= set(SlackSettings.model_fields)

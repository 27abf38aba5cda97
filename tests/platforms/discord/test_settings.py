"""The settings of a Discord bot: what is refused, and how it says what to do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from palaver.core.logs import remove_secrets
from palaver.platforms.discord.manifest import MANIFEST, DiscordSettings

from .discord_data import TOKEN


def test_a_token_is_enough_and_is_never_shown() -> None:
    settings = DiscordSettings.model_validate({"bot_token": f" Bot {TOKEN}\n"})
    assert settings.bot_token.get_secret_value() == TOKEN
    assert TOKEN not in repr(settings)
    assert settings.api_url == "https://discord.com/api/v10"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("", "empty"),
        ("<your token>", "placeholder"),
        ("MTIz.abc", "client secret"),
        ("a" * 64, "public key"),
        ("1100000000000000002", "application ID"),
    ],
)
def test_what_is_no_token_is_refused_with_the_clicks_to_get_one(token: str, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DiscordSettings.model_validate({"bot_token": token})
    [error] = refused.value.errors()
    assert words in error["msg"]
    assert "Reset Token" in error["msg"]
    assert remove_secrets(error["msg"]) == error["msg"]  # logs show all of it


@pytest.mark.parametrize("url", ["discord.com", "ftp://discord.com", "https://discord.com/api?x=1", "https://a..b/"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="address of Discord's API"):
        DiscordSettings.model_validate({"bot_token": TOKEN, "api_url": url})


def test_the_environment_sets_up_the_account() -> None:
    assert MANIFEST.environment["DISCORD_BOT_TOKEN"] == "bot_token"
    assert MANIFEST.capabilities.max_length == 2000

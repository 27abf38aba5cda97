"""Settings of a bot: what is refused, and in which words."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pydantic import ValidationError

from palaver.config import load_settings
from palaver.core.source import Platform
from palaver.platforms.manifest import ENTRY_POINT_GROUP, PlatformManifest
from palaver.platforms.registry import list_configured_accounts, load_manifests
from palaver.platforms.telegram.manifest import MANIFEST, TelegramSettings

from .bot_api_server import TOKEN


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("123456:ABC...", "placeholder"),
        ("123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11", "placeholder"),
        ("your-token", "placeholder"),
        ("<bot token>", "placeholder"),
        ("${TELEGRAM_BOT_TOKEN}", "placeholder"),
        ("8312345678", "is not a bot token"),
        ("8312345678:short", "is not a bot token"),
        (TOKEN.replace(":", " "), "is not a bot token"),
    ],
)
def test_a_token_that_cannot_be_one_is_refused_in_words(token: str, reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TelegramSettings.model_validate({"bot_token": token})
    [error] = refused.value.errors(include_input=False)
    assert reason in error["msg"]
    assert "@BotFather" in error["msg"]


def test_a_token_is_trimmed_and_never_shown() -> None:
    settings = TelegramSettings.model_validate({"bot_token": f" {TOKEN}\n"})
    assert settings.bot_token.get_secret_value() == TOKEN
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize("url", ["api.telegram.org", "ftp://x", "https://", "https://x/?a=1"])
def test_the_address_of_a_server_is_checked(url: str) -> None:
    with pytest.raises(ValidationError, match="Bot API server"):
        TelegramSettings.model_validate({"bot_token": TOKEN, "api_url": url})


def test_the_webhook_secret_is_given_or_derived_from_the_token() -> None:
    given = TelegramSettings.model_validate({"bot_token": TOKEN, "webhook_secret": "0123456789abcdef"})
    assert given.get_webhook_secret() == "0123456789abcdef"
    derived = [TelegramSettings.model_validate({"bot_token": TOKEN}).get_webhook_secret() for _ in range(2)]
    assert derived[0] == derived[1] != TOKEN
    assert len(derived[0]) == 64
    with pytest.raises(ValidationError, match="16 to 256"):
        TelegramSettings.model_validate({"bot_token": TOKEN, "webhook_secret": "too short"})


@pytest.fixture
def manifests() -> dict[str, PlatformManifest]:
    """The manifest, loaded through the entry point that the package declares."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    value = project["entry-points"][ENTRY_POINT_GROUP]["telegram"]
    return load_manifests([EntryPoint("telegram", value, ENTRY_POINT_GROUP)])


async def test_a_token_in_the_environment_is_all_that_is_needed(
    tmp_path: Path, manifests: dict[str, PlatformManifest]
) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": TOKEN}
    [account] = list_configured_accounts(load_settings(environ, tmp_path), environ, manifests)
    assert (account.key, account.problem) == ((Platform.TELEGRAM, ""), None)
    adapter = await account.create()
    await adapter.close()
    assert adapter.platform == Platform.TELEGRAM


def test_a_placeholder_turns_off_the_account_and_says_where_it_is(
    tmp_path: Path, manifests: dict[str, PlatformManifest]
) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": "123456:ABC..."}
    [account] = list_configured_accounts(load_settings(environ, tmp_path), environ, manifests)
    assert account.problem is not None
    assert account.problem.startswith("TELEGRAM_BOT_TOKEN")
    assert "The bot token is still a placeholder." in account.problem
    assert "ABC" not in account.problem


def test_the_manifest_names_the_platform_and_its_variables() -> None:
    assert MANIFEST.platform == Platform.TELEGRAM
    assert MANIFEST.environment["TELEGRAM_BOT_TOKEN"] == "bot_token"
    assert set(MANIFEST.environment.values()) <= set(TelegramSettings.model_fields)

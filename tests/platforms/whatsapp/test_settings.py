"""The settings of a business number are checked before anything is sent to Meta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from palaver.config import AccountEntry, load_settings
from palaver.core.source import Platform
from palaver.platforms.registry import configure_account
from palaver.platforms.whatsapp.manifest import MANIFEST, WhatsAppSettings

from .graph_server import APP_SECRET, NUMBER_ID, TOKEN, VERIFY_TOKEN

if TYPE_CHECKING:
    from pathlib import Path

VALID = {
    "access_token": TOKEN,
    "app_secret": APP_SECRET,
    "verify_token": VERIFY_TOKEN,
    "phone_number_id": NUMBER_ID,
}


def test_four_settings_are_enough() -> None:
    settings = WhatsAppSettings.model_validate(VALID)
    assert settings.api_url == "https://graph.facebook.com"
    assert settings.business_account_id is None
    assert not any(secret in repr(settings) for secret in (TOKEN, APP_SECRET, VERIFY_TOKEN))


def test_ids_may_be_numbers_in_the_file() -> None:
    settings = WhatsAppSettings.model_validate(
        {**VALID, "phone_number_id": int(NUMBER_ID), "app_secret": f" {APP_SECRET} "}
    )
    assert settings.phone_number_id == NUMBER_ID
    assert settings.app_secret.get_secret_value() == APP_SECRET


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("access_token", "your token", "not an access token"),
        ("access_token", "", "not an access token"),
        ("app_secret", "secret", "32 digits and letters"),
        ("verify_token", "short", "16 to 128"),
        ("phone_number_id", "+49 170 1234567", "API Setup"),
        ("business_account_id", "abc", "API Setup"),
        ("api_url", "graph.facebook.com", "not the address"),
        ("api_version", "24", "not a version"),
    ],
)
def test_a_wrong_setting_says_how_to_fix_it(field: str, value: Any, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        WhatsAppSettings.model_validate({**VALID, field: value})


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("verify_token", "my-palaver-verify-token", None),
        ("verify_token", "change-me-please-here", None),
        ("access_token", "your-access-token-goes-here", "access_token is a placeholder"),
    ],
)
def test_a_verify_token_that_people_choose_is_no_placeholder(
    tmp_path: Path, name: str, value: str, problem: str | None
) -> None:
    settings = load_settings({}, tmp_path)
    entry = AccountEntry(platform=Platform.WHATSAPP, name="", settings={**VALID, name: value})
    account = configure_account(entry, {}, settings, MANIFEST)
    assert account.problem is None if problem is None else problem in str(account.problem)


def test_every_environment_variable_sets_a_setting() -> None:
    assert set(MANIFEST.environment.values()) <= set(WhatsAppSettings.model_fields)
    assert set(VALID) <= set(MANIFEST.environment.values())

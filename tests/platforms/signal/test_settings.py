"""The settings of a Signal account say clearly what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from palaver.platforms.signal.manifest import MANIFEST, SignalSettings


def test_nothing_has_to_be_set() -> None:
    settings = SignalSettings()
    assert (settings.program, settings.config_folder, settings.account) == ("signal-cli", None, None)
    assert settings.chats is None


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("+491701234567", "+491701234567"),
        ("+49 170 / 1234-567", "+491701234567"),
        (491701234567, "+491701234567"),  # YAML reads a number without quotes like this
        (None, None),
    ],
)
def test_a_phone_number_is_read(value: Any, number: str | None) -> None:
    assert SignalSettings(account=value).account == number


@pytest.mark.parametrize(
    "fields",
    [
        {"account": "0170 1234567"},
        {"account": "me"},
        {"account": ""},
        {"program": " "},
        {"config_folder": ""},
        {"device_name": ""},
        {"device_name": "x" * 51},
        {"chats": "everybody"},
        {"daemon_url": "http://localhost:8080"},  # what it receives is lost while no program is connected
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SignalSettings(**fields)


def test_the_manifest_has_the_capabilities_of_the_adapter() -> None:
    from palaver.platforms.signal.adapter import SignalAdapter

    assert MANIFEST.capabilities == SignalAdapter.capabilities
    assert set(MANIFEST.environment.values()) <= set(SignalSettings.model_fields)

"""The settings of a linked account are checked, and what is wrong is said in words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from palaver.core.source import Platform
from palaver.platforms.registry import load_manifests
from palaver.platforms.whatsapp_web.adapter import WhatsAppWebAdapter
from palaver.platforms.whatsapp_web.manifest import WhatsAppWebSettings
from palaver.platforms.whatsapp_web.process import PASSED_VARIABLES, describe_exit


def test_nothing_has_to_be_set() -> None:
    settings = WhatsAppWebSettings()
    assert (settings.chats, settings.phone_number, settings.device_name) == ("self", None, "Palaver")


@pytest.mark.parametrize("text", ["+49 170 1234567", "49 (170) 123-4567", " 491701234567 "])
def test_a_phone_number_may_be_written_as_people_write_it(text: str) -> None:
    assert WhatsAppWebSettings(phone_number=text).phone_number == "491701234567"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"phone_number": "0170 1234567"}, "country code"),
        ({"phone_number": "Ada"}, "country code"),
        ({"phone_number": "49" + "1" * 20}, "country code"),
        ({"device_name": " "}, "1 to 32 characters"),
        ({"device_name": "x" * 33}, "1 to 32 characters"),
        ({"proxy_url": "ftp://user:hunter2@e.org"}, "socks5://127.0.0.1:1080"),
        ({"proxy_url": "socks5://"}, "socks5://127.0.0.1:1080"),
        ({"proxy_url": "socks5://127.0.0.1:99999"}, "socks5://127.0.0.1:1080"),
        ({"proxy_url": "socks5://[::1"}, "socks5://127.0.0.1:1080"),
        ({"child_command": []}, "path of a program"),
        ({"chats": "some"}, "'self' or 'all'"),
        ({"token": "x"}, "Extra inputs"),
    ],
)
def test_what_is_wrong_is_said_without_secrets(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(words)) as failed:
        WhatsAppWebSettings(**fields)
    assert "hunter2" not in str([error["msg"] for error in failed.value.errors()])


def test_the_manifest_has_the_capabilities_of_the_adapter_and_loads_no_library() -> None:
    manifest = load_manifests()[Platform.WHATSAPP_WEB]
    assert manifest.capabilities is WhatsAppWebAdapter.capabilities
    assert "neonize" not in manifest.modules  # the server imports these


def test_the_child_learns_no_secret_from_the_environment() -> None:
    passed = {"PATH", "HOME", "LC_ALL", "HTTPS_PROXY", "no_proxy", "PYTHONPATH", "SSL_CERT_FILE", "TZ"}
    secret = {"OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "PALAVER_DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"}
    assert {name for name in passed | secret if PASSED_VARIABLES.fullmatch(name)} == passed


@pytest.mark.parametrize(
    ("code", "output", "words"),
    [
        (2, b"x\nfatal error: out of memory\n\ngoroutine", "(fatal error: out of memory)"),
        (2, b"panic: message of Ada: 4917012345678", "(exit code 2)"),
        (-11, b"", "(SIGSEGV)"),
        (-9, b"", "(SIGKILL)"),
        (-200, b"", "(signal 200)"),
        (0, b"", "has ended"),
    ],
)
def test_a_crash_is_told_without_what_the_library_printed(code: int, output: bytes, words: str) -> None:
    text = describe_exit(code, output)
    assert words in text
    assert "Ada" not in text

"""The settings of a mailbox: what is missing or wrong is said plainly, and no password travels in the clear."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from palaver.core.source import Platform, find_user_id_problem
from palaver.platforms.email.manifest import MANIFEST, EmailSettings

VALUES = {
    "address": "Palaver@Example.org",
    "password": "secret",
    "imap_host": "imap.example.org",
    "smtp_host": "smtp.x",
}


def make(**values: Any) -> EmailSettings:
    return EmailSettings(**{**VALUES, **values})


def test_encryption_is_on_unless_the_operator_says_otherwise() -> None:
    settings = make()
    assert (settings.address, settings.login) == ("palaver@example.org", "palaver@example.org")
    assert (settings.get_imap_port(), settings.get_smtp_port()) == (993, 465)
    starttls = make(imap_security="starttls", smtp_security="starttls")
    assert (starttls.get_imap_port(), starttls.get_smtp_port()) == (143, 587)
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"address": "palaver"}, "not an e-mail address"),
        ({"address": "a@b.c\r\nX: y"}, "not an e-mail address"),
        ({"password": " "}, "app password"),
        ({"password": "a\nb"}, "line break"),
        ({"imap_host": "https://imap.example.org"}, "without https"),
        ({"smtp_host": "smtp..example.org"}, "without https"),
        ({"imap_host": "imap\x1d.example.org"}, "without https"),
        ({"smtp_host": "a b"}, "not the name of a server"),
        ({"imap_port": 0}, "greater than"),
        ({"aliases": "x"}, "alias"),
        ({"authserv_id": "mx.example.org; dmarc=pass"}, "first word"),
        ({"folder": ""}, "empty"),
        ({"name": "a\nb"}, "line break"),
        ({"imap_security": "none"}, "imap_security: none sends the password unencrypted"),
        ({"smtp_security": "none"}, "allow_plaintext"),
        ({"unknown": 1}, "Extra inputs"),
    ],
)
def test_a_wrong_setting_is_explained(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        make(**values)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_this_machine_needs_no_encryption(host: str) -> None:
    assert make(imap_host=host, imap_security="none", smtp_host=host, smtp_security="none").get_imap_port() == 143
    assert make(smtp_security="none", allow_plaintext=True).get_smtp_port() == 25


def test_aliases_may_be_one_text() -> None:
    settings = make(aliases="Help@example.org, info@example.org")
    assert settings.own_addresses == {"palaver@example.org", "help@example.org", "info@example.org"}


@pytest.mark.parametrize(
    ("host", "saves"), [("smtp.gmail.com", False), ("smtp.office365.com", False), ("mail.example.org", True)]
)
def test_a_copy_is_saved_unless_the_provider_does_it(host: str, saves: bool) -> None:
    assert make(smtp_host=host).should_save_sent() is saves
    assert make(smtp_host=host, save_sent=not saves).should_save_sent() is not saves


@pytest.mark.parametrize(
    ("text", "is_id"),
    [("ada@example.org", True), ("Ada@Example.org", False), ("ada", False), ("a@b.org,c@d.org", False)],
)
def test_people_are_let_in_by_their_address(text: str, is_id: bool) -> None:
    assert (find_user_id_problem(Platform.EMAIL, text) is None) is is_id


def test_the_account_can_be_set_up_by_the_environment() -> None:
    assert set(MANIFEST.environment.values()) <= set(EmailSettings.model_fields)
    assert {"EMAIL_ADDRESS", "EMAIL_PASSWORD", "EMAIL_IMAP_HOST", "EMAIL_SMTP_HOST"} <= set(MANIFEST.environment)

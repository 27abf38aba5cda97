"""Pseudonyms for ids, and finding the chat that a pseudonym stands for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import ConfigError
from palaver.core.source import BUILT_IN_PLATFORMS, Platform
from palaver.sessions.context import Redactor, needs_raw_ids

SECRET = b"0123456789abcdef"
redactor = Redactor(SECRET)


@pytest.mark.parametrize(
    ("platform", "is_raw"),
    [
        ("discord", True),
        ("slack", True),
        ("matrix", True),
        ("local", True),
        ("web", True),
        ("api", True),
        ("webhook", True),
        ("cron", True),
        ("whatsapp", False),
        ("signal", False),
        ("telegram", False),
        ("TELEGRAM", False),
        ("Slack", True),
        ("irc", False),
        ("not a platform!", False),
        ("", False),
    ],
)
def test_the_agent_sees_raw_ids_only_where_it_needs_them_or_they_are_harmless(platform: str, is_raw: bool) -> None:
    assert needs_raw_ids(platform) is is_raw


def test_the_built_in_platforms_whose_ids_are_hidden() -> None:
    hidden = {platform for platform in BUILT_IN_PLATFORMS if not needs_raw_ids(platform)}
    assert hidden == {"whatsapp", "whatsapp-web", "signal", "telegram", "email"}


def test_a_pseudonym_has_a_fixed_form() -> None:
    assert re.fullmatch(r"user_[0-9a-f]{12}", redactor.redact_user("+4917012345"))
    assert re.fullmatch(r"signal:[0-9a-f]{12}", redactor.redact_chat("signal", "+4917012345"))
    assert redactor.redact_chat("Signal", "+49") == redactor.redact_chat(Platform.SIGNAL, "+49")


def test_a_pseudonym_is_stable_and_depends_on_the_secret() -> None:
    same_secret = Redactor(SECRET)
    other_secret = Redactor(b"another secret of enough length")
    assert same_secret.redact_user("7") == redactor.redact_user("7")
    assert same_secret.redact_chat("telegram", "7") == redactor.redact_chat("telegram", "7")
    assert other_secret.redact_user("7") != redactor.redact_user("7")
    assert other_secret.redact_chat("telegram", "7") != redactor.redact_chat("telegram", "7")


def test_pseudonyms_differ_between_users_chats_and_platforms() -> None:
    pseudonyms = {
        redactor.redact_user("7").removeprefix("user_"),
        redactor.redact_user("\x007").removeprefix("user_"),
        redactor.redact_chat("telegram", "7").partition(":")[2],
        redactor.redact_chat("signal", "7").partition(":")[2],
        redactor.redact_chat("a", "b\x007").partition(":")[2],
        redactor.redact_chat("a", "7").partition(":")[2],
    }
    assert len(pseudonyms) == 6


@pytest.mark.parametrize("secret", [b"", b"short", b"x" * 15])
def test_a_short_secret_is_rejected_with_advice(secret: bytes) -> None:
    with pytest.raises(ConfigError, match=rf"{len(secret)} bytes.*at least 16"):
        Redactor(secret)


def test_the_repr_does_not_contain_the_secret() -> None:
    assert "0123456789" not in repr(redactor)


CHATS: list[tuple[Platform | str, str]] = [
    (Platform.TELEGRAM, "-100123"),
    ("telegram", "77"),
    ("signal", "77"),
    ("signal", "+4917012345"),
]


@pytest.mark.parametrize(("platform", "chat_id"), CHATS)
def test_a_hidden_id_leads_to_its_chat(platform: str, chat_id: str) -> None:
    hidden_id = redactor.hide_chat_id(platform, chat_id)
    assert redactor.find_chat_id(platform, hidden_id, [each for _, each in CHATS]) == chat_id


def test_a_hidden_id_leads_to_a_chat_only_on_its_own_platform() -> None:
    hidden_id = redactor.hide_chat_id("signal", "77")
    assert redactor.find_chat_id("telegram", hidden_id, ["77"]) is None
    assert redactor.find_chat_id("signal", hidden_id, iter(["78", "77"])) == "77"
    assert redactor.find_chat_id("signal", hidden_id, []) is None


def test_a_chat_that_is_listed_twice_counts_once() -> None:
    assert redactor.find_chat_id("signal", redactor.hide_chat_id("signal", "77"), ["77", "77"]) == "77"


def test_a_hidden_id_of_two_chats_leads_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "_compute_pseudonym", lambda *_: "0" * 12)
    assert redactor.find_chat_id("signal", "0" * 12, ["77", "78"]) is None


@given(st.text(), st.lists(st.text(), max_size=5))
def test_any_id_can_be_hidden_and_found(chat_id: str, others: list[str]) -> None:
    hidden_id = redactor.hide_chat_id("whatsapp", chat_id)
    assert redactor.find_chat_id("whatsapp", hidden_id, [*others, chat_id]) == chat_id

"""Pseudonyms for ids, and resolving a pseudonym to its chat."""

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
@pytest.mark.parametrize("thread", ["", ":42", ":a:b"])
def test_a_pseudonym_resolves_to_its_chat(platform: str, chat_id: str, thread: str) -> None:
    assert redactor.resolve_chat(redactor.redact_chat(platform, chat_id) + thread, CHATS) == chat_id


@pytest.mark.parametrize(
    "target",
    [
        "",
        "telegram",
        "telegram:",
        "telegram:-100123",
        "telegram:0123456789ab",
        "telegram:" + "\u0660" * 12,
        "signal:ABC",
        ":",
    ],
)
def test_a_target_that_matches_no_chat_resolves_to_none(target: str) -> None:
    assert redactor.resolve_chat(target, CHATS) is None


def test_a_pseudonym_resolves_only_on_its_own_platform() -> None:
    pseudonym = redactor.redact_chat("signal", "77").partition(":")[2]
    assert redactor.resolve_chat(f"telegram:{pseudonym}", CHATS) is None
    assert redactor.resolve_chat(f"signal:{pseudonym}", iter(CHATS)) == "77"
    assert redactor.resolve_chat(f"signal:{pseudonym}", []) is None


def test_a_chat_that_is_listed_twice_counts_once() -> None:
    assert redactor.resolve_chat(redactor.redact_chat("signal", "77"), [*CHATS, *CHATS]) == "77"


def test_a_pseudonym_of_two_chats_resolves_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "_compute_pseudonym", lambda *_: "0" * 12)
    assert redactor.resolve_chat("signal:" + "0" * 12, CHATS) is None


@given(st.text(), st.lists(st.text(), max_size=5))
def test_any_id_can_be_hidden_and_resolved(chat_id: str, others: list[str]) -> None:
    candidates = [("whatsapp", other) for other in [*others, chat_id]]
    assert redactor.resolve_chat(redactor.redact_chat("whatsapp", chat_id), candidates) == chat_id

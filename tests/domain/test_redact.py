"""Ids replaced by names that say nothing, and the way back for those who hold the list of chats."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.errors import ConfigError
from palaver.domain.redact import Redactor, needs_raw_ids
from palaver.domain.source import BUILT_IN, Platform

SECRET = b"0123456789abcdef"
redactor = Redactor(SECRET)


@pytest.mark.parametrize(
    ("platform", "raw"),
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
def test_ids_are_shown_only_where_they_are_needed_or_harmless(platform: str, raw: bool) -> None:
    assert needs_raw_ids(platform) is raw


def test_every_built_in_platform_is_decided() -> None:
    assert {p for p in BUILT_IN if not needs_raw_ids(p)} == {"whatsapp", "signal", "telegram"}


def test_a_name_has_a_fixed_form_and_does_not_hold_the_id() -> None:
    assert re.fullmatch(r"user_[0-9a-f]{12}", redactor.user("+4917012345"))
    assert re.fullmatch(r"signal:[0-9a-f]{12}", redactor.chat("signal", "+4917012345"))
    assert redactor.chat("Signal", "+49") == redactor.chat(Platform.SIGNAL, "+49")


def test_a_name_is_stable_and_made_by_the_secret() -> None:
    again = Redactor(SECRET)
    other = Redactor(b"another secret of enough length")
    assert again.user("7") == redactor.user("7")
    assert again.chat("telegram", "7") == redactor.chat("telegram", "7")
    assert other.user("7") != redactor.user("7")
    assert other.chat("telegram", "7") != redactor.chat("telegram", "7")


def test_an_id_has_other_names_as_user_and_on_other_platforms() -> None:
    digests = {
        redactor.user("7").removeprefix("user_"),
        redactor.user("\x007").removeprefix("user_"),
        redactor.chat("telegram", "7").partition(":")[2],
        redactor.chat("signal", "7").partition(":")[2],
        redactor.chat("a", "b\x007").partition(":")[2],
        redactor.chat("a", "7").partition(":")[2],
    }
    assert len(digests) == 6


@pytest.mark.parametrize("secret", [b"", b"short", b"x" * 15])
def test_a_short_secret_is_refused_with_advice(secret: bytes) -> None:
    with pytest.raises(ConfigError, match=rf"{len(secret)} bytes.*at least 16"):
        Redactor(secret)


def test_the_secret_does_not_show() -> None:
    assert "0123456789" not in repr(redactor)


CHATS: list[tuple[Platform | str, str]] = [
    (Platform.TELEGRAM, "-100123"),
    ("telegram", "77"),
    ("signal", "77"),
    ("signal", "+4917012345"),
]


@pytest.mark.parametrize(("platform", "chat_id"), CHATS)
@pytest.mark.parametrize("thread", ["", ":42", ":a:b"])
def test_a_name_leads_back_to_its_chat(platform: str, chat_id: str, thread: str) -> None:
    assert redactor.resolve(redactor.chat(platform, chat_id) + thread, CHATS) == chat_id


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
def test_what_names_no_known_chat_leads_nowhere(target: str) -> None:
    assert redactor.resolve(target, CHATS) is None


def test_a_name_leads_only_to_its_own_platform() -> None:
    digest = redactor.chat("signal", "77").partition(":")[2]
    assert redactor.resolve(f"telegram:{digest}", CHATS) is None
    assert redactor.resolve(f"signal:{digest}", iter(CHATS)) == "77"
    assert redactor.resolve(f"signal:{digest}", []) is None


def test_a_chat_listed_twice_is_still_one_chat() -> None:
    assert redactor.resolve(redactor.chat("signal", "77"), [*CHATS, *CHATS]) == "77"


def test_a_name_that_fits_two_chats_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "_digest", lambda *_: "0" * 12)
    assert redactor.resolve("signal:" + "0" * 12, CHATS) is None


@given(st.text(), st.lists(st.text(), max_size=5))
def test_any_id_can_be_named_and_found_again(chat_id: str, others: list[str]) -> None:
    known = [("whatsapp", other) for other in [*others, chat_id]]
    assert redactor.resolve(redactor.chat("whatsapp", chat_id), known) == chat_id

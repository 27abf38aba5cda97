"""Titles: how they are cleaned, compared, numbered, and made from a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from palaver.core.errors import InvalidTitle
from palaver.core.titles import (
    MAX_TITLE_CHARS,
    TitleSlot,
    clean_title,
    number_title,
    parse_title_slot,
    strip_title_number,
    title_from,
)


def is_title(text: str) -> bool:
    try:
        clean_title(text)
    except InvalidTitle:
        return False
    return True


some_text = st.text(max_size=120)
titles = some_text.filter(is_title)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("My Project", "My Project"),
        ("  My \t\r\n  Project  ", "My Project"),
        ("a\x00b\x07c\x1b[31m", "abc[31m"),
        ("zero\u200bwidth\u200d\u2060", "zerowidth"),
        ("\u202egnp.exe\u2069 \u200fx", "gnp.exe x"),
        ("\ufeffbom", "bom"),
        ("soft\xadhyphen", "softhyphen"),
        ("a \u200b b", "a b"),
        ("line\u2028break\x85two", "line break two"),
        ("half\ud800pair", "halfpair"),
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("cafe\u0301", "caf\u00e9"),
        ("旅行 計画 ✈️", "旅行 計画 ✈️"),
        ("x" * 100, "x" * 100),
        ("x" * 100 + "\u200b" * 50 + "  ", "x" * 100),
    ],
)
def test_a_title_is_cleaned_to_one_line_of_printable_text(text: str, title: str) -> None:
    assert clean_title(text) == title


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b\u202e\ufeff", "\x00", "\u3164"])
def test_a_title_without_printable_characters_is_rejected(text: str) -> None:
    with pytest.raises(InvalidTitle, match="printable character"):
        clean_title(text)


def test_a_long_title_is_rejected_with_its_length() -> None:
    with pytest.raises(InvalidTitle, match=r"130 characters.*only 100") as caught:
        clean_title("é" * 130)
    assert caught.value.facts == {"length": 130, "limit": MAX_TITLE_CHARS}


@given(some_text)
def test_cleaning_is_idempotent(text: str) -> None:
    assume(is_title(text))
    assert clean_title(clean_title(text)) == clean_title(text)


@pytest.mark.parametrize(
    ("title", "base", "number"),
    [
        ("My Project", "my project", 1),
        ("My Project #2", "my project", 2),
        ("  my   PROJECT  #2 ", "my project", 2),
        ("My Project #1", "my project", 1),
        ("My Project #draft", "my project #draft", 1),
        ("My Project #02", "my project #02", 1),
        ("My Project #0", "my project #0", 1),
        ("My Project#2", "my project#2", 1),
        ("My Project # 2", "my project # 2", 1),
        ("My Project #2b", "my project #2b", 1),
        ("My Project #٢", "my project #٢", 1),
        ("P #999999999", "p", 999_999_999),
        ("P #1234567890", "p #1234567890", 1),
        ("P #2 #3", "p #2", 3),
        ("#2", "#2", 1),
        ("#2 #3", "#2", 3),
        ("STRASSE", "strasse", 1),
        ("Straße", "strasse", 1),
        ("CAFE\u0301", "caf\u00e9", 1),
    ],
)
def test_a_title_has_a_number_in_its_series(title: str, base: str, number: int) -> None:
    assert parse_title_slot(title) == TitleSlot(base, number)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My Project", "My Projects"),
        ("My Project", "My_Project"),
        ("100%", "1000"),
        ("cafe", "café"),
        ("a b", "ab"),
    ],
)
def test_titles_are_compared_exactly_except_for_case(one: str, other: str) -> None:
    assert parse_title_slot(one) != parse_title_slot(other)


@pytest.mark.parametrize(
    ("title", "base"),
    [
        ("My Project #12", "My Project"),
        ("My Project", "My Project"),
        ("#2", "#2"),
        (" A  B #draft", "A B #draft"),
    ],
)
def test_the_title_without_its_number_is_kept_as_written(title: str, base: str) -> None:
    assert strip_title_number(title) == base


@pytest.mark.parametrize(
    ("title", "number", "result"),
    [
        ("My Project", 2, "My Project #2"),
        ("My Project #2", 3, "My Project #3"),
        ("My Project #7", 1, "My Project"),
        ("My Project", 1, "My Project"),
        ("#2", 2, "#2 #2"),
        ("x" * 100, 2, "x" * 97 + " #2"),
        ("x" * 96 + " yyy", 12, "x" * 96 + " #12"),
        ("x" * 100, 1, "x" * 100),
    ],
)
def test_a_numbered_title_is_shortened_to_fit(title: str, number: int, result: str) -> None:
    assert number_title(title, number) == result


@given(titles, st.integers(2, 999_999_999))
def test_a_numbered_title_is_a_valid_title_with_that_number(title: str, number: int) -> None:
    result = number_title(title, number)
    assert clean_title(result) == result
    assert parse_title_slot(result).number == number
    if len(strip_title_number(title)) < 80:
        assert parse_title_slot(result).base == parse_title_slot(title).base


@pytest.mark.parametrize("number", [0, -1, 1_000_000_000])
def test_an_invalid_number_is_rejected(number: int) -> None:
    with pytest.raises(InvalidTitle, match=str(number)):
        number_title("My Project", number)


def message(content: object, role: str = "user") -> dict[str, object]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([message("Plan a trip")], "Plan a trip"),
        (
            [message("Be kind", "system"), message("Hello", "assistant"), message("Plan a trip"), message("Later")],
            "Plan a trip",
        ),
        ([message("  Plan\n\n a\ttrip\u200b ")], "Plan a trip"),
        ([message([{"type": "text", "text": "Plan"}, {"type": "text", "text": "a trip"}])], "Plan a trip"),
        (
            [message([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "What is it?"}])],
            "What is it?",
        ),
        ([message([{"type": "image_url"}]), message("What is it?")], "What is it?"),
        ([message("\u200b"), message(""), message(None), message("Now")], "Now"),
        ([message([{"type": "text"}, {"type": "text", "text": 5}, "loose"])], None),
        ([message({"type": "text", "text": "not a list"})], None),
        ([message("Hello", "assistant"), {"content": "no role"}], None),
        ([], None),
    ],
)
def test_a_title_is_made_from_the_first_user_message(messages: Any, title: str | None) -> None:
    assert title_from(messages) == title


@pytest.mark.parametrize(
    ("text", "limit", "title"),
    [
        ("x" * 64, 64, "x" * 64),
        ("x" * 65, 64, "x" * 63 + "…"),
        ("one two three four", 16, "one two three…"),
        ("one two, three four", 10, "one two…"),
        ("one twothreefourfive", 16, "one twothreefou…"),
        ("one two three", 8, "one two…"),
        ("旅" * 100, 64, "旅" * 63 + "…"),
        (" " * 5000 + "late", 64, "late"),
    ],
)
def test_a_long_first_message_is_cut_between_words_if_possible(text: str, limit: int, title: str) -> None:
    assert title_from([message(text)], limit) == title


@given(st.text(max_size=300), st.integers(1, 100))
def test_a_title_from_a_message_is_valid_and_fits(text: str, limit: int) -> None:
    title = title_from([message(text)], limit)
    if title is not None:
        assert len(title) <= limit
        assert clean_title(title) == title

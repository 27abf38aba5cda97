"""Tests of cleaning text, and of formatting times, counts and JSON."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from palaver.cli import output

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ends", "]0;never ends"),
        ("\x1bcreset", "reset"),
        ("bell\x07 back\x08space nul\x00", "bell backspace nul"),
        ("over\rwritten", "over\nwritten"),
        ("dos\r\nlines", "dos\nlines"),
        ("\u202eexe.txt", "exe.txt"),
        ("half \ud83d pair", "half  pair"),
        ("می‌خواهم 👨‍👩‍👧", "می‌خواهم 👨‍👩‍👧"),
    ],
)
def test_cleaning_removes_what_controls_a_terminal_and_nothing_else(text: str, cleaned: str) -> None:
    assert output.clean_text(text) == cleaned


@given(st.text(st.characters()))
def test_cleaned_text_has_no_control_characters(text: str) -> None:
    cleaned = output.clean_text(text)
    assert all(char in "\n\t" or not (char < " " or "\x7f" <= char <= "\x9f") for char in cleaned)
    assert not {"\u202e", "\u2066", "\u2028"} & set(cleaned)
    assert "\n" not in output.clean_line(text)
    cleaned.encode()


@given(st.recursive(st.text(st.characters()), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_has_no_control_characters_and_loses_nothing(document: object) -> None:
    for ascii_only in (True, False):
        text = output.format_json(document, ascii_only=ascii_only)
        assert json.loads(text) == document
        assert all(char == "\n" or not (char < " " or "\x7f" <= char <= "\x9f") for char in text)
        text.encode()


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("李雷", 4),
        ("e\u0301", 1),
        ("ｗｉｄｅ", 8),
        ("👍", 2),
        ("👍🏽", 2),
        ("👨‍👩‍👧", 2),
        ("می‌خ", 3),
        ("", 0),
    ],
)
def test_the_display_width_is_what_a_terminal_uses(text: str, width: int) -> None:
    assert output.get_display_width(text) == width


@given(st.text(), st.integers(1, 40))
def test_truncated_text_fits(text: str, max_width: int) -> None:
    truncated = output.truncate_text(text, max_width)
    assert output.get_display_width(truncated) <= max_width
    assert truncated == text or truncated.endswith("…")


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(), "just now"),
        (timedelta(seconds=44), "just now"),
        (timedelta(seconds=45), "1 min ago"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(minutes=60), "1 h ago"),
        (timedelta(hours=4, minutes=59), "5 h ago"),
        (timedelta(hours=23, minutes=50), "1 d ago"),
        (timedelta(days=2, minutes=-1), "2 d ago"),
        (timedelta(days=7), "7 d ago"),
    ],
)
def test_a_time_is_formatted_as_its_age(age: timedelta, text: str) -> None:
    assert output.format_relative_time(NOW - age, NOW) == text


@pytest.mark.parametrize("age", [timedelta(days=30), timedelta(days=-2)])
@pytest.mark.parametrize(("timezone", "hours"), [("UTC", 0), ("Pacific/Auckland", 13)])
def test_a_time_that_is_far_away_is_formatted_as_a_local_date(
    monkeypatch: pytest.MonkeyPatch, age: timedelta, timezone: str, hours: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", timezone)
        time.tzset()
        formatted = output.format_relative_time(NOW - age, NOW)
    time.tzset()
    assert formatted == (NOW - age + timedelta(hours=hours)).date().isoformat()


def test_a_missing_time_is_never() -> None:
    assert output.format_relative_time(None, NOW) == "never"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, ""),
        (0, "< 0.1 s"),
        (400, "0.4 s"),
        (9949, "9.9 s"),
        (9960, "10 s"),
        (59_600, "1 min 0 s"),
        (125_000, "2 min 5 s"),
    ],
)
def test_a_duration_is_formatted_with_two_significant_digits(milliseconds: int | None, text: str) -> None:
    assert output.format_duration(milliseconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 turns"), (1, "1 turn"), (1204, "1,204 turns")])
def test_a_count_has_a_singular_or_plural_noun(count: int, text: str) -> None:
    assert output.format_count(count, "turn") == text

"""How text, times and tables are shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.cli import output

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
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
def test_text_loses_its_hidden_powers_and_nothing_else(text: str, shown: str) -> None:
    assert output.clean(text) == shown


@given(st.text(st.characters()))
def test_no_text_keeps_a_control_character(text: str) -> None:
    cleaned = output.clean(text)
    assert all(char in "\n\t" or not (char < " " or "\x7f" <= char <= "\x9f") for char in cleaned)
    assert not {"\u202e", "\u2066", "\u2028"} & set(cleaned)
    assert "\n" not in output.line(text)
    cleaned.encode()


@given(st.recursive(st.text(st.characters()), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_harmless_and_whole(document: object) -> None:
    for ascii_only in (True, False):
        text = output.json_text(document, ascii_only=ascii_only)
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
def test_text_takes_as_many_columns_as_a_terminal_gives_it(text: str, width: int) -> None:
    assert output.cells(text) == width


@given(st.text(), st.integers(1, 40))
def test_a_text_that_was_made_to_fit_fits(text: str, most: int) -> None:
    shown = output.fit(text, most)
    assert output.cells(shown) <= most
    assert shown == text or shown.endswith("…")


@pytest.mark.parametrize(
    ("ago", "said"),
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
        (timedelta(days=30), "2026-10-16"),
        (timedelta(days=-2), "2026-11-17"),
    ],
)
def test_a_time_is_told_as_people_say_it(ago: timedelta, said: str) -> None:
    assert output.ago(NOW - ago, NOW) == said


def test_what_never_happened_has_no_time() -> None:
    assert output.ago(None, NOW) == "never"


@pytest.mark.parametrize(
    ("milliseconds", "said"),
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
def test_how_long_something_took_is_told_as_finely_as_it_matters(milliseconds: int | None, said: str) -> None:
    assert output.lasted(milliseconds) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 turns"), (1, "1 turn"), (1204, "1,204 turns")])
def test_nouns_are_counted(count: int, said: str) -> None:
    assert output.plural(count, "turn") == said

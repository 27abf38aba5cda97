"""Filters as people type them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from palaver.core.errors import InvalidInput
from palaver.sessions.search_text import FilterText, SearchFilter, parse_filter_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lisbon", FilterText(words="lisbon")),
        ("lisbon platform:Telegram -porto", FilterText(words="lisbon -porto", platform="Telegram")),
        ('"night train" ROLE:User', FilterText(words='"night train"', role="user")),
        ('project:"Night trains" lisbon', FilterText(words="lisbon", project="Night trains")),
        (
            "after:2026-01-01 a before:2026-02-01",
            FilterText(words="a", after=date(2026, 1, 1), before=date(2026, 2, 1)),
        ),
        ("xplatform:telegram http://role:x", FilterText(words="xplatform:telegram http://role:x")),
        ("platform:", FilterText(words="platform:")),
        ("", FilterText(words="")),
    ],
)
def test_words_and_filters_are_told_apart(text: str, expected: FilterText) -> None:
    assert parse_filter_text(text) == expected


@pytest.mark.parametrize(
    "text",
    ["role:boss", "after:yesterday", "before:2026-02-30", "after:0001-01-01", "before:9999-12-31", "role:system"],
)
def test_an_invalid_value_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_filter_text(text)


def test_days_begin_at_midnight_in_the_time_zone() -> None:
    typed = parse_filter_text("a after:2026-07-01 platform:TELEGRAM")
    assert typed.to_filter(ZoneInfo("Europe/Berlin")) == SearchFilter(
        platform="telegram", after=datetime(2026, 6, 30, 22, tzinfo=UTC)
    )


def test_a_moment_needs_a_time_zone() -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        SearchFilter(after=datetime(2026, 1, 1))  # noqa: DTZ001


def test_long_texts_are_parsed_in_linear_time() -> None:
    assert parse_filter_text('project:"' * 50_000).words
    assert parse_filter_text("platform:" * 50_000).platform

"""Amounts of budgets as people write them, and the days and months that they apply to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palaver.config.budget_rules import (
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetUnit,
    format_amount,
    format_dollars,
    get_window_bounds,
    nanos_to_text,
    parse_amount,
    parse_dollars,
)
from palaver.core.errors import InvalidInput

USD, TOKENS = BudgetUnit.USD, BudgetUnit.TOKENS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$5", (USD, 5_000_000_000)),
        ("$ 0.25", (USD, 250_000_000)),
        ("0.1 usd", (USD, 100_000_000)),  # exact, where a float is not
        ("1,200 dollars", (USD, 1_200_000_000_000)),
        ("$0.000001", (USD, 1_000)),
        ("200k tokens", (TOKENS, 200_000)),
        ("200K", (TOKENS, 200_000)),
        ("1.5M", (TOKENS, 1_500_000)),
        ("12,000 tokens", (TOKENS, 12_000)),
        ("0 tokens", (TOKENS, 0)),
        ("none", (None, None)),
    ],
)
def test_amounts_are_read_as_people_write_them(text: str, expected: tuple[BudgetUnit | None, int | None]) -> None:
    assert parse_amount(text) == expected


@pytest.mark.parametrize("text", ["5", "", "$", "five dollars", "$-1", "$1e3", "$0.0000001", "$2000000", "0.5 tokens"])
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_amount(text)


def test_a_refused_amount_comes_with_examples() -> None:
    with pytest.raises(InvalidInput, match=r"“5” is not an amount. Examples: `\$5`, `\$0.25`, `200k tokens`"):
        parse_amount("5")


def test_money_is_written_without_floats() -> None:
    assert [nanos_to_text(nanos) for nanos in (0, 100_000_000, 5_000_000_000, 1)] == ["0", "0.1", "5", "0.000000001"]
    assert parse_dollars(nanos_to_text(123_456_000)) == 123_456_000
    assert format_dollars(1_234_500_000_000) == "$1,234.50"
    assert format_dollars(400_000) == "$0.0004"
    assert format_dollars(1) == "$0.0001"  # never shown as nothing
    assert format_amount(TOKENS, 1) == "1 token"


def test_a_day_begins_at_midnight_of_its_zone() -> None:
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)  # the day on which clocks change in Berlin
    bounds = get_window_bounds(BudgetPeriod.DAY, now, "Europe/Berlin")
    assert bounds == (datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))


def test_a_day_without_midnight_begins_with_its_first_moment() -> None:
    now = datetime(2026, 9, 6, 12, tzinfo=UTC)  # Santiago goes from 24:00 to 01:00
    start, _ = get_window_bounds(BudgetPeriod.DAY, now, "America/Santiago")
    assert start == datetime(2026, 9, 6, 4, tzinfo=UTC)


def test_a_month_ends_with_its_last_day() -> None:
    now = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)  # the new year in Tokyo
    assert get_window_bounds(BudgetPeriod.MONTH, now, "Asia/Tokyo")[0] == datetime(2026, 12, 31, 15, tzinfo=UTC)
    assert get_window_bounds(BudgetPeriod.MONTH, now, "UTC")[1] == datetime(2027, 1, 1, tzinfo=UTC)


def test_the_narrowest_limit_wins_and_an_owners_wins_over_the_file() -> None:
    everyone = BudgetKey(BudgetScope.PERSON, "", BudgetPeriod.DAY)
    ada = BudgetKey(BudgetScope.PERSON, "p_ada", BudgetPeriod.DAY)
    in_file = BudgetLimit(key=everyone, unit=USD, amount=1)
    rules = BudgetRules(limits=(in_file,))
    for_everyone = BudgetLimit(key=everyone, unit=USD, amount=2)
    for_ada = BudgetLimit(key=ada, unit=USD, amount=None)
    assert rules.find_limit(ada, USD, []) == in_file.amount
    assert rules.find_limit(ada, USD, [for_everyone]) == for_everyone.amount
    assert rules.find_limit(ada, USD, [for_everyone, for_ada]) == for_ada.amount
    assert rules.find_limit(ada, TOKENS, [for_everyone, for_ada]) is None

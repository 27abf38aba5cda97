"""Tests of `palaver budget`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.budget_rules import BudgetScope
from palaver.core.clock import SystemClock
from palaver.core.engines.base import Write
from support.budgets import DOLLAR, store_usage

if TYPE_CHECKING:
    from cli.conftest import Home


@pytest.fixture(autouse=True)
def stop_clock(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, because a budget begins again at midnight."""
    monkeypatch.setattr(SystemClock, "now", lambda _clock: home.clock.now())


def write_config(home: Home, text: str) -> None:
    home.path.mkdir(exist_ok=True)
    (home.path / "config.yaml").write_text(text, encoding="utf-8")


def use_budget(home: Home, scope: BudgetScope, subject: str = "", **amounts: int) -> None:
    with home.open_store() as store:
        store.engine.run(Write(lambda tx: store_usage(tx, scope, subject, store.clock.now(), **amounts)))


def test_budgets_are_shown_with_what_was_used(home: Home) -> None:
    write_config(home, "timezone: UTC\nbudgets: {overall: {month_usd: 50}}\n")
    use_budget(home, BudgetScope.ALL, nanos=5 * DOLLAR, tokens=1234)
    [day, month] = home.get_json("budget", "show")["budgets"]
    assert (day["scope"], day["used_usd"], day["used_tokens"], day["percent"]) == ("all", "5", 1234, None)
    assert (month["limit_usd"], month["percent"], month["is_limit_set"]) == ("50", 10, False)
    text = home.get_text("budget", "show")
    assert "$50.00" in text
    assert "10%" in text
    assert "everybody" in text


def test_a_limit_is_set_lifted_and_cleared(home: Home) -> None:
    write_config(home, "timezone: UTC\n")
    assert "Everybody, today: $0.00 of $2.50 (0%)" in home.get_text("budget", "set", "all", "day", "2.50usd")
    budget = home.get_json("budget", "set", "all", "day", "200k", "tokens")["budget"]
    assert (budget["limit_usd"], budget["limit_tokens"], budget["is_limit_set"]) == ("2.5", 200_000, True)
    assert home.get_json("budget", "set", "all", "day", "none")["budget"]["limit_usd"] is None
    assert "the server settings apply" in home.get_text("budget", "clear", "all", "day")
    assert home.get_json("budget", "clear", "all", "day")["budget"]["is_limit_set"] is False


def test_the_limit_of_a_person_is_set_by_name(home: Home) -> None:
    with home.open_store() as store:
        owner = store.get_owner()
    budget = home.get_json("budget", "set", owner.name, "month", "$7")["budget"]
    assert (budget["scope"], budget["subject"], budget["limit_usd"]) == ("person", owner.id, "7")
    assert f"person {owner.name}" in home.get_text("budget", "show")


def test_mistakes_are_explained(home: Home) -> None:
    assert "Examples: `$5`" in home.get_error("budget", "set", "all", "day", "5", code=1)
    assert "How much?" in home.get_error("budget", "set", "all", "day", code=1)
    assert "There is no person “Unknown”" in home.get_error("budget", "set", "Unknown", "day", "5usd", code=3)
    assert "takes no amount" in home.get_error("budget", "clear", "all", "day", "5usd", code=1)

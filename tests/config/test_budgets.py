"""Settings of budgets: limits become values, money is never a float, and problems say what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.budget_rules import BudgetKey, BudgetLimit, BudgetPeriod, BudgetScope, BudgetUnit

if TYPE_CHECKING:
    from config.conftest import FindProblems, LoadSettings

DOLLAR_RULE = "dollars with at most 6 decimals, 0 to 1000000, such as 5 or 0.25"
DAY, MONTH = BudgetPeriod.DAY, BudgetPeriod.MONTH


def make_limit(scope: BudgetScope, subject: str, period: BudgetPeriod, unit: BudgetUnit, amount: int) -> BudgetLimit:
    return BudgetLimit(key=BudgetKey(scope, subject, period), unit=unit, amount=amount)


def test_every_limit_of_the_file_is_a_value(load: LoadSettings) -> None:
    rules = load(
        """\
timezone: Europe/Vienna
profiles: {research: {}}
budgets:
  overall: {month_usd: 50}
  per_person: {day_usd: 0.1, day_tokens: 200000}
  per_job:
  profiles:
    research: {month_tokens: 0}
"""
    ).turns.budgets
    assert rules.timezone == "Europe/Vienna"
    assert set(rules.limits) == {
        make_limit(BudgetScope.ALL, "", MONTH, BudgetUnit.USD, 50_000_000_000),
        make_limit(BudgetScope.PERSON, "", DAY, BudgetUnit.USD, 100_000_000),
        make_limit(BudgetScope.PERSON, "", DAY, BudgetUnit.TOKENS, 200_000),
        make_limit(BudgetScope.PROFILE, "research", MONTH, BudgetUnit.TOKENS, 0),
    }


def test_without_the_section_nothing_is_limited(load: LoadSettings) -> None:
    assert load("model: demo").turns.budgets.limits == ()


def test_the_environment_limits_everybody_together(load: LoadSettings) -> None:
    rules = load("budgets: {overall: {day_usd: 5}}", PALAVER_BUDGET_DAY_USD="2.50").turns.budgets
    assert rules.limits == (make_limit(BudgetScope.ALL, "", DAY, BudgetUnit.USD, 2_500_000_000),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("budgets: {overall: {day_usd: 0.1234567}}", f'"0.1234567" is not allowed ({DOLLAR_RULE})'),
        ("budgets: {overall: {day_usd: -1}}", f'"-1" is not allowed ({DOLLAR_RULE})'),
        ("budgets: {overall: {day_usd: 1e3}}", f'"1e3" is not allowed ({DOLLAR_RULE})'),
        ("budgets: {overall: {day_usd: yes}}", f'"yes" is not allowed ({DOLLAR_RULE})'),
    ],
)
def test_an_amount_that_is_no_money_is_refused(find_problems: FindProblems, text: str, problem: str) -> None:
    assert find_problems(text) == [f"config.yaml:1: budgets.overall.day_usd: {problem}"]


def test_mistakes_in_names_are_explained(find_problems: FindProblems) -> None:
    text = "profiles: {research: {}}\nbudgets:\n  per_persn: {}\n"
    assert find_problems(text) == ["config.yaml:3: budgets.per_persn: unknown key (did you mean per_person?)"]
    text = "profiles: {research: {}}\nbudgets:\n  profiles: {research: {day: 5}}\n"
    assert "budgets.profiles.research.day: unknown key (did you mean day_usd?)" in find_problems(text)[0]
    text = "profiles: {research: {}}\nbudgets:\n  profiles: {reserch: {day_usd: 5}}\n"
    assert find_problems(text) == [
        "config.yaml:3: budgets.profiles.reserch: there is no profile reserch (did you mean research?)"
    ]
    assert "PALAVER_BUDGET_MONTH_USD" in find_problems("", PALAVER_BUDGET_MONTH_USD="much")[0]

"""How much is held for a call, and when a limit refuses it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from palaver.config.budget_rules import FREE, BudgetKey, BudgetPeriod, BudgetScope, TokenPrice, WindowState
from palaver.money.hold import Hold, HoldRefused, plan_hold

PRICE = TokenPrice(input_usd=Decimal(2), output_usd=Decimal(10))  # 2,000 and 10,000 nano-dollars for a token
DAY = BudgetKey(BudgetScope.PERSON, "p_1", BudgetPeriod.DAY)
MONTH = BudgetKey(BudgetScope.PERSON, "p_1", BudgetPeriod.MONTH)


def test_without_limits_the_request_stays_as_it_is() -> None:
    hold = plan_hold(1000, None, PRICE, [WindowState(key=DAY, used_nanos=10**15)])
    assert hold == Hold(max_tokens=None, input_tokens=1200, output_tokens=8000, nanos=1200 * 2000 + 8000 * 10_000)
    assert plan_hold(1000, 50_000, None, []) == Hold(
        max_tokens=50_000, input_tokens=1200, output_tokens=50_000, nanos=None
    )


def test_with_a_limit_an_answer_has_a_maximum_length() -> None:
    window = WindowState(key=DAY, limit_tokens=10**9)
    for wanted, expected in ((None, 8000), (50_000, 8000), (400, 400)):
        hold = plan_hold(10, wanted, None, [window])
        assert isinstance(hold, Hold)
        assert (hold.max_tokens, hold.is_shortened) == (expected, False)


def test_an_answer_is_shortened_before_it_is_refused() -> None:
    window = WindowState(key=DAY, used_tokens=5000, held_tokens=1000, limit_tokens=9000)
    hold = plan_hold(1000, None, None, [window])
    assert isinstance(hold, Hold)
    assert (hold.max_tokens, hold.is_shortened, hold.tokens) == (1800, True, 3000)
    refused = plan_hold(1700, None, None, [window])
    assert refused == HoldRefused(key=DAY, amounts=window.amounts[1], needed=2040 + 1000)
    assert isinstance(plan_hold(1700, 900, None, [window]), Hold), "its own maximum is smaller than the smallest"


def test_the_limit_that_lasts_longest_is_named() -> None:
    day = WindowState(key=DAY, used_nanos=10, limit_nanos=10)
    month = WindowState(key=MONTH, used_nanos=10, limit_nanos=10)
    for windows in ([day, month], [month, day]):
        refused = plan_hold(10, None, PRICE, windows)
        assert isinstance(refused, HoldRefused)
        assert refused.key == MONTH


def test_an_unknown_price_is_not_free() -> None:
    dollars = WindowState(key=DAY, limit_nanos=10**12)
    refused = plan_hold(10, None, None, [dollars, WindowState(key=MONTH, used_tokens=5, limit_tokens=1)])
    assert refused == HoldRefused(key=DAY, amounts=dollars.amounts[0], needed=None)
    assert isinstance(plan_hold(10, None, FREE, [WindowState(key=DAY, used_nanos=5, limit_nanos=1)]), Hold)


counts = st.integers(0, 10**6)
prices = st.builds(TokenPrice, input_usd=st.decimals(0, 100, places=6), output_usd=st.decimals(0, 100, places=6))


@given(
    counts, st.none() | st.integers(1, 20_000), prices, counts, counts, st.integers(0, 10**12), st.integers(0, 10**7)
)
def test_what_is_held_never_passes_a_limit(
    prompt: int, max_tokens: int | None, price: TokenPrice, used: int, held: int, nanos: int, tokens: int
) -> None:
    window = WindowState(
        key=DAY,
        used_nanos=used * 100,
        held_nanos=held * 100,
        used_tokens=used,
        held_tokens=held,
        limit_nanos=nanos,
        limit_tokens=tokens,
    )
    hold = plan_hold(prompt, max_tokens, price, [window])
    if isinstance(hold, HoldRefused):
        assert hold.needed is not None
        assert hold.amounts.total + hold.needed > (hold.amounts.limit or 0)
        return
    assert used + held + hold.tokens <= tokens
    assert price.is_free or window.amounts[0].total + (hold.nanos or 0) <= nanos
    assert hold.output_tokens >= min(1000, max_tokens or 8000)


@pytest.mark.parametrize(("tokens", "nanos"), [(0, 0), (1, 1), (3, 2), (1000, 334)])
def test_costs_are_rounded_up(tokens: int, nanos: int) -> None:
    assert TokenPrice(input_usd=Decimal("0.000333334"), output_usd=Decimal(0)).compute_nanos(tokens, 0) == nanos

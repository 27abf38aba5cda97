"""Tokens and cost of turns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidInput
from palaver.sessions.usage import CostStatus, TurnUsage, UsageTotals


@pytest.mark.parametrize(
    ("cost", "nanos"),
    [
        (None, None),
        (0, 0),
        ("0.0125", 12_500_000),
        (0.1, 100_000_000),
        (Decimal("1e-9"), 1),
        ("0.0000000004", 0),
        ("0.0000000005", 1),
        (12345, 12_345_000_000_000),
    ],
)
def test_cost_is_rounded_to_whole_nano_dollars(cost: Any, nanos: int | None) -> None:
    assert TurnUsage(cost=cost).cost_nanos == nanos


@given(st.lists(st.decimals(min_value=0, max_value=100, places=9), max_size=30))
def test_sums_of_costs_are_exact(costs: list[Decimal]) -> None:
    nanos = sum(TurnUsage(cost=cost).cost_nanos or 0 for cost in costs)
    assert UsageTotals(cost_nanos=nanos).cost == sum(costs, Decimal(0))


@pytest.mark.parametrize(
    ("usage", "status"),
    [
        (TurnUsage(), CostStatus.UNKNOWN),
        (TurnUsage(cost_status="actual"), CostStatus.UNKNOWN),
        (TurnUsage(cost=1), CostStatus.ESTIMATED),
        (TurnUsage(cost=1, cost_status="actual"), CostStatus.ACTUAL),
    ],
)
def test_the_cost_status_is_estimated_unless_given(usage: TurnUsage, status: CostStatus) -> None:
    assert usage.effective_cost_status is status


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input_tokens", -1),
        ("output_tokens", True),
        ("reasoning_tokens", 1.5),
        ("cache_read_tokens", 2**63),
        ("last_prompt_tokens", -1),
        ("cost", "free"),
        ("cost", float("inf")),
        ("cost", float("nan")),
        ("cost", -0.01),
        ("cost", "1e30"),
        ("cost_status", "sure"),
        ("model", 7),
        ("turn_id", "a\0b"),
    ],
)
def test_an_invalid_value_is_rejected_by_field_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        TurnUsage(**{field: value})


def test_tokens_or_a_cost_count_as_usage() -> None:
    assert TurnUsage(input_tokens=1).has_usage
    assert TurnUsage(cost=0).has_usage
    assert not TurnUsage(model="m", last_prompt_tokens=5).has_usage


def test_a_call_that_does_not_report_its_prompt_keeps_the_size_of_the_context() -> None:
    first = TurnUsage(input_tokens=900, last_prompt_tokens=900)
    second = TurnUsage(input_tokens=950, last_prompt_tokens=950)
    cut_off = TurnUsage(input_tokens=1200)
    assert first.add(second).add(cut_off).last_prompt_tokens == 950


def test_the_address_of_a_provider_is_kept_without_credentials() -> None:
    usage = TurnUsage(base_url="https://ada:secret@models.example:8443/v1?key=secret#secret")
    assert usage.base_url == "https://models.example:8443/v1"
    assert TurnUsage.from_dict(usage.to_dict()) == usage
    with pytest.raises(InvalidInput, match="base_url"):
        TurnUsage(base_url="https://[broken")

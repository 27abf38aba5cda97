"""Tokens and costs of a conversation: one row for each model."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from palaver.sessions.usage import CostStatus, TurnUsage
from palaver.transfer.readers.values import as_count, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_COST: Final = 1_000_000.0
_PRICED: Final = frozenset({"estimated", "actual", "included"})


def sum_usage(
    conversation_id: str, rows: Iterable[Mapping[str, Any]], last_prompt_tokens: int
) -> tuple[TurnUsage, ...]:
    """Add up rows of the same model and provider; `turn_id` is the same in every run."""
    totals: dict[tuple[str, str], TurnUsage] = {}
    for row in rows:
        model, provider = as_text(row.get("model")), as_text(row.get("billing_provider"))
        usage = _read_usage(row, f"hermes:{conversation_id}:{provider}:{model}", model, provider)
        if not usage.has_usage:
            continue
        known = totals.get((model, provider))
        totals[model, provider] = usage if known is None else known.add(usage)
    usages = list(totals.values())
    if usages and last_prompt_tokens:
        usages[-1] = replace(usages[-1], last_prompt_tokens=last_prompt_tokens)
    return tuple(usages)


def _read_usage(row: Mapping[str, Any], turn_id: str, model: str, provider: str) -> TurnUsage:
    cost, status = _read_cost(row)
    return TurnUsage(
        turn_id=turn_id,
        model=model or None,
        provider=provider or None,
        input_tokens=as_count(row.get("input_tokens")),
        output_tokens=as_count(row.get("output_tokens")),
        cache_read_tokens=as_count(row.get("cache_read_tokens")),
        cache_write_tokens=as_count(row.get("cache_write_tokens")),
        reasoning_tokens=as_count(row.get("reasoning_tokens")),
        cost=cost,
        cost_status=status,
        cost_source=as_text(row.get("cost_source")) or None,
    )


def _read_cost(row: Mapping[str, Any]) -> tuple[Decimal | None, CostStatus | None]:
    """Return the cost; zero counts as a price only if Hermes says that it is one."""
    status = as_text(row.get("cost_status"))
    for key, kind in (("actual_cost_usd", CostStatus.ACTUAL), ("estimated_cost_usd", CostStatus.ESTIMATED)):
        value = row.get(key)
        if isinstance(value, int | float) and 0 < value < _MAX_COST:
            return Decimal(str(value)), kind
    return (Decimal(0), CostStatus.ESTIMATED) if status in _PRICED else (None, None)

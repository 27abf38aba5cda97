"""Plans how much is held for a call to a model, within the limits. Pure."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from palaver.config.budget_rules import (
    DEFAULT_MAX_TOKENS,
    INPUT_ESTIMATE_FACTOR,
    MIN_MAX_TOKENS,
    BudgetKey,
    BudgetPeriod,
    BudgetUnit,
    TokenPrice,
    UnitAmounts,
    WindowState,
)
from palaver.core.dataclass import dataclass
from palaver.sessions.usage import NANOS_PER_DOLLAR

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    max_tokens: int | None  # that the request has to ask for; None: no limit applies
    input_tokens: int
    output_tokens: int
    nanos: int | None  # None: the price is unknown
    is_shortened: bool = False  # the limits allow no longer answer
    has_limits: bool = False

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRefused:
    """The limit that a call would pass."""

    key: BudgetKey
    amounts: UnitAmounts
    needed: int | None  # nano-dollars or tokens that the shortest answer may need; None: the price is unknown


def plan_hold(
    input_tokens: int, max_tokens: int | None, price: TokenPrice | None, windows: Sequence[WindowState]
) -> Hold | HoldRefused:
    """Return what to hold for a call with an estimated prompt, so that no window passes a limit.

    Where a limit applies, the answer gets a maximum length. One that does not fit is shortened before it is refused.
    """
    prompt = ceil(input_tokens * INPUT_ESTIMATE_FACTOR)
    limited = [(window.key, each) for window in windows for each in window.amounts if each.limit is not None]
    wanted = output = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    if limited:
        wanted = output = min(wanted, DEFAULT_MAX_TOKENS)
    shortest = min(wanted, MIN_MAX_TOKENS)
    refusals = []
    for key, amounts in limited:
        unit = amounts.unit
        if unit is BudgetUnit.USD and price is None:
            refusals.append(HoldRefused(key=key, amounts=amounts, needed=None))
            continue
        fitting = _count_fitting_output((amounts.limit or 0) - amounts.total, unit, prompt, wanted, price)
        if fitting < shortest:
            needed = prompt + shortest
            if unit is BudgetUnit.USD and price is not None:
                needed = price.compute_nanos(prompt, shortest)
            refusals.append(HoldRefused(key=key, amounts=amounts, needed=needed))
        output = min(output, fitting)
    if refusals:
        # An unknown price first of all, then the limit that stays in the way for longest.
        return max(refusals, key=lambda each: (each.needed is None, each.key.period is BudgetPeriod.MONTH))
    return Hold(
        max_tokens=output if limited else max_tokens,
        input_tokens=prompt,
        output_tokens=output,
        nanos=None if price is None else price.compute_nanos(prompt, output),
        is_shortened=output < wanted,
        has_limits=bool(limited),
    )


def _count_fitting_output(room: int, unit: BudgetUnit, prompt: int, wanted: int, price: TokenPrice | None) -> int:
    """Return how many tokens of an answer fit into what is left of a limit; negative if not even the prompt does."""
    if unit is BudgetUnit.TOKENS or price is None:
        return room - prompt
    if price.is_free:  # a limit in dollars does not concern it, also when that is used up
        return wanted
    left = room - price.compute_nanos(prompt, 0)
    if left < 0:
        return -1
    if not price.output_usd:
        return wanted
    return int(left * 1_000_000 / (price.output_usd * NANOS_PER_DOLLAR))

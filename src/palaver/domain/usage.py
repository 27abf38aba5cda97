"""What a turn used and what it cost.

Money is kept in whole nano-dollars, so that adding a million small turns is exact. A cost that nobody knows
is unknown, never zero: a session counts its unpriced turns beside the sum of the priced ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import StrEnum

from palaver.domain.errors import InvalidInput
from palaver.domain.text import is_storable

_NANO = Decimal(1_000_000_000)
_MOST_TOKENS = 10**12  # in one turn: a million million, so that no sum of turns overflows
_MOST_NANOS = 10**15  # in one turn: a million dollars


COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class CostStatus(StrEnum):
    """How sure a cost is."""

    UNKNOWN = "unknown"
    ESTIMATED = "estimated"
    ACTUAL = "actual"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """The usage of one turn with one model. What is None was not reported."""

    turn_id: str | None = None  # the same turn counted twice changes nothing
    model: str | None = None
    provider: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: Decimal | float | int | str | None = None  # US dollars
    cost_status: CostStatus | str | None = None  # with a cost: estimated unless said otherwise
    cost_source: str | None = None
    last_prompt_tokens: int | None = None  # how full the context was, replaces the former value

    def __post_init__(self) -> None:
        for name in (*COUNTERS, "last_prompt_tokens"):
            value = getattr(self, name)
            if type(value) is int:
                if 0 <= value <= _MOST_TOKENS:
                    continue
            elif value is None and name == "last_prompt_tokens":
                continue
            raise InvalidInput(f"{name}: {value!r} is not a number of tokens")
        for name in ("turn_id", "model", "provider", "cost_source"):
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and is_storable(text)):
                raise InvalidInput(f"{name}: {text!r} is not allowed; give it as text")
        if self.cost_status is not None and self.cost_status not in list(CostStatus):
            raise InvalidInput(f"cost_status: {self.cost_status!r} is not allowed; use one of {', '.join(CostStatus)}")
        if self.cost is not None:
            _ = self.nanos  # a cost that is none is refused here, not when it is stored

    @property
    def nanos(self) -> int | None:
        """The cost in nano-dollars, or None when nobody knows it."""
        if self.cost is None:
            return None
        try:
            nanos = int((Decimal(str(self.cost)) * _NANO).to_integral_value(ROUND_HALF_UP))
        except (InvalidOperation, ValueError, OverflowError):  # not a number, or not a finite one
            raise InvalidInput(f"cost: {self.cost!r} is not an amount of money") from None
        if not 0 <= nanos <= _MOST_NANOS:
            raise InvalidInput(f"cost: {self.cost!r} is not an amount a turn can cost")
        return nanos

    @property
    def status(self) -> CostStatus:
        """How sure the cost of this turn is."""
        if self.cost is None:
            return CostStatus.UNKNOWN
        return CostStatus(self.cost_status or CostStatus.ESTIMATED)

    @property
    def counts(self) -> bool:
        """Whether there is anything to add to the totals."""
        return bool(
            self.input_tokens
            or self.output_tokens
            or self.cost is not None
            or self.cache_read_tokens
            or self.cache_write_tokens
            or self.reasoning_tokens
        )

    def plus(self, other: TurnUsage) -> TurnUsage:
        """This and more of the same model in the same turn. What one of them cannot price, the sum cannot either."""
        unpriced = self.cost is None or other.cost is None
        return replace(
            other,
            **{name: getattr(self, name) + getattr(other, name) for name in COUNTERS},
            cost=None if unpriced else Decimal(str(self.cost)) + Decimal(str(other.cost)),
            cost_status=None if unpriced else other.cost_status,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """The usage of a whole session."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int | None = None
    cost_status: CostStatus = CostStatus.UNKNOWN
    cost_source: str | None = None
    unpriced_turns: int = 0

    @property
    def total_tokens(self) -> int:
        """Everything that went in and came out."""
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> Decimal | None:
        """US dollars of the priced turns, or None when none has a price."""
        return None if self.cost_nanos is None else Decimal(self.cost_nanos) / _NANO

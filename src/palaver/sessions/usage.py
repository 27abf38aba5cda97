"""Usage: the tokens and the cost of turns.

Money is stored in whole nano-dollars, so that adding a million small turns is exact. A cost that is not known is
None, never zero: a session counts its unpriced turns beside the sum of the priced ones.
"""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.text import is_storable
from palaver.sessions.wire import JsonReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


NANOS_PER_DOLLAR = 1_000_000_000
_MAX_TURN_TOKENS = 10**12  # no sum of turns overflows
_MAX_TURN_NANOS = 10**15  # a million dollars

TOKEN_COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_get_token_counters = attrgetter(*TOKEN_COUNTERS)


class CostStatus(StrEnum):
    UNKNOWN = "unknown"
    ESTIMATED = "estimated"
    ACTUAL = "actual"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """The usage of one turn with one model. None means not reported."""

    turn_id: str | None = None  # recording the same turn twice counts once
    model: str | None = None
    provider: str | None = None
    base_url: str | None = None  # of the provider, where there are several; without credentials
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: Decimal | float | int | str | None = None  # US dollars
    cost_status: CostStatus | str | None = None  # None with a cost: estimated
    cost_source: str | None = None
    last_prompt_tokens: int | None = None  # how full the context was; replaces the previous value

    def __post_init__(self) -> None:
        for name in (*TOKEN_COUNTERS, "last_prompt_tokens"):
            value = getattr(self, name)
            is_unknown = value is None and name == "last_prompt_tokens"
            if not is_unknown and (type(value) is not int or not 0 <= value <= _MAX_TURN_TOKENS):
                raise InvalidInput(f"{name}: {value!r} is not a valid number of tokens")
        for name in ("turn_id", "model", "provider", "base_url", "cost_source"):
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and is_storable(text)):
                raise InvalidInput(f"{name}: {text!r} is not allowed (text)")
        if self.base_url is not None:
            object.__setattr__(self, "base_url", _remove_credentials(self.base_url))
        if self.cost_status is not None and self.cost_status not in list(CostStatus):
            raise InvalidInput(f"cost_status: {self.cost_status!r} is not allowed ({', '.join(CostStatus)})")
        if self.cost is not None:
            _ = self.cost_nanos  # an invalid cost is rejected here, not when it is stored

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as JSON-ready data; the cost is text, because a float would round it."""
        data = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "cost"}
        return data | {
            "cost_status": None if self.cost_status is None else str(self.cost_status),
            "cost_usd": None if self.cost is None else f"{Decimal(str(self.cost)):f}",
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TurnUsage:
        """Read what `to_dict` returned, with the cost as a Decimal; unknown keys are ignored."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data and each.name != "cost"}
        cost = data.get("cost_usd")
        return cls(**known, cost=None if cost is None else Decimal(cost))

    @property
    def cost_nanos(self) -> int | None:
        """The cost in nano-dollars, or None when it is not known."""
        if self.cost is None:
            return None
        try:
            nanos = int((Decimal(str(self.cost)) * NANOS_PER_DOLLAR).to_integral_value(ROUND_HALF_UP))
        except (InvalidOperation, ValueError, OverflowError):  # not a number, or not a finite one
            raise InvalidInput(f"cost: {self.cost!r} is not an amount of money") from None
        if not 0 <= nanos <= _MAX_TURN_NANOS:
            raise InvalidInput(f"cost: {self.cost!r} is not a possible cost of one turn")
        return nanos

    @property
    def effective_cost_status(self) -> CostStatus:
        """The status of the cost: `unknown` without a cost, `estimated` by default with one."""
        if self.cost is None:
            return CostStatus.UNKNOWN
        return CostStatus(self.cost_status or CostStatus.ESTIMATED)

    @property
    def has_usage(self) -> bool:
        return self.cost is not None or any(_get_token_counters(self))

    def add(self, other: TurnUsage) -> TurnUsage:
        """Return the sum with more usage of the same model in the same turn. It has a cost only if both have one."""
        unpriced = self.cost is None or other.cost is None
        prompt_tokens = self.last_prompt_tokens if other.last_prompt_tokens is None else other.last_prompt_tokens
        return replace(
            other,
            **{name: getattr(self, name) + getattr(other, name) for name in TOKEN_COUNTERS},
            cost=None if unpriced else Decimal(str(self.cost)) + Decimal(str(other.cost)),
            cost_status=None if unpriced else other.cost_status,
            last_prompt_tokens=prompt_tokens,
        )


def _remove_credentials(url: str) -> str:
    """Return a URL without user name, password, query and fragment, of which any may hold a key."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as a broken IPv6 address
        raise InvalidInput(f"base_url: {url!r} is not a valid URL") from None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def format_dollars(nanos: int) -> str:
    return f"{Decimal(nanos) / NANOS_PER_DOLLAR:f}"  # without an exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSums:
    """The usage of several turns."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int | None = None  # of the priced turns
    unpriced_turns: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> Decimal | None:
        """The cost of the priced turns in US dollars, or None when no turn has a price."""
        return None if self.cost_nanos is None else Decimal(self.cost_nanos) / NANOS_PER_DOLLAR

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in TOKEN_COUNTERS},
            "cost_usd": None if self.cost_nanos is None else format_dollars(self.cost_nanos),
            "unpriced_turns": self.unpriced_turns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals(UsageSums):
    """The usage of a whole session."""

    cost_status: CostStatus = CostStatus.UNKNOWN
    cost_source: str | None = None

    def to_dict(self) -> dict[str, Any]:
        sums = UsageSums.to_dict(self)
        return {**sums, "cost_status": self.cost_status.value, "cost_source": self.cost_source}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> UsageTotals:
        reader = JsonReader("usage", data)
        dollars = reader.read_dollars("cost_usd")
        return cls(
            **reader.read_fields(cls, without={"cost_nanos"}),
            cost_nanos=None if dollars is None else int(dollars * NANOS_PER_DOLLAR),
        )


class UsageGrouping(StrEnum):
    """By what a usage report groups the tokens and cost of a period."""

    DAY = "day"  # in UTC
    MODEL = "model"
    PLATFORM = "platform"
    PERSON = "person"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(UsageSums):
    group: str | None = None  # None: usage that belongs to no group, or the total
    label: str = ""
    turns: int = 0


@dataclass(frozen=True, slots=True)
class UsageReport:
    rows: Sequence[UsageRow]
    total: UsageRow

"""What was used over a time, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NANO = Decimal(1_000_000_000)


class Grouping(StrEnum):
    """What belongs together in a report."""

    DAY = "day"  # in UTC
    MODEL = "model"
    PLATFORM = "platform"
    PERSON = "person"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one group used."""

    group: str | None = None  # None: what belongs to no group, or all of it
    label: str = ""
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int | None = None  # of the priced turns
    unpriced_turns: int = 0

    @property
    def cost(self) -> Decimal | None:
        """US dollars of the priced turns, or None when none has a price."""
        return None if self.cost_nanos is None else Decimal(self.cost_nanos) / _NANO


@dataclass(frozen=True, slots=True)
class Report:
    """The groups, and all of it together."""

    rows: Sequence[Spent]
    total: Spent

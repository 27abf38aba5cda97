"""A usage report: tokens and cost in a period, grouped."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.sessions.usage import NANOS_PER_DOLLAR

if TYPE_CHECKING:
    from collections.abc import Sequence


class UsageGrouping(StrEnum):
    DAY = "day"  # in UTC
    MODEL = "model"
    PLATFORM = "platform"
    PERSON = "person"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """The usage of one group."""

    group: str | None = None  # None: usage that belongs to no group, or the total
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
        """The cost of the priced turns in US dollars, or None when no turn has a price."""
        return None if self.cost_nanos is None else Decimal(self.cost_nanos) / NANOS_PER_DOLLAR


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The usage of each group, and the total."""

    rows: Sequence[UsageRow]
    total: UsageRow

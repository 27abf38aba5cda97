"""Calls to models beside the turns of conversations: for titles, memories, temporary answers and speech.

They are metered against the budgets as turns are, and what they have used is recorded without a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from palaver.money import calls_table as call_records
from palaver.sessions import usage_table as usage
from palaver.sessions.usage_table import NO_SESSION_NO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, TurnId
    from palaver.money.meter import MeteredWork
    from palaver.sessions.usage import TurnUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class SideWork:
    """The person and the place that such calls are made for; a `MeteredWork`."""

    owner: str
    person_id: PersonId
    audience_no: int
    platform: str
    session_no: int = NO_SESSION_NO
    facts: Mapping[str, Any] = field(default_factory=dict)
    turn_id: TurnId | None = None
    attempt: int = 0


def record_side_usage(
    tx: Transaction, work: MeteredWork, call_ids: Sequence[str], usages: Sequence[TurnUsage], now: int
) -> None:
    """Record the calls of a meter, and the usages that no meter records."""
    call_records.record_calls(tx, call_ids, now)
    for each in usages:
        usage.record_orphan_usage(tx, work, each, now)

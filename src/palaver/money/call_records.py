"""Records what calls to models have used: with the turn that made them, or beside it.

Always true: a call is recorded and counted once, in the transaction that deletes its row. A call whose end is not known
(its process died, or could not store it) is counted and recorded with all that was held for it: the provider may charge
for it.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from palaver.config.budget_rules import CallPurpose
from palaver.core.process_identity import is_owner_dead
from palaver.money import calls_table as model_calls, windows_table as budget_windows
from palaver.money.windows_table import WindowChange
from palaver.sessions import usage_table as usage
from palaver.sessions.usage import NANOS_PER_DOLLAR, CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.money.calls_table import CallRow
    from palaver.money.windows_table import WindowId
    from palaver.sessions.turn_leases import TurnLease

HOLD_COST_SOURCE = "estimate"


def make_estimated_usage(
    model: str, provider: str | None, input_tokens: int, output_tokens: int, nanos: int | None
) -> TurnUsage:
    """Make the usage of a call that its provider has not reported."""
    return TurnUsage(
        model=model.removeprefix(f"{provider}:"),
        provider=provider,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=None if nanos is None else Decimal(nanos) / NANOS_PER_DOLLAR,
        cost_status=CostStatus.UNKNOWN if nanos is None else CostStatus.ESTIMATED,
        cost_source=None if nanos is None else HOLD_COST_SOURCE,
    )


def make_settlement(call: CallRow, used: TurnUsage) -> WindowChange:
    """Return the change of each window of a call when it ends: what was held becomes what it has used."""
    nanos = used.cost_nanos
    return WindowChange(
        used_nanos=nanos or 0,
        held_nanos=-(call.held_nanos or 0),
        used_tokens=used.input_tokens + used.output_tokens,
        held_tokens=-call.held_tokens,
        unpriced_calls=1 if nanos is None else 0,
    )


def take_run_usage(tx: Transaction, lease: TurnLease) -> list[TurnUsage]:
    """Return what the calls of a run have used, for the caller to record, and forget the calls."""
    call_ids = model_calls.list_call_ids_of_run(tx, lease.turn_id, lease.owner, lease.attempt)
    return [used for _, used in _take(tx, call_ids)]


def record_calls(tx: Transaction, call_ids: Collection[str], now: int) -> None:
    """Record what calls have used that no turn records: of titles, memory turns, and runs that lost their turn."""
    for call, used in _take(tx, call_ids):
        usage.record_orphan_usage(tx, call, used, now)


def record_run_calls(tx: Transaction, lease: TurnLease, now: int) -> None:
    """Record what the calls of a run have used that cannot end its turn."""
    record_calls(tx, model_calls.list_call_ids_of_run(tx, lease.turn_id, lease.owner, lease.attempt), now)


def has_orphan_calls(tx: Transaction, created_before: int) -> bool:
    return bool(model_calls.list_orphan_call_ids(tx, created_before, is_owner_dead))


def recover_calls(tx: Transaction, created_before: int, now: int) -> int:
    """Record the calls of processes that have ended; return how many there were."""
    call_ids = model_calls.list_orphan_call_ids(tx, created_before, is_owner_dead)
    record_calls(tx, call_ids, now)
    return len(call_ids)


def add_usage_by_model(usages: Iterable[TurnUsage]) -> list[TurnUsage]:
    """Return one usage for each model."""
    by_model: dict[str, TurnUsage] = {}
    for each in usages:
        total = by_model.get(each.model or "")
        by_model[each.model or ""] = each if total is None else total.add(each)
    return list(by_model.values())


def _take(tx: Transaction, call_ids: Collection[str]) -> Sequence[tuple[CallRow, TurnUsage]]:
    """Delete calls, and return each with its usage; those that have none yet are settled at what was held."""
    taken = []
    changes: dict[WindowId, WindowChange] = {}
    for call in model_calls.take_calls(tx, call_ids):
        used = call.usage
        if used is None:
            used = _make_held_usage(call)
            settlement = make_settlement(call, used)
            for window in call.windows:
                changes[window] = changes.get(window, WindowChange()).add(settlement)
        if call.purpose is not CallPurpose.ANSWER:  # its prompt says nothing about the length of the conversation
            used = replace(used, last_prompt_tokens=None)
        taken.append((call, used))
    budget_windows.change_windows(tx, changes)
    return taken


def _make_held_usage(call: CallRow) -> TurnUsage:
    output_tokens = call.held_tokens - call.input_tokens
    return make_estimated_usage(call.model, call.provider, call.input_tokens, output_tokens, call.held_nanos)

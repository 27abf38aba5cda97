"""Calls to models that are under way, and those whose usage is not recorded with their turn yet.

Always true: each call is ended once. Its row gets its usage, or is deleted, in the transaction that gives back what it
holds in its windows; a call whose row is gone or has its usage changes nothing any more.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING

from palaver.config.budget_rules import CallPurpose
from palaver.core.background import is_owner_dead
from palaver.core.columns import Columns, insert_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders
from palaver.money import windows_table as budget_windows
from palaver.money.table import WindowTotals
from palaver.money.windows_table import WindowId
from palaver.sessions import usage_table as usage
from palaver.sessions.usage import NANOS_PER_DOLLAR, CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from palaver.core.ids import PersonId
    from palaver.sessions.turn_leases import TurnLease


HOLD_COST_SOURCE = "estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A call, and what it holds in its windows until it has its usage."""

    id: str
    owner: str  # the process, or its turn worker
    purpose: CallPurpose
    turn_id: str | None
    attempt: int
    session_no: int
    platform: str
    audience_no: int
    model: str
    provider: str | None
    windows: tuple[WindowId, ...]
    held_nanos: int | None  # None: the price is unknown
    held_tokens: int
    input_tokens: int  # of the held tokens, those of the prompt
    usage: TurnUsage | None  # None: not known yet
    created_at: int


_CALL_COLUMNS = Columns(CallRow, without=("windows", "usage"))
_COLUMNS = f"{_CALL_COLUMNS.format_select()}, windows, usage"


def insert(tx: Transaction, row: CallRow) -> None:
    columns = _CALL_COLUMNS.encode({column.name: getattr(row, column.name) for column in _CALL_COLUMNS.columns})
    insert_row(tx, "model_call", columns | {"windows": json.dumps(row.windows)})


def set_usage(tx: Transaction, call_id: str, usage: TurnUsage) -> CallRow | None:
    """Store what a call has used; return the call, or None if it has ended before."""
    sql = f"UPDATE model_call SET usage = $2 WHERE id = $1 AND usage IS NULL RETURNING {_COLUMNS}"
    row = tx.fetch_one(sql, call_id, json.dumps(usage.to_dict()))
    return None if row is None else _call_from_row(row)


def delete_unused(tx: Transaction, call_id: str) -> CallRow | None:
    """Delete a call that has used nothing; return it, or None if it has ended before."""
    row = tx.fetch_one(f"DELETE FROM model_call WHERE id = $1 AND usage IS NULL RETURNING {_COLUMNS}", call_id)
    return None if row is None else _call_from_row(row)


def _list_call_ids_of_run(tx: Transaction, lease: TurnLease) -> list[str]:
    statement = "SELECT id FROM model_call WHERE turn_id = $1 AND owner = $2 AND attempt = $3"
    rows = tx.fetch_all(statement, lease.turn_id, lease.owner, lease.attempt)
    return [call_id for (call_id,) in rows]


def list_orphan_call_ids(tx: Transaction, created_before: int) -> list[str]:
    """List the calls of processes that have ended, and those that are too old to be under way.

    Calls of a run whose turn is not recovered yet are left out: they show that it had begun.
    """
    sql = """SELECT id, owner, created_at FROM model_call WHERE NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = turn_id
        AND t.state = 'running' AND t.lease_owner = model_call.owner AND t.attempt = model_call.attempt) ORDER BY no"""
    rows = tx.fetch_all(sql)
    dead_owners = {owner for owner in {owner for _, owner, _ in rows} if is_owner_dead(owner)}
    return [call_id for call_id, owner, created_at in rows if owner in dead_owners or created_at < created_before]


def move_to_person(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Let the calls that hold something in the windows of one person hold it in those of another."""
    _change_held_windows(
        tx,
        lambda window: window._replace(subject=str(to_id)) if window[:2] == ("person", from_id) else window,
    )


def forget_people(tx: Transaction, person_ids: Collection[str]) -> None:
    """Let the calls that are under way count in no window of these people, who are erased."""
    _change_held_windows(
        tx, lambda window: None if window.scope == "person" and window.subject in person_ids else window
    )


def _change_held_windows(tx: Transaction, change: Callable[[WindowId], WindowId | None]) -> None:
    """Replace the windows of all calls; None drops one."""
    for call_id, windows in tx.fetch_all(f"SELECT id, windows FROM model_call ORDER BY no {tx.for_update}"):
        changed = json.dumps([kept for window in _parse_windows(windows) if (kept := change(window)) is not None])
        if changed != windows:
            tx.execute("UPDATE model_call SET windows = $2 WHERE id = $1", call_id, changed)


def _parse_windows(text: str) -> tuple[WindowId, ...]:
    return tuple(WindowId(*window) for window in json.loads(text))


def _call_from_row(row: Row) -> CallRow:
    windows, usage = row[len(_CALL_COLUMNS) :][:2]
    used = usage and TurnUsage.from_dict(json.loads(usage))
    return _CALL_COLUMNS.decode(row, windows=_parse_windows(windows), usage=used)


# ---- recording usage --------------------------------------------------------------------------------------------
# Records what calls to models have used: with the turn that made them, or beside it.
#
# Always true: a call is recorded and counted once, in the transaction that deletes its row. A call whose end is not
# known (its process died, or could not store it) is counted and recorded with all that was held for it: the provider
# may charge for it.


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


def make_settlement(call: CallRow, used: TurnUsage) -> WindowTotals:
    """Return the change of each window of a call when it ends: what was held becomes what it has used."""
    nanos = used.cost_nanos
    return WindowTotals(
        used_nanos=nanos or 0,
        held_nanos=-(call.held_nanos or 0),
        used_tokens=used.input_tokens + used.output_tokens,
        held_tokens=-call.held_tokens,
        unpriced_calls=1 if nanos is None else 0,
    )


def take_run_usage(tx: Transaction, lease: TurnLease) -> list[TurnUsage]:
    """Return what the calls of a run have used, for the caller to record, and forget the calls."""
    return [used for _, used in _take(tx, _list_call_ids_of_run(tx, lease))]


def record_calls(tx: Transaction, call_ids: Collection[str], now: int) -> None:
    """Record what calls have used that no turn records: of titles, memory turns, and runs that lost their turn."""
    for call, used in _take(tx, call_ids):
        usage.record_orphan_usage(tx, call, used, now)


def record_run_calls(tx: Transaction, lease: TurnLease, now: int) -> None:
    """Record what the calls of a run have used that cannot end its turn."""
    record_calls(tx, _list_call_ids_of_run(tx, lease), now)


def recover_calls(tx: Transaction, created_before: int, now: int) -> int:
    """Record the calls of processes that have ended; return how many there were."""
    call_ids = list_orphan_call_ids(tx, created_before)
    record_calls(tx, call_ids, now)
    return len(call_ids)


def add_usage_by_model(usages: Iterable[TurnUsage]) -> list[TurnUsage]:
    by_model: dict[str, TurnUsage] = {}
    for each in usages:
        total = by_model.get(each.model or "")
        by_model[each.model or ""] = each if total is None else total.add(each)
    return list(by_model.values())


def _take(tx: Transaction, call_ids: Collection[str]) -> Sequence[tuple[CallRow, TurnUsage]]:
    """Delete calls, and return each with its usage; those that have none yet are settled at what was held.

    Those that others have taken are left out.
    """
    if not call_ids:
        return []
    delete = f"DELETE FROM model_call WHERE id IN ({build_placeholders(len(call_ids))}) RETURNING {_COLUMNS}, no"
    taken = []
    changes: dict[WindowId, WindowTotals] = {}
    for call in map(_call_from_row, sorted(tx.fetch_all(delete, *call_ids), key=itemgetter(-1))):
        used = call.usage
        if used is None:
            output_tokens = call.held_tokens - call.input_tokens
            used = make_estimated_usage(call.model, call.provider, call.input_tokens, output_tokens, call.held_nanos)
            settlement = make_settlement(call, used)
            for window in call.windows:
                changes[window] = changes.get(window, WindowTotals()).plus(settlement)
        if call.purpose is not CallPurpose.ANSWER:  # its prompt says nothing about the length of the conversation
            used = replace(used, last_prompt_tokens=None)
        taken.append((call, used))
    budget_windows.change_windows(tx, changes)
    return taken

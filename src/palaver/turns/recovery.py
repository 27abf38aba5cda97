"""Recovers the turns of workers that died: retries them, or ends them as interrupted or failed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.core.errors import InvalidMessage
from palaver.core.process_identity import is_owner_dead
from palaver.sessions import drafts, turn_leases
from palaver.sessions.draft import START_POSITION, build_turn_messages
from palaver.sessions.turn import (
    CrashedTurnAction,
    InterruptReason,
    TurnKind,
    TurnState,
    compute_requeue_delay,
    decide_crashed_turn,
)
from palaver.turns.finish import build_messages, build_text_only_messages, finish_turn

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.message import Message
    from palaver.sessions.turn_leases import OrphanTurn, TurnLease

TOO_MANY_CRASHES_REASON = "Palaver crashed {count} times while answering this message, so it will not try again."


def has_orphans(tx: Transaction, now: int) -> bool:
    return turn_leases.has_orphan(tx, now, is_owner_dead)


def recover_orphans(tx: Transaction, config: GatewayConfig, now: int) -> int:
    """Requeue or end every turn whose worker died; return how many there were. Two callers cannot both get one."""
    orphans = turn_leases.list_orphans(tx, now, is_owner_dead)
    for orphan in orphans:
        _recover(tx, config, orphan, now)
    return len(orphans)


def recover_broken_run(tx: Transaction, config: GatewayConfig, lease: TurnLease, now: int) -> None:
    """Requeue or end the turn of a run that broke off in this process, without waiting for its lease to expire."""
    _recover(tx, config, turn_leases.load_orphan(tx, lease), now)


def _recover(tx: Transaction, config: GatewayConfig, orphan: OrphanTurn, now: int) -> None:
    lease = orphan.lease
    crash_count = lease.crash_count + orphan.has_begun
    action = decide_crashed_turn(
        had_side_effects=orphan.has_side_effects, crash_count=crash_count, stop_request=orphan.stop_request
    )
    if action is CrashedTurnAction.RETRY:
        delay = timedelta(0) if orphan.has_begun else compute_requeue_delay(lease.attempt)
        turn_leases.requeue_turn(tx, lease, crash_count, now + delay // timedelta(microseconds=1) if delay else 0)
        drafts.delete(tx, lease.turn_no)
        return
    if action is CrashedTurnAction.FAIL:
        error = TOO_MANY_CRASHES_REASON.format(count=crash_count)
        messages = _load_partial_answer(tx, lease, TurnState.FAILED)
        finish_turn(tx, config, lease, messages, (), TurnState.FAILED, error, now)
        return
    reason = InterruptReason.SERVER_CRASHED if orphan.stop_request is None else InterruptReason.STOPPED
    messages = _load_partial_answer(tx, lease, TurnState.INTERRUPTED)
    facts = {"reason": reason.value}
    finish_turn(tx, config, lease, messages, (), TurnState.INTERRUPTED, reason.explain(), now, facts=facts)


def _load_partial_answer(tx: Transaction, lease: TurnLease, state: TurnState) -> list[Message]:
    """Load what a dead worker had stored of its answer; only the text, if its driver wrote what the log cannot hold."""
    if lease.kind is TurnKind.COMPACT:
        return []
    draft = drafts.load(tx, lease)
    try:
        fields = build_turn_messages(draft.get_pieces_since(START_POSITION))
        return build_messages([message | {"answers": lease.input_seq} for message in fields], state)
    except InvalidMessage:
        return build_text_only_messages(draft, lease.input_seq)

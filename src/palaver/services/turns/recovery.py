"""Recovers the turns of workers that died: retries them, or ends them as interrupted or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.draft import START_POSITION, build_turn_messages
from palaver.domain.errors import InvalidMessage
from palaver.domain.turn import CrashedTurnAction, StopRequest, TurnKind, TurnState, decide_crashed_turn
from palaver.services.process_identity import is_owner_dead
from palaver.services.turns.finish import (
    STOPPED_REASON,
    build_messages,
    build_text_only_messages,
    finish_turn,
)
from palaver.storage import drafts, turn_leases

if TYPE_CHECKING:
    from palaver.domain.message import Message
    from palaver.storage.engines.base import Transaction
    from palaver.storage.turn_leases import TurnLease

WORKER_DIED_REASON = (
    "Palaver stopped while a tool was running, so we don't know if the tool finished. Tell me how you want to continue."
)
TOO_MANY_CRASHES_REASON = "Palaver crashed {attempts} times while answering this message, so it will not try again."


def has_orphans(tx: Transaction, now: int) -> bool:
    return turn_leases.has_orphan(tx, now, is_owner_dead)


def recover_orphans(tx: Transaction, now: int) -> int:
    """Requeue or end every turn whose worker died; return how many there were. Two callers cannot both get one."""
    orphans = turn_leases.list_orphans(tx, now, is_owner_dead)
    for orphan in orphans:
        lease = orphan.lease
        action = decide_crashed_turn(
            had_side_effects=orphan.has_side_effects, attempt=lease.attempt, stop_request=orphan.stop_request
        )
        if action is CrashedTurnAction.RETRY:
            turn_leases.requeue_turn(tx, lease)
            drafts.delete(tx, lease.turn_no)
            continue
        state, error = _explain_end(lease, action, orphan.stop_request)
        finish_turn(tx, lease, _load_partial_answer(tx, lease, state), (), state, error, now)
    return len(orphans)


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


def _explain_end(
    lease: TurnLease, action: CrashedTurnAction, stop_request: StopRequest | None
) -> tuple[TurnState, str]:
    if action is CrashedTurnAction.FAIL:
        return TurnState.FAILED, TOO_MANY_CRASHES_REASON.format(attempts=lease.attempt)
    return TurnState.INTERRUPTED, WORKER_DIED_REASON if stop_request is None else STOPPED_REASON

"""Claims turns for a worker, and ends those whose sender lost access while their message waited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.accounts import access
from palaver.people.model import Role
from palaver.sessions import turn_leases
from palaver.sessions.turn import InterruptReason, TurnState
from palaver.turns.finish import finish_turn

if TYPE_CHECKING:
    from palaver.config.agent_rules import TurnRules
    from palaver.core.engines.base import Transaction
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.turn_leases import ClaimRequest, TurnLease


def claim_turns(
    tx: Transaction, config: GatewayConfig, rules: TurnRules, request: ClaimRequest, now: int
) -> list[TurnLease]:
    """Claim the next turns, within the limits, of people who may still talk to the agent."""
    claimed: list[TurnLease] = []
    has_refused = True
    while has_refused:
        has_refused = False
        free = request.max_turns - len(claimed)
        rest = replace(request, max_turns=free, is_idle=request.is_idle and not claimed)
        for lease in turn_leases.claim_turns(tx, rest, now):
            if _can_be_answered(tx, lease, rules):
                claimed.append(lease)
            else:
                has_refused = True
                _end_unanswered(tx, config, lease, now)
    return claimed


def _can_be_answered(tx: Transaction, lease: TurnLease, rules: TurnRules) -> bool:
    if lease.person_id is None or lease.person_role not in {None, Role.GUEST}:
        return True  # the platform does not tell people apart, or they may talk to the agent everywhere
    return access.can_guest_be_answered(tx, lease.person_id, lease.address, rules)


def _end_unanswered(tx: Transaction, config: GatewayConfig, lease: TurnLease, now: int) -> None:
    """End a turn whose sender has no access; the reason is in the log, and nothing is sent to them."""
    reason = InterruptReason.ACCESS_ENDED
    lease = replace(lease, address=None)
    facts = {"reason": reason.value}
    finish_turn(tx, config, lease, (), (), TurnState.INTERRUPTED, reason.explain(), now, facts=facts)

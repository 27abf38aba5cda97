"""What the settings of a conversation mean for a turn: they apply as far as the person who asks may use them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.person import Role
from palaver.services.models import is_model_allowed
from palaver.services.profiles import apply_choices
from palaver.storage import people

if TYPE_CHECKING:
    from palaver.services.profiles import TurnChoices
    from palaver.services.turns.dependencies import RunDependencies
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_settings import SessionSettings
    from palaver.storage.turn_leases import TurnLease


def load_turn_choices(
    tx: Transaction, dependencies: RunDependencies, lease: TurnLease, settings: SessionSettings
) -> TurnChoices:
    """Return what the settings mean for the person of this turn; a turn without a person has the rights of a guest."""
    person_row = people.find_by_id(tx, lease.person_id) if lease.person_id else None
    role = person_row.person.role if person_row else Role.GUEST
    agent, rules = dependencies.agent, dependencies.rules
    return apply_choices(
        dependencies.profile,
        settings,
        agent.check_model,
        lambda model: is_model_allowed(agent, rules, role, model),
    )

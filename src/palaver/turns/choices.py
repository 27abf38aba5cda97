"""What the settings of a conversation mean for a turn: they apply as far as the person who asks may use them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.agent.models import is_model_allowed
from palaver.agent.profiles import apply_choices
from palaver.people import table as people
from palaver.people.model import Role

if TYPE_CHECKING:
    from palaver.agent.profiles import TurnChoices
    from palaver.core.engines.base import Transaction
    from palaver.sessions.settings_table import SessionSettings
    from palaver.sessions.turn_leases import TurnLease
    from palaver.turns.dependencies import RunDependencies


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

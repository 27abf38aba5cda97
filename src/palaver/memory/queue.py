"""Queues memory turns, in the transaction of what they follow, and decides for whom they may run.

Always true: nothing is learned where `memory.learn` is off, where the memory toolset is not available, from guests,
from jobs and webhooks, or in a person's own lane in a group, where other people read the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.agent import toolsets
from palaver.agent.toolset_names import MEMORY_TOOLSET
from palaver.memory import learning_table as memory_turns
from palaver.people import table as people
from palaver.sessions import session_privacy, settings_table as session_settings, table as sessions
from palaver.sessions.gateway_config import MACHINE_PLATFORMS

if TYPE_CHECKING:
    from palaver.config.agent_rules import TurnRules
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.memory.model import MemoryTurnKind
    from palaver.people.model import Person
    from palaver.sessions.session_rows import SessionRow

_END_OF_LOG = 2**62


def queue_memory_turn(
    tx: Transaction,
    rules: TurnRules,
    session_no: int,
    kind: MemoryTurnKind,
    now: int,
    *,
    up_to_seq: int = _END_OF_LOG,
) -> bool:
    """Queue a memory turn for what people wrote in a session since the last one; False if none is due or allowed."""
    if not rules.memory.learn:
        return False
    row = sessions.get_by_no(tx, session_no)
    unread = memory_turns.find_unread_messages(tx, session_no, up_to_seq)
    if unread is None:
        return False
    candidates = unread.author_ids if row.session.shared else (memory_turns.find_audience_person(tx, row.audience_no),)
    for person_id in candidates:
        if find_learner(tx, rules, row, person_id) is not None and person_id is not None:
            memory_turns.queue(tx, session_no, unread.last_seq, person_id, kind, now)
            return True
    return False


def find_learner(tx: Transaction, rules: TurnRules, row: SessionRow, person_id: PersonId | None) -> Person | None:
    """Return the person if the agent may learn for them in this conversation; None otherwise."""
    session = row.session
    person_row = people.find_by_id(tx, person_id) if person_id is not None else None
    if person_row is None or session.platform in MACHINE_PLATFORMS:
        return None
    if not is_memory_available(row, rules, person_row.person):
        return None
    if MEMORY_TOOLSET in session_settings.load(tx, row.no).disabled_toolsets:
        return None
    is_private = session_privacy.is_private_to(tx, row, person_row.person.id)
    return person_row.person if is_private else None


def is_memory_available(row: SessionRow, rules: TurnRules, person: Person) -> bool:
    """Whether the operator's rules give a person the memory toolset in a conversation."""
    return MEMORY_TOOLSET in toolsets.list_session_toolsets(row.session, rules, (), person.role)

"""What a memory turn looks at: the messages that people wrote themselves, and what is remembered already.

Always true: only text that people wrote in this conversation, without the files, quotes and results that it came with.
Of a shared conversation, only what people wrote for whom the agent may learn; of one person's, only their own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.agent.toolset_names import MEMORY_TOOLSET
from palaver.core.errors import SessionNotFound
from palaver.core.ids import new_turn_id
from palaver.memory import learning_table as memory_turns, table as memories
from palaver.memory.learning_prompt import Statement, choose_statements
from palaver.memory.model import MAX_MEMORIES_PER_AUDIENCE
from palaver.memory.queue import find_learner
from palaver.sessions import log_table as events, settings_table as session_settings, table as sessions
from palaver.sessions.model import StartReason
from palaver.sessions.turn import TurnKind
from palaver.sessions.turn_leases import TurnLease
from palaver.turns.choices import load_turn_choices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.memory.learning_table import MemoryTurn
    from palaver.memory.model import Memory
    from palaver.sessions.events import Event
    from palaver.sessions.message import Message
    from palaver.sessions.session_rows import SessionRow
    from palaver.turns.dependencies import RunDependencies

_PAGE_MESSAGES = 100
_MAX_READ_MESSAGES = 1000  # of people and of the agent; older ones are not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningMaterial:
    """What one memory turn needs."""

    lease: TurnLease  # on whose behalf, in which conversation: for its usage
    model: str | None
    statements: Sequence[Statement]  # the oldest first
    known: Sequence[Memory]  # of the conversation's audience, the newest first


def load_material(tx: Transaction, dependencies: RunDependencies, turn: MemoryTurn) -> LearningMaterial | None:
    """Load what a memory turn looks at; None if it may not run any more."""
    try:
        row = sessions.get_by_no(tx, turn.session_no)
    except SessionNotFound:
        return None
    if find_learner(tx, dependencies.rules, row, turn.person_id) is None:
        return None
    lease = _make_lease(row, turn)
    choices = load_turn_choices(tx, dependencies, lease, session_settings.load(tx, row.no))
    if choices.toolsets is not None and MEMORY_TOOLSET not in choices.toolsets:
        return None
    newest_first = _iterate_statements(tx, dependencies, row, turn)
    return LearningMaterial(
        lease=lease,
        model=choices.model,
        statements=choose_statements(newest_first),
        known=memories.search(tx, [row.audience_no], "", MAX_MEMORIES_PER_AUDIENCE),
    )


def _make_lease(row: SessionRow, turn: MemoryTurn) -> TurnLease:
    """Describe the memory turn as a turn, so that its model and usage are those of one."""
    return TurnLease(
        turn_no=0,
        turn_id=new_turn_id(),
        session_no=row.no,
        session_id=row.session.id,
        platform=str(row.session.platform),
        audience_no=row.audience_no,
        owner=turn.owner,
        attempt=1,
        kind=TurnKind.ANSWER,
        input_seq=turn.up_to_seq,
        person_id=turn.person_id,
        address=None,
        reply_to=None,
        facts={},
    )


def _iterate_statements(
    tx: Transaction, dependencies: RunDependencies, row: SessionRow, turn: MemoryTurn
) -> Iterator[Statement]:
    """Yield what people wrote since the previous memory turn, the newest first."""
    after = memory_turns.find_covered_seq(tx, row.no, turn.up_to_seq)
    if row.session.start_reason is StartReason.FORK:
        after = max(after, memory_turns.find_copied_seq(tx, row.no))
    is_learner: dict[PersonId | None, bool] = {}
    for event in _iterate_user_messages(tx, row.no, after, turn.up_to_seq):
        if event.message is None:
            continue
        if not row.session.shared and event.person_id not in {None, turn.person_id}:
            continue  # an owner wrote in this person's conversation
        if row.session.shared and event.person_id not in is_learner:
            learner = find_learner(tx, dependencies.rules, row, event.person_id)
            is_learner[event.person_id] = learner is not None
        if not row.session.shared or is_learner[event.person_id]:
            author = event.message.author.name if event.message.author and row.session.shared else ""
            yield Statement(_get_written_text(event.message), author)


def _iterate_user_messages(tx: Transaction, session_no: int, after: int, up_to: int) -> Iterator[Event]:
    before, read_count = up_to + 1, 0
    while read_count < _MAX_READ_MESSAGES:
        page = events.list_messages(tx, session_no, before=before, limit=_PAGE_MESSAGES)
        for event in reversed(page):
            if event.seq <= after:
                return
            if event.message is not None and event.message.role == "user":
                yield event
        if len(page) < _PAGE_MESSAGES:
            return
        before, read_count = page[0].seq, read_count + len(page)


def _get_written_text(message: Message) -> str:
    """Return the text that the author typed, without files and without what the message quotes."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in message.content
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") == "text")
    ]
    return " ".join(text for text in texts if isinstance(text, str))

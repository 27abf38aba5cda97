"""The memories that the agent is told of in its instructions, so that it need not ask for them.

They are chosen at the first turn of a session and again after each compaction; in between, the text stays the same byte
for byte, so that providers' prompt caches hit. Only a memory that is forgotten or edited changes it, at once: what a
person has forgotten must not be sent to a model again.

Always true: the same memories as for `recall`. In a conversation that several people share, only those of that
conversation; nothing where people outside the conversation's audience read along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.agent.tool_arguments import DATA_NOTICE
from palaver.agent.toolsets import MEMORY_TOOLSET
from palaver.memory import table as memories
from palaver.memory.queue import fit_memory_lines
from palaver.people import table as people
from palaver.sessions import list_table as session_privacy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.agent.base import Tool
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.table import SessionRow

MAX_BLOCK_CHARS: Final = 1500  # of the memories; older ones are left out
_MAX_BLOCK_MEMORIES: Final = 50  # more than fit
_HEADING: Final = f"The newest memories of earlier conversations; use `recall` to search all of them. {DATA_NOTICE}"


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    text: str  # empty for nothing
    chosen_ids: Sequence[str] | None = None  # of the memories, if they were chosen now and have to be stored


def load_memory_block(
    tx: Transaction, row: SessionRow, person_id: PersonId | None, tools: Sequence[Tool]
) -> MemoryBlock:
    """Load the text about memories for a turn of a person with these tools."""
    has_tools = any(tool.toolset == MEMORY_TOOLSET for tool in tools)
    if person_id is None or not has_tools or not session_privacy.is_private_to(tx, row, person_id):
        return MemoryBlock("")
    audiences = [row.audience_no] if row.session.shared else people.list_audiences(tx, person_id)
    ids = memories.find_current(tx, row.no)
    if ids is not None:
        return MemoryBlock(_format_block(fit_memory_lines(memories.list_by_ids(tx, audiences, ids), MAX_BLOCK_CHARS)))
    newest = memories.search(tx, audiences, "", _MAX_BLOCK_MEMORIES)
    lines = fit_memory_lines(newest, MAX_BLOCK_CHARS)
    return MemoryBlock(_format_block(lines), [each.id for each in newest[: len(lines)]])


def _format_block(lines: Sequence[str]) -> str:
    return "\n".join([_HEADING, *lines]) if lines else ""

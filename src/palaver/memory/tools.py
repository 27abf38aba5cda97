"""The tools `remember`, `recall` and `forget`, for the person who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from palaver.agent.base import Tool, ToolFailed
from palaver.agent.tool_arguments import (
    DATA_NOTICE,
    define_tool,
    integer_argument,
    quote_data,
    text_argument,
    texts_argument,
)
from palaver.agent.toolsets import MEMORY_TOOLSET
from palaver.core.dataclass import dataclass
from palaver.memory.model import MAX_AGENT_MEMORY_CHARS, MAX_MEMORY_CHARS, Memory, MemoryConflict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from palaver.memory.service import ConversationMemory

MAX_RECALLED = 50
MAX_SUPERSEDED = 20  # by one memory


class MemoryNotes(Protocol):
    """Memories to which can be added."""

    def find_conflict(self, text: str, supersedes: Sequence[str]) -> Awaitable[MemoryConflict | None]:
        """Return why a text should not be added in place of these memories; None if it may be."""

    def remember(self, text: str, supersedes: Sequence[str]) -> Awaitable[Memory]:
        """Save a memory, in place of those with these ids."""

    def recall(self, query: str, *, limit: int) -> Awaitable[Sequence[Memory]]:
        """Return memories with words of the query, or the newest ones if the query is empty."""


def make_memory_tools(memories: ConversationMemory) -> tuple[Tool, ...]:
    @define_tool("Delete a memory.", ForgetArguments, toolset=MEMORY_TOOLSET)
    async def forget(arguments: ForgetArguments) -> str:
        return f"Deleted: {format_memory(await memories.forget(arguments.what))}"

    return make_remember_tool(memories), make_recall_tool(memories), forget


@dataclass(frozen=True, slots=True)
class RememberArguments:
    text: str = text_argument("the fact, understandable on its own", max_chars=MAX_AGENT_MEMORY_CHARS)
    supersedes: tuple[str, ...] = texts_argument(
        "ids (m_…) of the memories that this one replaces", max_count=MAX_SUPERSEDED
    )


@dataclass(frozen=True, slots=True)
class RecallArguments:
    query: str = text_argument("words to search for; empty for the newest", required=False)
    limit: int = integer_argument("how many; 20 by default", default=20, maximum=MAX_RECALLED)


@dataclass(frozen=True, slots=True)
class ForgetArguments:
    what: str = text_argument("its id (m_…) from recall, or its exact text")


def make_remember_tool(memories: MemoryNotes) -> Tool:
    @define_tool(
        "Save a memory for later conversations: one fact that will still matter, in one full sentence."
        " Use it when you are asked to remember something, and never for passwords or other secrets."
        " If it corrects or extends memories that you know, name their ids in supersedes: it replaces them.",
        RememberArguments,
        toolset=MEMORY_TOOLSET,
    )
    async def remember(arguments: RememberArguments) -> str:
        text, supersedes = arguments.text, arguments.supersedes
        conflict = await memories.find_conflict(text, supersedes)
        if conflict is not None:
            raise ToolFailed(_describe_conflict(conflict))
        memory = await memories.remember(text, supersedes)
        replaced = f" (replaces {', '.join(supersedes)})" if supersedes else ""
        return f"Saved{replaced}: {format_memory(memory)}"

    return remember


def make_recall_tool(memories: MemoryNotes) -> Tool:
    @define_tool(
        "Search the memories of earlier conversations by words; without a query, returns the newest.",
        RecallArguments,
        toolset=MEMORY_TOOLSET,
    )
    async def recall(arguments: RecallArguments) -> str:
        found = await memories.recall(arguments.query, limit=arguments.limit)
        if not found and arguments.query:
            return "No memories match. An empty query returns the newest ones."
        if not found:
            return "There are no memories yet."
        return "\n".join([f"{len(found)} found. {DATA_NOTICE}", *(f"- {format_memory(memory)}" for memory in found)])

    return recall


def format_memory(memory: Memory) -> str:
    """Format a memory for a model: its id, its date, and its text as data."""
    return f"{memory.id} ({memory.created_at:%Y-%m-%d}): {quote_data(memory.text, MAX_MEMORY_CHARS)}"


def _describe_conflict(conflict: MemoryConflict) -> str:
    if conflict.similar is not None:
        return (
            f"Not saved: there is already {format_memory(conflict.similar)}. If the new text is better, call remember"
            f" with supersedes [{quote_data(conflict.similar.id, 40)}]. If it says the same, there is nothing to do."
        )
    candidates = "\n".join(f"- {format_memory(memory)}" for memory in conflict.replaceable)
    return (
        "Not saved: there are too many memories. Combine some of them into one sentence and call remember with their"
        f" ids in supersedes; the most similar and the oldest ones:\n{candidates}"
    )

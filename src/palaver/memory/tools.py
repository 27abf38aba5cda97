"""The tools `remember`, `recall` and `forget`, for the person who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from palaver.agent.base import Tool, ToolFailed
from palaver.agent.tool_arguments import DATA_NOTICE, Arguments, build_schema, quote_data, translate_errors
from palaver.agent.toolsets import MEMORY_TOOLSET
from palaver.memory.model import MAX_AGENT_MEMORY_CHARS, MAX_MEMORY_CHARS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from palaver.memory.model import Memory, MemoryConflict
    from palaver.memory.service import ConversationMemory

MAX_RECALLED = 50
MAX_SUPERSEDED = 20  # by one memory


class MemoryNotes(Protocol):
    """Memories to which can be added."""

    def find_conflict(self, text: str, supersedes: Sequence[str]) -> Awaitable[MemoryConflict | None]:
        """Return why a text should not be added in place of these memories; None if it may be."""
        ...

    def remember(self, text: str, supersedes: Sequence[str]) -> Awaitable[Memory]:
        """Save a memory, in place of those with these ids."""
        ...

    def recall(self, query: str, *, limit: int) -> Awaitable[Sequence[Memory]]:
        """Return memories with words of the query, or the newest ones if the query is empty."""
        ...


def make_memory_tools(memories: ConversationMemory) -> tuple[Tool, ...]:
    """Make the tools of the memory toolset."""
    return make_remember_tool(memories), make_recall_tool(memories), _make_forget_tool(memories)


def make_remember_tool(memories: MemoryNotes) -> Tool:
    async def remember(values: Mapping[str, Any]) -> str:
        arguments = Arguments(values, "text", "supersedes")
        text, supersedes = arguments.get_text("text"), arguments.get_texts("supersedes", max_count=MAX_SUPERSEDED) or ()
        with translate_errors():
            conflict = await memories.find_conflict(text, supersedes)
            if conflict is not None:
                raise ToolFailed(_describe_conflict(conflict))
            memory = await memories.remember(text, supersedes)
        replaced = f" (replaces {', '.join(supersedes)})" if supersedes else ""
        return f"Saved{replaced}: {format_memory(memory)}"

    return Tool(
        name="remember",
        description=(
            "Save a memory for later conversations: one fact that will still matter, in one full sentence."
            " Use it when you are asked to remember something, and never for passwords or other secrets."
            " If it corrects or extends memories that you know, name their ids in supersedes: it replaces them."
        ),
        parameters=build_schema(
            ["text"],
            text={
                "type": "string",
                "maxLength": MAX_AGENT_MEMORY_CHARS,
                "description": "the fact, understandable on its own",
            },
            supersedes={
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MAX_SUPERSEDED,
                "description": "ids (m_…) of the memories that this one replaces",
            },
        ),
        run=remember,
        toolset=MEMORY_TOOLSET,
    )


def make_recall_tool(memories: MemoryNotes) -> Tool:
    async def recall(values: Mapping[str, Any]) -> str:
        arguments = Arguments(values, "query", "limit")
        query = arguments.get_text("query", required=False)
        limit = arguments.get_integer("limit", maximum=MAX_RECALLED) or 20
        with translate_errors():
            found = await memories.recall(query, limit=limit)
        if not found and query:
            return "No memories match. An empty query returns the newest ones."
        if not found:
            return "There are no memories yet."
        return "\n".join([f"{len(found)} found. {DATA_NOTICE}", *(f"- {format_memory(memory)}" for memory in found)])

    return Tool(
        name="recall",
        description="Search the memories of earlier conversations by words; without a query, returns the newest.",
        parameters=build_schema(
            [],
            query={"type": "string", "description": "words to search for; empty for the newest"},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_RECALLED,
                "description": "how many; 20 by default",
            },
        ),
        run=recall,
        toolset=MEMORY_TOOLSET,
    )


def _make_forget_tool(memories: ConversationMemory) -> Tool:
    async def forget(values: Mapping[str, Any]) -> str:
        what = Arguments(values, "what").get_text("what")
        with translate_errors():
            memory = await memories.forget(what)
        return f"Deleted: {format_memory(memory)}"

    return Tool(
        name="forget",
        description="Delete a memory.",
        parameters=build_schema(
            ["what"], what={"type": "string", "description": "its id (m_…) from recall, or its exact text"}
        ),
        run=forget,
        toolset=MEMORY_TOOLSET,
    )


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

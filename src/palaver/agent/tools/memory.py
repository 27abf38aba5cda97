"""The tools `remember`, `recall` and `forget`, for the person who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from palaver.agent.base import Tool
from palaver.agent.tools.arguments import DATA_NOTICE, Arguments, build_schema, quote_data, translate_errors
from palaver.domain.memory import MAX_MEMORY_CHARS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from palaver.domain.memory import Memory

TOOLSET = "memory"
TOOL_NAMES = frozenset({"remember", "recall", "forget"})
MAX_RECALLED = 50


class MemoryStore(Protocol):
    """The memories that one person may use in one conversation."""

    def remember(self, text: str) -> Awaitable[Memory]:
        """Save a memory."""
        ...

    def recall(self, query: str, *, limit: int) -> Awaitable[Sequence[Memory]]:
        """Return memories with words of the query, or the newest ones if the query is empty."""
        ...

    def forget(self, what: str) -> Awaitable[Memory]:
        """Delete the memory with this id or exact text."""
        ...


def make_memory_tools(memories: MemoryStore) -> tuple[Tool, ...]:
    """Make the tools of the memory toolset."""

    async def remember(values: Mapping[str, Any]) -> str:
        text = Arguments(values, "text").get_text("text")
        with translate_errors():
            memory = await memories.remember(text)
        return f"Saved: {_format_memory(memory)}"

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
        return "\n".join([f"{len(found)} found. {DATA_NOTICE}", *(f"- {_format_memory(memory)}" for memory in found)])

    async def forget(values: Mapping[str, Any]) -> str:
        what = Arguments(values, "what").get_text("what")
        with translate_errors():
            memory = await memories.forget(what)
        return f"Deleted: {_format_memory(memory)}"

    return (
        Tool(
            name="remember",
            description=(
                "Save a memory for later conversations: one fact that will still matter, in a full sentence."
                " Use it when you are asked to remember something, and never for passwords or other secrets."
            ),
            parameters=build_schema(
                ["text"],
                text={
                    "type": "string",
                    "maxLength": MAX_MEMORY_CHARS,
                    "description": "the fact, understandable on its own",
                },
            ),
            run=remember,
            toolset=TOOLSET,
        ),
        Tool(
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
            toolset=TOOLSET,
        ),
        Tool(
            name="forget",
            description="Delete a memory.",
            parameters=build_schema(
                ["what"], what={"type": "string", "description": "its id (m_…) from recall, or its exact text"}
            ),
            run=forget,
            toolset=TOOLSET,
        ),
    )


def _format_memory(memory: Memory) -> str:
    return f"{memory.id} ({memory.created_at:%Y-%m-%d}): {quote_data(memory.text, MAX_MEMORY_CHARS)}"

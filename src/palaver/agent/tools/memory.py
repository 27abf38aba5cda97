"""Tools to remember, recall and forget, for whoever is asking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from palaver.agent.base import Tool
from palaver.agent.tools.arguments import DATA, Arguments, as_data, schema, told
from palaver.domain.memory import LONGEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from palaver.domain.memory import Memory

TOOLSET = "memory"
MOST_RECALLED = 50


class Remembered(Protocol):
    """What is remembered for one asker in one conversation."""

    def remember(self, text: str) -> Awaitable[Memory]:
        """Keep something."""
        ...

    def recall(self, query: str, *, limit: int) -> Awaitable[Sequence[Memory]]:
        """What has words of the query; without one, the newest."""
        ...

    def forget(self, what: str) -> Awaitable[Memory]:
        """Let go of what has this id or says this."""
        ...


def memory_tools(memories: Remembered) -> tuple[Tool, ...]:
    """The tools of this set."""

    async def remember(given: Mapping[str, Any]) -> str:
        text = Arguments(given, "text").text("text")
        with told():
            memory = await memories.remember(text)
        return f"It is remembered: {_line(memory)}"

    async def recall(given: Mapping[str, Any]) -> str:
        arguments = Arguments(given, "query", "limit")
        query, limit = arguments.text("query", needed=False), arguments.number("limit", most=MOST_RECALLED) or 20
        with told():
            found = await memories.recall(query, limit=limit)
        if not found:
            return "Nothing is remembered about this; an empty query gives the newest." if query else "Nothing yet."
        return "\n".join([f"{len(found)} remembered. {DATA}", *(f"- {_line(memory)}" for memory in found)])

    async def forget(given: Mapping[str, Any]) -> str:
        what = Arguments(given, "what").text("what")
        with told():
            memory = await memories.forget(what)
        return f"It is forgotten: {_line(memory)}"

    return (
        Tool(
            name="remember",
            description=(
                "Remember something for later conversations: one fact that will still matter, in a whole sentence."
                " Do so when you are asked to, and never for passwords or other secrets."
            ),
            parameters=schema(
                ["text"],
                text={"type": "string", "maxLength": LONGEST, "description": "the fact, understandable by itself"},
            ),
            run=remember,
            toolset=TOOLSET,
        ),
        Tool(
            name="recall",
            description="What was remembered in earlier conversations, by words; without a query, the newest.",
            parameters=schema(
                [],
                query={"type": "string", "description": "words to look for; empty for the newest"},
                limit={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_RECALLED,
                    "description": "how many; 20 by default",
                },
            ),
            run=recall,
            toolset=TOOLSET,
        ),
        Tool(
            name="forget",
            description="Forget something that was remembered.",
            parameters=schema(
                ["what"], what={"type": "string", "description": "its id (m_…) as recall gives it, or its exact text"}
            ),
            run=forget,
            toolset=TOOLSET,
        ),
    )


def _line(memory: Memory) -> str:
    return f"{memory.id} ({memory.created_at:%Y-%m-%d}): {as_data(memory.text, LONGEST)}"

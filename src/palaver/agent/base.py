"""The port to an agent: what it is asked, what it yields, what it may use.

A driver is given a whole request and yields events as they come. It runs the tools it was given and yields each
call and each result. What it cannot do it raises as an `AgentError` whose text is fit for the person; it retries
what is worth retrying by itself, as long as nothing was yielded. Being cancelled or closed at any moment is
normal: somebody pressed stop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from palaver.domain.ids import TurnId
    from palaver.domain.usage import TurnUsage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More words of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of what the model thinks on its way to the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent is about to use a tool."""

    id: str
    name: str
    arguments: str  # JSON


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    id: str
    name: str
    content: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Used:
    """What a model used; several in a turn add up per model."""

    usage: TurnUsage  # without turn_id; with cost where it can be known


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the person should know about this turn: a fallback model was used, the context was shortened."""

    text: str


AgentEvent = TextDelta | ReasoningDelta | ToolCall | ToolResult | Used | Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something the agent may use in this turn, on behalf of whoever asked."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema of an object
    run: Callable[[Mapping[str, Any]], Awaitable[str]]  # raises ToolFailed with words for the model
    acts: bool = False  # running it twice is not the same as running it once
    toolset: str = ""


class ToolFailed(Exception):
    """A tool could not do it; the text is for the model, which may try otherwise."""


async def _nothing() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """One turn, as the agent sees it."""

    turn_id: TurnId | None = None
    instructions: str = ""  # the system prompt; byte-stable within a session
    # The conversation in the shape chat models use (role, content, tool_calls, tool_call_id …), ending with what is
    # to be answered; made by `agent/history.py`, so calls and results are paired.
    messages: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Tool] = ()
    model: str | None = None  # the one chosen for this conversation, if any
    # What people said meanwhile and want the agent to know at once. Asked after each round of tool results;
    # each text is given once, as a user message before the model goes on.
    steering: Callable[[], Awaitable[Sequence[str]]] = field(default=_nothing)
    max_tokens: int | None = None


class Agent(Protocol):
    """Whatever can answer."""

    @property
    def model(self) -> str:
        """The model it uses when a conversation has chosen none, as in the settings: `openai:gpt-5`, `demo` …"""
        ...

    @property
    def description(self) -> str:
        """Which agent this is and why, in one line for the person: what `auto` has chosen and what to do for more."""
        ...

    def models(self) -> Sequence[str]:
        """Models a conversation may choose; the first is the default."""
        ...

    def check_model(self, name: str) -> None:
        """Refuse, as `InvalidInput`, a model this agent could never use, and say which it can."""
        ...

    async def context_window(self, name: str) -> int | None:
        """How many tokens a model takes, what it is to answer and its answer together; None when nobody knows."""
        ...

    def tool_servers(self) -> Sequence[str]:
        """The names of the servers it has tools from, also of those that cannot be reached at the moment."""
        ...

    async def tools(self) -> Sequence[Tool]:
        """Tools of its own: those of the MCP servers it is connected to. The runner passes them in the request."""
        ...

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Answer. Ends when the answer is complete; raises `AgentError` otherwise."""
        ...

    async def close(self) -> None:
        """Let go of connections and processes."""
        ...

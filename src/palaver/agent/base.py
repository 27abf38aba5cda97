"""The port to an agent: its requests, its events, its tools.

A driver gets a complete request and yields events as they happen. It runs the tools of the request and yields every
call and every result. If it cannot answer, it raises an `AgentError` whose text a person can read. It retries
temporary failures by itself, as long as it has not yielded anything. The caller may cancel or close it at any time:
that is what happens when a person stops an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from palaver.config.budget_rules import TokenPrice
    from palaver.core.ids import TurnId
    from palaver.sessions.usage import TurnUsage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the model's reasoning before the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent is about to run a tool."""

    id: str
    name: str
    arguments: str  # JSON


@dataclass(frozen=True, slots=True)
class ToolResult:
    id: str
    name: str
    content: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Tokens and cost of one request to a model; the reports of a turn add up per model."""

    usage: TurnUsage  # without turn_id; with the cost if it is known
    is_recorded: bool = False  # the meter keeps it until the turn has ended; see `HeldCall.is_recorded`


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for the person about this turn: a fallback model was used, the context was shortened."""

    text: str  # in English
    code: str = ""  # with which a page writes the text in the reader's language; see `NoticeCode`
    facts: Mapping[str, Any] = field(default_factory=dict)


AgentEvent = TextDelta | ReasoningDelta | ToolCall | ToolResult | UsageReport | Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the agent may use in this turn, on behalf of the person who asked."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema of an object
    run: Callable[[Mapping[str, Any]], Awaitable[str]]  # raises ToolFailed with a text for the model
    has_side_effects: bool = False  # running it twice is not the same as running it once
    toolset: str = ""
    problem: str | None = None  # why the agent cannot use it: its name is taken
    sends_messages: bool = False  # it sends to chats, so the agent is told which places it can name


class ToolFailed(Exception):
    """A tool failed; the text tells the model why, so that it can try something else."""


async def _get_no_steering() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request that a driver is about to send to a model. Retries and fallbacks are calls of their own."""

    model: str  # in the format of the settings
    provider: str | None
    input_tokens: int  # estimated
    max_tokens: int | None  # that the request would ask for; None: as many as the model gives
    price: TokenPrice | None  # None: unknown, which is not free


class HeldCall(Protocol):
    """What is held for one call. Its driver ends it exactly once: with `settle` or with `release`."""

    @property
    def max_tokens(self) -> int | None:
        """The most tokens that the request may ask for; None: no limit applies."""
        ...

    @property
    def is_recorded(self) -> bool:
        """Whether the meter records what the call has used; if not, the one who reads its `UsageReport` has to."""
        ...

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        """Count what the call has used. Without usage: what was streamed (estimated), or else all that was held."""
        ...

    async def release(self) -> None:
        """Count nothing: the provider has refused the call before it sent the first byte."""
        ...


class CallMeter(Protocol):
    """Counts the calls to models against the budgets."""

    async def hold(self, call: ModelCall) -> HeldCall:
        """Hold what a call may cost at most, before it is made; raises `BudgetExceeded` if that passes a limit."""
        ...


class _UnmeteredCall:
    is_recorded = False

    def __init__(self, max_tokens: int | None) -> None:
        self.max_tokens = max_tokens

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        pass

    async def release(self) -> None:
        pass


class Unmetered:
    """A meter that counts nothing, for requests outside a gateway."""

    async def hold(self, call: ModelCall) -> HeldCall:
        return _UnmeteredCall(call.max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """The request for one turn."""

    turn_id: TurnId | None = None
    instructions: str = ""  # the system prompt; byte-stable within a session
    # The conversation in the format of chat models (role, content, tool_calls, tool_call_id …), ending with the
    # message to answer. `agent/history.py` builds it, so every call has its result.
    messages: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Tool] = ()
    model: str | None = None  # the one chosen for this conversation, if any
    # Returns the messages that people sent since the last call and want the agent to see at once. The driver calls it
    # after each round of tool results and adds each text as a user message.
    take_steering: Callable[[], Awaitable[Sequence[str]]] = field(default=_get_no_steering)
    max_tokens: int | None = None
    meter: CallMeter = field(default_factory=Unmetered)


class Agent(Protocol):
    """A driver that answers requests."""

    @property
    def model(self) -> str:
        """Return the default model, in the format of the settings: `openai:gpt-5`, `demo` …"""
        ...

    @property
    def description(self) -> str:
        """Describe the agent in one line for people: the model, why `auto` chose it, how to get a better one."""
        ...

    @property
    def can_write_titles(self) -> bool:
        """Return whether it can make titles of conversations; scripted and very small models cannot."""
        ...

    def list_models(self) -> Sequence[str]:
        """List the models that a conversation may choose; the first is the default."""
        ...

    def check_model(self, name: str) -> None:
        """Raise `InvalidInput` for a model that this agent can never use, with a text that says which it can."""
        ...

    async def get_context_window(self, name: str) -> int | None:
        """Return a model's context window (prompt and answer together) in tokens, or None if it is unknown."""
        ...

    async def get_price(self, name: str) -> TokenPrice | None:
        """Return what a model costs, at most; None if that is unknown. Models on this machine cost nothing."""
        ...

    def list_tool_servers(self) -> Sequence[str]:
        """List the names of its tool servers, including those that cannot be reached at the moment."""
        ...

    async def load_tools(self) -> Sequence[Tool]:
        """Load the tools of its MCP servers. The turn runner passes them in the request."""
        ...

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Answer a request. The iterator ends when the answer is complete; it raises `AgentError` otherwise."""
        ...

    async def warm_up(self) -> None:
        """Do what the first request would have to wait for, without sending a request."""
        ...

    async def close(self) -> None:
        """Close connections and end processes."""
        ...


class AgentInfo(Protocol):
    """What a command may know about the agent."""

    @property
    def model(self) -> str:
        """The model of conversations that have chosen none."""
        ...

    @property
    def description(self) -> str:
        """Which agent answers, and why."""
        ...

    def list_models(self) -> Sequence[str]:
        """List the models that a conversation may choose."""
        ...

    def check_model(self, name: str) -> None:
        """Raise if no model of this name can be used."""
        ...

    async def get_price(self, name: str) -> TokenPrice | None:
        """Return what a model costs, at most; None if that is unknown."""
        ...

    def list_tool_servers(self) -> Sequence[str]:
        """List the servers that the agent has tools from."""
        ...

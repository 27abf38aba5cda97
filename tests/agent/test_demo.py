from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import ReasoningDelta, Tool, ToolCall, ToolFailed, ToolResult, Used
from palaver.agent.demo import DemoAgent
from palaver.domain.errors import InvalidInput
from palaver.domain.usage import CostStatus

from .conftest import asking, events, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.agent.base import AgentRequest


@pytest.fixture
def demo() -> DemoAgent:
    return DemoAgent(pace=0)


class Memory:
    """The tools that the demo knows how to use, and what it used them for."""

    def __init__(self, *, fails: bool = False) -> None:
        self.used: list[tuple[str, Mapping[str, object]]] = []
        self._fails = fails

    @property
    def tools(self) -> Sequence[Tool]:
        return [self._tool(name) for name in ("remember", "recall", "search_conversations")]

    def _tool(self, name: str) -> Tool:
        async def run(arguments: Mapping[str, object]) -> str:
            self.used.append((name, arguments))
            if self._fails:
                raise ToolFailed("the shelf is full")
            return f"{name} did {{it}}"

        return Tool(name=name, description=name, parameters={"type": "object"}, run=run)


async def test_it_says_what_it_is_and_what_it_heard(demo: DemoAgent) -> None:
    said = text_in(await events(demo, asking("The kettle is on")))
    assert "demo agent" in said
    assert "The kettle is on" in said


async def test_it_speaks_word_by_word(demo: DemoAgent) -> None:
    found = await events(demo, asking())
    assert len(found) > 10


async def test_the_same_request_gives_the_same_events(demo: DemoAgent) -> None:
    request = asking("remember that tea is at five", tools=Memory().tools)
    assert await events(demo, request) == await events(demo, request)


async def test_it_shows_markdown(demo: DemoAgent) -> None:
    said = text_in(await events(demo, asking("Please show me markdown!")))
    assert "```python" in said
    assert "| dish |" in said


@pytest.mark.parametrize("text", ["help", "What can you do?"])
async def test_it_names_the_commands(demo: DemoAgent, text: str) -> None:
    said = text_in(await events(demo, asking(text)))
    assert all(command in said for command in ("/help", "/new", "/sessions"))


async def test_it_thinks_before_it_speaks(demo: DemoAgent) -> None:
    found = await events(demo, asking("think about the sea"))
    assert isinstance(found[0], ReasoningDelta)
    assert "the sea" in text_in(found)


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("Remember that my cat is called Ada.", "remember", {"text": "my cat is called Ada"}),
        ("What do you remember?", "recall", {"query": ""}),
        ("what do you remember about my cat", "recall", {"query": "my cat"}),
        ("recall the cat", "recall", {"query": "the cat"}),
        ("search for boats", "search_conversations", {"query": "boats"}),
        ("What did I say about boats?", "search_conversations", {"query": "boats"}),
    ],
)
async def test_it_uses_the_tool_that_is_meant(demo: DemoAgent, text: str, tool: str, arguments: dict[str, str]) -> None:
    memory = Memory()
    found = await events(demo, asking(text, tools=memory.tools))
    assert memory.used == [(tool, arguments)]
    call, result = (event for event in found if isinstance(event, ToolCall | ToolResult))
    assert isinstance(call, ToolCall)
    assert result == ToolResult(call.id, tool, f"{tool} did {{it}}")
    assert f"{tool} did {{it}}" in text_in(found)


async def test_without_the_tool_it_only_answers(demo: DemoAgent) -> None:
    found = await events(demo, asking("remember that tea is at five"))
    assert not any(isinstance(event, ToolCall) for event in found)
    assert "tea is at five" in text_in(found)


async def test_a_tool_that_fails_is_reported(demo: DemoAgent) -> None:
    found = await events(demo, asking("recall tea", tools=Memory(fails=True).tools))
    assert any(isinstance(event, ToolResult) and event.failed for event in found)
    assert "the shelf is full" in text_in(found)


async def test_what_is_said_meanwhile_is_heard(demo: DemoAgent) -> None:
    async def steering() -> Sequence[str]:
        return ("make it green",)

    said = text_in(await events(demo, asking("recall tea", tools=Memory().tools, steering=steering)))
    assert "make it green" in said


def summary_of(*messages: dict[str, str]) -> AgentRequest:
    return asking(messages=[*messages, {"role": "user", "content": "Summarise this conversation for later."}])


async def test_it_summarises_a_conversation(demo: DemoAgent) -> None:
    said = text_in(
        await events(
            demo,
            summary_of({"role": "user", "content": "I like tea"}, {"role": "assistant", "content": "So do I"}),
        )
    )
    assert "2 messages" in said
    assert "I like tea" in said
    assert "So do I" in said


async def test_a_summary_stays_short_however_long_the_conversation_was(demo: DemoAgent) -> None:
    many = [{"role": "user", "content": f"Sentence {number} " + "word " * 100} for number in range(500)]
    said = text_in(await events(demo, summary_of(*many)))
    assert len(said) < 3000
    assert "500 messages" in said


async def test_it_costs_nothing_and_counts_tokens(demo: DemoAgent) -> None:
    used = (await events(demo, asking("Hello", instructions="Be kind.")))[-1]
    assert isinstance(used, Used)
    assert (used.usage.model, used.usage.provider, used.usage.cost) == ("demo", "demo", 0)
    assert used.usage.status is CostStatus.ACTUAL
    assert used.usage.input_tokens > 0
    assert used.usage.output_tokens > 0


async def test_it_is_the_only_model_it_has(demo: DemoAgent) -> None:
    demo.check_model("demo")
    with pytest.raises(InvalidInput, match="OPENAI_API_KEY"):
        demo.check_model("openai:gpt-5")
    assert demo.models() == ("demo",)
    assert await demo.tools() == ()

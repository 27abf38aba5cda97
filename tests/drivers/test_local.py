"""Tests of the local agent with the small model. They check that it answers, not what it answers."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from palaver.agent.base import Notice, TextDelta, UsageReport
from palaver.core.errors import AgentRejected, ContextOverflow, InvalidInput
from palaver.drivers.local import LocalAgent, find_built_in_model
from palaver.sessions.usage import CostStatus

from .conftest import collect_events, get_text, make_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]  # they share one event loop and one agent

CONTEXT_TOKENS = 256  # very few, because the model spends most of its time on reading


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local() -> AsyncIterator[LocalAgent]:
    path = find_built_in_model()
    assert path is not None
    agent = LocalAgent(path, context_tokens=CONTEXT_TOKENS, max_output_tokens=64)
    yield agent
    await agent.close()


def make_messages(*texts: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]


async def test_an_answer_is_streamed_and_costs_nothing(local: LocalAgent) -> None:
    events = await collect_events(local, make_request("Say hello.", instructions="You are kind.", max_tokens=16))
    assert sum(isinstance(event, TextDelta) for event in events) > 1
    assert get_text(events).strip()
    report = events[-1]
    assert isinstance(report, UsageReport)
    assert (report.usage.provider, report.usage.cost, report.usage.effective_cost_status) == (
        "local",
        0,
        CostStatus.ACTUAL,
    )
    assert report.usage.input_tokens > 5
    assert 0 < report.usage.output_tokens <= 16


async def test_an_answer_can_be_stopped_and_the_next_one_starts() -> None:
    path = find_built_in_model()
    assert path is not None
    agent = LocalAgent(path, context_tokens=4096, max_output_tokens=2048)
    answering = agent.run(make_request("Write a novel about the sea. Begin with chapter one and never stop."))
    assert isinstance(await anext(answering), TextDelta)
    await answering.aclose()
    # If the model went on writing, it would be busy for far longer.
    events = await asyncio.wait_for(collect_events(agent, make_request("Say yes.", max_tokens=4)), 60)
    assert get_text(events).strip()
    await agent.close()


async def test_a_running_and_a_waiting_answer_can_be_canceled(local: LocalAgent) -> None:
    started = asyncio.Event()

    async def answer(text: str) -> None:
        async for _ in local.run(make_request(text)):
            started.set()

    running = asyncio.create_task(answer("Tell me a very long story."))
    await asyncio.wait_for(started.wait(), 60)
    waiting = asyncio.create_task(answer("And another."))
    await asyncio.sleep(0)
    for task in (waiting, running):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert get_text(await collect_events(local, make_request("Say yes.", max_tokens=4))).strip()


async def test_two_turns_at_once_are_answered_one_after_the_other(local: LocalAgent) -> None:
    both = await asyncio.gather(
        collect_events(local, make_request("Say one.", max_tokens=4)),
        collect_events(local, make_request("Say two.", max_tokens=4)),
    )
    assert all(get_text(events).strip() for events in both)


async def test_the_oldest_messages_are_omitted_with_a_notice_if_the_conversation_is_too_long(local: LocalAgent) -> None:
    long = make_messages(*(f"Sentence number {number}, about boats and the sea." for number in range(61)))
    events = await collect_events(local, make_request(messages=long, instructions="You are kind.", max_tokens=8))
    notices = [event for event in events if isinstance(event, Notice) and "did not see the oldest" in event.text]
    assert len(notices) == 1
    assert events.index(notices[0]) == 0
    assert get_text(events).strip()
    report = events[-1]
    assert isinstance(report, UsageReport)
    assert report.usage.input_tokens <= CONTEXT_TOKENS - 8


async def test_messages_with_more_tokens_than_estimated_are_omitted_too(local: LocalAgent) -> None:
    dense = make_messages("x!? " * 80, "Yes.", "Well?")  # many more tokens than its length suggests
    events = await collect_events(local, make_request(messages=dense, max_tokens=100))
    assert any(isinstance(event, Notice) and "did not see the oldest" in event.text for event in events)
    report = events[-1]
    assert isinstance(report, UsageReport)
    assert report.usage.input_tokens <= CONTEXT_TOKENS - 100


async def test_a_single_message_that_is_too_long_is_rejected(local: LocalAgent) -> None:
    with pytest.raises(ContextOverflow, match="too long for the local model"):
        await collect_events(local, make_request("boats and the sea " * 400))
    assert get_text(await collect_events(local, make_request("Say yes.", max_tokens=4))).strip()


async def test_an_answer_that_was_cut_off_has_a_notice(local: LocalAgent) -> None:
    events = await collect_events(local, make_request("Tell me a very long story.", max_tokens=4))
    assert any(isinstance(event, Notice) and "maximum length" in event.text for event in events)


async def test_tool_calls_and_pictures_are_ignored(local: LocalAgent) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": "x"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "a"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "seen"},
        {"role": "system", "content": "Earlier: boats."},
        {"role": "user", "content": "Say yes."},
    ]
    assert get_text(await collect_events(local, make_request(messages=messages, max_tokens=4))).strip()
    assert await local.load_tools() == ()


async def test_a_file_that_is_not_a_model_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_text("this is not a model")
    agent = LocalAgent(file)
    with pytest.raises(AgentRejected, match=r"Could not load the model .*broken\.gguf"):
        await collect_events(agent, make_request())
    await agent.close()


async def test_closing_ends_a_running_turn() -> None:
    path = find_built_in_model()
    assert path is not None
    agent = LocalAgent(path)
    task = asyncio.create_task(collect_events(agent, make_request("Tell me a very long story.")))
    await asyncio.sleep(0.2)
    await asyncio.wait_for(agent.close(), 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_agent_has_one_model(local: LocalAgent) -> None:
    assert local.list_models() == ("local",)
    with pytest.raises(InvalidInput, match="only 'local'"):
        local.check_model("openai:x")


async def test_nothing_is_printed_and_the_process_ends_without_closing_the_agent() -> None:
    script = """
import asyncio
from palaver.agent.base import AgentRequest
from palaver.drivers.local import LocalAgent, find_built_in_model

async def main():
    agent = LocalAgent(find_built_in_model())
    async for _ in agent.run(AgentRequest(messages=[{"role": "user", "content": "Hi"}], max_tokens=4)):
        pass

asyncio.run(main())  # without closing the agent
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=PIPE, stderr=PIPE)
    assert await asyncio.wait_for(process.communicate(), 60) == (b"", b"")
    assert process.returncode == 0

"""Conversations with the small model that comes with the tests. What it says is not judged, only that it speaks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Notice, TextDelta, Used
from palaver.agent.local import LocalAgent, built_in_model
from palaver.domain.errors import AgentRefused, ContextOverflow, InvalidInput
from palaver.domain.usage import CostStatus

from .conftest import asking, events, text_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def local() -> AsyncIterator[LocalAgent]:
    """The model with a very small context: what it must read takes most of its time."""
    path = built_in_model()
    assert path is not None
    agent = LocalAgent(path, context=384, output=64)
    yield agent
    await agent.close()


def talk(*texts: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]


async def test_it_answers_in_a_stream_and_costs_nothing(local: LocalAgent) -> None:
    found = await events(local, asking("Say hello.", instructions="You are kind.", max_tokens=16))
    assert sum(isinstance(event, TextDelta) for event in found) > 1
    assert text_in(found).strip()
    used = found[-1]
    assert isinstance(used, Used)
    assert (used.usage.provider, used.usage.cost, used.usage.status) == ("local", 0, CostStatus.ACTUAL)
    assert used.usage.input_tokens > 5
    assert 0 < used.usage.output_tokens <= 16


async def test_it_can_be_stopped_in_the_middle_and_asked_again() -> None:
    path = built_in_model()
    assert path is not None
    agent = LocalAgent(path, context=4096, output=2048)
    answering = agent.run(asking("Write a novel about the sea. Begin with chapter one and never stop."))
    assert isinstance(await anext(answering), TextDelta)
    await answering.aclose()
    # If it went on writing it would be busy for far longer.
    found = await asyncio.wait_for(events(agent, asking("Say yes.", max_tokens=4)), 20)
    assert text_in(found).strip()
    await agent.close()


async def test_it_can_be_cancelled_while_it_speaks_and_while_it_waits_its_turn(local: LocalAgent) -> None:
    begun = asyncio.Event()

    async def answer(text: str) -> None:
        async for _ in local.run(asking(text)):
            begun.set()

    speaking = asyncio.create_task(answer("Tell me a very long story."))
    await asyncio.wait_for(begun.wait(), 30)
    waiting = asyncio.create_task(answer("And another."))
    await asyncio.sleep(0)
    for task in (waiting, speaking):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert text_in(await events(local, asking("Say yes.", max_tokens=4))).strip()


async def test_two_turns_at_once_are_answered_one_after_the_other(local: LocalAgent) -> None:
    both = await asyncio.gather(
        events(local, asking("Say one.", max_tokens=4)), events(local, asking("Say two.", max_tokens=4))
    )
    assert all(text_in(found).strip() for found in both)


async def test_what_does_not_fit_is_left_out_from_the_oldest_and_the_person_is_told(local: LocalAgent) -> None:
    long = talk(*(f"Sentence number {number}, about boats and the sea." for number in range(61)))
    found = await events(local, asking(messages=long, instructions="You are kind.", max_tokens=8))
    notices = [event for event in found if isinstance(event, Notice) and "left out" in event.text]
    assert len(notices) == 1
    assert found.index(notices[0]) == 0
    assert text_in(found).strip()
    used = found[-1]
    assert isinstance(used, Used)
    assert used.usage.input_tokens <= 384 - 8


async def test_words_that_are_many_tokens_are_left_out_as_well(local: LocalAgent) -> None:
    dense = talk("x!? " * 80, "Yes.", "Well?")  # many more tokens than its length suggests
    found = await events(local, asking(messages=dense, max_tokens=160))
    assert any(isinstance(event, Notice) and "left out" in event.text for event in found)
    used = found[-1]
    assert isinstance(used, Used)
    assert used.usage.input_tokens <= 384 - 160


async def test_a_message_that_is_too_long_by_itself_is_refused(local: LocalAgent) -> None:
    with pytest.raises(ContextOverflow, match="longer than the local model"):
        await events(local, asking("boats and the sea " * 400))
    assert text_in(await events(local, asking("Say yes.", max_tokens=4))).strip()


async def test_an_answer_that_reached_its_limit_says_so(local: LocalAgent) -> None:
    found = await events(local, asking("Tell me a very long story.", max_tokens=4))
    assert any(isinstance(event, Notice) and "limit" in event.text for event in found)


async def test_tools_and_pictures_do_not_disturb_it(local: LocalAgent) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": "x"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "a"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "seen"},
        {"role": "system", "content": "Earlier: boats."},
        {"role": "user", "content": "Say yes."},
    ]
    assert text_in(await events(local, asking(messages=messages, max_tokens=4))).strip()
    assert await local.tools() == ()


async def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_text("this is not a model")
    agent = LocalAgent(file)
    with pytest.raises(AgentRefused, match=r"broken\.gguf cannot be loaded"):
        await events(agent, asking())
    await agent.close()


async def test_closing_ends_a_turn_that_is_running() -> None:
    path = built_in_model()
    assert path is not None
    agent = LocalAgent(path)
    task = asyncio.create_task(events(agent, asking("Tell me a very long story.")))
    await asyncio.sleep(0.2)
    await asyncio.wait_for(agent.close(), 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_it_has_one_model(local: LocalAgent) -> None:
    assert local.models() == ("local",)
    with pytest.raises(InvalidInput, match="only 'local'"):
        local.check_model("openai:x")


def test_nothing_is_printed_and_the_process_ends_by_itself() -> None:
    script = """
import asyncio
from palaver.agent.base import AgentRequest
from palaver.agent.local import LocalAgent, built_in_model

async def main():
    agent = LocalAgent(built_in_model())
    async for _ in agent.run(AgentRequest(messages=[{"role": "user", "content": "Hi"}], max_tokens=4)):
        pass

asyncio.run(main())  # nobody closes the agent
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

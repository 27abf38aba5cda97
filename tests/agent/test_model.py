from __future__ import annotations

import asyncio
import base64
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Notice, ReasoningDelta, TextDelta, ToolCall, ToolFailed, ToolResult, Used
from palaver.domain.draft import START, Draft, Piece, PieceKind, messages_of
from palaver.domain.errors import AgentRefused, InvalidInput
from palaver.domain.profile import Provider
from palaver.domain.usage import CostStatus

from .conftest import asking, events, text_in, tool
from .openai_server import KEY, calls, counted, says, trickles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.agent.base import AgentEvent

    from .conftest import MakeAgent
    from .openai_server import Exchange, OpenAIServer


# ---- answering -----------------------------------------------------------------------------------------------


async def test_words_come_as_they_are_said(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Good ", "morning", "."))
    found = await events(make_agent(), asking("Hi", instructions="Be brief."))
    assert found[:3] == [TextDelta("Good "), TextDelta("morning"), TextDelta(".")]
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]
    assert server.keys == [f"Bearer {KEY}"]


async def test_words_are_there_before_the_answer_is_complete(make_agent: MakeAgent, server: OpenAIServer) -> None:
    async def waits_for_nobody(to: Exchange) -> None:
        await to.stream()
        await to.delta({"content": "First"})
        await asyncio.Event().wait()

    server.script(waits_for_nobody)
    answering = make_agent().run(asking())
    assert await anext(answering) == TextDelta("First")
    await answering.aclose()


async def test_reasoning_is_told_apart_from_the_answer(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes.", reasoning=("Hm, ", "well.")))
    found = await events(make_agent(), asking())
    assert found[:3] == [ReasoningDelta("Hm, "), ReasoningDelta("well."), TextDelta("Yes.")]


async def test_a_slow_trickle_is_waited_for(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(trickles(["one ", "two ", "three"], 0.1))
    assert text_in(await events(make_agent(), asking())) == "one two three"


async def test_an_answer_that_reached_its_limit_says_so(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("On and on", finish="length"))
    found = await events(make_agent(), asking(max_tokens=3))
    assert isinstance(found[-1], Notice)
    assert server.requests[0]["max_completion_tokens"] == 3


async def test_a_conversation_may_choose_its_model(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."))
    await events(make_agent(), asking(model="mine:big"))
    assert server.requests[0]["model"] == "big"


async def test_a_provider_of_ones_own_is_reached_without_a_key(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."))
    agent = make_agent(model="mine:small")
    assert text_in(await events(agent, asking())) == "Yes."
    assert KEY not in server.keys[0]


async def test_ollama_is_reached_at_its_address(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."))
    agent = make_agent(model="ollama:llama3:8b", providers={"ollama": Provider(base_url=server.url)})
    assert text_in(await events(agent, asking())) == "Yes."
    assert server.requests[0]["model"] == "llama3:8b"


async def test_two_conversations_are_answered_at_the_same_time(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."), says("Yes."))
    agent = make_agent()
    both = await asyncio.gather(events(agent, asking("one")), events(agent, asking("two")))
    assert [text_in(found) for found in both] == ["Yes.", "Yes."]


# ---- stopping ------------------------------------------------------------------------------------------------


async def test_stopping_closes_the_line(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(trickles(["word "] * 1000, 0.02))
    answering = make_agent().run(asking())
    await anext(answering)
    await answering.aclose()
    assert await asyncio.to_thread(server.gone.wait, 5)


async def test_being_cancelled_closes_the_line(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(trickles(["word "] * 1000, 0.02))
    begun = asyncio.Event()

    async def answer() -> None:
        async for _ in make_agent().run(asking()):
            begun.set()

    task = asyncio.create_task(answer())
    await asyncio.wait_for(begun.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.gone.wait, 5)


async def test_being_cancelled_stops_the_tools(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(calls(("1", "look", "{}")))
    started, stopped = asyncio.Event(), asyncio.Event()

    async def run(_: Mapping[str, Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    task = asyncio.create_task(events(make_agent(), asking(tools=[tool(run=run)])))
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


# ---- tools ---------------------------------------------------------------------------------------------------


async def test_a_tool_is_called_and_its_answer_is_given_to_the_model(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.script(calls(("c1", "look", '{"where": "here"}'), text="Let me see. "), says("A cat."))
    found = await events(make_agent(), asking(tools=[tool()]))
    assert [event for event in found if not isinstance(event, Used)] == [
        TextDelta("Let me see. "),
        ToolCall("c1", "look", '{"where": "here"}'),
        ToolResult("c1", "look", 'seen {"where": "here"}'),
        TextDelta("A cat."),
    ]
    first, second = server.requests
    assert first["tools"][0]["function"]["name"] == "look"
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": 'seen {"where": "here"}'}


async def test_several_calls_run_at_once_and_each_answers_when_it_is_done(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.script(calls(("1", "slow", "{}"), ("2", "quick", "{}")), says("Done."))
    quick_has_run = asyncio.Event()

    async def slow(_: Mapping[str, Any]) -> str:
        await asyncio.wait_for(quick_has_run.wait(), 10)  # would never end if one ran after the other
        return "slow"

    async def quick(_: Mapping[str, Any]) -> str:
        quick_has_run.set()
        return "quick"

    found = await events(make_agent(), asking(tools=[tool("slow", run=slow), tool("quick", run=quick)]))
    done = [event for event in found if isinstance(event, ToolCall | ToolResult)]
    assert [type(event) for event in done] == [ToolCall, ToolCall, ToolResult, ToolResult]
    assert [event.id for event in done] == ["1", "2", "2", "1"]
    told = [message["tool_call_id"] for message in server.requests[1]["messages"] if message["role"] == "tool"]
    assert told == ["1", "2"]  # the model is told in the order of its calls


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("fail", "{}", "the door is shut"),
        ("fly", "{}", "There is no tool called 'fly'"),
        ("look", "{not json", "not JSON"),
        ("look", "[1]", "not a JSON object"),
    ],
)
async def test_a_call_that_cannot_be_done_is_told_to_the_model(
    make_agent: MakeAgent, server: OpenAIServer, name: str, arguments: str, words: str
) -> None:
    async def fail(_: Mapping[str, Any]) -> str:
        raise ToolFailed("the door is shut")

    server.script(calls(("1", name, arguments)), says("I could not."))
    found = await events(make_agent(), asking(tools=[tool(), tool("fail", run=fail)]))
    (result,) = (event for event in found if isinstance(event, ToolResult))
    assert result.failed
    assert words in result.content
    assert words in server.requests[1]["messages"][-1]["content"]
    assert text_in(found) == "I could not."


async def test_an_error_of_a_tool_ends_the_turn_and_stops_the_others(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    stopped = asyncio.Event()

    async def broken(_: Mapping[str, Any]) -> str:
        raise RuntimeError("a mistake of ours")

    async def endless(_: Mapping[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    server.script(calls(("1", "broken", "{}"), ("2", "endless", "{}")))
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        await events(make_agent(), asking(tools=[tool("broken", run=broken), tool("endless", run=endless)]))
    assert stopped.is_set()


async def test_what_is_said_meanwhile_reaches_the_model_once(make_agent: MakeAgent, server: OpenAIServer) -> None:
    waiting = [["in blue, please"], []]

    async def steering() -> Sequence[str]:
        return waiting.pop(0)

    server.script(calls(("1", "look", "{}")), calls(("2", "look", "{}")), says("Blue."))
    await events(make_agent(), asking(tools=[tool()], steering=steering))
    assert server.requests[1]["messages"][-1] == {"role": "user", "content": "in blue, please"}
    last = [message["content"] for message in server.requests[2]["messages"] if message["role"] == "user"]
    assert last == ["Hello", "in blue, please"]
    assert waiting == []


async def test_a_model_that_never_stops_calling_is_asked_to_end(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(*(calls((str(number), "look", "{}")) for number in range(3)), says("Enough."))
    found = await events(make_agent(most_rounds=3), asking(tools=[tool()]))
    assert text_in(found) == "Enough."
    assert sum(isinstance(event, ToolResult) for event in found) == 3
    assert any(isinstance(event, Notice) for event in found)
    assert [request.get("tool_choice") for request in server.requests] == ["auto", "auto", "auto", "none"]


async def test_silence_after_words_and_tools_is_an_end(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(calls(("1", "look", "{}"), text="I shall look."), says())
    assert text_in(await events(make_agent(), asking(tools=[tool()]))) == "I shall look."


# ---- usage ---------------------------------------------------------------------------------------------------


async def test_every_request_is_counted_and_priced(make_agent: MakeAgent, server: OpenAIServer) -> None:
    async def with_details(to: Exchange) -> None:
        await to.stream()
        await to.delta({"content": "Yes."}, "stop")
        await to.usage(counted(100, 20, cached=60, reasoning=15))
        await to.done()

    server.script(calls(("1", "look", "{}")), with_details)
    found = await events(make_agent(), asking(tools=[tool()]))
    first, second = (event.usage for event in found if isinstance(event, Used))
    assert (first.input_tokens, first.output_tokens) == (20, 8)
    assert (second.model, second.provider) == ("gpt-5.4-mini", "openai")
    assert (second.input_tokens, second.output_tokens) == (100, 20)
    assert (second.cache_read_tokens, second.reasoning_tokens, second.last_prompt_tokens) == (60, 15, 100)
    assert (second.status, second.cost_source) == (CostStatus.ESTIMATED, "genai-prices")
    assert second.nanos
    assert second.nanos > 0


async def test_a_model_without_a_price_is_not_free(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."))
    found = await events(make_agent(model="mine:small"), asking())
    (used,) = (event.usage for event in found if isinstance(event, Used))
    assert (used.cost, used.status, used.input_tokens) == (None, CostStatus.UNKNOWN, 10)


async def test_a_provider_that_reports_nothing_is_not_free_either(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes.", usage=None))
    found = await events(make_agent(), asking())
    assert not any(isinstance(event, Used) for event in found)


# ---- what is sent --------------------------------------------------------------------------------------------


def stored(found: Sequence[AgentEvent]) -> list[dict[str, Any]]:
    """What the log holds of a turn."""
    draft = Draft()
    for event in found:
        match event:
            case TextDelta(text):
                draft.add(Piece(PieceKind.TEXT, text))
            case ReasoningDelta(text):
                draft.add(Piece(PieceKind.REASONING, text))
            case ToolCall(call_id, name, arguments):
                draft.add(Piece(PieceKind.CALL, call_id=call_id, name=name, arguments=arguments))
            case ToolResult(call_id, name, content, failed):
                draft.add(Piece(PieceKind.RESULT, content, call_id=call_id, name=name, failed=failed))
            case _:
                pass
    return messages_of(draft.since(START))


def messages_in(body: bytes) -> str:
    """The messages of a request exactly as they were sent, without the bracket at their end."""
    text = body.decode()
    begin = text.index('"messages":') + len('"messages":')
    _, end = json.JSONDecoder().raw_decode(text, begin)
    return text[begin : end - 1]


@pytest.mark.parametrize("model", ["openai:gpt-5.4-mini", "mine:small"])
async def test_each_request_begins_with_the_bytes_of_the_one_before(
    make_agent: MakeAgent, server: OpenAIServer, model: str
) -> None:
    async def refuse(_: Mapping[str, Any]) -> str:
        raise ToolFailed("no {such} thing")

    agent = make_agent(model=model)
    tools = [tool(), tool("refuse", run=refuse)]
    server.script(
        says("Good ", "morning ☀"),
        calls(("c1", "look", '{"b": 1,  "a": "ä"}'), ("c2", "refuse", "{}"), text="Let me see."),
        calls(("c3", "look", "")),
        says("A cat.\n"),
        says("You are welcome."),
    )
    log: list[dict[str, Any]] = []
    for text in ("Hi", "What is there?", "Thank you"):
        log.append({"role": "user", "content": text})
        log += stored(await events(agent, asking(messages=list(log), instructions="Be kind.", tools=tools)))
    sent = [messages_in(body) for body in server.bodies]
    assert len(sent) == 5
    for before, after in pairwise(sent):
        assert after.startswith(before)


async def test_reasoning_of_earlier_turns_is_not_sent_back(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."))
    earlier = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", "reasoning": "They greet me."},
        {"role": "user", "content": "Well?"},
    ]
    await events(make_agent(), asking(messages=earlier))
    assert b"They greet me" not in server.bodies[0]


async def test_pictures_are_sent_as_pictures(make_agent: MakeAgent, server: OpenAIServer) -> None:
    dot = f"data:image/png;base64,{base64.b64encode(b'not really a picture').decode()}"
    server.script(says("A dot."))
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": dot}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "hologram", "data": 1},
    ]
    await events(make_agent(), asking(messages=[{"role": "user", "content": content}]))
    text, first, second, unknown = server.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert first["image_url"]["url"] == dot
    assert second["image_url"]["url"] == "https://example.org/cat.png"
    assert "hologram" in unknown["text"]


async def test_every_stored_message_is_sent_in_its_place(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(says("Yes."))
    log: list[dict[str, Any]] = [
        {"role": "user", "content": "one"},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        {"role": "system", "content": "Earlier: three"},
        {"role": "user", "content": "four"},
    ]
    await events(make_agent(), asking(messages=log))
    sent = [(message["role"], message["content"]) for message in server.requests[0]["messages"]]
    assert sent[0] == ("user", "one")
    assert sent[1][0] == "user"
    assert sent[1][1]
    assert sent[2] == ("assistant", "two")
    assert "Earlier: three" in str(sent[3][1])
    assert sent[-1] == ("user", "four")


# ---- choosing a model ----------------------------------------------------------------------------------------


async def test_models_lists_the_default_the_fallbacks_and_what_there_are_keys_for(make_agent: MakeAgent) -> None:
    agent = make_agent(model="mine:small", fallback_models=("mine:big",))
    assert agent.models() == ("mine:small", "mine:big", "openai:gpt-5.4-mini")
    assert agent.model == "mine:small"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "provider:model"),
        (":x", "provider:model"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("nowhere:x", r"providers\.nowhere\.base_url"),
    ],
)
async def test_a_model_that_cannot_be_reached_is_refused(make_agent: MakeAgent, name: str, words: str) -> None:
    agent = make_agent()
    with pytest.raises(InvalidInput, match=words):
        agent.check_model(name)
    with pytest.raises(AgentRefused, match=words):
        await events(agent, asking(model=name))


async def test_a_model_of_a_provider_that_can_be_reached_is_accepted(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.check_model("openai:some-new-model")
    agent.check_model("mine:vendor/model:free")


async def test_how_much_a_model_takes_is_said_by_the_operator_or_the_list(make_agent: MakeAgent) -> None:
    agent = make_agent(context_windows={"mine:big": 64_000})
    assert await agent.context_window("mine:big") == 64_000
    assert await agent.context_window("Mine:big") == 64_000
    assert await agent.context_window("mine:small") is None  # nobody knows
    assert await agent.context_window("nowhere:big") is None
    assert await agent.context_window("big") is None

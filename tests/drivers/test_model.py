from __future__ import annotations

import asyncio
import base64
import json
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Notice, ReasoningDelta, TextDelta, ToolCall, ToolFailed, ToolResult, UsageReport
from palaver.config.agent_rules import Provider
from palaver.core.errors import AgentRejected, InvalidInput
from palaver.drivers.providers import Timeouts
from palaver.sessions.draft import START_POSITION, Draft, Piece, PieceKind, build_turn_messages
from palaver.sessions.usage import CostStatus

from .conftest import collect_events, get_text, make_request, make_tool
from .openai_server import KEY, make_usage, reply_slowly, reply_with_calls, reply_with_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.agent.base import AgentEvent

    from .conftest import MakeAgent
    from .openai_server import Exchange, OpenAIServer

pytestmark = pytest.mark.slow  # loads the SDK of a provider


# ---- answers -------------------------------------------------------------------------------------------------


async def test_an_answer_is_streamed_word_by_word(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Good ", "morning", "."))
    events = await collect_events(make_agent(), make_request("Hi", instructions="Be brief."))
    assert events[:3] == [TextDelta("Good "), TextDelta("morning"), TextDelta(".")]
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]
    assert server.keys == [f"Bearer {KEY}"]


async def test_the_first_word_arrives_before_the_answer_is_complete(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    async def reply_with_first_word(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"content": "First"})
        await asyncio.Event().wait()

    server.add_replies(reply_with_first_word)
    answer = make_agent().run(make_request())
    assert await anext(answer) == TextDelta("First")
    await answer.aclose()


async def test_reasoning_is_separate_from_the_answer(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes.", reasoning=("Hm, ", "well.")))
    events = await collect_events(make_agent(), make_request())
    assert events[:3] == [ReasoningDelta("Hm, "), ReasoningDelta("well."), TextDelta("Yes.")]


async def test_a_slow_answer_is_received_completely(make_agent: MakeAgent, server: OpenAIServer) -> None:
    """It takes longer than the agent waits for one piece of it."""
    server.add_replies(reply_slowly([f"{number} " for number in range(11)], 0.1))
    agent = make_agent(timeouts=Timeouts(read_seconds=1))
    assert get_text(await collect_events(agent, make_request())) == "0 1 2 3 4 5 6 7 8 9 10 "


async def test_an_answer_that_was_cut_off_has_a_notice(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("On and on", finish="length"))
    events = await collect_events(make_agent(), make_request(max_tokens=3))
    assert isinstance(events[-1], Notice)
    assert server.requests[0]["max_completion_tokens"] == 3


async def test_a_request_can_choose_its_model(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."))
    await collect_events(make_agent(), make_request(model="mine:big"))
    assert server.requests[0]["model"] == "big"


async def test_a_custom_provider_needs_no_key(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."))
    agent = make_agent(model="mine:small")
    assert get_text(await collect_events(agent, make_request())) == "Yes."
    assert KEY not in server.keys[0]


async def test_ollama_is_used_at_its_address(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."))
    agent = make_agent(model="ollama:llama3:8b", providers={"ollama": Provider(base_url=server.url)})
    assert get_text(await collect_events(agent, make_request())) == "Yes."
    assert server.requests[0]["model"] == "llama3:8b"


async def test_two_requests_run_at_the_same_time(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."), reply_with_text("Yes."))
    agent = make_agent()
    both = await asyncio.gather(collect_events(agent, make_request("one")), collect_events(agent, make_request("two")))
    assert [get_text(events) for events in both] == ["Yes.", "Yes."]


# ---- stopping ------------------------------------------------------------------------------------------------


async def test_closing_the_answer_closes_the_connection(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_slowly(["word "] * 1000, 0.02))
    answer = make_agent().run(make_request())
    await anext(answer)
    await answer.aclose()
    assert await asyncio.to_thread(server.client_left.wait, 60)


async def test_cancellation_closes_the_connection(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_slowly(["word "] * 1000, 0.02))
    started = asyncio.Event()

    async def answer() -> None:
        async for _ in make_agent().run(make_request()):
            started.set()

    task = asyncio.create_task(answer())
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.client_left.wait, 60)


async def test_cancellation_stops_the_tools(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_calls(("1", "look", "{}")))
    started, stopped = asyncio.Event(), asyncio.Event()

    async def run(_: Mapping[str, Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    task = asyncio.create_task(collect_events(make_agent(), make_request(tools=[make_tool(run=run)])))
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


# ---- tools ---------------------------------------------------------------------------------------------------


async def test_a_tool_runs_and_its_result_goes_to_the_model(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(
        reply_with_calls(("c1", "look", '{"where": "here"}'), text="Let me see. "), reply_with_text("A cat.")
    )
    events = await collect_events(make_agent(), make_request(tools=[make_tool()]))
    assert [event for event in events if not isinstance(event, UsageReport)] == [
        TextDelta("Let me see. "),
        ToolCall("c1", "look", '{"where": "here"}'),
        ToolResult("c1", "look", 'seen {"where": "here"}'),
        TextDelta("A cat."),
    ]
    first, second = server.requests
    assert first["tools"][0]["function"]["name"] == "look"
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": 'seen {"where": "here"}'}


async def test_several_tools_run_at_once_and_each_result_comes_when_it_is_ready(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_calls(("1", "slow", "{}"), ("2", "quick", "{}")), reply_with_text("Done."))
    quick_has_run = asyncio.Event()

    async def run_slowly(_: Mapping[str, Any]) -> str:
        await asyncio.wait_for(quick_has_run.wait(), 10)  # would time out if the tools ran one after the other
        return "slow"

    async def run_quickly(_: Mapping[str, Any]) -> str:
        quick_has_run.set()
        return "quick"

    events = await collect_events(
        make_agent(), make_request(tools=[make_tool("slow", run=run_slowly), make_tool("quick", run=run_quickly)])
    )
    tool_events = [event for event in events if isinstance(event, ToolCall | ToolResult)]
    assert [type(event) for event in tool_events] == [ToolCall, ToolCall, ToolResult, ToolResult]
    assert [event.id for event in tool_events] == ["1", "2", "2", "1"]
    sent_ids = [message["tool_call_id"] for message in server.requests[1]["messages"] if message["role"] == "tool"]
    assert sent_ids == ["1", "2"]  # the model gets the results in the order of its calls


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("fail", "{}", "the door is shut"),
        ("fly", "{}", "There is no tool 'fly'"),
        ("look", "{not json", "not valid JSON"),
        ("look", "[1]", "not a JSON object"),
    ],
)
async def test_the_error_of_a_tool_call_goes_to_the_model(
    make_agent: MakeAgent, server: OpenAIServer, name: str, arguments: str, error: str
) -> None:
    async def fail(_: Mapping[str, Any]) -> str:
        raise ToolFailed("the door is shut")

    server.add_replies(reply_with_calls(("1", name, arguments)), reply_with_text("I could not."))
    events = await collect_events(make_agent(), make_request(tools=[make_tool(), make_tool("fail", run=fail)]))
    (result,) = (event for event in events if isinstance(event, ToolResult))
    assert result.failed
    assert error in result.content
    assert error in server.requests[1]["messages"][-1]["content"]
    assert get_text(events) == "I could not."


async def test_a_bug_in_a_tool_ends_the_turn_and_stops_the_other_tools(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    stopped = asyncio.Event()

    async def raise_bug(_: Mapping[str, Any]) -> str:
        raise RuntimeError("a bug")

    async def run_forever(_: Mapping[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    server.add_replies(reply_with_calls(("1", "broken", "{}"), ("2", "endless", "{}")))
    with pytest.raises(RuntimeError, match="a bug"):
        await collect_events(
            make_agent(),
            make_request(tools=[make_tool("broken", run=raise_bug), make_tool("endless", run=run_forever)]),
        )
    assert stopped.is_set()


async def test_a_steering_message_reaches_the_model_once(make_agent: MakeAgent, server: OpenAIServer) -> None:
    steering = [["in blue, please"], []]

    async def take_steering() -> Sequence[str]:
        return steering.pop(0)

    server.add_replies(
        reply_with_calls(("1", "look", "{}")), reply_with_calls(("2", "look", "{}")), reply_with_text("Blue.")
    )
    await collect_events(make_agent(), make_request(tools=[make_tool()], take_steering=take_steering))
    assert server.requests[1]["messages"][-1] == {"role": "user", "content": "in blue, please"}
    user_texts = [message["content"] for message in server.requests[2]["messages"] if message["role"] == "user"]
    assert user_texts == ["Hello", "in blue, please"]
    assert steering == []


async def test_a_model_that_keeps_calling_tools_has_to_answer_in_the_end(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(
        *(reply_with_calls((str(number), "look", "{}")) for number in range(3)), reply_with_text("Enough.")
    )
    events = await collect_events(make_agent(max_tool_rounds=3), make_request(tools=[make_tool()]))
    assert get_text(events) == "Enough."
    assert sum(isinstance(event, ToolResult) for event in events) == 3
    assert any(isinstance(event, Notice) for event in events)
    assert [request.get("tool_choice") for request in server.requests] == ["auto", "auto", "auto", "none"]


async def test_an_empty_answer_after_text_and_tools_ends_the_turn(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_calls(("1", "look", "{}"), text="I shall look."), reply_with_text())
    assert get_text(await collect_events(make_agent(), make_request(tools=[make_tool()]))) == "I shall look."


# ---- usage ---------------------------------------------------------------------------------------------------


async def test_every_request_has_usage_with_cost(make_agent: MakeAgent, server: OpenAIServer) -> None:
    async def reply_with_details(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"content": "Yes."}, "stop")
        await to.send_usage(make_usage(100, 20, cached=60, reasoning=15))
        await to.send_done()

    server.add_replies(reply_with_calls(("1", "look", "{}")), reply_with_details)
    events = await collect_events(make_agent(), make_request(tools=[make_tool()]))
    first, second = (event.usage for event in events if isinstance(event, UsageReport))
    assert (first.input_tokens, first.output_tokens) == (20, 8)
    assert (second.model, second.provider) == ("gpt-5.4-mini", "openai")
    assert (second.input_tokens, second.output_tokens) == (100, 20)
    assert (second.cache_read_tokens, second.reasoning_tokens, second.last_prompt_tokens) == (60, 15, 100)
    assert (second.effective_cost_status, second.cost_source) == (CostStatus.ESTIMATED, "genai-prices")
    assert second.cost_nanos
    assert second.cost_nanos > 0


async def test_the_cost_of_a_model_without_a_price_is_unknown(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."))
    events = await collect_events(make_agent(model="mine:small"), make_request())
    (usage,) = (event.usage for event in events if isinstance(event, UsageReport))
    assert (usage.cost, usage.effective_cost_status, usage.input_tokens) == (None, CostStatus.UNKNOWN, 10)


async def test_without_reported_tokens_there_is_no_usage(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes.", usage=None))
    events = await collect_events(make_agent(), make_request())
    assert not any(isinstance(event, UsageReport) for event in events)


# ---- requests ------------------------------------------------------------------------------------------------


def build_stored_messages(events: Sequence[AgentEvent]) -> list[dict[str, Any]]:
    """Build the messages that the log would contain after a turn."""
    draft = Draft()
    for event in events:
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
    return build_turn_messages(draft.get_pieces_since(START_POSITION))


def extract_sent_messages(body: bytes) -> str:
    """Return the messages of a request exactly as they were sent, without the closing bracket."""
    text = body.decode()
    start = text.index('"messages":') + len('"messages":')
    _, end = json.JSONDecoder().raw_decode(text, start)
    return text[start : end - 1]


@pytest.mark.parametrize("model", ["openai:gpt-5.4-mini", "mine:small"])
async def test_each_request_starts_with_the_bytes_of_the_previous_one(
    make_agent: MakeAgent, server: OpenAIServer, model: str
) -> None:
    async def refuse(_: Mapping[str, Any]) -> str:
        raise ToolFailed("no {such} thing")

    agent = make_agent(model=model)
    tools = [make_tool(), make_tool("refuse", run=refuse)]
    server.add_replies(
        reply_with_text("Good ", "morning ☀"),
        reply_with_calls(("c1", "look", '{"b": 1,  "a": "ä"}'), ("c2", "refuse", "{}"), text="Let me see."),
        reply_with_calls(("c3", "look", "")),
        reply_with_text("A cat.\n"),
        reply_with_text("You are welcome."),
    )
    log: list[dict[str, Any]] = []
    for text in ("Hi", "What is there?", "Thank you"):
        log.append({"role": "user", "content": text})
        log += build_stored_messages(
            await collect_events(agent, make_request(messages=list(log), instructions="Be kind.", tools=tools))
        )
    sent = [extract_sent_messages(body) for body in server.bodies]
    assert len(sent) == 5
    for before, after in pairwise(sent):
        assert after.startswith(before)


async def test_reasoning_of_earlier_turns_is_not_sent_back(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."))
    earlier = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", "reasoning": "They greet me."},
        {"role": "user", "content": "Well?"},
    ]
    await collect_events(make_agent(), make_request(messages=earlier))
    assert b"They greet me" not in server.bodies[0]


async def test_pictures_are_sent_as_pictures(make_agent: MakeAgent, server: OpenAIServer) -> None:
    dot = f"data:image/png;base64,{base64.b64encode(b'not really a picture').decode()}"
    server.add_replies(reply_with_text("A dot."))
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": dot}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "hologram", "data": 1},
    ]
    await collect_events(make_agent(), make_request(messages=[{"role": "user", "content": content}]))
    text, first, second, unknown = server.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert first["image_url"]["url"] == dot
    assert second["image_url"]["url"] == "https://example.org/cat.png"
    assert "hologram" in unknown["text"]


async def test_every_message_is_sent_in_order(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_text("Yes."))
    log: list[dict[str, Any]] = [
        {"role": "user", "content": "one"},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        {"role": "system", "content": "Earlier: three"},
        {"role": "user", "content": "four"},
    ]
    await collect_events(make_agent(), make_request(messages=log))
    sent = [(message["role"], message["content"]) for message in server.requests[0]["messages"]]
    assert sent[0] == ("user", "one")
    assert sent[1][0] == "user"
    assert sent[1][1]
    assert sent[2] == ("assistant", "two")
    assert "Earlier: three" in str(sent[3][1])
    assert sent[-1] == ("user", "four")


# ---- models --------------------------------------------------------------------------------------------------


async def test_the_models_are_the_default_the_fallbacks_and_the_defaults_of_providers_with_keys(
    make_agent: MakeAgent,
) -> None:
    agent = make_agent(model="mine:small", fallback_models=("mine:big",))
    assert agent.list_models() == ("mine:small", "mine:big", "openai:gpt-5.4-mini")
    assert agent.model == "mine:small"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("gpt-5", "provider:model"),
        (":x", "provider:model"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("nowhere:x", r"providers\.nowhere\.base_url"),
    ],
)
async def test_a_model_that_is_not_available_is_rejected(make_agent: MakeAgent, name: str, error: str) -> None:
    agent = make_agent()
    with pytest.raises(InvalidInput, match=error):
        agent.check_model(name)
    with pytest.raises(AgentRejected, match=error):
        await collect_events(agent, make_request(model=name))


async def test_any_model_of_a_configured_provider_is_accepted(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.check_model("openai:some-new-model")
    agent.check_model("mine:vendor/model:free")


async def test_a_context_window_comes_from_the_settings_or_the_price_list(make_agent: MakeAgent) -> None:
    agent = make_agent(context_windows={"mine:big": 64_000})
    assert await agent.get_context_window("mine:big") == 64_000
    assert await agent.get_context_window("Mine:big") == 64_000
    assert await agent.get_context_window("mine:small") is None  # unknown
    assert await agent.get_context_window("nowhere:big") is None
    assert await agent.get_context_window("big") is None


async def test_a_warm_agent_has_imported_everything_and_sent_nothing(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    agent = make_agent()
    await agent.warm_up()
    assert server.requests == []
    modules = set(sys.modules)
    server.add_replies(reply_with_text("Hi."))
    assert get_text(await collect_events(agent, make_request())) == "Hi."
    assert {
        name for name in set(sys.modules) - modules if name.startswith(("openai.", "pydantic_ai", "genai"))
    } == set()

"""One run of the agent: what is stored of its answer, and how its turn ends."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.agent.base import AgentRequest, Notice, ReasoningDelta, TextDelta, Tool, ToolCall, ToolResult, UsageReport
from palaver.core.engines.base import Read, Write
from palaver.core.errors import AgentError, AgentRejected, AgentUnavailable
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.draft import Piece, PieceKind
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Inbound, Outcome
from palaver.sessions.turn import BusyPolicy, FailureCode, TurnState
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from support.gateway import ask, load_texts, send_message, wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent
    from support.gateway import MakeSource, StartGateway


OWNER = SessionSource.local_cli()


async def test_reasoning_tool_calls_and_usage_are_stored_with_the_answer(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ReasoningDelta("They want the time.")
        yield ToolCall("c1", "clock", '{"zone":"UTC"}')
        yield ToolResult("c1", "clock", "12:00")
        yield TextDelta("It is ")
        yield TextDelta("noon.")
        yield UsageReport(TurnUsage(model="m-1", provider="p", input_tokens=10, output_tokens=4, cost="0.001"))
        yield UsageReport(TurnUsage(model="m-1", provider="p", input_tokens=5, output_tokens=1, cost="0.002"))
        yield UsageReport(TurnUsage(model="m-2", provider="p", input_tokens=7, output_tokens=2))

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "What time is it?")
    stored = gateway.store.load_transcript(turn.session_id)
    assert [message["role"] for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert stored[1]["reasoning"] == "They want the time."
    assert stored[1]["tool_calls"][0]["function"] == {"name": "clock", "arguments": '{"zone":"UTC"}'}
    assert (stored[2]["tool_call_id"], stored[2]["content"]) == ("c1", "12:00")
    assert stored[3]["content"] == "It is noon."
    usage = gateway.store.get_session(turn.session_id).usage
    assert (usage.input_tokens, usage.output_tokens, usage.unpriced_turns) == (22, 7, 1)
    assert str(usage.cost) == "0.003"


@pytest.mark.both_engines
async def test_the_duration_of_each_tool_is_in_the_draft_and_in_the_answer(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    may_end = asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("slow", "look", "{}")
        yield ToolCall("quick", "look", "{}")
        yield ToolResult("quick", "look", "here")
        await asyncio.sleep(0.05)
        yield ToolResult("slow", "look", "there")
        yield ToolResult("never called", "look", "nowhere")
        await may_end.wait()
        yield TextDelta("Seen.")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "look")
    engine = gateway.store.engine

    def load_draft() -> list[Piece]:
        rows = engine.run(Read(lambda tx: tx.fetch_all("SELECT body FROM draft ORDER BY no")))
        return [Piece.from_dict(piece) for (body,) in rows for piece in json.loads(body)]

    draft = await wait_until(lambda: (pieces := load_draft()) and len(pieces) == 5 and pieces)
    may_end.set()
    turn = await wait_for_turn(gateway, turn_id)
    stored = gateway.store.load_transcript(turn.session_id)
    durations = {message["tool_call_id"]: message.get("duration_ms") for message in stored if message["role"] == "tool"}
    assert durations == {piece.call_id: piece.duration_ms for piece in draft if piece.kind is PieceKind.RESULT}
    assert all(datetime.fromisoformat(piece.started_at).utcoffset() == timedelta() for piece in draft[:2])
    assert durations["never called"] is None
    assert durations["slow"] >= durations["quick"] + 49
    assert stored[-1]["duration_ms"] >= durations["slow"]  # the whole answer


async def test_a_notice_of_the_agent_is_not_part_of_the_answer(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(lambda _request: [Notice("using the other model"), TextDelta("Hi")]))
    turn = await ask(gateway, dm(), "hello")
    assert load_texts(gateway.store, turn.session_id)[-1] == ("assistant", "Hi")


async def test_a_turn_whose_message_was_replaced_does_not_run_the_agent(start_gateway: StartGateway) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent)
    await gateway.turn_worker.stop()
    receipt = await gateway.inbox.accept(Inbound(source=OWNER, content="hello"))
    gateway.store.rewrite_transcript(receipt.session_id or "", [{"role": "user", "content": "something else"}])
    other = await start_gateway(agent)
    turn = await wait_for_turn(other, receipt.turn_id)
    assert turn.state is TurnState.FAILED
    assert "undone" in (turn.error or "")
    assert not agent.requests


async def test_a_message_of_another_person_does_not_steer_a_run(start_gateway: StartGateway, group: MakeSource) -> None:
    ready, may_continue = asyncio.Event(), asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"].endswith("start"):
            ready.set()
            await may_continue.wait()
            yield ToolCall("c1", "look", "{}")
            yield ToolResult("c1", "look", "seen")
            steering = await request.take_steering()
            yield TextDelta(f"steered by {list(steering)}")
        else:
            yield TextDelta("a separate turn")

    gateway = await start_gateway(
        ScriptedAgent(answer), config=GatewayConfig(group_sessions_per_user=False), busy_policy=BusyPolicy.STEER
    )
    first = await send_message(gateway, group("ada"), "start")
    await ready.wait()
    receipt = await gateway.inbox.accept(Inbound(source=group("eve"), content="and now do as I say"))
    assert receipt.outcome is Outcome.QUEUED
    own = await gateway.inbox.accept(Inbound(source=group("ada"), content="I forgot something"))
    assert own.outcome is Outcome.STEERED
    may_continue.set()
    turn = await wait_for_turn(gateway, first)
    await wait_for_turn(gateway, receipt.turn_id)
    answers = [text for role, text in load_texts(gateway.store, turn.session_id) if role == "assistant" and text]
    assert answers == ["steered by ['I forgot something']", "a separate turn"]


async def test_a_turn_has_only_the_toolsets_that_are_enabled_in_its_conversation(start_gateway: StartGateway) -> None:
    async def run(_arguments: object) -> str:
        return "done"

    tool = Tool(name="files_delete", description="", parameters={}, run=run, has_side_effects=True, toolset="mcp:files")
    agent = ScriptedAgent(tools=[tool])
    gateway = await start_gateway(agent)
    for command in ("/status", "/tools off memory mcp:files", "/tools on mcp:files", "/branch"):
        await gateway.inbox.accept(Inbound(source=OWNER, content=command))
        await ask(gateway, OWNER, "and now?")
    sets = [{each.toolset for each in request.tools} for request in agent.requests]
    always = {"history", "schedule", "messaging"}
    assert sets == [always | {"memory", "mcp:files"}, always, always | {"mcp:files"}, always | {"mcp:files"}]


async def test_guests_cannot_use_the_tools_of_servers(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def run(_arguments: object) -> str:
        return "done"

    tool = Tool(name="files_delete", description="", parameters={}, run=run, has_side_effects=True, toolset="mcp:files")
    agent = ScriptedAgent(tools=[tool])
    gateway = await start_gateway(agent)
    await ask(gateway, dm("stranger"), "delete everything")
    await ask(gateway, OWNER, "what can you do?")
    assert [each.name for each in agent.requests[0].tools] == []
    assert "files_delete" in [each.name for each in agent.requests[1].tools]


# -- stopped, too slow, failed --------------------------------------------------------------------------------


async def test_a_stopped_answer_is_kept_and_marked(start_gateway: StartGateway, dm: MakeSource) -> None:
    started = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once upon a time")
        started.set()
        await asyncio.Event().wait()

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "Tell me a story")
    await started.wait()
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="/stop"))
    assert receipt.reply
    turn = await wait_for_turn(gateway, turn_id)
    assert (turn.state, turn.error) == (TurnState.INTERRUPTED, "stopped")
    partial = gateway.store.load_transcript(turn.session_id)[-1]
    assert (partial["content"], partial["interrupted"]) == ("Once upon a time", True)


async def test_an_answer_that_another_person_stopped_says_who_did(start_gateway: StartGateway) -> None:
    started = asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once")
        if len(request.messages) > 1:
            started.set()
            await asyncio.Event().wait()

    loopback = LoopbackAdapter()
    gateway = await start_gateway(
        ScriptedAgent(answer), loopback=loopback, config=GatewayConfig(group_sessions_per_user=False)
    )
    await wait_for_turn(gateway, (await loopback.say("hello", user="grace", chat="family")).turn_id)
    gateway.store.engine.run(Write(lambda tx: tx.execute("UPDATE person SET role = 'member'")))
    turn_id = (await loopback.say("Tell me a story", user="ada", chat="family")).turn_id
    await started.wait()
    await loopback.say("/stop", user="grace", chat="family")
    turn = await wait_for_turn(gateway, turn_id)
    event = gateway.store.load_events(turn.session_id)[-1]
    assert (event.kind, event.facts["reason"]) == (EventKind.TURN_INTERRUPTED, "stopped")
    assert (event.facts["turn"], event.facts["input_seq"]) == (turn_id, turn.input_seq)
    assert event.person_id not in {None, turn.person_id}
    await wait_until(lambda: "Once\n\n(Stopped by Grace)" in [each.body for each in loopback.sent])


@pytest.mark.parametrize(
    ("reason", "facts"),
    [("timed_out", {"minutes": 0}), ("interrupted_by_message", {})],
)
async def test_an_interrupted_answer_has_a_reason_that_can_be_translated(
    start_gateway: StartGateway, dm: MakeSource, reason: str, facts: dict[str, Any]
) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Hm")
        if request.messages[-1]["content"] == "hello":
            await asyncio.Event().wait()

    seconds = 0.2 if reason == "timed_out" else 60
    gateway = await start_gateway(ScriptedAgent(answer), timeout_minutes=seconds / 60, busy_policy=BusyPolicy.INTERRUPT)
    turn_id = await send_message(gateway, dm(), "hello")
    if reason == "interrupted_by_message":
        await wait_until(lambda: gateway.turn_worker.running_count)
        await send_message(gateway, dm(), "stop that")
    turn = await wait_for_turn(gateway, turn_id)
    [event] = [event for event in gateway.store.load_events(turn.session_id) if event.facts.get("turn") == turn_id]
    assert event.facts == {"turn": turn_id, "input_seq": turn.input_seq, "reason": reason, **facts}


async def test_a_turn_that_takes_too_long_is_stopped_with_a_reason(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Hm")
        await asyncio.Event().wait()

    gateway = await start_gateway(ScriptedAgent(answer), timeout_minutes=0.2 / 60)
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.INTERRUPTED
    assert "took longer" in (turn.error or "")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (AgentRejected("openai does not accept the key; set OPENAI_API_KEY"), "set OPENAI_API_KEY"),
        (AgentUnavailable("the model cannot be reached"), "cannot be reached"),
    ],
)
async def test_an_error_of_the_agent_is_explained_and_the_partial_answer_is_kept(
    start_gateway: StartGateway, error: Exception, expected: str
) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("I was about to say")
        raise error

    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback)
    receipt = await loopback.say("hello")
    turn = await wait_for_turn(gateway, receipt.turn_id)
    assert (turn.state, turn.error) == (TurnState.FAILED, str(error))
    partial = gateway.store.load_transcript(turn.session_id)[-1]
    assert (partial["content"], partial["interrupted"]) == ("I was about to say", True)
    assert gateway.store.load_events(turn.session_id)[-1].kind is EventKind.TURN_FAILED
    sent = await wait_until(lambda: loopback.sent)
    assert expected in sent[0].body
    assert "I was about to say" in sent[0].body


async def test_the_providers_own_message_is_stored_and_logged_but_not_sent_to_a_chat(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture
) -> None:
    provider_facts = {
        "code": FailureCode.UNAVAILABLE.value,
        "provider": "openai",
        "model": "openai:x",
        "status": 500,
        "detail": "The GPU is on fire.",
    }

    def answer(_request: AgentRequest) -> str:
        raise AgentUnavailable("OpenAI is unavailable at the moment (HTTP 500).", secret="not stored", **provider_facts)

    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback)
    turn = await wait_for_turn(gateway, (await loopback.say("hello")).turn_id)
    event = gateway.store.load_events(turn.session_id)[-1]
    assert event.facts == {"turn": turn.id, "input_seq": turn.input_seq, "reason": turn.error} | provider_facts
    record = next(record for record in caplog.records if record.message == "turn_failed")
    assert record.levelname == "WARNING"
    assert provider_facts.items() <= vars(record).items()
    sent = await wait_until(lambda: loopback.sent)
    assert "GPU" not in sent[0].body


async def test_an_unexpected_error_is_logged_in_full_and_the_person_sees_no_details(
    start_gateway: StartGateway, dm: MakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(_request: AgentRequest) -> str:
        raise ZeroDivisionError("secret detail")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED
    assert "ZeroDivisionError" in (turn.error or "")
    assert "secret detail" not in (turn.error or "")
    assert "secret detail" in caplog.text
    facts = gateway.store.load_events(turn.session_id)[-1].facts
    assert (facts["code"], facts["error"]) == (FailureCode.INTERNAL_ERROR, "ZeroDivisionError")
    assert (await ask(gateway, dm(), "again")).state is TurnState.FAILED  # the worker goes on


async def test_a_timeout_inside_the_driver_is_not_reported_as_the_time_limit_of_the_turn(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    def answer(_request: AgentRequest) -> str:
        raise TimeoutError

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED
    assert "minutes" not in (turn.error or "")


async def test_a_driver_that_cancels_itself_fails_its_turn(start_gateway: StartGateway, dm: MakeSource) -> None:
    def answer(_request: AgentRequest) -> str:
        raise asyncio.CancelledError

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED


# -- what the database cannot store ---------------------------------------------------------------------------


UNSTORABLE_TEXT = "before \0 and \ud83d after"  # databases do not store NUL, nor half of a surrogate pair


async def test_an_answer_with_unstorable_characters_is_stored_and_delivered_without_them(
    start_gateway: StartGateway,
) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(UNSTORABLE_TEXT), loopback=loopback)
    receipt = await loopback.say("hello")
    assert (await wait_for_turn(gateway, receipt.turn_id)).state is TurnState.DONE
    sent = await wait_until(lambda: loopback.sent)
    assert sent[0].body.startswith("before ")
    assert sent[0].body.endswith(" after")


async def test_an_error_with_unstorable_characters_is_reported_without_them(start_gateway: StartGateway) -> None:
    def answer(_request: AgentRequest) -> str:
        raise AgentError(f"the provider said {UNSTORABLE_TEXT}")

    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback)
    receipt = await loopback.say("hello")
    turn = await wait_for_turn(gateway, receipt.turn_id)
    assert turn.state is TurnState.FAILED
    assert "the provider said before" in (turn.error or "")
    assert "the provider said before" in (await wait_until(lambda: loopback.sent))[0].body


async def test_an_answer_that_is_not_a_valid_message_fails_its_turn(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("I will look.")
        yield ToolCall("c1", "look", "{}")
        yield ToolResult(7, "look", "the id of the call must be a string")  # type: ignore[arg-type]

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED
    assert (await ask(gateway, dm(), "again")).state is TurnState.FAILED

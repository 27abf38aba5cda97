"""A conversation that is too long for the model is answered, whatever happened in it before."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from palaver import SessionSource, SessionStore
from palaver.agent.base import AgentRequest, TextDelta, ToolCall, ToolResult
from palaver.agent.compaction import SUMMARY_REQUEST, count_tokens
from palaver.config.agent_rules import AgentProfile, CompactionRules, TurnRules
from palaver.core.clock import SystemClock
from palaver.core.errors import AgentUnavailable, ContextOverflow
from palaver.gateway.gateway import Gateway
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import BusyPolicy, TurnState
from palaver.testing import ScriptedAgent
from support.gateway import ask, load_texts, send_message, wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from palaver.agent.base import AgentEvent
    from palaver.sessions.turn import Turn
    from support.gateway import MakeSource, StartGateway

OWNER = SessionSource.local_cli()


class InvalidRequest(Exception):
    """A provider would reject this request."""


def check_request(messages: Sequence[Mapping[str, Any]]) -> None:
    """Reject what providers reject: unpaired calls and results, empty messages, a wrong beginning or end."""
    if not messages or messages[0]["role"] != "user" or messages[-1]["role"] not in {"user", "tool"}:
        raise InvalidRequest(f"begins or ends wrongly: {messages}")
    expected: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in expected:
                raise InvalidRequest(f"result without call: {messages}")
            expected.remove(message["tool_call_id"])
        elif expected:
            raise InvalidRequest(f"call without result: {messages}")
        else:
            expected = [call["id"] for call in message.get("tool_calls") or ()]
            if not message["content"] and not expected:
                raise InvalidRequest(f"empty message: {messages}")


@dataclass
class SmallModel:
    """A model with a small context window that checks every request, and does in each answer what a test planned."""

    window: int
    summary: str = "They talked."  # empty: it fails to write one
    during: list[Any] = field(default_factory=list)  # called while it answers
    tool_result_chars: list[int] = field(default_factory=list)  # one tool call for each
    answer_chars: int = 0
    fails: bool = False
    answered: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)  # the requests that it has answered
    call_count: int = 0

    def check(self, messages: Sequence[Mapping[str, Any]]) -> None:
        check_request(messages)
        if count_tokens(messages) > self.window:
            raise ContextOverflow

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        messages: list[Mapping[str, Any]] = list(request.messages)
        self.check(messages)
        if str(messages[-1]["content"]).startswith(SUMMARY_REQUEST):
            yield TextDelta(self.summary)
            return
        if self.fails:
            raise AgentUnavailable("no connection")
        while self.during:
            await self.during.pop(0)()
        while self.tool_result_chars:
            self.call_count += 1
            call_id, result = f"c{self.call_count}", "r" * self.tool_result_chars.pop(0)
            yield ToolCall(call_id, "look", "{}")
            yield ToolResult(call_id, "look", result)
            call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call_id, "content": result},
                *({"role": "user", "content": text} for text in await request.take_steering()),
            ]
            self.check(messages)
        self.answered.append(messages)
        yield TextDelta("answer " + "a" * self.answer_chars)


async def send_during_answers(
    gateway: Gateway, model: SmallModel, source: SessionSource, texts: Sequence[str]
) -> AsyncGenerator[tuple[int, Turn], None]:
    """Send each text while the one before it is answered; yields their turns when they have ended."""
    unsent = iter(enumerate(texts))
    turn_ids: dict[int, str | None] = {}

    async def send_next() -> None:
        for number, text in itertools.islice(unsent, 1):
            model.during.append(send_next)
            turn_ids[number] = await send_message(gateway, source, text)  # its answer may begin before this returns

    await send_next()
    for number in range(len(texts)):
        yield number, await wait_for_turn(gateway, turn_ids[number])


# -- single cases --------------------------------------------------------------------------------------------


async def test_a_conversation_is_answered_when_each_message_arrives_during_the_answer_before_it(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    model = SmallModel(window=400, answer_chars=200)
    gateway = await start_gateway(ScriptedAgent(model.run))
    turns = send_during_answers(gateway, model, dm(), [f"question {number} " + "q" * 100 for number in range(20)])
    async for number, turn in turns:
        assert (turn.state, turn.error) == (TurnState.DONE, None)
        assert f"question {number} " in str(model.answered[number][-1]["content"])
    compactions = [event for event in gateway.store.load_events(turn.session_id) if event.kind is EventKind.COMPACTED]
    assert compactions
    assert any(event.facts.get("carried_seqs") for event in compactions)
    assert len(gateway.store.load_transcript(turn.session_id)) == 40


async def test_compress_works_when_each_message_arrived_during_the_answer_before_it(
    start_gateway: StartGateway,
) -> None:
    model = SmallModel(window=10_000)
    gateway = await start_gateway(ScriptedAgent(model.run))
    async for _ in send_during_answers(gateway, model, OWNER, [f"question {number}" for number in range(6)]):
        pass
    turn = await ask(gateway, OWNER, "/compress")
    assert (turn.state, turn.error) == (TurnState.DONE, None)
    await ask(gateway, OWNER, "and now?")
    contents = [str(message["content"]) for message in model.answered[-1]]
    assert "They talked." in contents[0]
    assert contents[1:] == ["question 4", "answer ", "question 5", "answer ", "and now?"]


async def test_in_a_branch_every_answer_still_follows_its_question(start_gateway: StartGateway) -> None:
    def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        return answer_after_sending(str(request.messages[-1]["content"]))

    async def answer_after_sending(question: str) -> AsyncGenerator[AgentEvent, None]:
        number = next(numbers, None)
        if number is not None:
            last_turn_ids[number] = await send_message(gateway, OWNER, f"q{number}")
        yield TextDelta(f"a{question[1:]}")

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    numbers, last_turn_ids = iter(range(1, 4)), dict[int, str | None]()
    await ask(gateway, OWNER, "q0")
    await wait_until(lambda: 3 in last_turn_ids)
    await wait_for_turn(gateway, last_turn_ids[3])
    await gateway.inbox.accept(Inbound(source=OWNER, content="/branch"))
    await ask(gateway, OWNER, "q4")
    contents = [message["content"] for message in agent.requests[-1].messages]
    assert contents == ["q0", "a0", "q1", "a1", "q2", "a2", "q3", "a3", "q4"]


async def test_one_message_longer_than_the_window_is_shortened_and_the_rest_stays(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    model = SmallModel(window=500)
    gateway = await start_gateway(ScriptedAgent(model.run))
    await ask(gateway, dm(), "my name is Ada")
    turn = await ask(gateway, dm(), "begin " + "x" * 100_000 + " end")
    assert turn.state is TurnState.DONE
    contents = [str(message["content"]) for message in model.answered[-1]]
    assert contents[0] == "my name is Ada"
    assert contents[-1].startswith("begin ")
    assert contents[-1].endswith(" end")
    assert EventKind.COMPACTED not in {event.kind for event in gateway.store.load_events(turn.session_id)}
    assert (await ask(gateway, dm(), "what is my name?")).state is TurnState.DONE


async def test_tool_results_longer_than_the_window_are_shortened_and_the_answer_continues(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    model = SmallModel(window=500, tool_result_chars=[100, 50_000, 100])
    gateway = await start_gateway(ScriptedAgent(model.run))
    turn = await ask(gateway, dm(), "look it up")
    assert (turn.state, turn.error) == (TurnState.DONE, None)
    assert model.call_count == 3  # no call is repeated
    roles = [role for role, _ in load_texts(gateway.store, turn.session_id)]
    assert roles == ["user", *["assistant", "tool"] * 3, "assistant"]


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_oldest_leave_the_view_when_no_summary_can_be_made(
    start_gateway: StartGateway, dm: MakeSource, enabled: bool
) -> None:
    model = SmallModel(window=400, answer_chars=200, summary="")
    gateway = await start_gateway(ScriptedAgent(model.run), compaction=CompactionRules(enabled=enabled))
    for number in range(12):
        turn = await ask(gateway, dm(), f"question {number} " + "q" * 100)
        assert (turn.state, turn.error) == (TurnState.DONE, None)
    compacted = [event for event in gateway.store.load_events(turn.session_id) if event.kind is EventKind.COMPACTED]
    assert compacted
    assert all(event.facts["omitted_count"] == event.facts["message_count"] for event in compacted)
    assert "omitted" in str(model.answered[-1][0]["content"])


async def test_a_later_summary_covers_what_had_left_the_view(start_gateway: StartGateway) -> None:
    model = SmallModel(window=400, answer_chars=200, summary="")
    agent = ScriptedAgent(model.run)
    gateway = await start_gateway(agent)
    for number in range(8):
        await ask(gateway, OWNER, f"question {number} " + "q" * 100)
    model.summary, model.window = "They talked.", 10_000
    await ask(gateway, OWNER, "/compress")
    assert "question 0 " in str(agent.requests[-1].messages[0]["content"])
    await ask(gateway, OWNER, "more")
    assert "They talked." in str(model.answered[-1][0]["content"])
    assert not any("omitted" in str(message["content"]) for message in model.answered[-1])


# -- whatever the interleaving -------------------------------------------------------------------------------

sizes = st.sampled_from([0, 10, 300, 3000])
steps = st.one_of(
    st.tuples(st.just("ask"), sizes),
    st.tuples(st.just("ask with tools"), st.lists(sizes, min_size=1, max_size=3)),
    st.tuples(st.just("ask while busy"), st.lists(sizes, min_size=1, max_size=4)),
    st.tuples(st.just("steer"), st.lists(sizes, min_size=1, max_size=2)),
    st.tuples(st.just("fail"), sizes),
    st.tuples(st.just("command"), st.sampled_from(["/undo", "/redo", "/compress", "/restore", "/branch", "/retry"])),
)


@dataclass
class Conversation:
    """Plays a script in one chat."""

    gateway: Gateway
    model: SmallModel
    source: SessionSource
    turn_ids: list[str] = field(default_factory=list)

    async def send(self, text: str, policy: BusyPolicy = BusyPolicy.QUEUE) -> None:
        turn_id = await send_message(self.gateway, self.source, text, busy_policy=policy)
        if turn_id is not None:
            self.turn_ids.append(turn_id)

    async def wait(self) -> None:
        for turn_id in self.turn_ids:
            await wait_for_turn(self.gateway, turn_id)

    async def play(self, step: tuple[str, Any]) -> None:
        kind, value = step
        model = self.model
        if kind == "command":
            await self.send(value)
            return await self.wait()
        policy = BusyPolicy.STEER if kind == "steer" else BusyPolicy.QUEUE
        if kind == "ask with tools":
            model.tool_result_chars = list(value)
        elif kind in {"ask while busy", "steer"}:
            model.tool_result_chars = [10] if kind == "steer" else []
            model.during = [lambda size=size: self.send("q" * size + "?", policy) for size in value]
        model.fails = kind == "fail"
        await self.send(("q" * value if isinstance(value, int) else "") + "?")
        await self.wait()
        model.fails, model.tool_result_chars, model.during = False, [], []
        return None


def test_a_conversation_that_overflows_is_always_answered(tmp_path: Path) -> None:
    chats = iter(range(10**6))
    model = SmallModel(window=0)
    store = SessionStore.open(f"sqlite:///{tmp_path}/palaver.db", clock=SystemClock())
    rules = TurnRules(max_running=1)
    gateway = Gateway(store, ScriptedAgent(model.run), profile=AgentProfile(), rules=rules)

    async def play(script: list[tuple[str, Any]], window: int, summary: str) -> None:
        model.window, model.summary, model.answer_chars = window, summary, 100
        source = SessionSource("local", f"chat {next(chats)}", user_id="ada")
        conversation = Conversation(gateway, model, source)
        for step in script:
            conversation.turn_ids.clear()
            await conversation.play(step)
            for turn_id in conversation.turn_ids if step[0] not in {"fail", "command"} else ():
                turn = await wait_for_turn(gateway, turn_id)
                assert (turn.state, turn.error) == (TurnState.DONE, None), (step, script)
        model.window = min(window, 300)  # a smaller model than before
        turn = await ask(gateway, source, "the last question")
        assert (turn.state, turn.error) == (TurnState.DONE, None), script
        assert "the last question" in str(model.answered[-1][-1]["content"])

    with asyncio.Runner() as runner, store:
        runner.run(gateway.start())

        @settings(
            max_examples=settings().max_examples // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
        @given(st.lists(steps, max_size=12), st.sampled_from([300, 600, 1500]), st.sampled_from(["They talked.", ""]))
        @example([("ask while busy", [300, 300, 300, 300])] * 3 + [("command", "/compress"), ("ask", 10)], 300, "x")
        @example([("fail", 300)] * 12, 300, "They talked.")
        @example([("ask with tools", [3000] * 3)], 300, "They talked.")
        @example([("ask with tools", [3000] * 8)], 300, "")
        def check(script: list[tuple[str, Any]], window: int, summary: str) -> None:
            runner.run(play(script, window, summary))

        try:
            check()
        finally:
            runner.run(gateway.stop(0))

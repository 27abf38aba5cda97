"""Compaction: when a conversation is summarized for the agent, and that nothing is lost by it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import AgentRequest, TextDelta, ToolCall, ToolResult, UsageReport, estimate_message_tokens
from palaver.agent.compaction import SUMMARY_REQUEST
from palaver.config.agent_rules import CompactionRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import AgentUnavailable, BudgetExceeded, ContextOverflow
from palaver.live.feed_events import NoticeSent
from palaver.people.model import Principal
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions import table as sessions, turns_table as turns
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Inbound, Outcome
from palaver.sessions.turn import TurnKind, TurnState
from palaver.sessions.usage import TurnUsage
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import ask, wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent
    from palaver.core.engines.base import Transaction
    from support.gateway import MakeSource, StartGateway


OWNER = SessionSource.local_cli()


class ContextFillingAgent:
    """Reports the size of each request as usage, and counts the summaries that it was asked for."""

    def __init__(self, window: int | None, *, summary: str = "They counted.", base_tokens: int = 0) -> None:
        self.agent = ScriptedAgent(self._answer, context_window=window)
        self.summary_count = 0
        self._summary = summary
        self._base_tokens = base_tokens  # of every request, in addition to its messages
        self.may_continue = asyncio.Event()  # holds up the answer after a summary
        self.may_continue.set()

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"].startswith(SUMMARY_REQUEST):
            self.summary_count += 1
            yield UsageReport(TurnUsage(model="m", input_tokens=1, last_prompt_tokens=10**6))
            yield TextDelta(self._summary)
            return
        if self.summary_count:
            await self.may_continue.wait()
        tokens = self._base_tokens + estimate_message_tokens(request.messages)
        yield TextDelta("word " * 100)
        yield UsageReport(TurnUsage(model="m", input_tokens=tokens, last_prompt_tokens=tokens))


# -- because the conversation is too long ---------------------------------------------------------------------


async def test_a_conversation_too_long_for_the_model_is_compacted_once_and_answered(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    def answer(request: AgentRequest) -> Any:
        last = request.messages[-1]["content"]
        if last.startswith(SUMMARY_REQUEST):
            return "They counted."
        if len(request.messages) > 8:
            raise ContextOverflow
        return f"{last} it is"

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    for i in range(6):
        turn = await ask(gateway, dm(), f"number {i}")
        assert turn.state is TurnState.DONE
    kinds = [event.kind for event in gateway.store.load_events(turn.session_id)]
    assert kinds.count(EventKind.COMPACTED) == 1
    assert "They counted." in agent.requests[-1].messages[0]["content"]
    assert len(gateway.store.load_transcript(turn.session_id)) == 12  # no message was removed


async def test_a_conversation_that_nearly_fills_the_context_window_is_compacted_first(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    filling = ContextFillingAgent(window=1000)
    gateway = await start_gateway(filling.agent)
    prompt_tokens = []
    for i in range(20):
        turn = await ask(gateway, dm(), f"number {i}")
        assert turn.state is TurnState.DONE
        prompt_tokens.append(gateway.store.get_session(turn.session_id).last_prompt_tokens)
    assert filling.summary_count >= 2
    assert max(prompt_tokens) < 1000  # the model never had to refuse a request
    kinds = [event.kind for event in gateway.store.load_events(turn.session_id)]
    assert kinds.count(EventKind.COMPACTED) == filling.summary_count
    assert filling.summary_count <= sum(tokens >= 850 for tokens in prompt_tokens)
    assert "They counted." in filling.agent.requests[-1].messages[0]["content"]
    assert len(gateway.store.load_transcript(turn.session_id)) == 40  # no message was removed


async def test_followers_get_a_notice_of_a_compaction(start_gateway: StartGateway, dm: MakeSource) -> None:
    filling = ContextFillingAgent(window=1000)
    filling.may_continue.clear()  # notices are not stored: the follower must get them before the run ends
    gateway = await start_gateway(filling.agent)
    turn = await ask(gateway, dm(), "number 0")
    assert turn.person_id is not None
    following = gateway.feed.follow(Principal(turn.person_id), turn.session_id, after=0)

    async def read_two_notices() -> list[str]:
        notices = (item.text async for item in following if isinstance(item, NoticeSent))
        try:
            return [await anext(notices), await anext(notices)]
        finally:
            filling.may_continue.set()

    reading = asyncio.create_task(read_two_notices())
    while not filling.summary_count:
        await ask(gateway, dm(), "more")
    assert await reading == [
        "Summarizing older messages…",
        "This conversation nearly filled the model's context, so the agent now sees a summary of it.",
    ]
    await following.aclose()


@pytest.mark.parametrize(
    ("window", "base_tokens"),
    [
        (None, 0),  # the context window is unknown
        (100_000, 0),
        (100_000, 95_000),  # a summary would free too little
    ],
)
async def test_a_conversation_is_not_compacted_without_need_or_benefit(
    start_gateway: StartGateway, dm: MakeSource, window: int | None, base_tokens: int
) -> None:
    filling = ContextFillingAgent(window=window, base_tokens=base_tokens)
    gateway = await start_gateway(filling.agent)
    for i in range(8):
        turn = await ask(gateway, dm(), f"{i}")
        assert turn.state is TurnState.DONE
    assert filling.summary_count == 0


async def test_a_conversation_is_answered_even_if_it_could_not_be_compacted(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    filling = ContextFillingAgent(window=1000, summary="")
    gateway = await start_gateway(filling.agent)
    for i in range(10):
        assert (await ask(gateway, dm(), f"number {i}")).state is TurnState.DONE
    assert filling.summary_count >= 1
    assert len(filling.agent.requests[-1].messages) == 19


# -- because a person asked for it ----------------------------------------------------------------------------


async def test_compress_compacts_and_restore_undoes_it(start_gateway: StartGateway) -> None:
    def answer(request: AgentRequest) -> str:
        last = request.messages[-1]["content"]
        return "They spoke of tea." if last.startswith(SUMMARY_REQUEST) else "yes"

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    for i in range(6):
        await ask(gateway, OWNER, f"tea {i}")
    await gateway.inbox.accept(Inbound(source=OWNER, content="/model scripted-large"))
    turn = await ask(gateway, OWNER, "/compress")
    assert turn.state is TurnState.DONE
    assert agent.requests[-1].model == "scripted-large"  # the model of this conversation
    await ask(gateway, OWNER, "more tea")
    contents = [message["content"] for message in agent.requests[-1].messages]
    assert "They spoke of tea." in contents[0]
    assert contents[1:] == ["tea 4", "yes", "tea 5", "yes", "more tea"]
    await gateway.inbox.accept(Inbound(source=OWNER, content="/restore"))
    await ask(gateway, OWNER, "and now?")
    assert agent.requests[-1].messages[0]["content"] == "tea 0"


async def test_a_failed_summary_changes_nothing(start_gateway: StartGateway) -> None:
    def answer(request: AgentRequest) -> str:
        if request.messages[-1]["content"].startswith(SUMMARY_REQUEST):
            raise AgentUnavailable("the model is unavailable")
        return "yes"

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    for i in range(6):
        await ask(gateway, OWNER, f"tea {i}")
    turn = await ask(gateway, OWNER, "/compress")
    assert (turn.state, turn.error) == (TurnState.FAILED, "the model is unavailable")
    await ask(gateway, OWNER, "more")
    assert agent.requests[-1].messages[0]["content"] == "tea 0"


@pytest.mark.both_engines
async def test_a_compaction_whose_worker_died_after_storing_it_is_not_repeated(
    start_gateway: StartGateway,
) -> None:
    def answer(request: AgentRequest) -> str:
        is_summary_request = request.messages[-1]["content"].startswith(SUMMARY_REQUEST)
        return "They spoke of tea." if is_summary_request else "yes"

    gateway = await start_gateway(ScriptedAgent(answer))
    for i in range(6):
        turn = await ask(gateway, OWNER, f"tea {i}")
    await ask(gateway, OWNER, "/compress")

    def restart_turn(tx: Transaction) -> Any:  # as if the end of the turn had not been stored
        tx.execute("UPDATE turn SET state = 'queued', ended_at = NULL WHERE kind = 'compact'")
        return tx.fetch_one("SELECT id FROM turn WHERE kind = 'compact'")

    (turn_id,) = gateway.store.engine.run(Write(restart_turn))
    gateway.turn_worker.wake()
    assert (await wait_for_turn(gateway, turn_id)).state is TurnState.DONE
    kinds = [event.kind for event in gateway.store.load_events(turn.session_id)]
    assert kinds.count(EventKind.COMPACTED) == 1


@pytest.mark.both_engines
async def test_a_message_is_not_merged_into_a_queued_compaction(start_gateway: StartGateway) -> None:
    clock = FakeClock()
    gateway = await start_gateway(clock=clock, merge_window_seconds=5)
    await gateway.turn_worker.stop()
    session_id = (await gateway.inbox.accept(Inbound(source=OWNER, content="hello"))).session_id
    now = to_micros(clock.now())

    def queue_compaction(tx: Transaction) -> None:
        tx.execute("DELETE FROM turn")
        request = turns.TurnRequest(
            session_no=sessions.get_no(tx, session_id or ""), input_seq=2, kind=TurnKind.COMPACT, due_at=now + 10
        )
        person = tx.fetch_one("SELECT id FROM person")
        assert person is not None
        turns.enqueue(tx, request, now)
        tx.execute("UPDATE turn SET person_id = $1", person[0])

    gateway.store.engine.run(Write(queue_compaction))
    receipt = await gateway.inbox.accept(Inbound(source=OWNER, content="and this is a question"))
    assert receipt.outcome is Outcome.QUEUED
    kinds = gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT kind FROM turn ORDER BY no")))
    assert kinds == [("compact",), ("answer",)]


# -- people in a chat are told --------------------------------------------------------------------------------


async def test_people_in_a_chat_are_told_of_a_summary_once_and_before_the_answer(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    filling = ContextFillingAgent(window=1000)
    gateway = await start_gateway(filling.agent, loopback=loopback)
    while not filling.summary_count:
        receipt = await loopback.say("more")
        await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(
        lambda: [delivery.kind for delivery in loopback.sent[-2:]] == [DeliveryKind.NOTICE, DeliveryKind.ANSWER]
    )
    notices = [delivery for delivery in loopback.sent if delivery.kind is DeliveryKind.NOTICE]
    assert loopback.sent[-2:] == [notices[0], loopback.sent[-1]]
    assert len(notices) == 1
    assert "the agent now sees a summary of" in notices[0].body
    assert "/restore" in notices[0].body


@pytest.mark.both_engines
async def test_people_in_a_chat_are_not_told_of_a_summary_if_the_setting_says_so(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    filling = ContextFillingAgent(window=1000)
    gateway = await start_gateway(filling.agent, loopback=loopback, compaction=CompactionRules(notify=False))
    while not filling.summary_count:
        receipt = await loopback.say("more")
        await wait_for_turn(gateway, receipt.turn_id)
    rows = gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT kind FROM delivery WHERE kind = 'notice'")))
    assert rows == []


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("summary", "text"),
    [
        ("They spoke of tea.", "The agent now sees a summary of 8 older messages."),
        ("", "I couldn't summarize the conversation. The model returned no summary"),
    ],
)
async def test_people_in_a_chat_are_told_how_compress_ended(
    start_gateway: StartGateway, summary: str, text: str
) -> None:
    def answer(request: AgentRequest) -> str:
        return summary if request.messages[-1]["content"].startswith(SUMMARY_REQUEST) else "yes"

    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback)
    gateway.store.get_or_create_person(SessionSource(LOOPBACK, "ada", user_id="ada"))
    gateway.store.engine.run(Write(lambda tx: tx.execute("UPDATE person SET role = 'member'")))
    for i in range(6):
        await wait_for_turn(gateway, (await loopback.say(f"tea {i}")).turn_id)
    await wait_for_turn(gateway, (await loopback.say("/compress", message_id="m1")).turn_id)
    await wait_until(lambda: len(loopback.sent) == 8)
    started, ended = loopback.sent[-2:]
    assert "Summarizing" in started.body
    assert (ended.kind, ended.reply_to) == (DeliveryKind.NOTICE, "m1")
    assert ended.body.startswith(text)


async def test_a_summary_is_made_when_the_settings_say_so(start_gateway: StartGateway, dm: MakeSource) -> None:
    filling = ContextFillingAgent(window=10_000)
    rules = CompactionRules(at_percent=10, keep_exchanges=4)
    gateway = await start_gateway(filling.agent, compaction=rules)
    for i in range(20):
        await ask(gateway, dm(), f"number {i}")
        if filling.summary_count:
            break
    contents = [message["content"] for message in filling.agent.requests[-1].messages if message["role"] == "user"]
    assert contents[1:] == [f"number {i}" for i in range(i - 3, i + 1)]


async def test_no_summary_is_made_if_the_settings_say_so(start_gateway: StartGateway, dm: MakeSource) -> None:
    filling = ContextFillingAgent(window=1000)
    gateway = await start_gateway(filling.agent, compaction=CompactionRules(enabled=False))
    for i in range(12):
        assert (await ask(gateway, dm(), f"number {i}")).state is TurnState.DONE
    assert filling.summary_count == 0


# -- what a summary must keep ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tries", "summary"),
    [
        (["Ada ordered AB-123456."], "Ada ordered AB-123456."),
        (["Ada ordered something.", "It is AB-123456."], "It is AB-123456."),
        (["Ada ordered something.", "Ordered."], "Ordered.\n\nAlso mentioned: AB-123456"),
        (["Ada ordered something.", AgentUnavailable("busy")], "Ada ordered something.\n\nAlso mentioned: AB-123456"),
        (["Ada ordered something.", BudgetExceeded("used")], "Ada ordered something.\n\nAlso mentioned: AB-123456"),
        (["Ada ordered something.", ""], "Ada ordered something.\n\nAlso mentioned: AB-123456"),
    ],
)
async def test_a_summary_that_loses_an_identifier_is_made_again_once(
    start_gateway: StartGateway, tries: list[str | Exception], summary: str
) -> None:
    prompts: list[str] = []

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        last = request.messages[-1]["content"]
        if not last.startswith(SUMMARY_REQUEST):
            yield TextDelta("yes")
            return
        prompts.append(last)
        result = tries[len(prompts) - 1]
        yield UsageReport(TurnUsage(model="m", input_tokens=10))
        if isinstance(result, Exception):
            raise result
        yield TextDelta(result)

    gateway = await start_gateway(ScriptedAgent(answer))
    for text in ("My order is AB-123456", "two", "three", "four"):
        turn = await ask(gateway, OWNER, text)
    await ask(gateway, OWNER, "/compress")
    event = next(event for event in gateway.store.load_events(turn.session_id) if event.kind is EventKind.COMPACTED)
    assert event.facts["summary"] == summary
    assert len(prompts) == len(tries)
    assert ['"AB-123456"' in prompt for prompt in prompts] == [False, True][: len(tries)]
    assert gateway.store.get_session(turn.session_id).usage.input_tokens == 10 * len(tries)


# -- results of tools that leave the view ----------------------------------------------------------------------


async def test_old_results_leave_the_view_before_a_summary_is_needed_and_can_be_read_again(
    start_gateway: StartGateway,
) -> None:
    found: list[str] = []
    requests: list[AgentRequest] = []

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        assert not request.messages[-1]["content"].startswith(SUMMARY_REQUEST)
        requests.append(request)
        number = len(requests)
        yield ToolCall(f"c{number}", "look", "{}")
        yield ToolResult(f"c{number}", "look", f"page {number} " + "word " * 1000)
        yield TextDelta("seen")
        tokens = estimate_message_tokens(request.messages) + 1300
        yield UsageReport(TurnUsage(model="m", input_tokens=tokens, last_prompt_tokens=tokens))
        left_out = [each for each in request.messages if "read it again" in str(each["content"])]
        if left_out and not found:
            tool = next(tool for tool in request.tools if tool.name == "read_tool_result")
            numbers = re.findall(r"number (\d+)\.", left_out[0]["content"])
            found.append(await tool.run({"number": int(numbers[0]), "limit": 6}))

    gateway = await start_gateway(ScriptedAgent(answer, context_window=10_000))
    for index in range(12):
        turn = await ask(gateway, OWNER, f"question {index}")
        assert turn.state is TurnState.DONE
    assert [text.partition("\n")[2] for text in found] == ["page 1"]
    events = gateway.store.load_events(turn.session_id)
    assert EventKind.COMPACTED not in [event.kind for event in events]
    results = [event.message.text for event in events if event.message is not None and event.message.role == "tool"]
    assert min(map(len, results)) > 5000  # people see all of them


async def test_results_stay_in_view_where_they_could_not_be_read_again(start_gateway: StartGateway) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        assert "read it again" not in str(request.messages)
        yield ToolCall("c1", "look", "{}")
        yield ToolResult("c1", "look", "word " * 1000)
        yield TextDelta("seen")

    gateway = await start_gateway(ScriptedAgent(answer, context_window=10_000), toolsets={})
    for index in range(8):
        assert (await ask(gateway, OWNER, f"question {index}")).state is TurnState.DONE

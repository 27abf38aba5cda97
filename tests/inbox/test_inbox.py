"""The inbox: the outcome of messages and commands, and that it is durable when the receipt is returned."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy, SessionSource
from palaver.agent.base import AgentRequest, TextDelta, Tool, ToolCall, ToolResult
from palaver.core.crash_points import set_crash_hook
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidMessage, SessionNotFound
from palaver.core.ids import SessionId
from palaver.inbox import inbox, message_queue
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.inbound import Cursor, Inbound, Outcome, Receipt
from palaver.sessions.policy import ResetMode
from palaver.sessions.turn import BusyPolicy, TurnState
from palaver.testing import FakeClock, ScriptedAgent
from palaver.turns.commands.history import undo_turns
from support.agents import LookupAgent
from support.gateway import MakeSource, StartGateway, ask, load_texts, make_member, wait_for_turn, wait_until
from support.people import find_code

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway


class Gate:
    """An agent that starts to answer and goes on when `open` is set."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.started = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Let me see. ")
        self.started.set()
        await self.open.wait()
        yield TextDelta(f"You said: {request.messages[-1]['content']}")


async def test_a_message_is_stored_and_answered(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent("Good day."))
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="Hello"))
    assert receipt.outcome is Outcome.ACCEPTED
    assert receipt.is_stored
    turn = await wait_for_turn(gateway, receipt.turn_id)
    assert turn.state is TurnState.DONE
    assert load_texts(gateway.store, receipt.session_id) == [("user", "Hello"), ("assistant", "Good day.")]


async def test_the_same_message_twice_is_one_message(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    first = await gateway.inbox.accept(Inbound(source=dm(), content="Hello", message_id="7"))
    again = await gateway.inbox.accept(Inbound(source=dm(), content="Hello", message_id="7"))
    assert again.outcome is Outcome.DUPLICATE
    assert (again.session_id, again.turn_id, again.seq) == (first.session_id, first.turn_id, first.seq)
    await wait_for_turn(gateway, first.turn_id)
    assert len(load_texts(gateway.store, first.session_id)) == 2


async def test_the_same_message_id_in_another_chat_or_account_is_another_message(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    outcomes = [
        (await gateway.inbox.accept(Inbound(source=source, content="Hello", message_id="7"))).outcome
        for source in (dm("ada"), dm("bob"), replace(dm("ada"), account="second-bot"))
    ]
    assert Outcome.DUPLICATE not in outcomes


async def test_a_message_accepted_ten_times_by_two_gateways_is_one_turn(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateways = [await start_gateway(), await start_gateway()]
    receipts = await asyncio.gather(
        *(gateways[i % 2].inbox.accept(Inbound(source=dm(), content="Hello", message_id="7")) for i in range(10))
    )
    assert sorted(receipt.outcome for receipt in receipts) == [Outcome.ACCEPTED, *[Outcome.DUPLICATE] * 9]
    assert len({receipt.turn_id for receipt in receipts}) == 1
    await wait_for_turn(gateways[0], receipts[0].turn_id)
    assert len(load_texts(gateways[0].store, receipts[0].session_id)) == 2


async def test_repeated_messages_and_answers_are_all_stored_and_sent_to_the_agent(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    agent = ScriptedAgent("Done.")
    gateway = await start_gateway(agent)
    for _ in range(3):
        await ask(gateway, dm(), "Do it.")
    contents = [message["content"] for message in agent.requests[-1].messages]
    assert contents == ["Do it.", "Done.", "Do it.", "Done.", "Do it."]


@pytest.mark.parametrize("content", ["", "   ", []])
async def test_an_empty_message_is_rejected(start_gateway: StartGateway, dm: MakeSource, content: str) -> None:
    gateway = await start_gateway()
    with pytest.raises(InvalidMessage, match="empty"):
        await gateway.inbox.accept(Inbound(source=dm(), content=content))


@pytest.mark.both_engines
async def test_a_message_that_is_too_long_is_rejected_with_a_reason(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("x" * 200_001)
    assert receipt.outcome is Outcome.REJECTED
    assert "200001" in (receipt.reply or "")
    await wait_until(lambda: loopback.sent)
    assert not gateway.store.has_any_sessions()


async def test_a_stranger_is_rejected_and_the_agent_never_sees_the_message(start_gateway: StartGateway) -> None:
    agent, loopback = ScriptedAgent(), LoopbackAdapter()
    await start_gateway(agent, loopback=loopback, open_platforms=frozenset())
    receipt = await loopback.say("Hello", user="mallory")
    assert receipt.outcome is Outcome.REJECTED
    assert find_code(receipt.reply)
    sent = await wait_until(lambda: loopback.sent)
    assert sent[0].body == receipt.reply
    assert not agent.requests


async def test_a_stranger_in_a_group_gets_no_reply(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    await start_gateway(loopback=loopback, open_platforms=frozenset())
    receipt = await loopback.say("Hello", user="mallory", chat="club")
    assert (receipt.outcome, receipt.reply) == (Outcome.REJECTED, None)


# -- while the agent is busy --------------------------------------------------------------------------------


async def test_messages_are_queued_while_the_agent_is_busy(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent)
    receipts = [await gateway.inbox.accept(Inbound(source=dm(), content="one"))]
    await gate.started.wait()
    receipts += [await gateway.inbox.accept(Inbound(source=dm(), content=text)) for text in ("two", "three")]
    assert [receipt.outcome for receipt in receipts] == [Outcome.ACCEPTED, Outcome.QUEUED, Outcome.QUEUED]
    assert [receipt.turns_ahead for receipt in receipts] == [0, 1, 2]
    gate.open.set()
    for receipt in receipts:
        await wait_for_turn(gateway, receipt.turn_id)
    # The model sees each question with its answer, in the order in which they were answered.
    assert [message["content"] for message in gate.agent.requests[2].messages] == [
        "one",
        "Let me see. You said: one",
        "two",
        "Let me see. You said: two",
        "three",
    ]


async def test_a_full_queue_rejects_messages_with_a_reason(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, max_queued=2)
    receipts = [await gateway.inbox.accept(Inbound(source=dm(), content="one"))]
    await gate.started.wait()
    receipts += [await gateway.inbox.accept(Inbound(source=dm(), content=str(n))) for n in range(3)]
    assert receipts[-1].outcome is Outcome.REJECTED
    assert "2 messages are queued" in (receipts[-1].reply or "")
    assert not receipts[-1].is_stored
    gate.open.set()


async def test_the_policy_reject_rejects_messages_only_while_the_agent_is_busy(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy_policy=BusyPolicy.REJECT)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.started.wait()
    assert (await gateway.inbox.accept(Inbound(source=dm(), content="two"))).outcome is Outcome.REJECTED
    gate.open.set()
    await wait_for_turn(gateway, first.turn_id)
    assert (await gateway.inbox.accept(Inbound(source=dm(), content="three"))).outcome is Outcome.ACCEPTED


async def test_the_policy_interrupt_stops_the_run_and_answers_the_new_message(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy_policy=BusyPolicy.INTERRUPT)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.started.wait()
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    assert second.outcome is Outcome.INTERRUPTING
    assert (await wait_for_turn(gateway, first.turn_id)).state is TurnState.INTERRUPTED
    gate.open.set()
    assert (await wait_for_turn(gateway, second.turn_id)).state is TurnState.DONE
    transcript = gateway.store.load_transcript(first.session_id or "")
    partial = next(message for message in transcript if message["role"] == "assistant")
    assert (partial["content"], partial["interrupted"]) == ("Let me see. ", True)


async def test_steering_reaches_the_agent_after_its_next_tool_call(start_gateway: StartGateway, dm: MakeSource) -> None:
    at_work, go_on = asyncio.Event(), asyncio.Event()

    async def look(_arguments: object) -> str:
        at_work.set()
        await go_on.wait()
        return "nothing yet"

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("c1", "look", "{}")
        yield ToolResult("c1", "look", await request.tools[-1].run({}))
        heard = await request.take_steering()
        yield TextDelta(f"Heard meanwhile: {', '.join(heard)}")

    tool = Tool(name="look", description="", parameters={}, run=look)
    agent = ScriptedAgent(answer, tools=[tool])
    gateway = await start_gateway(agent, busy_policy=BusyPolicy.STEER)
    await make_member(gateway.store, dm())
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await at_work.wait()
    second = await gateway.inbox.accept(Inbound(source=dm(), content="look left"))
    assert second.outcome is Outcome.STEERED
    go_on.set()
    await wait_for_turn(gateway, first.turn_id)
    assert (await wait_for_turn(gateway, second.turn_id)).state is TurnState.DONE
    assert load_texts(gateway.store, first.session_id)[-1] == ("assistant", "Heard meanwhile: look left")
    assert len(agent.requests) == 1
    # The next turn sees the steering where the model met it: after the tool's result.
    await ask(gateway, dm(), "/queue and now?")
    roles = [message["role"] for message in agent.requests[1].messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "user"]


async def test_steering_without_a_tool_call_becomes_its_own_turn(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy_policy=BusyPolicy.STEER)
    await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.started.wait()
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    gate.open.set()
    await wait_for_turn(gateway, second.turn_id)
    assert load_texts(gateway.store, second.session_id)[-1] == ("assistant", "Let me see. You said: two")


async def test_a_message_can_override_the_busy_policy(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy_policy=BusyPolicy.REJECT)
    await make_member(gateway.store, dm())
    await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.started.wait()
    queued = await gateway.inbox.accept(Inbound(source=dm(), content="/queue two"))
    assert queued.outcome is Outcome.QUEUED
    interrupting = await gateway.inbox.accept(Inbound(source=dm(), content="three", busy_policy=BusyPolicy.INTERRUPT))
    assert interrupting.outcome is Outcome.INTERRUPTING
    gate.open.set()
    await wait_for_turn(gateway, interrupting.turn_id)
    assert ("user", "two") in load_texts(gateway.store, queued.session_id)


async def test_messages_within_the_merge_window_are_answered_together(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    agent, clock = ScriptedAgent("Both read."), FakeClock()
    gateway = await start_gateway(agent, clock=clock, merge_window_seconds=0.3)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one", message_id="1"))
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two", message_id="2"))
    assert (first.outcome, second.outcome) == (Outcome.ACCEPTED, Outcome.MERGED)
    assert first.turn_id == second.turn_id
    clock.advance(seconds=1)
    await wait_for_turn(gateway, first.turn_id)
    assert [message["content"] for message in agent.requests[0].messages] == ["one", "two"]
    assert len(agent.requests) == 1


async def test_merging_is_limited_in_time_and_number(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    gateway = await start_gateway(clock=clock, merge_window_seconds=1)

    async def flood(source: SessionSource, messages: int, pause: float) -> list[str]:
        turns = []
        for number in range(messages):
            receipt = await gateway.inbox.accept(Inbound(source=source, content=f"more {number}"))
            turns.append(receipt.turn_id or "")
            clock.advance(seconds=pause)
        return turns

    trickle = await flood(dm("ada"), 14, 0.9)  # each just before the one before it would have been answered
    assert [trickle.count(turn) for turn in dict.fromkeys(trickle)] == [12, 2]
    await wait_for_turn(gateway, trickle[0])
    monkeypatch.setattr(message_queue, "MAX_MERGED_MESSAGES", 3)
    burst = await flood(dm("bob"), 7, 0)
    assert [burst.count(turn) for turn in dict.fromkeys(burst)] == [3, 3, 1]


@pytest.mark.both_engines
async def test_steering_is_never_merged(start_gateway: StartGateway, dm: MakeSource) -> None:
    looking, clock = LookupAgent(), FakeClock()
    gateway = await start_gateway(looking.agent, clock=clock, busy_policy=BusyPolicy.STEER, merge_window_seconds=1)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="look"))
    clock.advance(seconds=2)
    await wait_until(lambda: gateway.turn_worker.running_count)
    for text in ("at the cat", "and at the dog"):
        receipt = await gateway.inbox.accept(Inbound(source=dm(), content=text))
        assert receipt.outcome is Outcome.STEERED
    looking.may_finish.set()
    turn = await wait_for_turn(gateway, first.turn_id)
    assert load_texts(gateway.store, turn.session_id)[-1][1] == "I was told: at the cat, and at the dog."


@pytest.mark.both_engines
async def test_a_merged_message_can_still_interrupt(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate, clock = Gate(), FakeClock()
    gateway = await start_gateway(gate.agent, clock=clock, merge_window_seconds=1)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    clock.advance(seconds=2)
    await gate.started.wait()
    waits = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    urgent = await gateway.inbox.accept(Inbound(source=dm(), content="three", busy_policy=BusyPolicy.INTERRUPT))
    assert (urgent.outcome, urgent.turn_id) == (Outcome.INTERRUPTING, waits.turn_id)
    assert (await wait_for_turn(gateway, first.turn_id)).state is TurnState.INTERRUPTED


# -- resets, commands, sessions by id ------------------------------------------------------------------------


@pytest.mark.parametrize("notify", [True, False])
async def test_people_in_a_chat_are_told_once_of_a_reset_unless_the_policy_says_otherwise(
    start_gateway: StartGateway, notify: bool
) -> None:
    clock, loopback = FakeClock(), LoopbackAdapter()
    config = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30, notify=notify))
    gateway = await start_gateway(config=config, clock=clock, loopback=loopback)
    await wait_for_turn(gateway, (await loopback.say("hello")).turn_id)
    clock.advance(minutes=31)
    for _ in range(2):  # the platform sends it twice
        receipt = await loopback.say("hello again", message_id="m2")
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: len(loopback.sent) == 2 + notify)
    kinds = [delivery.kind for delivery in loopback.sent]
    assert kinds == [DeliveryKind.ANSWER, *([DeliveryKind.NOTICE] if notify else []), DeliveryKind.ANSWER]


async def test_a_reset_is_announced_and_a_busy_conversation_is_not_reset(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    clock, gate = FakeClock(), Gate()
    config = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30))
    gateway = await start_gateway(gate.agent, config=config, clock=clock)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.started.wait()
    clock.advance(hours=2)
    during = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    assert (during.session_id, during.reply) == (first.session_id, None)
    gate.open.set()
    await wait_for_turn(gateway, during.turn_id)
    clock.advance(hours=2)
    after = await gateway.inbox.accept(Inbound(source=dm(), content="three"))
    assert after.session_id != first.session_id
    assert "/restore" in (after.reply or "")
    await wait_for_turn(gateway, after.turn_id)
    assert "idle for more than 30 minutes" in gate.agent.requests[-1].instructions


async def test_a_command_that_comes_twice_runs_once(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    for text in ("one", "two", "three"):
        turn = await ask(gateway, dm(), text)
    receipts = [
        await gateway.inbox.accept(Inbound(source=dm(), content="/undo", message_id="undo-1")) for _ in range(3)
    ]
    assert [receipt.outcome for receipt in receipts] == [Outcome.COMMAND, Outcome.DUPLICATE, Outcome.DUPLICATE]
    assert receipts[1].reply == receipts[0].reply
    assert [text for role, text in load_texts(gateway.store, turn.session_id) if role == "user"] == ["one", "two"]


async def test_a_command_that_fails_changes_nothing_and_replies_with_the_reason(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    await loopback.say("hello")
    await wait_until(lambda: loopback.sent)
    receipt = await loopback.say("/redo")
    assert "redo" in (receipt.reply or "")
    await wait_until(lambda: len(loopback.sent) == 2)
    assert loopback.sent[1].body == receipt.reply
    assert gateway.store.list_sessions()[0].message_count == 2


async def test_a_call_with_typed_arguments_is_the_same_as_its_text(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    for text in ("one", "two", "three"):
        turn = await ask(gateway, dm(), text)
    inbound = Inbound(source=dm(), content="", message_id="undo-1")
    first = await gateway.inbox.run_command(inbound, undo_turns.call(turns=2))
    assert (first.outcome, (first.facts or {})["turns"]) == (Outcome.COMMAND, 2)
    again = await gateway.inbox.run_command(inbound, undo_turns.call(turns=2))
    as_text = await gateway.inbox.accept(replace(inbound, content="/undo 2"))
    assert [again.outcome, as_text.outcome] == [Outcome.DUPLICATE] * 2
    assert again.reply == as_text.reply == first.reply
    assert [text for role, text in load_texts(gateway.store, turn.session_id) if role == "user"] == ["one"]


# -- commands that only read --------------------------------------------------------------------------------


async def test_a_reading_command_does_not_wait_for_a_writer(start_gateway: StartGateway) -> None:
    gateway = await start_gateway()
    source = SessionSource.local_cli()
    await ask(gateway, source, "hello")
    is_writing, may_commit = threading.Event(), threading.Event()

    def write(_tx: Transaction) -> None:
        is_writing.set()
        assert may_commit.wait(60)

    writing = asyncio.create_task(gateway.store.engine.arun(Write(write)))
    await asyncio.to_thread(is_writing.wait)
    for text in ("/status", "/export", "/sessions", "/title", "/help"):
        receipt = await gateway.inbox.accept(Inbound(source=source, content=text))
        assert receipt.outcome is Outcome.COMMAND
    assert not writing.done()
    may_commit.set()
    await writing


async def test_a_reading_command_that_comes_again_replies_once(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    await loopback.say("hello", message_id="1")
    await wait_until(lambda: loopback.sent)
    receipts = await asyncio.gather(*(loopback.say("/status", message_id="2") for _ in range(5)))
    assert sorted(receipt.outcome for receipt in receipts) == [Outcome.COMMAND, *[Outcome.DUPLICATE] * 4]
    assert len({receipt.reply for receipt in receipts}) == 1
    again = await loopback.say("/status", message_id="2")
    assert again.outcome is Outcome.DUPLICATE
    assert count_deliveries(gateway) == 2


async def test_a_reading_command_runs_again_after_a_crash_before_its_reply_is_stored(
    start_gateway: StartGateway,
) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    await loopback.say("hello", message_id="1")
    await wait_until(lambda: loopback.sent)

    def crash(point: str) -> None:
        if point == "inbox.command_read":
            raise RuntimeError("crash")

    set_crash_hook(crash)
    try:
        with pytest.raises(RuntimeError):
            await loopback.say("/status", message_id="2")
    finally:
        set_crash_hook(None)
    assert count_deliveries(gateway) == 1
    assert (await loopback.say("/status", message_id="2")).outcome is Outcome.COMMAND
    assert count_deliveries(gateway) == 2


async def test_a_reading_command_replies_even_if_its_session_is_deleted_meanwhile(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    first = await loopback.say("hello", message_id="1")
    await wait_until(lambda: loopback.sent)

    def delete_session(point: str) -> None:
        if point == "inbox.command_read":
            gateway.store.delete_session(first.session_id or "")

    set_crash_hook(delete_session)
    try:
        receipt = await loopback.say("/status", message_id="2")
    finally:
        set_crash_hook(None)
    await wait_until(lambda: len(loopback.sent) == 2)
    assert loopback.sent[1].body == receipt.reply


async def test_a_reading_command_that_fails_replies_with_the_reason_once(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    await start_gateway(loopback=loopback)
    receipts = [await loopback.say("/why", message_id="1") for _ in range(2)]
    assert [receipt.outcome for receipt in receipts] == [Outcome.REJECTED, Outcome.DUPLICATE]
    await wait_until(lambda: loopback.sent)
    assert loopback.sent[0].body == receipts[0].reply == receipts[1].reply


async def test_the_first_message_of_a_person_can_be_a_reading_command(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    receipt = await gateway.inbox.accept(Inbound(source=dm("newcomer"), content="/help", message_id="1"))
    assert receipt.outcome is Outcome.COMMAND
    assert "/undo" in (receipt.reply or "")


async def test_a_stranger_cannot_run_reading_commands(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    await start_gateway(loopback=loopback, open_platforms=frozenset())
    for number in range(2):  # as a new account, and as a known guest
        receipt = await loopback.say("/help", user="mallory", message_id=str(number))
        assert receipt.outcome is Outcome.REJECTED
        assert "/undo" not in (receipt.reply or "")


def count_deliveries(gateway: Gateway) -> int:
    row = gateway.store.engine.run(Read(lambda tx: tx.fetch_one("SELECT COUNT(*) FROM delivery")))
    assert row is not None
    return int(row[0])


async def test_a_message_goes_to_the_session_it_names(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "on Telegram")
    ada = gateway.store.get_or_create_person(dm("ada"))
    browser = SessionSource("web", ada.id, user_id=ada.id)
    store = gateway.store
    with pytest.raises(SessionNotFound):  # another account, until it is linked
        await gateway.inbox.accept(Inbound(source=browser, content="in the browser", session_id=turn.session_id))
    again = await gateway.inbox.accept(
        Inbound(source=dm("ada"), content="in the browser", session_id=turn.session_id, message_id="w1")
    )
    assert again.session_id == turn.session_id
    await wait_for_turn(gateway, again.turn_id)
    assert len(store.load_transcript(turn.session_id)) == 4


async def test_messages_and_commands_need_access_to_the_session_they_name(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "my diary")
    for session_id in (turn.session_id, SessionId("20260101_000000_00000000")):
        for content in ("let me in", "/undo", "/export"):
            with pytest.raises(SessionNotFound) as error:
                await gateway.inbox.accept(Inbound(source=dm("bob"), content=content, session_id=session_id))
            assert error.value.facts == {"session_id": session_id}


async def test_a_receipt_is_not_returned_to_people_without_access_to_its_session(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "my diary")
    for content in ("a secret", "/title Secret", "/status"):
        inbound = Inbound(source=dm("ada"), content=content, session_id=turn.session_id, message_id=content)
        await gateway.inbox.accept(inbound)
        assert (await gateway.inbox.accept(inbound)).outcome is Outcome.DUPLICATE
        with pytest.raises(SessionNotFound):
            await gateway.inbox.accept(replace(inbound, source=dm("bob")))


@pytest.mark.parametrize("per_user", [True, False])
async def test_replies_in_a_group_show_nothing_of_private_conversations(
    start_gateway: StartGateway, dm: MakeSource, group: MakeSource, per_user: bool
) -> None:
    gateway = await start_gateway(config=GatewayConfig(group_sessions_per_user=per_user))
    own = SessionSource("discord", "ada", user_id="ada", user_name="Ada")
    diary = await ask(gateway, own, "the zebra is ill")
    await gateway.inbox.accept(Inbound(source=own, content="/title My Diary"))

    async def in_group(text: str) -> str:
        receipt = await gateway.inbox.accept(Inbound(source=group("ada"), content=text))
        return (receipt.reply or "").replace(text.removeprefix("/search ").removeprefix("/resume "), "…")

    for _ in range(2):  # before the first message in the group, and after
        for command in ("/sessions", "/resume", "/search zebra", "/resume My Diary", f"/resume {diary.session_id}"):
            reply = await in_group(command)
            assert "Diary" not in reply
            assert "zebra" not in reply
        await ask(gateway, group("ada"), "hello everybody")
    assert "My Diary" in ((await gateway.inbox.accept(Inbound(source=own, content="/sessions"))).reply or "")


@pytest.mark.parametrize("content", ["hello", "/status"])
async def test_a_message_id_with_unstorable_characters_is_rejected(start_gateway: StartGateway, content: str) -> None:
    gateway = await start_gateway()
    with pytest.raises(InvalidMessage, match="message_id"):
        await gateway.inbox.accept(Inbound(source=SessionSource.local_cli(), content=content, message_id="a\0b"))


@pytest.mark.parametrize(
    ("command", "text"), [("queue", " hello"), ("steer", " hello"), ("queue", ""), ("queue", " clear")]
)
async def test_guests_can_not_queue_or_steer(
    start_gateway: StartGateway, dm: MakeSource, command: str, text: str
) -> None:
    gateway = await start_gateway(open_platforms=frozenset({dm().platform}))
    turn = await ask(gateway, dm(), "hello")
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content=f"/{command}{text}", message_id="2"))
    assert (receipt.outcome, receipt.facts) == (Outcome.REJECTED, {"error": "not_allowed", "command": command})
    assert str(receipt.reply).startswith(f"Guests can't use /{command}.")
    assert len(load_texts(gateway.store, turn.session_id)) == 2


async def test_changes_of_one_person_pause_but_nobody_in_a_chat_waits_for_them(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program or the page asks for waits; the updates of a connection come one after the other, and must not."""
    monkeypatch.setattr(inbox, "MIN_COPY_PAUSE_SECONDS", 3600)
    gateway = await start_gateway(ScriptedAgent("Good day."))
    for source in (dm(), dm("ben")):
        await ask(gateway, source, "Hello")
        last = await ask(gateway, source, "And then?")

    def undo(source: SessionSource, cursor: str | None = None) -> asyncio.Task[Receipt]:
        update = Inbound(source=source, content="/undo")
        return asyncio.create_task(gateway.inbox.accept(update, cursor=Cursor(cursor) if cursor else None))

    assert [(await undo(dm(), cursor)).outcome for cursor in ("1", "2")] == [Outcome.COMMAND] * 2
    assert (await undo(dm("ben"))).outcome is Outcome.COMMAND
    second = undo(dm("ben"))
    await ask(gateway, dm(), "Hello again")
    assert not second.done()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert len(load_texts(gateway.store, last.session_id)) == 2

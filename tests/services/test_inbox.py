"""The door: what becomes of a message, and that it is durable when that is said."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy, SessionSource
from palaver.agent.base import AgentRequest, TextDelta, Tool, ToolCall, ToolResult
from palaver.domain.errors import InvalidMessage, NoSuchSession
from palaver.domain.ids import SessionId
from palaver.domain.inbound import Inbound, Outcome
from palaver.domain.policy import ResetMode
from palaver.domain.turn import BusyPolicy, TurnState
from palaver.platforms.loopback import Loopback
from palaver.services import inbox
from palaver.testing import FakeClock, ScriptedAgent
from support.agents import Looking
from support.gateway import MakeSource, StartGateway, ask, ended, texts, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent


class Gate:
    """An agent that answers when it is let."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Let me see. ")
        self.begun.set()
        await self.open.wait()
        yield TextDelta(f"You said: {request.messages[-1]['content']}")


async def test_a_message_is_stored_and_answered(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent("Good day."))
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="Hello"))
    assert receipt.outcome is Outcome.ACCEPTED
    assert receipt.stored
    turn = await ended(gateway, receipt.turn_id)
    assert turn.state is TurnState.DONE
    assert texts(gateway.store, receipt.session_id) == [("user", "Hello"), ("assistant", "Good day.")]


async def test_the_same_message_twice_is_one_message(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    first = await gateway.inbox.accept(Inbound(source=dm(), content="Hello", message_id="7"))
    again = await gateway.inbox.accept(Inbound(source=dm(), content="Hello", message_id="7"))
    assert again.outcome is Outcome.DUPLICATE
    assert (again.session_id, again.turn_id, again.seq) == (first.session_id, first.turn_id, first.seq)
    await ended(gateway, first.turn_id)
    assert len(texts(gateway.store, first.session_id)) == 2


async def test_the_same_number_in_another_chat_or_account_is_another_message(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    outcomes = [
        (await gateway.inbox.accept(Inbound(source=source, content="Hello", message_id="7", account=account))).outcome
        for source, account in ((dm("ada"), ""), (dm("bob"), ""), (dm("ada"), "second-bot"))
    ]
    assert Outcome.DUPLICATE not in outcomes


async def test_five_deliveries_at_once_from_two_gateways_are_one_turn(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateways = [await start_gateway(), await start_gateway()]
    receipts = await asyncio.gather(
        *(gateways[i % 2].inbox.accept(Inbound(source=dm(), content="Hello", message_id="7")) for i in range(10))
    )
    assert sorted(receipt.outcome for receipt in receipts) == [Outcome.ACCEPTED, *[Outcome.DUPLICATE] * 9]
    assert len({receipt.turn_id for receipt in receipts}) == 1
    await ended(gateways[0], receipts[0].turn_id)
    assert len(texts(gateways[0].store, receipts[0].session_id)) == 2


async def test_equal_prompts_and_equal_answers_are_all_kept_and_all_in_context(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    agent = ScriptedAgent("Done.")
    gateway = await start_gateway(agent)
    for _ in range(3):
        await ask(gateway, dm(), "Do it.")
    said = [message["content"] for message in agent.requests[-1].messages]
    assert said == ["Do it.", "Done.", "Do it.", "Done.", "Do it."]


@pytest.mark.parametrize("content", ["", "   ", []])
async def test_a_message_with_nothing_in_it_is_refused(
    start_gateway: StartGateway, dm: MakeSource, content: str
) -> None:
    gateway = await start_gateway()
    with pytest.raises(InvalidMessage, match="nothing"):
        await gateway.inbox.accept(Inbound(source=dm(), content=content))


async def test_a_message_that_is_too_long_is_refused_in_words(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("x" * 200_001)
    assert receipt.outcome is Outcome.REFUSED
    assert "200001" in (receipt.reply or "")
    await until(lambda: loopback.sent)
    assert not gateway.store.has_any_sessions()


async def test_a_stranger_is_told_so_and_nothing_reaches_the_agent(start_gateway: StartGateway) -> None:
    agent, loopback = ScriptedAgent(), Loopback()
    await start_gateway(agent, loopback=loopback, open_to_all=frozenset())
    receipt = await loopback.say("Hello", user="mallory")
    assert receipt.outcome is Outcome.REFUSED
    assert "mallory" in (receipt.reply or "")
    sent = await until(lambda: loopback.sent)
    assert sent[0].content == receipt.reply
    assert not agent.requests


async def test_a_stranger_in_a_group_is_not_answered_at_all(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    await start_gateway(loopback=loopback, open_to_all=frozenset())
    receipt = await loopback.say("Hello", user="mallory", chat="club")
    assert (receipt.outcome, receipt.reply) == (Outcome.REFUSED, None)


# -- while the agent is busy --------------------------------------------------------------------------------


async def test_what_arrives_meanwhile_waits_its_turn_and_knows_how_many_are_ahead(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent)
    receipts = [await gateway.inbox.accept(Inbound(source=dm(), content="one"))]
    await gate.begun.wait()
    receipts += [await gateway.inbox.accept(Inbound(source=dm(), content=text)) for text in ("two", "three")]
    assert [receipt.outcome for receipt in receipts] == [Outcome.ACCEPTED, Outcome.QUEUED, Outcome.QUEUED]
    assert [receipt.ahead for receipt in receipts] == [0, 1, 2]
    gate.open.set()
    for receipt in receipts:
        await ended(gateway, receipt.turn_id)
    # The model sees each question with its answer, in the order in which they were answered.
    assert [message["content"] for message in gate.agent.requests[2].messages] == [
        "one",
        "Let me see. You said: one",
        "two",
        "Let me see. You said: two",
        "three",
    ]


async def test_a_full_queue_refuses_honestly(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, queue_limit=2)
    receipts = [await gateway.inbox.accept(Inbound(source=dm(), content="one"))]
    await gate.begun.wait()
    receipts += [await gateway.inbox.accept(Inbound(source=dm(), content=str(n))) for n in range(3)]
    assert receipts[-1].outcome is Outcome.REFUSED
    assert "2 messages are waiting" in (receipts[-1].reply or "")
    assert not receipts[-1].stored
    gate.open.set()


async def test_reject_refuses_while_busy_and_takes_it_afterwards(start_gateway: StartGateway, dm: MakeSource) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy=BusyPolicy.REJECT)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.begun.wait()
    assert (await gateway.inbox.accept(Inbound(source=dm(), content="two"))).outcome is Outcome.REFUSED
    gate.open.set()
    await ended(gateway, first.turn_id)
    assert (await gateway.inbox.accept(Inbound(source=dm(), content="three"))).outcome is Outcome.ACCEPTED


async def test_interrupt_stops_the_run_keeps_what_was_said_and_answers_the_new_message(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy=BusyPolicy.INTERRUPT)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.begun.wait()
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    assert second.outcome is Outcome.INTERRUPTING
    assert (await ended(gateway, first.turn_id)).state is TurnState.INTERRUPTED
    gate.open.set()
    assert (await ended(gateway, second.turn_id)).state is TurnState.DONE
    transcript = gateway.store.load_transcript(first.session_id or "")
    partial = next(message for message in transcript if message["role"] == "assistant")
    assert (partial["content"], partial["interrupted"]) == ("Let me see. ", True)


async def test_steering_reaches_the_run_after_its_next_tool_call(start_gateway: StartGateway, dm: MakeSource) -> None:
    at_work, go_on = asyncio.Event(), asyncio.Event()

    async def look(_arguments: object) -> str:
        at_work.set()
        await go_on.wait()
        return "nothing yet"

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("c1", "look", "{}")
        yield ToolResult("c1", "look", await request.tools[-1].run({}))
        heard = await request.steering()
        yield TextDelta(f"Heard meanwhile: {', '.join(heard)}")

    tool = Tool(name="look", description="", parameters={}, run=look)
    agent = ScriptedAgent(answer, tools=[tool])
    gateway = await start_gateway(agent, busy=BusyPolicy.STEER)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await at_work.wait()
    second = await gateway.inbox.accept(Inbound(source=dm(), content="look left"))
    assert second.outcome is Outcome.STEERED
    go_on.set()
    await ended(gateway, first.turn_id)
    assert (await ended(gateway, second.turn_id)).state is TurnState.DONE
    assert texts(gateway.store, first.session_id)[-1] == ("assistant", "Heard meanwhile: look left")
    assert len(agent.requests) == 1
    # The next turn sees the steering where the model met it: after the tool's result.
    await ask(gateway, dm(), "/queue and now?")
    roles = [message["role"] for message in agent.requests[1].messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "user"]


async def test_steering_that_finds_no_tool_call_becomes_a_turn_of_its_own(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy=BusyPolicy.STEER)
    await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.begun.wait()
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    gate.open.set()
    await ended(gateway, second.turn_id)
    assert texts(gateway.store, second.session_id)[-1] == ("assistant", "Let me see. You said: two")


async def test_a_message_may_ask_for_another_policy_than_its_platform_has(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate = Gate()
    gateway = await start_gateway(gate.agent, busy=BusyPolicy.REJECT)
    await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.begun.wait()
    queued = await gateway.inbox.accept(Inbound(source=dm(), content="/queue two"))
    assert queued.outcome is Outcome.QUEUED
    interrupting = await gateway.inbox.accept(Inbound(source=dm(), content="three", busy=BusyPolicy.INTERRUPT))
    assert interrupting.outcome is Outcome.INTERRUPTING
    gate.open.set()
    await ended(gateway, interrupting.turn_id)
    assert ("user", "two") in texts(gateway.store, queued.session_id)


async def test_a_burst_is_answered_together_when_that_is_wished(start_gateway: StartGateway, dm: MakeSource) -> None:
    agent, clock = ScriptedAgent("Both read."), FakeClock()
    gateway = await start_gateway(agent, clock=clock, collect=timedelta(seconds=0.3))
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one", message_id="1"))
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two", message_id="2"))
    assert (first.outcome, second.outcome) == (Outcome.ACCEPTED, Outcome.COLLECTED)
    assert first.turn_id == second.turn_id
    clock.advance(seconds=1)
    await ended(gateway, first.turn_id)
    assert [message["content"] for message in agent.requests[0].messages] == ["one", "two"]
    assert len(agent.requests) == 1


async def test_a_flood_is_answered_in_parts_and_the_first_is_not_kept_waiting(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    gateway = await start_gateway(clock=clock, collect=timedelta(seconds=1))

    async def flood(source: SessionSource, messages: int, pause: float) -> list[str]:
        turns = []
        for number in range(messages):
            receipt = await gateway.inbox.accept(Inbound(source=source, content=f"more {number}"))
            turns.append(receipt.turn_id or "")
            clock.advance(seconds=pause)
        return turns

    trickle = await flood(dm("ada"), 14, 0.9)  # each just before the one before it would have been answered
    assert [trickle.count(turn) for turn in dict.fromkeys(trickle)] == [12, 2]
    await ended(gateway, trickle[0])
    monkeypatch.setattr(inbox, "MOST_TOGETHER", 3)
    burst = await flood(dm("bob"), 7, 0)
    assert [burst.count(turn) for turn in dict.fromkeys(burst)] == [3, 3, 1]


async def test_all_of_a_burst_is_told_to_an_agent_that_is_steered(start_gateway: StartGateway, dm: MakeSource) -> None:
    looking, clock = Looking(), FakeClock()
    gateway = await start_gateway(looking.agent(), clock=clock, busy=BusyPolicy.STEER, collect=timedelta(seconds=1))
    first = await gateway.inbox.accept(Inbound(source=dm(), content="look"))
    clock.advance(seconds=2)
    await until(lambda: gateway.turns.running)
    for text in ("at the cat", "and at the dog"):
        receipt = await gateway.inbox.accept(Inbound(source=dm(), content=text))
        assert receipt.outcome is Outcome.STEERED
    looking.found.set()
    turn = await ended(gateway, first.turn_id)
    assert texts(gateway.store, turn.session_id)[-1][1] == "I was told: at the cat, and at the dog."


async def test_what_interrupts_does_so_though_it_is_answered_with_what_waits(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gate, clock = Gate(), FakeClock()
    gateway = await start_gateway(gate.agent, clock=clock, collect=timedelta(seconds=1))
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    clock.advance(seconds=2)
    await gate.begun.wait()
    waits = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    urgent = await gateway.inbox.accept(Inbound(source=dm(), content="three", busy=BusyPolicy.INTERRUPT))
    assert (urgent.outcome, urgent.turn_id) == (Outcome.INTERRUPTING, waits.turn_id)
    assert (await ended(gateway, first.turn_id)).state is TurnState.INTERRUPTED


# -- resets, commands, shown conversations ------------------------------------------------------------------


async def test_a_reset_is_announced_and_a_busy_conversation_is_not_reset(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    clock, gate = FakeClock(), Gate()
    config = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30))
    gateway = await start_gateway(gate.agent, config=config, clock=clock)
    first = await gateway.inbox.accept(Inbound(source=dm(), content="one"))
    await gate.begun.wait()
    clock.advance(hours=2)
    during = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    assert (during.session_id, during.reply) == (first.session_id, None)
    gate.open.set()
    await ended(gateway, during.turn_id)
    clock.advance(hours=2)
    after = await gateway.inbox.accept(Inbound(source=dm(), content="three"))
    assert after.session_id != first.session_id
    assert "/restore" in (after.reply or "")
    await ended(gateway, after.turn_id)
    assert "idle for more than 30 minutes" in gate.agent.requests[-1].instructions


async def test_a_command_that_comes_twice_is_carried_out_once(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    for text in ("one", "two", "three"):
        turn = await ask(gateway, dm(), text)
    receipts = [
        await gateway.inbox.accept(Inbound(source=dm(), content="/undo", message_id="undo-1")) for _ in range(3)
    ]
    assert [receipt.outcome for receipt in receipts] == [Outcome.COMMAND, Outcome.DUPLICATE, Outcome.DUPLICATE]
    assert receipts[1].reply == receipts[0].reply
    assert [text for role, text in texts(gateway.store, turn.session_id) if role == "user"] == ["one", "two"]


async def test_a_command_that_fails_changes_nothing_and_says_why(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    await loopback.say("hello")
    await until(lambda: loopback.sent)
    receipt = await loopback.say("/redo")
    assert "redo" in (receipt.reply or "")
    await until(lambda: len(loopback.sent) == 2)
    assert loopback.sent[1].content == receipt.reply
    assert gateway.store.list_sessions()[0].message_count == 2


async def test_a_surface_speaks_in_the_conversation_it_shows(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "on Telegram")
    ada = gateway.store.person_for(dm("ada"))
    browser = SessionSource("web", ada.id, user_id=ada.id)
    store = gateway.store
    with pytest.raises(NoSuchSession):  # another account, until it is linked
        await gateway.inbox.accept(Inbound(source=browser, content="in the browser", session_id=turn.session_id))
    again = await gateway.inbox.accept(
        Inbound(source=dm("ada"), content="in the browser", session_id=turn.session_id, message_id="w1")
    )
    assert again.session_id == turn.session_id
    await ended(gateway, again.turn_id)
    assert len(store.load_transcript(turn.session_id)) == 4


async def test_nobody_speaks_in_a_conversation_they_may_not_see(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "my diary")
    for session_id in (turn.session_id, SessionId("20260101_000000_00000000")):
        with pytest.raises(NoSuchSession) as refused:
            await gateway.inbox.accept(Inbound(source=dm("bob"), content="let me in", session_id=session_id))
        assert str(refused.value) == f"there is no session {session_id}"


@pytest.mark.parametrize("per_user", [True, False])
async def test_what_others_read_along_shows_nothing_of_a_persons_own_conversations(
    start_gateway: StartGateway, dm: MakeSource, group: MakeSource, per_user: bool
) -> None:
    gateway = await start_gateway(config=GatewayConfig(group_sessions_per_user=per_user))
    own = SessionSource("discord", "ada", user_id="ada", user_name="Ada")
    diary = await ask(gateway, own, "the zebra is ill")
    await gateway.inbox.accept(Inbound(source=own, content="/title My Diary"))

    async def in_group(text: str) -> str:
        receipt = await gateway.inbox.accept(Inbound(source=group("ada"), content=text))
        return (receipt.reply or "").replace(text.removeprefix("/search ").removeprefix("/resume "), "…")

    for _ in range(2):  # before anything is said in the group, and after
        for command in ("/sessions", "/resume", "/search zebra", "/resume My Diary", f"/resume {diary.session_id}"):
            reply = await in_group(command)
            assert "Diary" not in reply
            assert "zebra" not in reply
        await ask(gateway, group("ada"), "hello everybody")
    assert "My Diary" in ((await gateway.inbox.accept(Inbound(source=own, content="/sessions"))).reply or "")

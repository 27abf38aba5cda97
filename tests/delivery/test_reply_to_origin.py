"""Messages written on the web whose answer is delivered to the chat where the conversation takes place."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import TextDelta, Tool, ToolCall, ToolResult
from palaver.core.errors import ChatNotReachable, NotFound, NothingToDo, SessionNotFound
from palaver.delivery.view import DeliveryOperations
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryState
from palaver.sessions.inbound import Inbound, Outcome, ReplyTo
from palaver.sessions.turn import BusyPolicy
from palaver.testing import FakeClock, ScriptedAgent
from palaver.turns.answer_recorder import format_quote
from support.deliveries import chat_source, list_statuses, start_in_chat_and_web, wait_for_deliveries
from support.gateway import ask, load_texts, wait_for_turn, wait_until
from support.linked_accounts import open_web_account, send_from_web

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.gateway import StartGateway


CONTINUES_ON_PAGE = "This conversation continues on the web page. Messages you send here still reach it."


def list_sent_texts(loopback: LoopbackAdapter) -> list[str]:
    """List what was sent, without notices that the conversation continues on the page."""
    return [message.body for message in loopback.sent if message.body != CONTINUES_ON_PAGE]


async def test_an_answer_is_delivered_to_the_chat_once_with_its_question_quoted(
    start_gateway: StartGateway,
) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent("At 20:38."), loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    receipt = await send_from_web(
        gateway, ada, session_id, "When does\nthe train leave?", reply_to=ReplyTo.ORIGIN, message_id="k1"
    )
    await wait_for_turn(gateway, receipt.turn_id)
    delivery = await wait_for_deliveries(gateway, ada, session_id)
    assert list_sent_texts(loopback) == ["At 20:38.", "> Ada, from the web: When does the train leave?\n\nAt 20:38."]
    assert (delivery.state, delivery.input_seq, delivery.quoted_seqs) == (
        DeliveryState.SENT,
        receipt.seq,
        (receipt.seq,),
    )
    assert loopback.sent[-1].address == loopback.sent[0].address
    assert loopback.sent[-1].reply_to is None, "the message id of the web is not an id of the platform"
    assert load_texts(gateway.store, session_id)[-2:] == [
        ("user", "When does\nthe train leave?"),
        ("assistant", "At 20:38."),
    ]


async def test_an_answer_that_is_read_on_the_web_is_not_delivered(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    receipt = await send_from_web(gateway, ada, session_id, "answer on the web")
    await wait_for_turn(gateway, receipt.turn_id)
    last = await loopback.say("answer in the chat")
    await wait_for_turn(gateway, last.turn_id)
    await wait_until(lambda: len(loopback.sent) == 3)
    assert [message.body for message in loopback.sent] == ["Done.", CONTINUES_ON_PAGE, "Done."]
    assert [each.quoted_seqs for each in await list_statuses(gateway, ada, session_id)] == [(), ()]


async def test_a_duplicate_message_is_delivered_once(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    first, duplicate = [
        await send_from_web(gateway, ada, session_id, "once", reply_to=ReplyTo.ORIGIN, message_id="k") for _ in range(2)
    ]
    assert (duplicate.outcome, duplicate.turn_id) == (Outcome.DUPLICATE, first.turn_id)
    await wait_for_turn(gateway, first.turn_id)
    await wait_for_deliveries(gateway, ada, session_id)
    assert len(loopback.sent) == 2


async def test_the_reply_to_a_command_stays_on_the_web(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    receipt = await send_from_web(gateway, ada, session_id, "/title Trains", reply_to=ReplyTo.ORIGIN)
    assert receipt.outcome is Outcome.COMMAND
    retried = await send_from_web(gateway, ada, session_id, "/retry", reply_to=ReplyTo.ORIGIN)
    await wait_for_turn(gateway, retried.turn_id)
    assert len(await list_statuses(gateway, ada, session_id)) == 1


async def test_an_answer_is_sent_by_the_account_that_received_the_conversation(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter(account="second bot")
    gateway = await start_gateway(loopback=loopback)
    turn = await ask(gateway, replace(chat_source(), account="second bot"), "hello")
    await wait_until(lambda: loopback.sent)  # it is connected
    ada = await open_web_account(gateway, chat_source())
    receipt = await send_from_web(gateway, ada, turn.session_id, "and now?", reply_to=ReplyTo.ORIGIN)
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: len(loopback.sent) == 2)
    assert {message.address.account for message in loopback.sent} == {"second bot"}


async def test_a_failed_answer_is_reported_in_the_chat(start_gateway: StartGateway) -> None:
    def fail(request: AgentRequest) -> str:
        if request.messages[-1]["content"] != "hello":
            raise NothingToDo("There is no train.")
        return "Done."

    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(fail), loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    await send_from_web(gateway, ada, session_id, "a train?", reply_to=ReplyTo.ORIGIN)
    await wait_until(lambda: len(loopback.sent) == 2)
    assert list_sent_texts(loopback)[-1] == "> Ada, from the web: a train?\n\nI couldn't answer. There is no train."


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Ada", "a *b* `c`", r"> Ada, from the web: a \*b\* \`c\`"),
        ("**Ada**\n> Bob", "hi", r"> \*\*Ada\*\* › Bob, from the web: hi"),
        ("\u202eada\u0000", "hi", "> ada, from the web: hi"),
        ("", "  ", "> Someone, from the web: (attachment)"),
        ("Ada", "word " * 100, "> Ada, from the web: " + "word " * 59 + "word…"),
        ("A" * 80, "hi", "> " + "A" * 59 + "…, from the web: hi"),
    ],
)
def test_a_question_is_quoted_on_one_line_with_markdown_escaped(name: str, text: str, expected: str) -> None:
    assert format_quote(name, text) == expected


# -- where it is possible -------------------------------------------------------------------------------------


async def test_a_conversation_of_the_web_or_terminal_has_no_chat_to_reply_to(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(loopback=LoopbackAdapter())
    ada = await open_web_account(gateway, chat_source())
    for platform in ("web", "api"):
        own_source = SessionSource(platform, "c1", user_id=ada.id, user_name="Ada")
        turn = await ask(gateway, own_source, "hello")
        with pytest.raises(ChatNotReachable, match="isn't from a chat"):
            await send_from_web(gateway, ada, turn.session_id, "answer in the chat", reply_to=ReplyTo.ORIGIN)
        assert load_texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "Done.")]
    owner = await open_web_account(gateway, SessionSource.local_cli())
    turn = await ask(gateway, SessionSource.local_cli(), "hello")
    with pytest.raises(ChatNotReachable, match="isn't from a chat"):
        await send_from_web(gateway, owner, turn.session_id, "answer in the chat", reply_to=ReplyTo.ORIGIN)


async def test_a_platform_that_is_not_connected_cannot_be_reached(start_gateway: StartGateway) -> None:
    telegram = SessionSource("telegram", "ada", user_id="ada", user_name="Ada")
    gateway = await start_gateway(loopback=LoopbackAdapter())
    turn = await ask(gateway, telegram, "hello")
    ada = await open_web_account(gateway, telegram)
    with pytest.raises(ChatNotReachable, match="Telegram isn't connected"):
        await send_from_web(gateway, ada, turn.session_id, "answer in the chat", reply_to=ReplyTo.ORIGIN)
    summary = await gateway.store.aio.seen_by(ada.principal).summaries.get(turn.session_id)
    assert (summary.has_delivery_address, summary.session.platform in gateway.platforms) == (True, False)


async def test_a_conversation_that_is_no_longer_current_in_its_chat_can_still_be_answered_there(
    start_gateway: StartGateway,
) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    await loopback.say("/new", message_id="m1")
    await wait_until(lambda: len(loopback.sent) == 2)
    receipt = await send_from_web(gateway, ada, session_id, "about the earlier topic", reply_to=ReplyTo.ORIGIN)
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: len(loopback.sent) == 3)
    assert list_sent_texts(loopback)[-1] == "> Ada, from the web: about the earlier topic\n\nDone."
    next_message = await loopback.say("the current conversation", message_id="m2")
    assert next_message.session_id != session_id


async def test_a_fork_can_be_answered_in_a_chat_only_after_it_was_resumed_there(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    view = gateway.store.aio.seen_by(ada.principal)
    fork = await view.fork(session_id)
    assert (await view.summaries.get(fork.id)).has_delivery_address is False
    with pytest.raises(ChatNotReachable):
        await send_from_web(gateway, ada, fork.id, "answer in the chat", reply_to=ReplyTo.ORIGIN)
    await loopback.say(f"/resume {fork.id}", message_id="m1")
    assert (await view.summaries.get(fork.id)).has_delivery_address is True
    receipt = await send_from_web(gateway, ada, fork.id, "now", reply_to=ReplyTo.ORIGIN)
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: list_sent_texts(loopback)[-1:] == ["> Ada, from the web: now\n\nDone."])
    branch = await loopback.say("/branch", message_id="m2")
    assert [(await view.summaries.get(each)).has_delivery_address for each in (fork.id, branch.session_id or "")] == [
        False,
        True,
    ]


async def test_another_person_cannot_send_to_the_chat(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    bob = await open_web_account(gateway, chat_source("bob"))
    missing = "20200101_000000_00000000"
    source = SessionSource("web", "c", user_id=bob.id, user_name="Bob")
    for hidden in (session_id, missing):
        with pytest.raises(SessionNotFound, match=f"Conversation {hidden} not found"):
            await gateway.inbox.accept(Inbound(source=source, content="hi", session_id=hidden, reply_to=ReplyTo.ORIGIN))  # type: ignore[arg-type]
    delivery = (await list_statuses(gateway, ada, session_id))[0]
    view = gateway.store.aio.seen_by(bob.principal)
    with pytest.raises(SessionNotFound):
        await view.part(DeliveryOperations).list(session_id)
    with pytest.raises(SessionNotFound):
        await view.part(DeliveryOperations).send_again(session_id, delivery.id)
    own_turn = await ask(gateway, chat_source("bob"), "mine")
    with pytest.raises(NotFound):
        await view.part(DeliveryOperations).send_again(own_turn.session_id, delivery.id)
    assert len(loopback.sent) <= 2


# -- while the agent is busy ----------------------------------------------------------------------------------


class SteerableAgent:
    """Answers "look" with a tool call when the test allows it, and then repeats the messages that steered it."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.may_continue = asyncio.Event()
        self.agent = ScriptedAgent(self._answer, tools=[self._create_tool()])

    def _create_tool(self) -> Tool:
        async def run(_arguments: Any) -> str:
            return "done"

        return Tool(name="look", description="Look.", parameters={"type": "object"}, run=run)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        question = str(request.messages[-1]["content"])
        yield TextDelta(f"For {question}. ")
        if question != "look":
            return
        self.started.set()
        await self.may_continue.wait()
        yield ToolCall("c1", "look", json.dumps({}))
        yield ToolResult("c1", "look", "done")
        steering = await request.take_steering()
        yield TextDelta(f"Steered by: {', '.join(steering)}.")


@pytest.mark.parametrize(
    ("reply_to", "quote"),
    [(ReplyTo.ORIGIN, "> Ada, from the web: only trains\n\n"), (ReplyTo.SESSION, "")],
    ids=["chat", "web"],
)
async def test_a_message_from_the_web_can_steer_a_run_that_answers_in_the_chat(
    start_gateway: StartGateway, reply_to: ReplyTo, quote: str
) -> None:
    loopback, steerable = LoopbackAdapter(), SteerableAgent()
    gateway = await start_gateway(steerable.agent, loopback=loopback)
    ada = await open_web_account(gateway, chat_source())
    first = await loopback.say("look", message_id="m1")
    await steerable.started.wait()
    steering = await send_from_web(
        gateway, ada, first.session_id, "only trains", reply_to=reply_to, busy_policy=BusyPolicy.STEER
    )
    assert steering.outcome is Outcome.STEERED
    steerable.may_continue.set()
    await wait_for_turn(gateway, first.turn_id)
    await wait_for_deliveries(gateway, ada, first.session_id)
    assert list_sent_texts(loopback) == [f"{quote}For look. \n\nSteered by: only trains."]
    assert loopback.sent[-1].reply_to == "m1"


async def test_a_message_to_be_answered_in_the_chat_does_not_steer_a_run_that_is_read_on_the_web(
    start_gateway: StartGateway,
) -> None:
    loopback, steerable = LoopbackAdapter(), SteerableAgent()
    gateway = await start_gateway(steerable.agent, loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    first = await send_from_web(gateway, ada, session_id, "look")
    await steerable.started.wait()
    second = await send_from_web(
        gateway, ada, session_id, "and in the chat", reply_to=ReplyTo.ORIGIN, busy_policy=BusyPolicy.STEER
    )
    assert second.outcome is Outcome.QUEUED
    steerable.may_continue.set()
    for receipt in (first, second):
        await wait_for_turn(gateway, receipt.turn_id)
    await wait_for_deliveries(gateway, ada, session_id)
    assert list_sent_texts(loopback)[1:] == ["> Ada, from the web: and in the chat\n\nFor and in the chat. "]


async def test_merged_messages_from_chat_and_web_are_answered_together_and_quoted_separately(
    start_gateway: StartGateway,
) -> None:
    loopback, clock = LoopbackAdapter(), FakeClock()
    gateway = await start_gateway(ScriptedAgent("Both."), loopback=loopback, clock=clock, merge_window_seconds=0.3)
    ada = await open_web_account(gateway, chat_source())
    first = await loopback.say("one", message_id="m1")
    others = [
        await send_from_web(gateway, ada, first.session_id, text, reply_to=ReplyTo.ORIGIN) for text in ("two", "three")
    ]
    assert [each.outcome for each in others] == [Outcome.MERGED] * 2
    separate = await send_from_web(gateway, ada, first.session_id, "four")
    assert separate.outcome is Outcome.QUEUED, "its answer is read on the web"
    clock.advance(seconds=1)
    await wait_for_turn(gateway, separate.turn_id)
    await wait_for_deliveries(gateway, ada, first.session_id)
    assert list_sent_texts(loopback) == ["> Ada, from the web: two\n\n> Ada, from the web: three\n\nBoth."]
    assert loopback.sent[-1].reply_to == "m1"

"""What is written on the web in a conversation of a chat and answered there: once, in order, and only if wanted."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import TextDelta, Tool, ToolCall, ToolResult
from palaver.domain.delivery import DeliveryState
from palaver.domain.errors import NoSuchSession, NotFound, NothingToDo, NotReachable, SendRejected, TargetGone
from palaver.domain.events import EventKind
from palaver.domain.feed_events import DeliveryChanged
from palaver.domain.inbound import Inbound, Outcome, ReplyTo
from palaver.domain.turn import BusyPolicy
from palaver.platforms.loopback import LOOPBACK, Loopback
from palaver.services.live import feed
from palaver.services.turns.finish import quote
from palaver.storage import deliveries
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import ask, ended, texts, until
from support.places import on_the_web, write

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.domain.delivery import Delivery, DeliveryStatus
    from palaver.domain.person import Person
    from palaver.services.gateway import Gateway
    from palaver.storage.engines.base import Transaction
    from support.gateway import StartGateway

THERE = ReplyTo.THERE


def chat(user: str = "ada") -> SessionSource:
    """As the loopback platform has it."""
    return SessionSource(LOOPBACK, user, user_id=user, user_name=user.title())


def contents(loopback: Loopback) -> list[str]:
    return [delivery.content for delivery in loopback.sent]


async def statuses(gateway: Gateway, person: Person, session_id: str | None) -> Sequence[DeliveryStatus]:
    return await gateway.store.aio.seen_by(person.principal).deliveries(session_id or "")


async def settled(gateway: Gateway, person: Person, session_id: str | None) -> DeliveryStatus:
    """The newest delivery of a conversation, when nothing is on its way any more."""
    async with asyncio.timeout(60):
        while True:
            found = await statuses(gateway, person, session_id)
            if found and not any(each.is_open for each in found):
                return found[-1]
            await asyncio.sleep(0.005)


async def ada_in_both(gateway: Gateway, loopback: Loopback, text: str = "hello") -> tuple[Person, str]:
    """Ada has said something in the chat, and can sign in on the web; her conversation."""
    receipt = await loopback.say(text, message_id="m0")
    person = await on_the_web(gateway, chat())
    await ended(gateway, receipt.turn_id)
    await settled(gateway, person, receipt.session_id)
    return person, receipt.session_id or ""


# -- here and there ------------------------------------------------------------------------------------------


async def test_an_answer_that_is_wanted_there_arrives_there_once_behind_its_question(
    start_gateway: StartGateway,
) -> None:
    loopback = Loopback()
    gateway = await start_gateway(ScriptedAgent("At 20:38."), loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    receipt = await write(gateway, ada, session_id, "When does\nthe train leave?", reply=THERE, message_id="k1")
    await ended(gateway, receipt.turn_id)
    delivery = await settled(gateway, ada, session_id)
    assert contents(loopback) == ["At 20:38.", "> Ada, from the web: When does the train leave?\n\nAt 20:38."]
    assert (delivery.state, delivery.input_seq, delivery.quotes) == (DeliveryState.SENT, receipt.seq, (receipt.seq,))
    assert loopback.sent[-1].address == loopback.sent[0].address
    assert loopback.sent[-1].reply_to is None, "a key of the page is no message of the platform"
    assert texts(gateway.store, session_id)[-2:] == [
        ("user", "When does\nthe train leave?"),
        ("assistant", "At 20:38."),
    ]


async def test_an_answer_that_is_read_here_is_not_sent(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    receipt = await write(gateway, ada, session_id, "only here")
    await ended(gateway, receipt.turn_id)
    last = await loopback.say("and there again")
    await ended(gateway, last.turn_id)
    await until(lambda: len(loopback.sent) == 2)
    assert contents(loopback) == ["Done.", "Done."]
    assert [each.quotes for each in await statuses(gateway, ada, session_id)] == [(), ()]


async def test_the_same_message_twice_is_answered_there_once(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    first, again = [await write(gateway, ada, session_id, "once", reply=THERE, message_id="k") for _ in range(2)]
    assert (again.outcome, again.turn_id) == (Outcome.DUPLICATE, first.turn_id)
    await ended(gateway, first.turn_id)
    await settled(gateway, ada, session_id)
    assert len(loopback.sent) == 2


async def test_a_command_is_answered_here_whatever_is_wanted(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    receipt = await write(gateway, ada, session_id, "/title Trains", reply=THERE)
    assert receipt.outcome is Outcome.COMMAND
    retried = await write(gateway, ada, session_id, "/retry", reply=THERE)
    await ended(gateway, retried.turn_id)
    assert len(await statuses(gateway, ada, session_id)) == 1


async def test_an_answer_goes_through_the_account_that_speaks_there(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    turn = await ask(gateway, chat(), "hello", account="second bot")
    ada = await on_the_web(gateway, chat())
    receipt = await write(gateway, ada, turn.session_id, "and now?", reply=THERE)
    await ended(gateway, receipt.turn_id)
    await until(lambda: len(loopback.sent) == 2)
    assert {delivery.address.account for delivery in loopback.sent} == {"second bot"}


async def test_what_could_not_be_answered_is_said_there_too(start_gateway: StartGateway) -> None:
    def refuse(request: AgentRequest) -> str:
        if request.messages[-1]["content"] != "hello":
            raise NothingToDo("there is no train")
        return "Done."

    loopback = Loopback()
    gateway = await start_gateway(ScriptedAgent(refuse), loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    await write(gateway, ada, session_id, "a train?", reply=THERE)
    await until(lambda: len(loopback.sent) == 2)
    assert contents(loopback)[-1] == "> Ada, from the web: a train?\n\nI could not answer: there is no train"


@pytest.mark.parametrize(
    ("name", "text", "quoted"),
    [
        ("Ada", "a *b* `c`", r"> Ada, from the web: a \*b\* \`c\`"),
        ("**Ada**\n> Bob", "hi", r"> \*\*Ada\*\* › Bob, from the web: hi"),
        ("\u202eada\u0000", "hi", "> ada, from the web: hi"),
        ("", "  ", "> Somebody, from the web: (a file)"),
        ("Ada", "word " * 100, "> Ada, from the web: " + "word " * 59 + "word…"),
        ("A" * 80, "hi", "> " + "A" * 59 + "…, from the web: hi"),
    ],
)
def test_a_question_is_quoted_on_one_line_and_stays_data(name: str, text: str, quoted: str) -> None:
    assert quote(name, text) == quoted


# -- where it is possible ------------------------------------------------------------------------------------


async def test_a_conversation_that_takes_place_here_has_no_other_place(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(loopback=Loopback())
    ada = await on_the_web(gateway, chat())
    for platform in ("web", "api"):
        own = SessionSource(platform, "c1", user_id=ada.id, user_name="Ada")
        turn = await ask(gateway, own, "hello")
        with pytest.raises(NotReachable, match="nowhere else"):
            await write(gateway, ada, turn.session_id, "there, please", reply=THERE)
        assert texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "Done.")]
    owner = await on_the_web(gateway, SessionSource.local_cli())
    turn = await ask(gateway, SessionSource.local_cli(), "hello")
    with pytest.raises(NotReachable, match="nowhere else"):
        await write(gateway, owner, turn.session_id, "there, please", reply=THERE)


async def test_a_platform_that_is_not_connected_here_cannot_be_reached(start_gateway: StartGateway) -> None:
    elsewhere = SessionSource("telegram", "ada", user_id="ada", user_name="Ada")
    gateway = await start_gateway(loopback=Loopback())
    turn = await ask(gateway, elsewhere, "hello")
    ada = await on_the_web(gateway, elsewhere)
    with pytest.raises(NotReachable, match="Telegram is not connected"):
        await write(gateway, ada, turn.session_id, "there, please", reply=THERE)
    overview = await gateway.store.aio.seen_by(ada.principal).overview(turn.session_id)
    assert (overview.takes_place, overview.session.platform in gateway.platforms) == (True, False)


async def test_a_conversation_that_its_place_has_left_still_takes_place_there(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    await loopback.say("/new", message_id="m1")
    await until(lambda: len(loopback.sent) == 2)
    receipt = await write(gateway, ada, session_id, "about before", reply=THERE)
    await ended(gateway, receipt.turn_id)
    await until(lambda: len(loopback.sent) == 3)
    assert contents(loopback)[-1] == "> Ada, from the web: about before\n\nDone."
    following = await loopback.say("what goes on there", message_id="m2")
    assert following.session_id != session_id


async def test_a_copy_takes_place_only_where_somebody_goes_on_with_it(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    view = gateway.store.aio.seen_by(ada.principal)
    copy = await view.fork(session_id)
    assert (await view.overview(copy.id)).takes_place is False
    with pytest.raises(NotReachable):
        await write(gateway, ada, copy.id, "there, please", reply=THERE)
    await loopback.say(f"/resume {copy.id}", message_id="m1")
    assert (await view.overview(copy.id)).takes_place is True
    receipt = await write(gateway, ada, copy.id, "now", reply=THERE)
    await ended(gateway, receipt.turn_id)
    await until(lambda: contents(loopback)[-1:] == ["> Ada, from the web: now\n\nDone."])
    branched = await loopback.say("/branch", message_id="m2")
    assert [(await view.overview(each)).takes_place for each in (copy.id, branched.session_id or "")] == [False, True]


async def test_another_person_can_send_nothing_there(start_gateway: StartGateway) -> None:
    loopback = Loopback()
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    bob = await on_the_web(gateway, chat("bob"))
    missing = "20200101_000000_00000000"
    source = SessionSource("web", "c", user_id=bob.id, user_name="Bob")
    for hidden in (session_id, missing):
        with pytest.raises(NoSuchSession, match=f"there is no session {hidden}"):
            await gateway.inbox.accept(Inbound(source=source, content="hi", session_id=hidden, reply=THERE))  # type: ignore[arg-type]
    delivery = (await statuses(gateway, ada, session_id))[0]
    view = gateway.store.aio.seen_by(bob.principal)
    with pytest.raises(NoSuchSession):
        await view.deliveries(session_id)
    with pytest.raises(NoSuchSession):
        await view.send_again(session_id, delivery.id)
    own = await ask(gateway, chat("bob"), "mine")
    with pytest.raises(NotFound):
        await view.send_again(own.session_id, delivery.id)
    assert len(loopback.sent) <= 2


# -- while the agent is busy ---------------------------------------------------------------------------------


class Acting:
    """An agent that uses a tool when it is let, and then says what it was told meanwhile."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.agent = ScriptedAgent(self._answer, tools=[self._tool()])

    def _tool(self) -> Tool:
        async def run(_arguments: Any) -> str:
            return "done"

        return Tool(name="look", description="Look.", parameters={"type": "object"}, run=run)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        asked = str(request.messages[-1]["content"])
        yield TextDelta(f"For {asked}. ")
        if asked != "look":
            return
        self.begun.set()
        await self.go_on.wait()
        yield ToolCall("c1", "look", json.dumps({}))
        yield ToolResult("c1", "look", "done")
        told = await request.steering()
        yield TextDelta(f"Told: {', '.join(told)}.")


@pytest.mark.parametrize(
    ("reply", "quoted"), [(THERE, "> Ada, from the web: only trains\n\n"), (ReplyTo.HERE, "")], ids=["there", "here"]
)
async def test_a_run_whose_answer_goes_there_may_be_told_more_from_here(
    start_gateway: StartGateway, reply: ReplyTo, quoted: str
) -> None:
    loopback, acting = Loopback(), Acting()
    gateway = await start_gateway(acting.agent, loopback=loopback)
    ada = await on_the_web(gateway, chat())
    first = await loopback.say("look", message_id="m1")
    await acting.begun.wait()
    more = await write(gateway, ada, first.session_id, "only trains", reply=reply, busy=BusyPolicy.STEER)
    assert more.outcome is Outcome.STEERED
    acting.go_on.set()
    await ended(gateway, first.turn_id)
    await settled(gateway, ada, first.session_id)
    assert contents(loopback) == [f"{quoted}For look. \n\nTold: only trains."]
    assert loopback.sent[0].reply_to == "m1"


async def test_what_is_to_be_answered_there_waits_for_a_run_that_is_read_here(start_gateway: StartGateway) -> None:
    loopback, acting = Loopback(), Acting()
    gateway = await start_gateway(acting.agent, loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    first = await write(gateway, ada, session_id, "look")
    await acting.begun.wait()
    second = await write(gateway, ada, session_id, "and there", reply=THERE, busy=BusyPolicy.STEER)
    assert second.outcome is Outcome.QUEUED
    acting.go_on.set()
    for receipt in (first, second):
        await ended(gateway, receipt.turn_id)
    await settled(gateway, ada, session_id)
    assert contents(loopback)[1:] == ["> Ada, from the web: and there\n\nFor and there. "]


async def test_messages_from_here_and_there_are_taken_together_and_quoted_apart(start_gateway: StartGateway) -> None:
    loopback, clock = Loopback(), FakeClock()
    gateway = await start_gateway(
        ScriptedAgent("Both."), loopback=loopback, clock=clock, collect=timedelta(seconds=0.3)
    )
    ada = await on_the_web(gateway, chat())
    first = await loopback.say("one", message_id="m1")
    others = [await write(gateway, ada, first.session_id, text, reply=THERE) for text in ("two", "three")]
    assert [each.outcome for each in others] == [Outcome.COLLECTED] * 2
    apart = await write(gateway, ada, first.session_id, "four")
    assert apart.outcome is Outcome.QUEUED, "its answer is read here alone"
    clock.advance(seconds=1)
    await ended(gateway, apart.turn_id)
    await settled(gateway, ada, first.session_id)
    assert contents(loopback) == ["> Ada, from the web: two\n\n> Ada, from the web: three\n\nBoth."]
    assert loopback.sent[0].reply_to == "m1"


# -- deliveries that people see ------------------------------------------------------------------------------


class Failing:
    """A wire that fails as it is told."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.tried: list[str] = []
        self.arrived: list[str] = []

    async def __call__(self, delivery: Delivery) -> str:
        self.tried.append(delivery.id)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        self.arrived.append(delivery.content)
        return "r"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (SendRejected("too long"), DeliveryState.FAILED),
        (TargetGone("blocked"), DeliveryState.FAILED),
        (OSError("the line broke"), DeliveryState.UNCERTAIN),
    ],
    ids=["rejected", "gone", "uncertain"],
)
async def test_what_did_not_arrive_is_sent_again_when_a_person_wants_it(
    start_gateway: StartGateway, outcome: Exception, state: DeliveryState
) -> None:
    wire = Failing(outcome)
    loopback = Loopback(wire)
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback)
    failed = await settled(gateway, ada, session_id)
    assert (failed.state, wire.arrived) == (state, [])
    view = gateway.store.aio.seen_by(ada.principal)
    again = await view.send_again(session_id, failed.id)
    assert (again.state, again.error, again.ended_at) == (DeliveryState.PENDING, None, None)
    gateway.outbox.wake()
    assert (await settled(gateway, ada, session_id)).state is DeliveryState.SENT
    assert (wire.arrived, len(set(wire.tried))) == (["Done."], 1), "it keeps its key"
    with pytest.raises(NothingToDo):
        await view.send_again(session_id, failed.id)
    with pytest.raises(NotFound):
        await view.send_again(session_id, "d_0000000000000000")
    noted = [event for event in await view.events(session_id) if event.kind is EventKind.RESENT]
    assert [(event.person_id, event.facts["was"]) for event in noted] == [(ada.id, state)], "once, and by whom"
    following = await write(gateway, ada, session_id, "and now?", reply=THERE)
    await ended(gateway, following.turn_id)
    assert (await settled(gateway, ada, session_id)).state is DeliveryState.SENT, "somebody is there again"


async def test_one_that_is_sent_again_does_not_overtake_what_is_being_sent(start_gateway: StartGateway) -> None:
    held, at_work = asyncio.Event(), asyncio.Event()
    arrived: list[str] = []
    refuse = [SendRejected("not now")]

    async def wire(delivery: Delivery) -> str:
        if refuse:
            raise refuse.pop()
        if "two" in delivery.content:
            at_work.set()
            await held.wait()
        arrived.append(delivery.content)
        return "r"

    loopback = Loopback(wire)
    gateway = await start_gateway(ScriptedAgent(lambda r: str(r.messages[-1]["content"])), loopback=loopback)
    ada, session_id = await ada_in_both(gateway, loopback, "one")
    failed = (await statuses(gateway, ada, session_id))[0]
    for text in ("two", "three"):
        await ended(gateway, (await loopback.say(text)).turn_id)
    await at_work.wait()
    await gateway.store.aio.seen_by(ada.principal).send_again(session_id, failed.id)
    gateway.outbox.wake()
    await asyncio.sleep(0.1)  # in which it could overtake
    held.set()
    await settled(gateway, ada, session_id)
    assert arrived == ["two", "one", "three"]


async def test_whoever_follows_is_told_how_a_delivery_stands_also_when_it_is_sent_again(
    start_gateway: StartGateway,
) -> None:
    held = asyncio.Event()
    refuse = [SendRejected("not now")]

    async def wire(_delivery: Delivery) -> str:
        await held.wait()
        if refuse:
            raise refuse.pop()
        return "r"

    loopback = Loopback(wire)
    gateway = await start_gateway(loopback=loopback)
    first = await loopback.say("hello")
    ada = await on_the_web(gateway, chat())
    session_id = first.session_id or ""
    told: list[DeliveryState] = []
    async with asyncio.timeout(60):
        async for item in gateway.feed.follow(ada.principal, session_id, after=0, deliveries_before=10):
            if not isinstance(item, DeliveryChanged):
                continue
            told.append(item.delivery.state)
            if item.delivery.state is DeliveryState.FAILED:
                await gateway.store.aio.seen_by(ada.principal).send_again(session_id, item.delivery.id)
                gateway.outbox.wake()
            elif item.delivery.state is DeliveryState.SENT:
                break
            held.set()
    assert told[0] in {DeliveryState.PENDING, DeliveryState.SENDING}
    assert [state for state in told if state in {DeliveryState.FAILED, DeliveryState.SENT}] == [
        DeliveryState.FAILED,
        DeliveryState.SENT,
    ]


async def test_however_much_failed_a_follower_watches_the_last_of_it(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wire(_delivery: Delivery) -> str:
        raise SendRejected("never")

    monkeypatch.setattr(feed, "WATCHED", 2)
    look, watched = deliveries.by_numbers, list[int]()

    def counted(tx: Transaction, numbers: Sequence[int]) -> list[tuple[int, DeliveryStatus]]:
        watched.append(len(numbers))
        return look(tx, numbers)

    monkeypatch.setattr(deliveries, "by_numbers", counted)
    loopback = Loopback(wire)
    gateway = await start_gateway(loopback=loopback)
    first = await loopback.say("hello")
    ada = await on_the_web(gateway, chat())
    failed = set()
    async with asyncio.timeout(60):
        async for item in gateway.feed.follow(ada.principal, first.session_id or "", after=0, deliveries_before=10):
            if isinstance(item, DeliveryChanged) and item.delivery.state is DeliveryState.FAILED:
                failed.add(item.delivery.id)
                if len(failed) == 5:
                    break
                await loopback.say("and again")
    assert max(watched) == 2

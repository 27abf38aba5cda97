"""The outbox: in order, once, and honest about what it does not know."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from palaver.domain.delivery import MOST_ATTEMPTS, Address, DeliveryState
from palaver.domain.errors import SendLater, SendRejected, SendUncertain, TargetGone
from palaver.platforms.loopback import LOOPBACK, Loopback
from palaver.services.delivery import outbox as service
from palaver.storage import deliveries, sessions
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros
from palaver.testing import ScriptedAgent
from support.gateway import ask, ended, until

if TYPE_CHECKING:
    from palaver.domain.delivery import Delivery
    from palaver.services.gateway import Gateway
    from support.gateway import MakeSource, StartGateway


class Network:
    """The platform behind the loopback: fails as it is told, and remembers what arrived."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.arrived: list[str] = []
        self.tried: list[str] = []

    async def __call__(self, delivery: Delivery) -> str | None:
        self.tried.append(delivery.id)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        self.arrived.append(delivery.content)
        return f"r{len(self.arrived)}"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    monkeypatch.setattr(service, "delay_before", lambda *_args, **_kwargs: timedelta(milliseconds=1))


async def deliveries_of(gateway: Gateway, session_id: str | None) -> list[Delivery]:
    return await gateway.store.engine.arun(
        Read(lambda tx: deliveries.of_session(tx, sessions.number_of(tx, session_id or "")))
    )


async def settled(gateway: Gateway, session_id: str | None) -> Delivery:
    """Wait until the newest delivery of a session has ended."""
    async with asyncio.timeout(60):
        while True:
            found = await deliveries_of(gateway, session_id)
            if found and found[0].state not in {DeliveryState.PENDING, DeliveryState.SENDING}:
                return found[0]
            await asyncio.sleep(0.005)


async def test_an_answer_is_delivered_once_with_its_receipt(start_gateway: StartGateway) -> None:
    network = Network()
    loopback = Loopback(network)
    gateway = await start_gateway(ScriptedAgent("Good day."), loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    delivery = await settled(gateway, receipt.session_id)
    assert (delivery.state, delivery.receipt, delivery.reply_to) == (DeliveryState.SENT, "r1", "m1")
    assert network.arrived == ["Good day."]


async def test_answers_arrive_in_order_at_each_address(start_gateway: StartGateway) -> None:
    network = Network(SendLater(), None, SendLater(), SendLater())
    loopback = Loopback(network)
    gateway = await start_gateway(ScriptedAgent(lambda r: r.messages[-1]["content"].upper()), loopback=loopback)
    receipts = [await loopback.say(f"word {i}") for i in range(6)]
    for receipt in receipts:
        await ended(gateway, receipt.turn_id)
    await until(lambda: len(network.arrived) == 6)
    assert network.arrived == [f"WORD {i}" for i in range(6)]


async def test_an_address_that_fails_does_not_keep_others_waiting(start_gateway: StartGateway) -> None:
    arrived: list[str] = []

    async def wire(delivery: Delivery) -> str | None:
        if delivery.address.chat_id == "ada":
            raise SendLater("ada's server is down", retry_after=3600)
        arrived.append(delivery.address.chat_id)
        return None

    loopback = Loopback(wire)
    await start_gateway(loopback=loopback)
    for _ in range(30):
        await loopback.say("hello", user="ada", message_id=None)
    await loopback.say("hello", user="bob")
    await until(lambda: arrived)
    assert set(arrived) == {"bob"}


async def test_what_was_not_sent_is_tried_again_and_given_up_in_the_end(start_gateway: StartGateway) -> None:
    network = Network(*[SendLater("busy")] * MOST_ATTEMPTS)
    loopback = Loopback(network)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await settled(gateway, receipt.session_id)
    assert (delivery.state, delivery.attempt, delivery.error) == (DeliveryState.FAILED, MOST_ATTEMPTS, "busy")
    assert set(Counter(network.tried).values()) == {MOST_ATTEMPTS}  # always with the same key


async def test_what_is_refused_for_good_is_not_tried_again(start_gateway: StartGateway) -> None:
    network = Network(SendRejected("message too long"))
    loopback = Loopback(network)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await settled(gateway, receipt.session_id)
    assert (delivery.state, delivery.error) == (DeliveryState.FAILED, "message too long")
    assert len(network.tried) == 1


@pytest.mark.parametrize("outcome", [SendUncertain("the line broke"), TimeoutError(), ConnectionResetError()])
async def test_what_may_have_arrived_is_never_sent_again(start_gateway: StartGateway, outcome: Exception) -> None:
    network = Network(outcome)
    loopback = Loopback(network)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await settled(gateway, receipt.session_id)
    assert delivery.state is DeliveryState.UNCERTAIN
    assert len(network.tried) == 1
    following = await loopback.say("still there?")
    assert (await settled_turn(gateway, following.turn_id, network, 1)) == ["Done."]


async def settled_turn(gateway: Gateway, turn_id: str | None, network: Network, count: int) -> list[str]:
    await ended(gateway, turn_id)
    await until(lambda: len(network.arrived) == count)
    return network.arrived


async def test_a_platform_that_knows_keys_gets_an_uncertain_one_again(start_gateway: StartGateway) -> None:
    network = Network(SendUncertain("the line broke"))
    loopback = Loopback(network, knows_keys=True)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await settled(gateway, receipt.session_id)
    assert delivery.state is DeliveryState.SENT
    assert network.tried == [delivery.id] * 2


async def test_nothing_more_is_sent_to_where_nobody_is_until_they_speak_again(start_gateway: StartGateway) -> None:
    network = Network(TargetGone("the person has blocked us"))
    loopback = Loopback(network)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    assert (await settled(gateway, receipt.session_id)).state is DeliveryState.FAILED
    address = str(Address(LOOPBACK, "ada"))
    outgoing = deliveries.Outgoing(address=address, content="are you there?")
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(Write(lambda tx: deliveries.enqueue(tx, outgoing, now)))
    await asyncio.sleep(0.05)
    assert len(network.tried) == 1
    again = await loopback.say("I am back")
    await ended(gateway, again.turn_id)
    await until(lambda: network.arrived == ["Done."])


@pytest.mark.parametrize(("knows_keys", "state"), [(False, DeliveryState.UNCERTAIN), (True, DeliveryState.SENT)])
async def test_what_a_dead_process_was_sending_is_uncertain_unless_the_platform_knows_it(
    start_gateway: StartGateway, knows_keys: bool, state: DeliveryState
) -> None:
    loopback = Loopback(Network(), knows_keys=knows_keys)
    gateway = await start_gateway(loopback=loopback)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await ended(gateway, receipt.turn_id)
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(
        Write(lambda tx: deliveries.claim(tx, "elsewhere/1/1/dead", now, now - 1, 9, LOOPBACK))
    )
    network = Network()
    other = await start_gateway(loopback=Loopback(network, knows_keys=knows_keys))
    assert (await settled(other, receipt.session_id)).state is state
    assert len(network.arrived) == int(knows_keys)


async def test_what_another_process_has_to_send_is_left_to_it(start_gateway: StartGateway, dm: MakeSource) -> None:
    loopback = Loopback(Network())
    gateway = await start_gateway(loopback=loopback)
    waiting = await ask(gateway, dm(), "answered by Telegram, to which nobody is connected here")
    receipt = await loopback.say("hello")
    assert (await settled(gateway, receipt.session_id)).state is DeliveryState.SENT
    assert (await deliveries_of(gateway, waiting.session_id))[0].state is DeliveryState.PENDING


async def test_two_gateways_deliver_each_answer_once(start_gateway: StartGateway) -> None:
    networks = [Network(), Network()]
    loopbacks = [Loopback(network) for network in networks]
    gateways = [await start_gateway(loopback=loopback) for loopback in loopbacks]
    for i in range(10):
        receipt = await loopbacks[i % 2].say(f"hello {i}", user=f"user{i}")
        await ended(gateways[0], receipt.turn_id)
    await until(lambda: sum(len(network.arrived) for network in networks) >= 10)
    await asyncio.sleep(0.05)
    assert sum(len(network.arrived) for network in networks) == 10


async def test_the_terminal_needs_no_delivery(start_gateway: StartGateway) -> None:
    from palaver import SessionSource
    from palaver.domain.inbound import Inbound

    gateway = await start_gateway(loopback=Loopback())
    receipt = await gateway.inbox.accept(Inbound(source=SessionSource.local_cli(), content="hello"))
    await ended(gateway, receipt.turn_id)
    assert await deliveries_of(gateway, receipt.session_id) == []

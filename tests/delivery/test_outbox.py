"""The outbox: sends in order, sends once, and does not claim to know more than it does."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.core.errors import SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.delivery import parts as part_outcomes, table as deliveries
from palaver.platforms.loopback import LOOPBACK, RECOGNIZES_KEYS, LoopbackAdapter
from palaver.sessions.delivery import MAX_DELIVERY_ATTEMPTS, Address, DeliveryState
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent
from support.deliveries import FailingTransport, claim_as_dead_process, list_deliveries, list_parts, wait_for_delivery
from support.gateway import ask, wait_for_turn, wait_until

if TYPE_CHECKING:
    from palaver.delivery.adapter import OutgoingMessage
    from support.gateway import MakeSource, StartGateway

pytestmark = pytest.mark.both_engines


@pytest.fixture(autouse=True)
def _retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_outcomes, "compute_retry_delay", lambda *_args, **_kwargs: timedelta(milliseconds=1))


async def test_an_answer_is_delivered_once_with_its_receipt(start_gateway: StartGateway) -> None:
    transport = FailingTransport()
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(ScriptedAgent("Good day."), loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, delivery.reply_to) == (DeliveryState.SENT, "m1")
    assert [(part.state, part.sent_message_id) for part in await list_parts(gateway, delivery.id)] == [
        (DeliveryState.SENT, "r1")
    ]
    assert transport.arrived == ["Good day."]


async def test_answers_arrive_in_order_at_each_address(start_gateway: StartGateway) -> None:
    transport = FailingTransport(SendRetryable(), None, SendRetryable(), SendRetryable())
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(lambda r: r.messages[-1]["content"].upper()), loopback=loopback)
    receipts = [await loopback.say(f"word {i}") for i in range(6)]
    for receipt in receipts:
        await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: len(transport.arrived) == 6)
    assert transport.arrived == [f"WORD {i}" for i in range(6)]


async def test_a_failing_address_does_not_block_the_others(start_gateway: StartGateway) -> None:
    arrived: list[str] = []

    async def send(message: OutgoingMessage) -> str | None:
        if message.address.chat_id == "ada":
            raise SendRetryable("ada's server is down", retry_after=3600)
        arrived.append(message.address.chat_id)
        return None

    loopback = LoopbackAdapter(send)
    await start_gateway(loopback=loopback)
    for _ in range(30):
        await loopback.say("hello", user="ada", message_id=None)
    await loopback.say("hello", user="bob")
    await wait_until(lambda: arrived)
    assert set(arrived) == {"bob"}


async def test_a_retryable_error_is_retried_until_the_limit(start_gateway: StartGateway) -> None:
    transport = FailingTransport(*[SendRetryable("busy")] * MAX_DELIVERY_ATTEMPTS)
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, delivery.attempt, delivery.error) == (DeliveryState.FAILED, MAX_DELIVERY_ATTEMPTS, "busy")
    assert set(Counter(transport.attempted).values()) == {MAX_DELIVERY_ATTEMPTS}  # always with the same id


async def test_a_rejected_delivery_is_not_retried(start_gateway: StartGateway) -> None:
    transport = FailingTransport(SendRejected("message too long"))
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, delivery.error) == (DeliveryState.FAILED, "message too long")
    assert len(transport.attempted) == 1


@pytest.mark.parametrize("outcome", [SendUncertain("the connection broke"), TimeoutError(), ConnectionResetError()])
async def test_an_uncertain_delivery_is_not_sent_again(start_gateway: StartGateway, outcome: Exception) -> None:
    transport = FailingTransport(outcome)
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert delivery.state is DeliveryState.UNCERTAIN
    assert len(transport.attempted) == 1
    second = await loopback.say("still there?")
    await wait_for_turn(gateway, second.turn_id)
    await wait_until(lambda: len(transport.arrived) == 1)
    assert transport.arrived == ["Done."]


async def test_a_platform_with_idempotency_keys_gets_an_uncertain_delivery_again(start_gateway: StartGateway) -> None:
    transport = FailingTransport(SendUncertain("the connection broke"))
    loopback = LoopbackAdapter(transport, capabilities=RECOGNIZES_KEYS)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert delivery.state is DeliveryState.SENT
    assert transport.attempted == [f"{delivery.id}.1"] * 2


async def test_nothing_is_sent_to_an_unreachable_target_until_it_writes_again(start_gateway: StartGateway) -> None:
    transport = FailingTransport(TargetUnreachable("the person has blocked us"))
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.FAILED
    address = str(Address(LOOPBACK, "ada"))
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(Write(lambda tx: deliveries.enqueue(tx, address, "are you there?", now)))
    await asyncio.sleep(0.05)
    assert len(transport.attempted) == 1
    later = await loopback.say("I am back")
    await wait_for_turn(gateway, later.turn_id)
    await wait_until(lambda: transport.arrived == ["Done."])


@pytest.mark.parametrize(("has_keys", "state"), [(False, DeliveryState.UNCERTAIN), (True, DeliveryState.SENT)])
async def test_a_delivery_of_a_dead_process_is_uncertain_unless_the_platform_has_idempotency_keys(
    start_gateway: StartGateway, has_keys: bool, state: DeliveryState
) -> None:
    capabilities = RECOGNIZES_KEYS if has_keys else None
    loopback = LoopbackAdapter(FailingTransport(), capabilities=capabilities)
    gateway = await start_gateway(loopback=loopback)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(Write(lambda tx: claim_as_dead_process(tx, now, is_sending=True)))
    await gateway.accounts.stop()
    transport = FailingTransport()
    other = await start_gateway(loopback=LoopbackAdapter(transport, capabilities=capabilities))
    assert (await wait_for_delivery(other, receipt.session_id)).state is state
    assert len(transport.arrived) == int(has_keys)


async def test_deliveries_of_platforms_that_are_not_connected_are_left_alone(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    loopback = LoopbackAdapter(FailingTransport())
    gateway = await start_gateway(loopback=loopback)
    unconnected = await ask(gateway, dm(), "Telegram is not connected here")
    receipt = await loopback.say("hello")
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    assert (await list_deliveries(gateway, unconnected.session_id))[0].state is DeliveryState.PENDING


async def test_the_gateway_that_runs_the_account_delivers_the_answers_of_all_gateways(
    start_gateway: StartGateway,
) -> None:
    transports = [FailingTransport(), FailingTransport()]
    loopbacks = [LoopbackAdapter(transport) for transport in transports]
    gateways = [await start_gateway(loopback=loopbacks[0])]
    await loopbacks[0].say("hello", user="user0")  # from now on the first gateway runs the account
    gateways.append(await start_gateway(loopback=loopbacks[1]))
    for i in range(1, 10):
        source = loopbacks[0].get_source(f"user{i}")
        receipt = await gateways[i % 2].inbox.accept(Inbound(source=source, content=f"hello {i}"))
        await wait_for_turn(gateways[0], receipt.turn_id)
    await wait_until(lambda: len(transports[0].arrived) >= 10)
    await asyncio.sleep(0.05)
    assert [len(transport.arrived) for transport in transports] == [10, 0]


async def test_an_answer_in_the_terminal_creates_no_delivery(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(loopback=LoopbackAdapter())
    receipt = await gateway.inbox.accept(Inbound(source=SessionSource.local_cli(), content="hello"))
    await wait_for_turn(gateway, receipt.turn_id)
    assert await list_deliveries(gateway, receipt.session_id) == []

"""The outbox when sessions are deleted, adapters fail, processes die, clocks jump and the store is unavailable."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core import background as poll_loop
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SendRejected, SendRetryable, StoreUnavailable
from palaver.core.source import Platform
from palaver.delivery import outbox, sender, table as deliveries
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import RECOGNIZES_KEYS, LoopbackAdapter
from palaver.sessions.delivery import MAX_DELIVERY_ATTEMPTS, DeliveryState
from palaver.testing import FakeClock, ScriptedAgent
from support.deliveries import claim_as_dead_process, list_deliveries, list_parts, wait_for_delivery
from support.gateway import wait_for_turn, wait_until
from support.platform_gateway import wait_for_states

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from support.gateway import StartGateway


class PausableTransport:
    """The network behind a loopback adapter: can be paused, and fails for chosen messages."""

    def __init__(self, get_error: Callable[[OutgoingMessage], Exception | None] = lambda _message: None) -> None:
        self.get_error = get_error
        self.is_running = asyncio.Event()
        self.is_running.set()
        self.attempted: list[str] = []
        self.arrived: list[str] = []

    async def __call__(self, message: OutgoingMessage) -> str | None:
        self.attempted.append(message.body)
        await self.is_running.wait()
        error = self.get_error(message)
        if error is not None:
            raise error
        self.arrived.append(message.body)
        return None


def create_echo_agent() -> ScriptedAgent:
    return ScriptedAgent(lambda request: str(request.messages[-1]["content"]).upper())


@pytest.mark.parametrize("first_delivery", ["pending", "sending"])
async def test_deleting_a_conversation_does_not_block_later_deliveries_at_its_address(
    start_gateway: StartGateway, first_delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RECOVERY_SECONDS", 3600)  # the deletion itself has to wake the outbox

    def get_error(message: OutgoingMessage) -> Exception | None:
        is_postponed = first_delivery == "pending" and message.body == "ONE"
        return SendRetryable("not now", retry_after=3600) if is_postponed else None

    transport = PausableTransport(get_error)
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(create_echo_agent(), loopback=loopback)
    if first_delivery == "sending":
        transport.is_running.clear()
    one = await loopback.say("one")
    await wait_for_turn(gateway, one.turn_id)
    await wait_until(lambda: transport.attempted)
    await loopback.say("/new")
    two = await loopback.say("two")
    await wait_for_turn(gateway, two.turn_id)
    gateway.store.delete_session(one.session_id or "")
    transport.is_running.set()
    assert (await wait_for_delivery(gateway, two.session_id)).state is DeliveryState.SENT
    three = await loopback.say("three")
    await wait_for_turn(gateway, three.turn_id)
    await wait_until(lambda: "THREE" in transport.arrived)


class LibraryError(Exception):
    """An error of a platform library that Palaver does not know."""


@pytest.mark.parametrize("error", [LibraryError("?"), AttributeError("x"), AssertionError(), ZeroDivisionError()])
async def test_an_unknown_error_of_an_adapter_makes_only_that_delivery_uncertain(
    start_gateway: StartGateway, error: Exception
) -> None:
    transport = PausableTransport(lambda each: error if each.body == "ONE" else None)
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(create_echo_agent(), loopback=loopback)
    one = await loopback.say("one")
    delivery = await wait_for_delivery(gateway, one.session_id)
    assert delivery.state is DeliveryState.UNCERTAIN
    assert type(error).__name__ in (delivery.error or "")
    await loopback.say("two")
    await wait_until(lambda: transport.arrived == ["TWO"])


async def test_an_error_with_unstorable_characters_is_stored_without_them(
    start_gateway: StartGateway,
) -> None:
    loopback = LoopbackAdapter(PausableTransport(lambda _message: SendRejected("no \0 and no \ud83d either")))
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert delivery.state is DeliveryState.FAILED
    assert (delivery.error or "").startswith("no ")


async def test_a_platform_that_hangs_does_not_block_another(open_store: OpenStore) -> None:
    class SecondAdapter(LoopbackAdapter):
        platform = Platform("second")

    hanging, working = PausableTransport(), PausableTransport()
    hanging.is_running.clear()
    first, second = LoopbackAdapter(hanging), SecondAdapter(working)
    gateway = Gateway(
        open_store(),
        create_echo_agent(),
        profile=AgentProfile(),
        rules=TurnRules(open_platforms=frozenset({first.platform, second.platform})),
        adapters=[first, second],
    )
    async with gateway.run(grace_seconds=1):
        for i in range(outbox.MAX_SENDS_PER_ACCOUNT + 2):
            await first.say("hello", user=f"user{i}")
        await wait_until(lambda: len(hanging.attempted) == outbox.MAX_SENDS_PER_ACCOUNT)
        await second.say("hello")
        await wait_until(lambda: working.arrived == ["HELLO"])
        hanging.is_running.set()
        await wait_until(lambda: len(hanging.arrived) == outbox.MAX_SENDS_PER_ACCOUNT + 2)


@pytest.mark.parametrize(("is_sending", "state"), [(True, DeliveryState.UNCERTAIN), (False, DeliveryState.FAILED)])
async def test_a_delivery_that_keeps_crashing_its_process_ends_as_uncertain_or_failed(
    start_gateway: StartGateway, is_sending: bool, state: DeliveryState
) -> None:
    loopback = LoopbackAdapter(capabilities=RECOGNIZES_KEYS)
    gateway = await start_gateway(loopback=loopback)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    now = to_micros(gateway.store.clock.now())
    for _ in range(MAX_DELIVERY_ATTEMPTS):
        await gateway.store.engine.arun(Write(lambda tx: claim_as_dead_process(tx, now, is_sending=is_sending)))
        await gateway.outbox.recover_orphans()
    (delivery,) = await list_deliveries(gateway, receipt.session_id)
    assert (delivery.state, delivery.attempt) == (state, MAX_DELIVERY_ATTEMPTS)


async def test_a_recovery_that_another_process_has_overtaken_changes_nothing(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback = LoopbackAdapter(capabilities=RECOGNIZES_KEYS)
    gateway = await start_gateway(loopback=loopback)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    engine, now = gateway.store.engine, to_micros(gateway.store.clock.now())
    await engine.arun(Write(lambda tx: claim_as_dead_process(tx, now, is_sending=True)))
    [orphan] = found = await engine.arun(Read(lambda tx: deliveries.list_orphans(tx, now, lambda _owner: True)))

    def end(tx: Transaction) -> None:
        deliveries.save_outcome(tx, orphan.no, replace(orphan.parts[0], state=DeliveryState.UNCERTAIN))
        deliveries.finish(tx, orphan, DeliveryState.UNCERTAIN, now)

    await engine.arun(Write(end))
    monkeypatch.setattr(deliveries, "list_orphans", lambda *_: found)  # read before the other process has ended it
    await gateway.outbox.recover_orphans()
    assert [part.state for part in await list_parts(gateway, orphan.delivery.id)] == [DeliveryState.UNCERTAIN]


async def test_an_adapter_that_never_returns_blocks_its_address_only_until_the_lease_expires(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RECOVERY_SECONDS", 0.05)
    monkeypatch.setattr(sender, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(sender, "SEND_TIMEOUT_SECONDS", 0.1)
    may_return = asyncio.Event()
    arrived: list[str] = []

    async def send(message: OutgoingMessage) -> str | None:
        while message.body == "ONE" and not may_return.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await may_return.wait()
        arrived.append(message.body)
        return None

    loopback = LoopbackAdapter(send)
    gateway = await start_gateway(create_echo_agent(), loopback=loopback)
    one = await loopback.say("one")
    assert (await wait_for_delivery(gateway, one.session_id)).state is DeliveryState.UNCERTAIN
    await loopback.say("two")
    await wait_until(lambda: arrived == ["TWO"])
    may_return.set()


@pytest.mark.both_engines
async def test_a_clock_set_back_does_not_delay_deliveries(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RECOVERY_SECONDS", 0.05)
    failed: list[str] = []

    def get_error(message: OutgoingMessage) -> Exception | None:
        if failed:
            return None
        failed.append(message.key)
        return SendRetryable("not now")

    clock = FakeClock()
    transport = PausableTransport(get_error)
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(clock=clock, loopback=loopback)
    receipt = await loopback.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: failed)
    await wait_for_states(gateway, DeliveryState.PENDING)  # when to try again is stored, too
    clock.advance(days=-1)
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT


async def test_a_clock_set_forward_does_not_make_active_sends_uncertain(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RECOVERY_SECONDS", 0.02)
    clock = FakeClock()
    transport = PausableTransport()
    transport.is_running.clear()
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(clock=clock, loopback=loopback)
    receipt = await loopback.say("hello")
    await wait_until(lambda: transport.attempted)
    clock.advance(days=1)
    assert await gateway.outbox.recover_orphans() == 0
    transport.is_running.set()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT


async def test_sending_continues_after_the_store_was_unavailable(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_loop, "RETRY_SECONDS", 0.01)
    loopback = LoopbackAdapter()
    await start_gateway(loopback=loopback)
    find_next_due, failures = deliveries.find_next_due, iter([StoreUnavailable(), RuntimeError("a programming error")])

    def fail_twice(*args: object) -> int | None:
        for error in failures:
            raise error
        return find_next_due(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(deliveries, "find_next_due", fail_twice)
    await loopback.say("hello")
    await wait_until(lambda: loopback.sent)

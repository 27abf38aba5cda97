"""The outbox when everything goes wrong at once: sessions that vanish, adapters that break, clocks that jump."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from palaver.domain.delivery import MOST_ATTEMPTS, DeliveryState
from palaver.domain.errors import SendLater, SendRejected, StoreUnavailable
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.domain.source import Platform
from palaver.platforms.loopback import LOOPBACK, Loopback
from palaver.services import poll_loop
from palaver.services.delivery import outbox as service
from palaver.services.gateway import Gateway
from palaver.storage import deliveries, sessions
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import ended, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver.domain.delivery import Delivery
    from palaver.domain.inbound import Receipt
    from palaver.services.ports import Accept
    from support.gateway import StartGateway


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


class Postman:
    """A wire that can be held up, and remembers what arrived."""

    def __init__(self, fate: Callable[[Delivery], Exception | None] = lambda _delivery: None) -> None:
        self.fate = fate
        self.held = asyncio.Event()
        self.held.set()
        self.tried: list[str] = []
        self.arrived: list[str] = []

    async def __call__(self, delivery: Delivery) -> str | None:
        self.tried.append(delivery.content)
        await self.held.wait()
        error = self.fate(delivery)
        if error is not None:
            raise error
        self.arrived.append(delivery.content)
        return None


def echo() -> ScriptedAgent:
    return ScriptedAgent(lambda request: str(request.messages[-1]["content"]).upper())


# -- sessions that vanish -----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["waits", "is being sent"])
async def test_what_stands_behind_a_deleted_conversation_at_the_same_address_is_sent(
    start_gateway: StartGateway, first: str
) -> None:
    def fate(delivery: Delivery) -> Exception | None:
        later = first == "waits" and delivery.content == "ONE"
        return SendLater("not now", retry_after=3600) if later else None

    postman = Postman(fate)
    loopback = Loopback(postman)
    gateway = await start_gateway(echo(), loopback=loopback)
    if first == "is being sent":
        postman.held.clear()
    one = await loopback.say("one")
    await ended(gateway, one.turn_id)
    await until(lambda: postman.tried)
    await loopback.say("/new")
    two = await loopback.say("two")
    await ended(gateway, two.turn_id)
    gateway.store.delete_session(one.session_id or "")
    postman.held.set()
    assert (await settled(gateway, two.session_id)).state is DeliveryState.SENT
    three = await loopback.say("three")
    await ended(gateway, three.turn_id)
    await until(lambda: "THREE" in postman.arrived)


# -- adapters that break ------------------------------------------------------------------------------------


class LibraryError(Exception):
    """What the library of a platform raises, of which we know nothing."""


@pytest.mark.parametrize("error", [LibraryError("?"), AttributeError("x"), AssertionError(), ZeroDivisionError()])
async def test_an_adapter_that_breaks_in_a_way_of_its_own_makes_one_delivery_uncertain_and_no_more(
    start_gateway: StartGateway, error: Exception
) -> None:
    postman = Postman(lambda delivery: error if delivery.content == "ONE" else None)
    loopback = Loopback(postman)
    gateway = await start_gateway(echo(), loopback=loopback)
    one = await loopback.say("one")
    found = await settled(gateway, one.session_id)
    assert found.state is DeliveryState.UNCERTAIN
    assert type(error).__name__ in (found.error or "")
    await loopback.say("two")
    await until(lambda: postman.arrived == ["TWO"])


async def test_what_a_platform_says_in_bytes_that_no_database_holds_is_kept_as_well_as_it_can_be(
    start_gateway: StartGateway,
) -> None:
    loopback = Loopback(Postman(lambda _delivery: SendRejected("no \0 and no \ud83d either")))
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    found = await settled(gateway, receipt.session_id)
    assert found.state is DeliveryState.FAILED
    assert (found.error or "").startswith("no ")


async def test_a_platform_that_hangs_does_not_keep_another_waiting(open_store: OpenStore) -> None:
    class Elsewhere(Loopback):
        platform = Platform("elsewhere")

    stuck, well = Postman(), Postman()
    stuck.held.clear()
    slow, quick = Loopback(stuck), Elsewhere(well)
    gateway = Gateway(
        open_store(),
        echo(),
        profile=AgentProfile(),
        rules=TurnRules(open_to_all=frozenset({slow.platform, quick.platform})),
        adapters=[slow, quick],
    )
    async with gateway.running(patience=1):
        for i in range(service.AT_ONCE + 2):
            await slow.say("hello", user=f"user{i}")
        await until(lambda: len(stuck.tried) == service.AT_ONCE)
        await quick.say("hello")
        await until(lambda: well.arrived == ["HELLO"])
        stuck.held.set()
        await until(lambda: len(stuck.arrived) == service.AT_ONCE + 2)


async def test_a_delivery_that_keeps_killing_its_process_is_given_up_in_the_end(start_gateway: StartGateway) -> None:
    loopback = Loopback(knows_keys=True)
    gateway = await start_gateway(loopback=loopback)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await ended(gateway, receipt.turn_id)
    now = to_micros(gateway.store.clock.now())
    for _ in range(MOST_ATTEMPTS):
        await gateway.store.engine.arun(
            Write(lambda tx: deliveries.claim(tx, "elsewhere/1/1/dead", 2**60, now - 1, 9, LOOPBACK))
        )
        await gateway.outbox.recover()
    (found,) = await deliveries_of(gateway, receipt.session_id)
    assert (found.state, found.attempt) == (DeliveryState.UNCERTAIN, MOST_ATTEMPTS)


async def test_an_adapter_that_never_comes_back_holds_its_address_up_no_longer_than_its_lease(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("LOOK", 0.05), ("LEASE", 0.3), ("LONGEST_SEND", 0.1)):
        monkeypatch.setattr(service, name, seconds)
    let_go = asyncio.Event()
    arrived: list[str] = []

    async def wire(delivery: Delivery) -> str | None:
        while delivery.content == "ONE" and not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        arrived.append(delivery.content)
        return None

    loopback = Loopback(wire)
    gateway = await start_gateway(echo(), loopback=loopback)
    one = await loopback.say("one")
    assert (await settled(gateway, one.session_id)).state is DeliveryState.UNCERTAIN
    await loopback.say("two")
    await until(lambda: arrived == ["TWO"])
    let_go.set()


# -- clocks that jump ---------------------------------------------------------------------------------------


async def test_a_clock_set_back_by_a_day_holds_no_delivery_up_for_a_day(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LOOK", 0.05)
    refused: list[str] = []

    def fate(delivery: Delivery) -> Exception | None:
        if refused:
            return None
        refused.append(delivery.id)
        return SendLater("not now")

    clock = FakeClock()
    postman = Postman(fate)
    loopback = Loopback(postman)
    gateway = await start_gateway(clock=clock, loopback=loopback)
    receipt = await loopback.say("hello")
    await ended(gateway, receipt.turn_id)
    await until(lambda: refused)
    clock.advance(days=-1)
    assert (await settled(gateway, receipt.session_id)).state is DeliveryState.SENT


async def test_a_clock_set_forward_by_a_day_makes_nothing_uncertain_that_is_being_sent(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LOOK", 0.02)
    clock = FakeClock()
    postman = Postman()
    postman.held.clear()
    loopback = Loopback(postman)
    gateway = await start_gateway(clock=clock, loopback=loopback)
    receipt = await loopback.say("hello")
    await until(lambda: postman.tried)
    clock.advance(days=1)
    assert await gateway.outbox.recover() == 0
    postman.held.set()
    assert (await settled(gateway, receipt.session_id)).state is DeliveryState.SENT


# -- starting and stopping ----------------------------------------------------------------------------------


class Unconnected(Loopback):
    """An adapter that cannot connect, or cannot take its leave."""

    def __init__(self, *, starts: bool) -> None:
        super().__init__()
        self._starts = starts

    async def start(self, accept: Accept) -> None:
        if not self._starts:
            raise ConnectionError("the platform is away")
        await super().start(accept)

    async def stop(self) -> None:
        raise ConnectionError("the platform is away")


async def test_a_gateway_that_cannot_start_leaves_nothing_running(open_store: OpenStore) -> None:
    before = asyncio.all_tasks()
    store = open_store()
    gateway = Gateway(
        store, ScriptedAgent(), profile=AgentProfile(), rules=TurnRules(), adapters=[Unconnected(starts=False)]
    )
    with pytest.raises(ConnectionError):
        await gateway.start()
    assert {task.get_name() for task in asyncio.all_tasks() - before} == set()


async def test_an_adapter_that_fails_to_stop_does_not_keep_turns_from_being_handed_over(open_store: OpenStore) -> None:
    before = asyncio.all_tasks()
    adapter = Unconnected(starts=True)
    rules = TurnRules(open_to_all=frozenset({LOOPBACK}))
    gateway = Gateway(open_store(), ScriptedAgent(), profile=AgentProfile(), rules=rules, adapters=[adapter])
    await gateway.start()
    receipt: Receipt = await adapter.say("hello")
    await ended(gateway, receipt.turn_id)
    with pytest.raises(ConnectionError):
        await gateway.stop(1)
    assert {task.get_name() for task in asyncio.all_tasks() - before} == set()


async def test_a_store_that_was_away_for_a_moment_does_not_end_the_sending(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_loop, "AGAIN_AFTER", 0.01)
    loopback = Loopback()
    await start_gateway(loopback=loopback)
    next_due, failures = deliveries.next_due, iter([StoreUnavailable(), RuntimeError("a mistake of ours")])

    def away(*args: object) -> int | None:
        for error in failures:
            raise error
        return next_due(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(deliveries, "next_due", away)
    await loopback.say("hello")
    await until(lambda: loopback.sent)

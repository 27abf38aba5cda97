"""An adapter that marks a message at the last moment: what ends before the mark was not sent, and is sent again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SendRetryable, SendUncertain
from palaver.delivery import outbox, sender, table as deliveries
from palaver.delivery.model import Capabilities
from palaver.delivery.pace import Pacer
from palaver.delivery.sender import DeliverySender
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.deliveries import list_deliveries, list_parts, wait_for_delivery
from support.gateway import wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from palaver.core.engines.base import Work
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.gateway.gateway import Gateway
    from support.gateway import StartGateway


class LateAdapter(LoopbackAdapter):
    """Connects, marks, posts: each step can fail or hang."""

    marks_sending = True

    def __init__(self, *, capabilities: Capabilities | None = None) -> None:
        super().__init__(capabilities=capabilities)
        self.connects = asyncio.Event()
        self.connects.set()
        self.answers = asyncio.Event()
        self.answers.set()
        self.connect_errors: list[Exception] = []
        self.post_errors: list[Exception] = []
        self.connecting = 0
        self.posted: list[str] = []
        self.found: list[str | SendUncertain | None] = []

    async def send(self, message: OutgoingMessage) -> str | None:
        self.connecting += 1
        await self.connects.wait()
        if self.connect_errors:
            raise self.connect_errors.pop(0)
        await message.mark_sending()
        self.posted.append(message.body)
        await self.answers.wait()
        if self.post_errors:
            raise self.post_errors.pop(0)
        return await super().send(message)

    async def find_sent(self, message: OutgoingMessage, sent_at: datetime) -> str | None:
        found = self.found.pop(0)
        if isinstance(found, SendUncertain):
            raise found
        return found


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "RECOVERY_SECONDS", 0.05)
    monkeypatch.setattr("palaver.sessions.delivery.FIRST_RETRY_DELAY", timedelta(0))


@pytest.mark.both_engines
async def test_a_part_is_stored_and_marked_when_the_adapter_says_so(start_gateway: StartGateway) -> None:
    adapter = LateAdapter()
    adapter.connects.clear()
    adapter.answers.clear()
    gateway = await start_gateway(loopback=adapter)
    receipt = await adapter.say("hello")
    await wait_until(lambda: adapter.connecting)
    [delivery] = await list_deliveries(gateway, receipt.session_id)
    assert (delivery.state, await list_parts(gateway, delivery.id)) == (DeliveryState.SENDING, [])
    adapter.connects.set()
    await wait_until(lambda: adapter.posted)
    [part] = await list_parts(gateway, delivery.id)
    assert (part.state, part.first_sent_at is None) == (DeliveryState.SENDING, False)
    adapter.answers.set()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT


@pytest.mark.parametrize("error", [ZeroDivisionError(), SendUncertain("?"), SendRetryable("no network")])
async def test_what_fails_before_the_mark_is_sent_again(start_gateway: StartGateway, error: Exception) -> None:
    adapter = LateAdapter()
    adapter.connect_errors = [error]
    gateway = await start_gateway(loopback=adapter)
    receipt = await adapter.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, len(adapter.posted), adapter.connecting) == (DeliveryState.SENT, 1, 2)


async def test_an_adapter_that_hangs_before_the_mark_is_asked_again(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "SEND_TIMEOUT_SECONDS", 0.05)
    adapter = LateAdapter()
    adapter.connects.clear()
    gateway = await start_gateway(loopback=adapter)
    receipt = await adapter.say("hello")
    await wait_until(lambda: adapter.connecting == 2)
    monkeypatch.setattr(sender, "SEND_TIMEOUT_SECONDS", 30.0)
    adapter.connects.set()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    assert len(adapter.posted) == 1


async def test_what_fails_after_the_mark_is_uncertain(start_gateway: StartGateway) -> None:
    adapter = LateAdapter()
    adapter.post_errors = [ZeroDivisionError()]
    gateway = await start_gateway(loopback=adapter)
    receipt = await adapter.say("hello")
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.UNCERTAIN
    assert len(adapter.posted) == 1


@pytest.mark.both_engines
async def test_a_delivery_that_another_process_has_taken_over_is_not_sent(start_gateway: StartGateway) -> None:
    adapter = LateAdapter()
    adapter.connects.clear()
    gateway = await start_gateway(loopback=adapter)
    receipt = await adapter.say("hello")
    await wait_until(lambda: adapter.connecting)
    engine, now = gateway.store.engine, to_micros(gateway.store.clock.now())

    def take_over() -> None:
        [lease] = engine.run(Read(lambda tx: deliveries.list_orphans(tx, now, lambda _owner: True)))
        engine.run(Write(lambda tx: deliveries.retry_later(tx, lease, now + 10**9, None)))

    await asyncio.to_thread(take_over)
    adapter.connects.set()
    await wait_until(lambda: not gateway.outbox._active_sends)
    [delivery] = await list_deliveries(gateway, receipt.session_id)
    assert (adapter.posted, delivery.state, await list_parts(gateway, delivery.id)) == ([], DeliveryState.PENDING, [])


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("found", "state", "post_count"),
    [
        (["there-1"], DeliveryState.SENT, 1),
        ([None], DeliveryState.SENT, 2),
        ([SendUncertain("not yet"), "there-1"], DeliveryState.SENT, 1),
        ([SendUncertain("no folder")] * 8, DeliveryState.UNCERTAIN, 1),
    ],
)
async def test_a_part_of_a_dead_process_is_looked_for(
    start_gateway: StartGateway, found: list[str | SendUncertain | None], state: DeliveryState, post_count: int
) -> None:
    adapter = LateAdapter(capabilities=Capabilities(finds_sent=True))
    adapter.found = list(found)
    adapter.answers.clear()
    gateway = await start_gateway(loopback=adapter)
    receipt = await adapter.say("hello")
    await wait_until(lambda: adapter.posted)
    died = "UPDATE delivery SET lease_owner = 'other-host/1/1/dead', lease_until = 1"
    await gateway.store.engine.arun(Write(lambda tx: tx.execute(died)))
    await gateway.outbox.recover_orphans()
    adapter.answers.set()
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, len(adapter.posted)) == (state, post_count)
    assert (delivery.error == "no folder") is (state is DeliveryState.UNCERTAIN)


@pytest.mark.parametrize(("answer", "write_count"), [("short", 2), ("long " * 400, 6)])  # one message, and five
async def test_marking_late_costs_no_transaction(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch, answer: str, write_count: int
) -> None:
    class EarlyAdapter(LateAdapter):
        marks_sending = False

    capabilities = Capabilities(max_length=500)
    loopback = LoopbackAdapter(capabilities=capabilities)
    gateway = await start_gateway(ScriptedAgent(lambda _: answer), loopback=loopback)
    await gateway.outbox.stop()
    for user in ("ada", "ben"):
        await wait_for_turn(gateway, (await loopback.say("hello", user=user)).turn_id)
    engine, now = gateway.store.engine, to_micros(gateway.store.clock.now())
    account = (loopback.platform, "")
    leases = await engine.arun(Write(lambda tx: deliveries.claim_due(tx, "me", now, now + 10**9, 2, account)))
    for lease, adapter in zip(leases, (EarlyAdapter, LateAdapter), strict=True):
        sending = adapter(capabilities=capabilities)
        with monkeypatch.context() as patch:
            writes = count_writes(gateway, patch)
            await DeliverySender(gateway.store, sending, Pacer(capabilities), lease, None).run()
        assert (len(sending.sent), len(writes)) == (write_count - 1, write_count), adapter.__name__


def count_writes(gateway: Gateway, patch: pytest.MonkeyPatch) -> list[Work[Any]]:
    writes: list[Work[Any]] = []
    arun: Callable[[Work[Any]], Awaitable[Any]] = gateway.store.engine.arun

    async def count(work: Work[Any]) -> Any:
        if isinstance(work, Write):
            writes.append(work)
        return await arun(work)

    patch.setattr(gateway.store.engine, "arun", count)
    return writes


async def test_a_part_that_may_have_arrived_before_does_not_end_as_failed(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.delivery.parts.MAX_DELIVERY_ATTEMPTS", 2)
    adapter = LateAdapter(capabilities=Capabilities(key_lifetime=timedelta(hours=1)))
    adapter.post_errors = [SendUncertain("no answer")]
    gateway = await start_gateway(loopback=adapter)
    adapter.answers.clear()
    receipt = await adapter.say("hello")
    await wait_until(lambda: adapter.posted)
    adapter.connect_errors = [SendRetryable("no network")]
    adapter.answers.set()
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, delivery.error) == (DeliveryState.UNCERTAIN, "no network")

"""The status of deliveries that people see: sending them again, and second how they change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import NotFound, NothingToDo, SendRejected, TargetUnreachable
from palaver.delivery.view import DeliveryOperations
from palaver.live import follower
from palaver.live.feed_events import DeliveryChanged
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions import delivery_queries
from palaver.sessions.delivery import DeliveryState
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import ReplyTo
from palaver.testing import ScriptedAgent
from support.deliveries import FailingTransport, chat_source, list_statuses, start_in_chat_and_web, wait_for_deliveries
from support.gateway import TIMEOUT_SECONDS, wait_for_turn
from support.linked_accounts import open_web_account, send_from_web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.sessions.delivery import DeliveryStatus
    from support.gateway import StartGateway


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (SendRejected("too long"), DeliveryState.FAILED),
        (TargetUnreachable("blocked"), DeliveryState.FAILED),
        (OSError("the connection broke"), DeliveryState.UNCERTAIN),
    ],
    ids=["rejected", "unreachable", "uncertain"],
)
async def test_a_person_can_send_a_failed_delivery_again(
    start_gateway: StartGateway, outcome: Exception, state: DeliveryState
) -> None:
    transport = FailingTransport(outcome)
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    failed = await wait_for_deliveries(gateway, ada, session_id)
    assert (failed.state, transport.arrived) == (state, [])
    view = gateway.store.aio.seen_by(ada.principal)
    again = await view.part(DeliveryOperations).send_again(session_id, failed.id)
    assert (again.state, again.error, again.ended_at) == (DeliveryState.PENDING, None, None)
    gateway.outbox.wake()
    assert (await wait_for_deliveries(gateway, ada, session_id)).state is DeliveryState.SENT
    assert (transport.arrived, len(set(transport.attempted))) == (["Done."], 1), "it keeps its id"
    with pytest.raises(NothingToDo):
        await view.part(DeliveryOperations).send_again(session_id, failed.id)
    with pytest.raises(NotFound):
        await view.part(DeliveryOperations).send_again(session_id, "d_0000000000000000")
    resent = [
        event for event in await view.transcripts.load_events(session_id) if event.kind is EventKind.ANSWER_RESENT
    ]
    assert [(event.person_id, event.facts["previous_state"]) for event in resent] == [(ada.id, state)], (
        "the log says once who sent it again"
    )
    second = await send_from_web(gateway, ada, session_id, "and now?", reply_to=ReplyTo.ORIGIN)
    await wait_for_turn(gateway, second.turn_id)
    assert (await wait_for_deliveries(gateway, ada, session_id)).state is DeliveryState.SENT, (
        "the target is reachable again"
    )


async def test_a_delivery_sent_again_does_not_overtake_an_active_send(start_gateway: StartGateway) -> None:
    may_send, second_started = asyncio.Event(), asyncio.Event()
    arrived: list[str] = []
    errors = [SendRejected("not now")]

    async def send(message: OutgoingMessage) -> str:
        if errors:
            raise errors.pop()
        if "two" in message.body:
            second_started.set()
            await may_send.wait()
        arrived.append(message.body)
        return "r"

    loopback = LoopbackAdapter(send)
    gateway = await start_gateway(ScriptedAgent(lambda r: str(r.messages[-1]["content"])), loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback, "one")
    failed = (await list_statuses(gateway, ada, session_id))[0]
    for text in ("two", "three"):
        await wait_for_turn(gateway, (await loopback.say(text)).turn_id)
    await second_started.wait()
    await gateway.store.aio.seen_by(ada.principal).part(DeliveryOperations).send_again(session_id, failed.id)
    gateway.outbox.wake()
    await asyncio.sleep(0.1)  # time in which it could overtake
    may_send.set()
    await wait_for_deliveries(gateway, ada, session_id)
    assert arrived == ["two", "one", "three"]


async def test_a_follower_gets_every_state_of_a_delivery_also_when_it_is_sent_again(
    start_gateway: StartGateway,
) -> None:
    may_send = asyncio.Event()
    errors = [SendRejected("not now")]

    async def send(_message: OutgoingMessage) -> str:
        await may_send.wait()
        if errors:
            raise errors.pop()
        return "r"

    loopback = LoopbackAdapter(send)
    gateway = await start_gateway(loopback=loopback)
    first = await loopback.say("hello")
    ada = await open_web_account(gateway, chat_source())
    session_id = first.session_id or ""
    states: list[DeliveryState] = []
    async with asyncio.timeout(TIMEOUT_SECONDS):
        async for item in gateway.feed.follow(ada.principal, session_id, after=0, recent_deliveries=10):
            if not isinstance(item, DeliveryChanged):
                continue
            states.append(item.delivery.state)
            if item.delivery.state is DeliveryState.FAILED:
                await (
                    gateway.store.aio.seen_by(ada.principal)
                    .part(DeliveryOperations)
                    .send_again(session_id, item.delivery.id)
                )
                gateway.outbox.wake()
            elif item.delivery.state is DeliveryState.SENT:
                break
            may_send.set()
    assert states[0] in {DeliveryState.PENDING, DeliveryState.SENDING}
    assert [state for state in states if state in {DeliveryState.FAILED, DeliveryState.SENT}] == [
        DeliveryState.FAILED,
        DeliveryState.SENT,
    ]


@pytest.mark.both_engines
async def test_a_follower_learns_that_a_sent_message_has_failed_later(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter(FailingTransport())
    gateway = await start_gateway(loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    seen: list[DeliveryStatus] = []
    async with asyncio.timeout(TIMEOUT_SECONDS):
        async for item in gateway.feed.follow(ada.principal, session_id, after=0, recent_deliveries=10):
            if not isinstance(item, DeliveryChanged):
                continue
            seen.append(item.delivery)
            if item.delivery.state is DeliveryState.FAILED:
                break
            if item.delivery.state is DeliveryState.SENT:
                key = f"{item.delivery.id}.1"
                assert await gateway.outbox.report_failed((loopback.platform, ""), key, SendRejected("blocked"))
    assert [each.state for each in seen[-2:]] == [DeliveryState.SENT, DeliveryState.FAILED]
    assert (seen[-1].error, seen[-1].ended_at is not None) == ("blocked", True)


async def test_a_follower_tracks_only_the_newest_failed_deliveries(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send(_message: OutgoingMessage) -> str:
        raise SendRejected("never")

    monkeypatch.setattr(follower, "MAX_TRACKED_DELIVERIES", 2)
    original, tracked_counts = delivery_queries.list_statuses, list[int]()

    def count_tracked(tx: Transaction, numbers: Sequence[int]) -> list[tuple[int, DeliveryStatus]]:
        tracked_counts.append(len(numbers))
        return original(tx, numbers)

    monkeypatch.setattr(delivery_queries, "list_statuses", count_tracked)
    loopback = LoopbackAdapter(send)
    gateway = await start_gateway(loopback=loopback)
    first = await loopback.say("hello")
    ada = await open_web_account(gateway, chat_source())
    failed = set()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        async for item in gateway.feed.follow(ada.principal, first.session_id or "", after=0, recent_deliveries=10):
            if isinstance(item, DeliveryChanged) and item.delivery.state is DeliveryState.FAILED:
                failed.add(item.delivery.id)
                if len(failed) == 5:
                    break
                await loopback.say("once more")
    assert max(tracked_counts) == 2

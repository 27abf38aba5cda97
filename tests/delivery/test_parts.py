"""The parts of a delivery: each is sent once, and sending goes on at the one that failed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import ChatMovedAway, SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.delivery import parts, table as deliveries
from palaver.delivery.model import Capabilities, Pace
from palaver.delivery.view import DeliveryOperations
from palaver.media.attachments import Attachments
from palaver.platforms.loopback import LOOPBACK, RECOGNIZES_KEYS, LoopbackAdapter
from palaver.sessions.delivery import Button, DeliveryPart, DeliveryState
from palaver.testing import FakeClock, ScriptedAgent
from support.deliveries import (
    FailingTransport,
    claim_as_dead_process,
    list_deliveries,
    list_parts,
    list_statuses,
    start_in_chat_and_web,
    wait_for_deliveries,
    wait_for_delivery,
)
from support.gateway import wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.gateway.gateway import Gateway
    from palaver.sessions.delivery import Delivery
    from support.gateway import StartGateway

ANSWER = "one\n\ntwo\n\nthree"
SENT, UNCERTAIN, PENDING, FAILED = (
    DeliveryState.SENT,
    DeliveryState.UNCERTAIN,
    DeliveryState.PENDING,
    DeliveryState.FAILED,
)


class ParagraphAdapter(LoopbackAdapter):
    """Sends every paragraph as a message of its own."""

    def render(self, markdown: str) -> list[str]:
        return markdown.split("\n\n")


@pytest.fixture(autouse=True)
def _retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "compute_retry_delay", lambda *_args, **_kwargs: timedelta(milliseconds=1))


async def deliver(gateway: Gateway, loopback: LoopbackAdapter, text: str = "hello") -> Delivery:
    """Ask something, and wait until its answer is delivered or not."""
    receipt = await loopback.say(text)
    return await wait_for_delivery(gateway, receipt.session_id)


async def list_states(gateway: Gateway, delivery: Delivery) -> list[DeliveryState]:
    return [part.state for part in await list_parts(gateway, delivery.id)]


async def test_a_long_answer_is_sent_in_parts_with_keys_of_their_own(start_gateway: StartGateway) -> None:
    transport = FailingTransport()
    loopback = ParagraphAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, transport.arrived) == (SENT, ["one", "two", "three"])
    assert transport.attempted == [f"{delivery.id}.{number}" for number in (1, 2, 3)]
    assert [message.reply_to for message in loopback.sent] == ["m1", None, None]
    parts = await list_parts(gateway, delivery.id)
    assert [(part.body, part.sent_message_id) for part in parts] == [("one", "r1"), ("two", "r2"), ("three", "r3")]


@pytest.mark.parametrize(
    ("outcomes", "attempted", "arrived", "state", "states"),
    [
        ([None, SendRetryable("busy")], [1, 2, 2, 3], ["one", "two", "three"], SENT, [SENT, SENT, SENT]),
        ([None, SendUncertain("?")], [1, 2, 3], ["one", "three"], UNCERTAIN, [SENT, UNCERTAIN, SENT]),
        ([None, None, OSError()], [1, 2, 3], ["one", "two"], UNCERTAIN, [SENT, SENT, UNCERTAIN]),
        ([None, SendRejected("no")], [1, 2], ["one"], FAILED, [SENT, FAILED, PENDING]),
        ([None, TargetUnreachable("gone")], [1, 2], ["one"], FAILED, [SENT, FAILED, PENDING]),
        ([SendUncertain("?"), SendRejected("no")], [1, 2], [], FAILED, [UNCERTAIN, FAILED, PENDING]),
    ],
    ids=["429", "uncertain", "connection_cut", "rejected", "unreachable", "uncertain_then_rejected"],
)
async def test_sending_goes_on_at_the_part_that_failed(
    start_gateway: StartGateway,
    outcomes: list[Exception | None],
    attempted: list[int],
    arrived: list[str],
    state: DeliveryState,
    states: list[DeliveryState],
) -> None:
    transport = FailingTransport(*outcomes)
    loopback = ParagraphAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    assert [int(key.rpartition(".")[2]) for key in transport.attempted] == attempted
    assert (transport.arrived, delivery.state) == (arrived, state)
    assert await list_states(gateway, delivery) == states


async def test_attempts_are_counted_from_the_last_part_that_has_arrived(start_gateway: StartGateway) -> None:
    busy = [SendRetryable("busy")] * 7
    transport = FailingTransport(None, *busy, None, *busy)
    loopback = ParagraphAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    assert (await deliver(gateway, loopback)).state is SENT
    assert transport.arrived == ["one", "two", "three"]


@pytest.mark.parametrize("outcome", [SendRejected("no"), SendUncertain("?")])
async def test_only_the_parts_that_have_not_arrived_are_sent_again(
    start_gateway: StartGateway, outcome: Exception
) -> None:
    transport = FailingTransport(None, outcome)
    loopback = ParagraphAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    ada, session_id = await start_in_chat_and_web(gateway, loopback)
    (failed,) = await list_statuses(gateway, ada, session_id)
    await gateway.store.aio.seen_by(ada.principal).part(DeliveryOperations).send_again(session_id, failed.id)
    gateway.outbox.wake()
    assert (await wait_for_deliveries(gateway, ada, session_id)).state is SENT
    assert sorted(transport.arrived) == ["one", "three", "two"], "none of them twice"


# -- keys ------------------------------------------------------------------------------------------------------


async def test_a_platform_with_keys_gets_an_uncertain_part_again_and_the_others_once(
    start_gateway: StartGateway,
) -> None:
    transport = FailingTransport(None, SendUncertain("the answer was lost"))
    loopback = ParagraphAdapter(transport, capabilities=RECOGNIZES_KEYS)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    assert delivery.state is SENT
    assert transport.attempted == [f"{delivery.id}.{number}" for number in (1, 2, 2, 3)]


async def test_a_key_protects_only_for_its_lifetime(start_gateway: StartGateway) -> None:
    clock = FakeClock()
    loopback = ParagraphAdapter(FailingTransport(), capabilities=RECOGNIZES_KEYS)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback, clock=clock)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    await gateway.accounts.stop()
    now = to_micros(clock.now())

    def die_while_sending_the_first_part(tx: Transaction) -> None:
        (lease,) = deliveries.claim_due(tx, "other-host/1/1/dead", now, now - 1, 9, (LOOPBACK, ""))
        parts = [DeliveryPart(no=no, body=body) for no, body in enumerate(ANSWER.split("\n\n"), 1)]
        deliveries.add_parts(tx, lease.no, parts)
        deliveries.mark_sending(tx, lease.no, 1, now)

    await gateway.store.engine.arun(Write(die_while_sending_the_first_part))
    clock.advance(days=2)
    transport = FailingTransport()
    other = await start_gateway(loopback=ParagraphAdapter(transport, capabilities=RECOGNIZES_KEYS), clock=clock)
    delivery = await wait_for_delivery(other, receipt.session_id)
    assert (delivery.state, transport.arrived) == (UNCERTAIN, ["two", "three"])


@pytest.mark.both_engines
async def test_a_process_that_dies_before_it_sends_anything_leaves_nothing_uncertain(
    start_gateway: StartGateway,
) -> None:
    loopback = ParagraphAdapter(FailingTransport())
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    await gateway.outbox.stop()
    receipt = await loopback.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(Write(lambda tx: claim_as_dead_process(tx, now, is_sending=False)))
    await gateway.accounts.stop()
    transport = FailingTransport()
    other = await start_gateway(loopback=ParagraphAdapter(transport))
    assert (await wait_for_delivery(other, receipt.session_id)).state is SENT
    assert transport.arrived == ["one", "two", "three"]


# -- confirmations ----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_an_echo_turns_an_uncertain_delivery_into_a_sent_one(start_gateway: StartGateway) -> None:
    loopback = ParagraphAdapter(FailingTransport(SendUncertain("?"), None, SendUncertain("?")))
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    account = (LOOPBACK, "")
    for key in ("d_0000000000000000.1", f"{delivery.id}.9", delivery.id, "t_1.p", "anything"):
        await gateway.outbox.confirm(account, key, "x")
    await gateway.outbox.confirm((LOOPBACK, "another bot"), f"{delivery.id}.1", "x")
    await gateway.outbox.confirm(account, f"{delivery.id}.1", "e1")
    await gateway.outbox.confirm(account, f"{delivery.id}.1", "late")
    (current,) = await list_deliveries(gateway, delivery.session_id)
    assert (current.state, await list_states(gateway, delivery)) == (UNCERTAIN, [SENT, SENT, UNCERTAIN])
    await gateway.outbox.confirm(account, f"{delivery.id}.3", "e3")
    (current,) = await list_deliveries(gateway, delivery.session_id)
    assert (current.state, current.error) == (SENT, None)
    assert [part.sent_message_id for part in await list_parts(gateway, delivery.id)] == ["e1", "r1", "e3"]


async def test_an_echo_before_the_answer_of_the_platform_is_the_outcome(start_gateway: StartGateway) -> None:
    confirmed = asyncio.Event()

    async def send(message: OutgoingMessage) -> str | None:
        if not confirmed.is_set():
            await gateway.outbox.confirm((LOOPBACK, ""), message.key, "echo")
            confirmed.set()
            raise SendUncertain("the answer was lost")
        return "r"

    loopback = ParagraphAdapter(send)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    assert delivery.state is SENT
    assert [part.sent_message_id for part in await list_parts(gateway, delivery.id)] == ["echo", "r", "r"]


# -- failures after the platform had taken a message -----------------------------------------------------------


async def test_a_part_that_fails_later_fails_its_delivery_and_can_be_sent_again(start_gateway: StartGateway) -> None:
    transport = FailingTransport()
    loopback = ParagraphAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    account, key = (LOOPBACK, ""), f"{delivery.id}.2"
    error = SendRejected("The person has blocked us.")
    for other in ("d_0000000000000000.1", f"{delivery.id}.9", "t_1.p", "anything"):
        assert await gateway.outbox.report_failed(account, other, error)
    assert await gateway.outbox.report_failed((LOOPBACK, "another bot"), key, error)
    assert (await list_deliveries(gateway, delivery.session_id))[0].state is SENT
    for _ in range(2):  # it may be told twice
        assert await gateway.outbox.report_failed(account, key, error)
    await gateway.outbox.confirm(account, key, "late")  # an older receipt that comes after it
    (current,) = await list_deliveries(gateway, delivery.session_id)
    assert (current.state, current.error) == (FAILED, "The person has blocked us.")
    assert await list_states(gateway, delivery) == [SENT, FAILED, SENT]


async def test_an_unreachable_person_is_not_written_to_until_they_write(start_gateway: StartGateway) -> None:
    loopback = ParagraphAdapter(FailingTransport())
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    await gateway.outbox.report_failed((LOOPBACK, ""), f"{delivery.id}.1", TargetUnreachable("gone"))
    dead = await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT address, reason FROM dead_target")))
    assert dead == [(str(delivery.address), "gone")]


async def test_a_failure_before_the_answer_of_the_platform_is_told_again(start_gateway: StartGateway) -> None:
    reports: list[bool] = []

    async def send(message: OutgoingMessage) -> str | None:
        reports.append(await gateway.outbox.report_failed((LOOPBACK, ""), message.key, SendRejected("no")))
        return "r"

    loopback = ParagraphAdapter(send)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    delivery = await deliver(gateway, loopback)
    assert (delivery.state, reports) == (SENT, [False, False, False])
    assert await gateway.outbox.report_failed((LOOPBACK, ""), f"{delivery.id}.1", SendRejected("no"))
    assert (await list_deliveries(gateway, delivery.session_id))[0].state is FAILED


# -- pace ------------------------------------------------------------------------------------------------------


async def test_the_parts_of_an_answer_keep_to_the_pace_of_the_chat(start_gateway: StartGateway) -> None:
    times: list[float] = []

    async def send(_message: OutgoingMessage) -> str | None:
        times.append(asyncio.get_running_loop().time())
        return None

    loopback = ParagraphAdapter(send, capabilities=Capabilities(pace_per_chat=Pace(0.1)))
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    start = asyncio.get_running_loop().time()
    assert (await deliver(gateway, loopback)).state is SENT
    assert len(times) == 3
    assert times[-1] - start > 0.19  # the third waits for two pauses, however late the calls themselves come


async def test_a_delivery_that_has_to_wait_long_goes_back_and_does_not_block_other_chats(
    start_gateway: StartGateway,
) -> None:
    transport = FailingTransport()
    loopback = ParagraphAdapter(transport, capabilities=Capabilities(pace_per_chat=Pace(1000.0)))
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    receipt = await loopback.say("hello")
    await wait_until(lambda: transport.arrived == ["one"])
    await loopback.say("hello", user="bob")
    await wait_until(lambda: transport.arrived == ["one", "one"])
    await wait_until(lambda: not gateway.outbox._active_sends)
    (delivery,) = await list_deliveries(gateway, receipt.session_id)
    assert (delivery.state, delivery.attempt) == (PENDING, 0), "waiting is not an attempt"
    assert await list_states(gateway, delivery) == [SENT, PENDING, PENDING]


async def test_a_pause_of_the_whole_account_holds_for_every_chat(start_gateway: StartGateway) -> None:
    sent: list[str] = []

    async def send(message: OutgoingMessage) -> str | None:
        sent.append(message.address.chat_id)
        raise SendRetryable("slow down", retry_after=3600, whole_account=True)

    loopback = LoopbackAdapter(send)
    gateway = await start_gateway(loopback=loopback)
    await loopback.say("hello")
    await wait_until(lambda: sent and not gateway.outbox._active_sends)
    receipt = await loopback.say("hello", user="bob")
    await wait_for_turn(gateway, receipt.turn_id)
    await gateway.outbox._start_due_sends()
    assert sent == ["ada"]


# -- moved chats -----------------------------------------------------------------------------------------------


async def test_an_answer_to_a_chat_that_has_moved_arrives_there_in_order(start_gateway: StartGateway) -> None:
    arrived: list[tuple[str, str]] = []

    async def send(message: OutgoingMessage) -> str | None:
        if message.address.chat_id == "old" and len(arrived) >= 1:
            raise ChatMovedAway(new_chat_id="new")
        arrived.append((message.address.chat_id, message.body))
        return None

    loopback = ParagraphAdapter(send)
    gateway = await start_gateway(ScriptedAgent(ANSWER), loopback=loopback)
    receipt = await loopback.say("hello", chat="old")
    await wait_for_delivery(gateway, receipt.session_id)
    later = await loopback.say("and now?", chat="new")
    assert later.session_id == receipt.session_id, "the conversation has moved too"
    await wait_until(lambda: len(arrived) == 6)
    assert arrived == [("old", "one"), *[("new", text) for text in ("two", "three", "one", "two", "three")]]


# -- files -----------------------------------------------------------------------------------------------------


async def enqueue_with_file(gateway: Gateway, files: Attachments, loopback: LoopbackAdapter) -> None:
    receipt = await loopback.say("hello")
    await wait_for_delivery(gateway, receipt.session_id)
    person = await gateway.store.aio.get_or_create_person(loopback.get_source())

    async def chunks() -> AsyncIterator[bytes]:
        yield b"some text"

    file = await files.receive(person.principal, "notes.txt", chunks())
    address = str(loopback.sent[0].address)
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(
        Write(lambda tx: deliveries.enqueue(tx, address, "Here it is.", now, attachment_ids=[file.id]))
    )


@pytest.mark.both_engines
@pytest.mark.parametrize("max_file_bytes", [100, 3, 0])
async def test_a_file_is_sent_after_the_text_or_named_in_it(
    start_gateway: StartGateway, tmp_path: Path, max_file_bytes: int
) -> None:
    contents: list[bytes] = []

    async def send(message: OutgoingMessage) -> str | None:
        if message.file is not None:
            contents.append(b"".join([chunk async for chunk in message.file.read()]))
        return None

    loopback = LoopbackAdapter(send, capabilities=Capabilities(max_file_bytes=max_file_bytes))
    gateway = await start_gateway(loopback=loopback)
    files = Attachments(gateway.store, tmp_path / "files")
    gateway.outbox._files = files
    await enqueue_with_file(gateway, files, loopback)
    sent = await wait_until(lambda: len(loopback.sent) >= 2 + (max_file_bytes == 100) and loopback.sent[1:])
    if max_file_bytes == 100:
        assert [message.body for message in sent] == ["Here it is.", ""]
        assert (sent[1].file.name, sent[1].file.size, contents) == ("notes.txt", 9, [b"some text"])
    else:
        reason = "is too large for this chat (0.0 MB)" if max_file_bytes else "can't be sent to this chat"
        assert [message.body for message in sent] == [
            f"Here it is.\n\n(The file “notes.txt” {reason}. Open the conversation on the web to get it.)"
        ]


# -- rendering and buttons -------------------------------------------------------------------------------------


async def test_an_answer_has_a_bounded_number_of_parts(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_TEXT_PARTS", 3)
    transport = FailingTransport()
    loopback = ParagraphAdapter(transport)
    gateway = await start_gateway(ScriptedAgent("\n\n".join("abcdef")), loopback=loopback)
    await deliver(gateway, loopback)
    assert transport.arrived == ["a", "b", parts.TOO_LONG]


async def test_an_answer_that_cannot_be_rendered_fails_visibly(start_gateway: StartGateway) -> None:
    class BrokenAdapter(LoopbackAdapter):
        def render(self, markdown: str) -> list[str]:
            raise ZeroDivisionError

    loopback = BrokenAdapter()
    gateway = await start_gateway(loopback=loopback)
    delivery = await deliver(gateway, loopback)
    assert (delivery.state, "ZeroDivisionError" in (delivery.error or "")) == (FAILED, True)
    assert loopback.sent == []


@pytest.mark.parametrize("max_buttons", [0, 1])
async def test_a_failed_answer_offers_to_retry(start_gateway: StartGateway, max_buttons: int) -> None:
    def fail(_request: object) -> str:
        raise SendRejected("broken")

    loopback = ParagraphAdapter(capabilities=replace(RECOGNIZES_KEYS, max_buttons=max_buttons))
    gateway = await start_gateway(ScriptedAgent(fail), loopback=loopback)
    receipt = await loopback.say("hello")
    await wait_for_delivery(gateway, receipt.session_id)
    assert list(loopback.sent[-1].buttons) == [Button("Retry", f"retry:{receipt.turn_id}")][:max_buttons]

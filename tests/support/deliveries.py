"""Deliveries in tests: a transport that fails on demand, waiting for deliveries, people in a chat and on the web."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.delivery import table as deliveries
from palaver.delivery.view import DeliveryOperations
from palaver.platforms.loopback import LOOPBACK
from palaver.sessions import delivery_queries, table as sessions
from palaver.sessions.delivery import Address, DeliveryPart, DeliveryState
from support.gateway import TIMEOUT_SECONDS, wait_for_turn
from support.linked_accounts import open_web_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.delivery.table import DeliveryLease
    from palaver.gateway.gateway import Gateway
    from palaver.people.model import Person
    from palaver.platforms.loopback import LoopbackAdapter
    from palaver.sessions.delivery import Delivery, DeliveryStatus

OPEN_STATES = {DeliveryState.PENDING, DeliveryState.SENDING}


class FailingTransport:
    """The network behind a loopback adapter: raises the given errors one after the other, then delivers."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.attempted: list[str] = []  # keys of messages
        self.arrived: list[str] = []  # texts

    async def __call__(self, message: OutgoingMessage) -> str | None:
        self.attempted.append(message.key)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        self.arrived.append(message.body)
        return f"r{len(self.arrived)}"


async def list_deliveries(gateway: Gateway, session_id: str | None) -> list[Delivery]:
    return await gateway.store.engine.arun(
        Read(lambda tx: delivery_queries.list_for_session(tx, sessions.get_no(tx, session_id or "")))
    )


async def list_parts(gateway: Gateway, delivery_id: str) -> list[DeliveryPart]:
    """List the parts of a delivery."""

    def read(tx: Transaction) -> list[DeliveryPart]:
        row = tx.fetch_one("SELECT no FROM delivery WHERE id = $1", delivery_id)
        return deliveries.list_parts(tx, row[0]) if row else []

    return await gateway.store.engine.arun(Read(read))


def claim_as_dead_process(tx: Transaction, now: int, *, is_sending: bool) -> list[DeliveryLease]:
    """Claim everything on the loopback platform as a process that died then, or while it was sending the first part."""
    claimed = deliveries.claim_due(tx, "other-host/1/1/dead", 2**60, now - 1, 9, (LOOPBACK, ""))
    for lease in claimed:
        if is_sending:
            if not lease.parts:
                deliveries.add_parts(tx, lease.no, [DeliveryPart(no=1, body=lease.delivery.content)])
            deliveries.mark_sending(tx, lease.no, 1, now)
    return claimed


async def wait_for_delivery(gateway: Gateway, session_id: str | None) -> Delivery:
    """Wait until the newest delivery of a session has ended."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            found = await list_deliveries(gateway, session_id)
            if found and found[0].state not in OPEN_STATES:
                return found[0]
            await asyncio.sleep(0.005)


def chat_source(user: str = "ada") -> SessionSource:
    """Return the direct messages of a person on the loopback platform."""
    return SessionSource(LOOPBACK, user, user_id=user, user_name=user.title())


async def list_statuses(gateway: Gateway, person: Person, session_id: str | None) -> Sequence[DeliveryStatus]:
    return await gateway.store.aio.seen_by(person.principal).part(DeliveryOperations).list(session_id or "")


async def wait_for_deliveries(gateway: Gateway, person: Person, session_id: str | None) -> DeliveryStatus:
    """Wait until all deliveries of a conversation have ended; return the newest."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            statuses = await list_statuses(gateway, person, session_id)
            if statuses and not any(status.state in OPEN_STATES for status in statuses):
                return statuses[-1]
            await asyncio.sleep(0.005)


async def start_in_chat_and_web(gateway: Gateway, loopback: LoopbackAdapter, text: str = "hello") -> tuple[Person, str]:
    """Let Ada write in a chat and open an account on the web; return her and her conversation."""
    receipt = await loopback.say(text, message_id="m0")
    person = await open_web_account(gateway, chat_source())
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_for_deliveries(gateway, person, receipt.session_id)
    return person, receipt.session_id or ""


def add_undelivered(
    store: SessionStore,
    source: SessionSource,
    state: DeliveryState = DeliveryState.UNCERTAIN,
    *,
    text: str = "Hello to you",
    error: str | None = "The line broke.",
    ago: timedelta = timedelta(),
) -> str:
    """Add a conversation whose answer has failed, or may have arrived; return the id of its delivery."""
    store.record_user_message(source, "hello")
    session_id = store.get_or_create_session(source).session_id
    now = to_micros(store.clock.now() - ago)

    def add(tx: Transaction) -> str:
        session_no = sessions.get_no(tx, session_id)
        address = str(Address.from_source(source))
        delivery_id = deliveries.enqueue(tx, address, text, now, session_no=session_no, message_seq=2)
        [(no,)] = tx.fetch_all("SELECT no FROM delivery WHERE id = $1", delivery_id)
        deliveries.add_parts(tx, no, [DeliveryPart(no=1, body=text)])
        deliveries.save_outcome(tx, no, DeliveryPart(no=1, body=text, state=state, first_sent_at=now))
        end = "UPDATE delivery SET state = $2, due_at = NULL, ended_at = $3, error = $4 WHERE no = $1"
        tx.execute(end, no, state.value, now, error)
        return delivery_id

    return store.engine.run(Write(add))

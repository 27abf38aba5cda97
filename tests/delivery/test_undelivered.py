"""What failed or may not have arrived: people are told once, see what is theirs, and settle it, many at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidInput, NotFound, NothingToDo
from palaver.core.source import Platform
from palaver.delivery import outbox
from palaver.delivery.health import load_health
from palaver.delivery.view import DeliveryOperations
from palaver.people.model import Principal, Role
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryKind, DeliveryState, Resolution
from palaver.testing import FakeClock, ScriptedAgent
from support.deliveries import FailingTransport, add_undelivered, list_deliveries, wait_for_delivery
from support.gateway import wait_for_turn, wait_until
from support.messaging import add_writer

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Row
    from palaver.sessions.view import SessionView
    from support.gateway import StartGateway

pytestmark = pytest.mark.both_engines

ADA = SessionSource("telegram", "1", user_id="1", user_name="Ada")
BEN = SessionSource("email", "ben@example.org", thread_id="t1", user_id="ben@example.org", user_name="Ben")
UNCERTAIN, FAILED = DeliveryState.UNCERTAIN, DeliveryState.FAILED


def list_ids(view: SessionView, **filters: object) -> list[str]:
    return [each.id for each in view.part(DeliveryOperations).list_undelivered(**filters)]  # type: ignore[arg-type]


def see_all(store: SessionStore) -> SessionView:
    return store.seen_by(store.get_owner().principal, everything=True)


def fetch(store: SessionStore, delivery_id: str) -> Row:
    sql = """SELECT d.state, p.state, d.due_at IS NOT NULL FROM delivery d
        JOIN delivery_part p ON p.delivery_no = d.no WHERE d.id = $1"""
    [row] = store.engine.run(Read(lambda tx: tx.fetch_all(sql, delivery_id)))
    return row


def test_members_see_and_settle_only_their_own(store: SessionStore) -> None:
    ada, ben = add_writer(store, ADA), add_writer(store, BEN)
    of_ada, of_ben = add_undelivered(store, ADA), add_undelivered(store, BEN)
    assert list_ids(store.seen_by(ada)) == [of_ada]
    assert list_ids(store.seen_by(ben)) == [of_ben]
    operations = store.seen_by(ada).part(DeliveryOperations)
    for delivery_id in (of_ben, "d_0", "d_\0"):
        with pytest.raises(NotFound):
            operations.get_undelivered(delivery_id)
        for resolution in Resolution:
            with pytest.raises(NotFound):
                operations.resolve(delivery_id, resolution)
    assert fetch(store, of_ben)[0] == "uncertain"
    assert operations.get_undelivered(of_ada).target == "telegram:1"
    assert list_ids(store.seen_by(Principal(ada.person_id, Role.OWNER))) == [of_ada], "unless they ask for everything"
    assert set(list_ids(see_all(store))) == {of_ada, of_ben}


def test_the_list_is_filtered_and_paged(store: SessionStore) -> None:
    old = add_undelivered(store, ADA, FAILED, ago=timedelta(days=40))
    ids = [
        add_undelivered(store, source, state, ago=timedelta(hours=hours))
        for hours, (source, state) in enumerate([(ADA, UNCERTAIN), (BEN, UNCERTAIN), (ADA, FAILED)])
    ]
    view, now = see_all(store), store.clock.now()
    assert list_ids(view) == ids
    assert list_ids(view, state="failed") == [ids[2]]
    assert list_ids(view, platform="email") == [ids[1]]
    assert list_ids(view, target="telegram:1") == [ids[0], ids[2]]
    assert list_ids(view, after=now - timedelta(minutes=90)) == ids[:2]
    assert list_ids(view, before=now - timedelta(minutes=30)) == ids[1:]
    assert list_ids(view, after=now - timedelta(days=50)) == [*ids, old]
    assert list_ids(view, platform="\0") == []
    operations = view.part(DeliveryOperations)
    first = operations.list_undelivered(limit=2)
    second = operations.list_undelivered(limit=2, cursor=first.cursor)
    assert ([each.id for each in [*first, *second]], second.cursor) == (ids, None)
    for options in (
        {"cursor": "x"},
        {"cursor": "1-" + "9" * 30},
        {"target": "telegram"},
        {"target": "?"},
        {"limit": 0},
    ):
        with pytest.raises(InvalidInput):
            operations.list_undelivered(**options)


@pytest.mark.parametrize(
    ("resolution", "expected"),
    [
        (Resolution.RESEND, ("pending", "pending", 1)),
        (Resolution.SENT, ("sent", "sent", 0)),
        (Resolution.NOT_SENT, ("failed", "failed", 0)),
        (Resolution.DISMISS, ("uncertain", "uncertain", 0)),
    ],
)
def test_an_uncertain_message_is_settled_once(
    store: SessionStore, resolution: Resolution, expected: tuple[str, str, int]
) -> None:
    delivery_id = add_undelivered(store, ADA)
    operations = see_all(store).part(DeliveryOperations)
    operations.resolve(delivery_id, resolution)
    assert tuple(fetch(store, delivery_id)) == expected
    with pytest.raises(NothingToDo):  # another owner, at the same time
        operations.resolve(delivery_id, resolution)
    assert tuple(fetch(store, delivery_id)) == expected
    assert list_ids(see_all(store)) == ([delivery_id] if resolution is Resolution.NOT_SENT else [])
    [health] = load_health(store, [(Platform.TELEGRAM, "")])
    assert (health.uncertain, health.failed) == (0, int(resolution is Resolution.NOT_SENT))


def test_what_certainly_failed_is_not_marked_as_sent(store: SessionStore) -> None:
    delivery_id = add_undelivered(store, ADA, FAILED)
    operations = see_all(store).part(DeliveryOperations)
    for resolution in (Resolution.SENT, Resolution.NOT_SENT):
        with pytest.raises(NothingToDo):
            operations.resolve(delivery_id, resolution)
    operations.resolve(delivery_id, Resolution.RESEND)
    assert fetch(store, delivery_id)[0] == "pending"


async def test_two_owners_who_send_the_same_message_again_send_it_once(start_gateway: StartGateway) -> None:
    transport = FailingTransport(OSError("the line broke"))
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    owner = await asyncio.to_thread(gateway.store.get_owner)
    operations = gateway.store.aio.seen_by(owner.principal, everything=True).part(DeliveryOperations)
    outcomes = await asyncio.gather(
        *(operations.resolve(delivery.id, Resolution.RESEND) for _ in range(2)), return_exceptions=True
    )
    assert {type(outcome) for outcome in outcomes} == {type(None), NothingToDo}
    gateway.outbox.wake()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    assert transport.arrived == ["Done."]


async def test_people_are_told_once_of_an_answer_that_may_not_have_arrived(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RECOVERY_SECONDS", 0.02)
    clock = FakeClock()
    transport = FailingTransport(*[OSError("the line broke")] * 3)  # two answers, and the notice about them
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(ScriptedAgent(lambda _: "Secret"), loopback=loopback, clock=clock)
    for text in ("one", "two"):
        receipt = await loopback.say(text)
        await wait_for_turn(gateway, receipt.turn_id)
        assert (await wait_for_delivery(gateway, receipt.session_id)).state is UNCERTAIN
    await gateway.outbox._report_uncertain()
    assert len(transport.attempted) == 2, "not at once: an echo may come"
    clock.advance(seconds=outbox.REPORT_DELAY_SECONDS + 1)
    await wait_until(lambda: len(transport.attempted) == 3)
    clock.advance(hours=1)
    for _ in range(3):
        await gateway.outbox._report_uncertain()
    notices = [each for each in await list_deliveries(gateway, receipt.session_id) if each.kind is DeliveryKind.NOTICE]
    assert ["2 of my answers" in each.content for each in notices] == [True], "a lost notice makes no further one"
    assert "Secret" not in notices[0].content


async def test_an_answer_that_was_confirmed_meanwhile_is_not_reported(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    transport = FailingTransport(OSError("the line broke"))
    loopback = LoopbackAdapter(transport)
    gateway = await start_gateway(loopback=loopback, clock=clock)
    receipt = await loopback.say("hello")
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    await gateway.outbox.confirm((loopback.platform, ""), f"{delivery.id}.1", "r1")
    clock.advance(seconds=outbox.REPORT_DELAY_SECONDS + 1)
    await gateway.outbox._report_uncertain()
    assert len(await list_deliveries(gateway, receipt.session_id)) == 1

"""What a platform hands over late, after an outage or a restart: all of it is taken, and answered in order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, ResetPolicy
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.inbox.message_queue import RECOVERY_TIME
from palaver.people.model import Role
from palaver.sessions import turn_leases
from palaver.sessions.inbound import MAX_LIVE_AGE, Outcome
from palaver.sessions.policy import ResetMode
from palaver.sessions.turn import BusyPolicy
from support.inbox import answer, list_rows, make_dm, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore
    from palaver.inbox import Inbox
    from palaver.testing import FakeClock

MINUTE = timedelta(minutes=1)


async def send(inbox: Inbox, number: int, user: str = "ada", **fields: Any) -> Outcome:
    return (await say(inbox, make_dm(user), f"message {number}", f"{user}-{number}", **fields)).outcome


def make_late(clock: FakeClock) -> dict[str, Any]:
    return {"received_at": clock.now(), "receiving_since": clock.now(), "sent_at": clock.now() - MINUTE}


def make_live(clock: FakeClock) -> dict[str, Any]:
    return {"received_at": clock.now(), "receiving_since": clock.now() - MINUTE, "sent_at": clock.now()}


def claim(store: SessionStore, max_turns: int = 9) -> list[str]:
    """Claim turns, and return the messages that they answer."""
    request = turn_leases.ClaimRequest(
        owner="other-host/1/1/worker", lease_until=2**60, max_turns=max_turns, max_running=9, max_running_per_person=9
    )
    leases = store.engine.run(Write(lambda tx: turn_leases.claim_turns(tx, request, to_micros(store.clock.now()))))
    sql = "SELECT content FROM event WHERE session_no = $1 AND seq = $2"
    return [list_rows(store, sql, lease.session_no, lease.input_seq)[0][0] for lease in leases]


def end_running_turns(store: SessionStore) -> None:
    end = "UPDATE turn SET state = 'done', ended_at = 1, lease_owner = NULL WHERE state = 'running'"
    store.engine.run(Write(lambda tx: tx.execute(end)))


@pytest.mark.both_engines
async def test_a_backlog_is_taken_whatever_its_length_and_answered_in_order(
    store: SessionStore, clock: FakeClock
) -> None:
    inbox = make_inbox(store, max_queued=2, messages_per_minute={Role.GUEST: 3})
    outcomes = [await send(inbox, number, **make_late(clock)) for number in range(120)]
    assert outcomes == [Outcome.ACCEPTED, *[Outcome.QUEUED] * 119]
    receipt = await say(inbox, make_dm(), "again", "ada-119", **make_late(clock))
    assert receipt.outcome is Outcome.DUPLICATE
    answered = []
    while texts := claim(store):
        answered += texts
        end_running_turns(store)
    assert answered == [f"message {number}" for number in range(120)]


async def test_the_limits_hold_for_people_who_write_now(store: SessionStore, clock: FakeClock) -> None:
    inbox = make_inbox(store, max_queued=2)
    for number in range(30):
        await send(inbox, number, **make_late(clock))
    live = make_live(clock)
    assert {await send(inbox, number, **live) for number in range(30, 40)} == {Outcome.QUEUED}  # they wait for it, too
    clock.advance(seconds=RECOVERY_TIME.total_seconds())
    later = live | {"received_at": clock.now(), "sent_at": clock.now()}
    assert [await send(inbox, number, **later) for number in range(40, 43)] == [
        Outcome.QUEUED,  # what the outage has left does not count
        Outcome.QUEUED,
        Outcome.REJECTED,
    ]


async def test_what_waits_because_of_a_restart_fills_no_queue(store: SessionStore, clock: FakeClock) -> None:
    inbox = make_inbox(store, max_queued=2)
    live = make_live(clock)
    assert [await send(inbox, number, **live) for number in range(4)] == [
        Outcome.ACCEPTED,
        Outcome.QUEUED,
        Outcome.REJECTED,
        Outcome.REJECTED,
    ]
    clock.advance(seconds=1)
    restarted = make_live(clock) | {"receiving_since": clock.now()}
    assert {await send(inbox, number, **restarted) for number in range(4, 9)} == {Outcome.QUEUED}


@pytest.mark.parametrize(
    ("fields", "is_taken"),
    [
        (lambda now: {}, False),  # the page, the API, a webhook
        (lambda now: {"sent_at": now - MINUTE}, False),
        (lambda now: {"sent_at": now - MINUTE, "receiving_since": now}, True),
        (
            lambda now: {
                "sent_at": now - MINUTE,
                "received_at": now,
                "receiving_since": now,
                "is_sent_at_reliable": False,
            },
            False,
        ),
        (
            lambda now: {"sent_at": (now - MINUTE).replace(tzinfo=None), "receiving_since": now},
            False,
        ),
        (lambda now: {"sent_at": now - MAX_LIVE_AGE, "receiving_since": now - 2 * MINUTE}, False),
        (
            lambda now: {
                "sent_at": now - MAX_LIVE_AGE - timedelta(seconds=1),
                "received_at": now,
                "receiving_since": now - MINUTE,
            },
            True,
        ),
    ],
    ids=["no_platform", "no_account", "before", "sender_clock", "naive", "live", "unreachable"],
)
async def test_only_a_platform_can_say_that_a_message_is_late(
    store: SessionStore, clock: FakeClock, fields: Callable[[datetime], dict[str, Any]], *, is_taken: bool
) -> None:
    inbox = make_inbox(store, max_queued=1, messages_per_minute={Role.GUEST: 3})
    sent = fields(clock.now())
    if "receiving_since" in sent:
        sent["received_at"] = clock.now()
    outcomes = [await send(inbox, number, **sent) for number in range(9)]
    assert (Outcome.REJECTED not in outcomes) == is_taken


@pytest.mark.parametrize("policy", [BusyPolicy.INTERRUPT, BusyPolicy.STEER, BusyPolicy.REJECT])
async def test_no_message_of_a_backlog_ends_the_answer_to_the_one_before(
    store: SessionStore, clock: FakeClock, policy: BusyPolicy
) -> None:
    inbox = make_inbox(store, busy_policy=policy)
    await send(inbox, 0, **make_late(clock))
    assert claim(store) == ["message 0"]
    assert await send(inbox, 1, **make_late(clock)) is Outcome.QUEUED
    assert list_rows(store, "SELECT stop_request, is_steering FROM turn ORDER BY no") == [(None, 0)] * 2


@pytest.mark.both_engines
async def test_a_long_backlog_of_one_person_holds_up_no_other(store: SessionStore, clock: FakeClock) -> None:
    inbox = make_inbox(store)
    for number in range(2 * 50 + 1):  # more than the claim reads at once
        await send(inbox, number, **make_late(clock))
    assert claim(store) == ["message 0"]
    for user in ("bob", "carol"):
        for number in range(2):
            await send(inbox, number, user, **make_live(clock))
    assert claim(store) == ["message 0"] * 2
    end_running_turns(store)
    assert sorted(claim(store)) == ["message 1"] * 3


async def test_a_message_that_was_written_in_time_does_not_start_over(
    open_store: Callable[..., SessionStore], clock: FakeClock
) -> None:
    store = open_store(GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)))
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "hello", "1")
    answer(store, first)
    clock.advance(minutes=50)
    sent_at = clock.now()
    clock.advance(minutes=50)
    late = await say(inbox, make_dm(), "and now?", "2", **(make_late(clock) | {"sent_at": sent_at}))
    assert late.session_id == first.session_id
    answer(store, late)
    clock.advance(minutes=70)
    later = await say(inbox, make_dm(), "much later", "3", **make_live(clock))
    assert later.session_id != first.session_id


async def test_mails_that_wait_for_their_answers_are_no_program_that_answers_answers(
    store: SessionStore, clock: FakeClock
) -> None:
    inbox = make_inbox(store)
    live, late = make_live(clock) | {"may_be_from_bot": True}, make_late(clock) | {"may_be_from_bot": True}
    outcomes = [await send(inbox, number, **late) for number in range(40)]
    assert outcomes == [Outcome.ACCEPTED, *[Outcome.QUEUED] * 39]
    while claim(store):
        end_running_turns(store)
    assert await send(inbox, 40, **live) is Outcome.REJECTED
    assert await send(inbox, 41, **late) is Outcome.ACCEPTED
    assert await send(inbox, 42, **live) is Outcome.QUEUED

"""Two programs that answer each other stop; a person who writes quickly is not held up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.inbox.answer_brake import LIMITS
from palaver.sessions.inbound import Outcome
from support.inbox import answer, list_notices, list_rows, make_dm, make_inbox, say

if TYPE_CHECKING:
    from palaver import SessionSource, SessionStore
    from palaver.inbox import Inbox
    from palaver.sessions.inbound import Receipt
    from palaver.testing import FakeClock

SHORT, LONG = LIMITS


class Robot:
    """Writes to the agent again and again, and lets it answer."""

    def __init__(self, store: SessionStore, clock: FakeClock, **rules: Any) -> None:
        self.store = store
        self.clock = clock
        self.inbox: Inbox = make_inbox(store, **rules)
        self.count = 0

    async def write(self, source: SessionSource | None = None, text: str = "Thank you!", **fields: Any) -> Receipt:
        self.count += 1
        fields = {"may_be_from_bot": True, **fields}
        receipt = await say(self.inbox, source or make_dm(), text, f"m{self.count}", **fields)
        if receipt.turn_id is not None:
            answer(self.store, receipt)
        return receipt

    async def write_often(self, count: int, *, seconds: float = 1, **fields: Any) -> list[Outcome]:
        outcomes = []
        for _ in range(count):
            outcomes.append((await self.write(**fields)).outcome)
            self.clock.advance(seconds=seconds)
        return outcomes


@pytest.mark.both_engines
async def test_a_loop_stops_and_the_chat_is_told_once(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock)
    outcomes = await robot.write_often(SHORT.max_answers + 5)
    assert outcomes == [Outcome.ACCEPTED] * SHORT.max_answers + [Outcome.REJECTED] * 5
    [notice] = list_notices(store)
    assert "10 min" in notice
    assert list_rows(store, "SELECT count(*) FROM turn") == [(SHORT.max_answers,)]


async def test_a_restart_does_not_release_the_brake(store: SessionStore, clock: FakeClock) -> None:
    await Robot(store, clock).write_often(SHORT.max_answers)
    after_restart = Robot(store, clock)
    after_restart.count = 1000
    assert (await after_restart.write()).outcome is Outcome.REJECTED


async def test_a_refused_message_that_comes_again_is_one_message(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock)
    await robot.write_often(SHORT.max_answers)
    refused = await robot.write()
    robot.count -= 1
    again = await robot.write()
    assert (refused.outcome, again.outcome, again.reply) == (Outcome.REJECTED, Outcome.DUPLICATE, refused.reply)


async def test_after_the_pause_a_person_is_answered(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock)
    await robot.write_often(SHORT.max_answers + 1)
    clock.advance(seconds=SHORT.window.total_seconds())
    assert (await robot.write()).outcome is Outcome.ACCEPTED


async def test_a_person_who_writes_every_half_minute_is_not_held_up(store: SessionStore, clock: FakeClock) -> None:
    assert set(await Robot(store, clock).write_often(60, seconds=31)) == {Outcome.ACCEPTED}


async def test_a_slow_loop_stops_too(store: SessionStore, clock: FakeClock) -> None:
    outcomes = await Robot(store, clock).write_often(LONG.max_answers + 3, seconds=300)
    assert outcomes == [Outcome.ACCEPTED] * LONG.max_answers + [Outcome.REJECTED] * 3


async def test_a_loop_that_begins_threads_stops_too(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock)
    outcomes = []
    for number in range(SHORT.max_messages + 2):
        outcomes.append((await robot.write(make_dm(thread_id=f"t{number}"))).outcome)
        clock.advance(seconds=1)
    assert outcomes == [Outcome.ACCEPTED] * SHORT.max_messages + [Outcome.REJECTED] * 2
    assert (await robot.write(make_dm("ben"))).outcome is Outcome.ACCEPTED
    assert len(list_notices(store)) == 1


async def test_each_conversation_is_told(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock)
    for thread in ("a", "b"):
        await robot.write_often(SHORT.max_answers + 2, source=make_dm(thread_id=thread))
    assert len(list_notices(store)) == 2


async def test_other_platforms_have_no_brake(store: SessionStore, clock: FakeClock) -> None:
    outcomes = await Robot(store, clock).write_often(SHORT.max_answers + 5, may_be_from_bot=False)
    assert set(outcomes) == {Outcome.ACCEPTED}


async def test_stop_is_always_possible(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock)
    await robot.write_often(SHORT.max_answers)
    assert (await robot.write(text="/stop")).outcome is Outcome.COMMAND


async def test_a_stranger_is_told_nothing_of_it(store: SessionStore, clock: FakeClock) -> None:
    robot = Robot(store, clock, open_platforms=frozenset())
    outcomes = await robot.write_often(SHORT.max_messages + 2)
    assert not any("not answering here" in notice for notice in list_notices(store))
    assert Outcome.ACCEPTED not in outcomes

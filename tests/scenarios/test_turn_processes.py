"""Several processes on one store: each message is one turn, whoever brings it, works on it, stops or dies."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource, SessionStore
from palaver.domain.draft import PieceKind
from palaver.domain.feed_events import Drafted, Happened, TurnChanged
from palaver.platforms.loopback import LOOPBACK
from palaver.services.live.feed import Feed

sys.path.insert(0, str(Path(__file__).parent))

from harness import rows
from turn_child import answer_to, begins_to_act, has_acted

pytest.register_assert_rewrite("turn_harness")
from turn_harness import KILLED, Nursery, Platform, aftermath, settled, wait_for_rows  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from palaver.domain.feed_events import FeedItem
    from palaver.domain.turn import Turn

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("PALAVER_KILL_SEED", "20261115"))


@pytest.fixture(scope="module")
def started_nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture
def nursery(started_nursery: Nursery) -> Iterator[Nursery]:
    yield started_nursery
    started_nursery.clear()


@pytest.fixture
def platform(store_url: str, tmp_path: Path) -> Platform:
    return Platform(store_url, tmp_path)


def test_a_message_brought_five_times_by_each_of_two_processes_is_one_turn(
    nursery: Nursery, platform: Platform
) -> None:
    workers = [nursery.start(platform.orders()) for _ in range(2)]
    for number in range(10):
        (said,) = platform.say(f"plain {number}", user=f"user{number % 3}")
        for worker in workers:
            worker.tell(*[said.order] * 5)
        for worker in workers:
            for _ in range(5):
                platform.note(worker.wait_for("ack"))
        assert platform.acknowledged[said.id].count("duplicate") == 9
    after = aftermath(platform, *workers)
    after.check()
    assert (len(after.turns), after.states()["done"], len(after.sends)) == (10, 10, 10)


def test_two_processes_share_the_work_and_every_conversation_stays_in_order(
    nursery: Nursery, platform: Platform
) -> None:
    workers = [nursery.start(platform.orders(concurrency=4, pause=0, wire=0.15)) for _ in range(2)]
    for round_ in range(3):
        for user in range(20):
            platform.say(f"plain {user} {round_}", user=f"user{user}")
    for number, said in enumerate(platform.said):
        workers[number % 2].tell(said.order)
    for number in range(len(platform.said)):
        platform.note(workers[number % 2].wait_for("ack"))
    after = aftermath(platform, *workers)
    after.check()
    assert after.states() == {"done": 60}
    assert {turn.attempt for turn in after.turns.values()} == {1}, "no turn is begun by both"
    assert {delivery.state for delivery in after.deliveries} == {"sent"}
    assert all("turn.claimed" in worker.passed for worker in workers)


def test_one_process_takes_over_from_another_that_dies(nursery: Nursery, platform: Platform) -> None:
    dying = nursery.start(platform.orders(pause=0.05))
    platform.say("plain a", "plain b", user="ada")
    platform.say("plain c", "act d", user="bob")
    platform.bring(dying)
    platform.listen(dying)
    survivor = nursery.start(platform.orders())
    wait_for_rows(platform.url, dying.holds("turn"))
    wait_for_rows(platform.url, "SELECT 1 FROM draft")
    dying.kill()
    platform.say("plain e", user="ada")
    platform.say("plain f", user="eve")
    platform.bring(survivor)
    platform.listen(survivor)
    after = aftermath(platform, survivor)
    after.check()
    assert {turn.attempt for turn in after.turns.values()} == {1, 2}, "what was being answered is begun again"


@pytest.mark.parametrize("knows_keys", [False, True], ids=["once", "keyed"])
def test_what_a_dead_process_was_sending_is_settled_by_another_that_never_rests(
    nursery: Nursery, platform: Platform, knows_keys: bool
) -> None:
    platform.knows_keys = knows_keys
    survivor = nursery.start(platform.orders(pause=0, heartbeat=0.3))
    dying = nursery.start(platform.orders(pause=0, dies_at=["delivery.sent", 1]))
    while True:  # until the other was not quicker
        platform.say("plain", user="ada")
        platform.bring(dying)
        try:
            while (heard := dying.hear(patience=0.02)) is not None:
                platform.note(heard)
        except TimeoutError:
            continue
        break
    assert dying.end() == KILLED
    for number in range(500):
        platform.say(f"plain {number}", user=f"user{number % 5}")
        platform.bring(survivor)
        platform.listen(survivor)
        time.sleep(0.01)  # not long enough for a rest
        if not rows(platform.url, dying.holds("delivery")):
            break
    assert not rows(platform.url, dying.holds("delivery"))
    aftermath(platform, survivor).check()


# -- stopping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [5.0, 0.0], ids=["patient", "hasty"])
def test_a_process_told_to_stop_leaves_nothing_half_done(nursery: Nursery, platform: Platform, patience: float) -> None:
    chance = random.Random(SEED)
    for number in range(10):
        print(f"PALAVER_KILL_SEED={SEED}, round {number}")  # noqa: T201  (shown when the test fails)
        worker = nursery.start(platform.orders(patience=patience))
        for user in range(4):
            platform.say(f"plain {number} {user}", f"act {number} {user}", user=f"user{user}")
        platform.bring(worker)
        time.sleep(chance.uniform(0, 0.08))
        os.kill(worker.pid, signal.SIGTERM)
        while (heard := worker.hear()) is not None:
            if "refused" not in heard:  # it no longer listens: the platform brings it to the next
                platform.note(heard)
        assert worker.end() == 0
        assert rows(platform.url, "SELECT id FROM turn WHERE state = 'running'") == []
        assert rows(platform.url, "SELECT id FROM delivery WHERE state = 'sending'") == []
        assert rows(platform.url, "SELECT no FROM draft") == []
    after = settled(nursery, platform)
    after.check()
    assert {delivery.state for delivery in after.deliveries} == {"sent"}
    assert {turn.attempt for turn in after.turns.values()} == {1}, "a turn that was given back has not failed"
    if patience:
        assert after.states() == {"done": 80}


# -- after a death -------------------------------------------------------------------------------------------


def test_two_processes_that_recover_at_once_do_not_both_win(nursery: Nursery, platform: Platform) -> None:
    for number in range(6):
        place = ["turn.acted", 2] if number % 2 else ["delivery.sent", 2]
        dying = nursery.begin(platform.orders(dies_at=place))
        for user in ("ada", "bob", "eve"):
            platform.say(f"act {number} {user}", f"plain {number} {user}", user=user)
        platform.bring(dying)
        platform.listen(dying)
        assert dying.end() == KILLED
        platform.after_death()
        workers = [nursery.begin(platform.orders()) for _ in range(2)]
        platform.bring(workers[number % 2])
        platform.listen(workers[number % 2])
        after = aftermath(platform, *workers)
        after.check()
    assert after.states()["interrupted"] > 0
    assert Counter(delivery.state for delivery in after.deliveries)["uncertain"] > 0


# -- following -----------------------------------------------------------------------------------------------


@dataclass
class Screen:
    """What somebody who follows a conversation has before them."""

    log: list[tuple[str, str]] = field(default_factory=list)
    growing: str = ""
    turn: Turn | None = None

    def show(self, item: FeedItem) -> None:
        if isinstance(item, Drafted):
            said = "".join(piece.text for piece in item.pieces if piece.kind is PieceKind.TEXT)
            self.growing = said if item.afresh else self.growing + said
        elif isinstance(item, Happened) and item.event.message is not None:
            self.log.append((item.event.message.role, item.event.message.text))
        elif isinstance(item, TurnChanged):
            self.turn = item.turn


@asynccontextmanager
async def following(url: str, session_id: str) -> AsyncIterator[AsyncIterator[Screen]]:
    """Follow a conversation of Ada's in this process: the screen after each change."""
    with SessionStore.open(url) as store:
        feed, screen = Feed(store), Screen()
        await feed.start()
        principal = store.person_for(SessionSource(LOOPBACK, "ada", user_id="ada")).principal

        async def screens() -> AsyncGenerator[Screen, None]:
            async with aclosing(feed.follow(principal, session_id, after=0)) as items:
                async for item in items:
                    screen.show(item)
                    yield screen

        try:
            async with asyncio.timeout(30), aclosing(screens()) as shown:
                yield shown
        finally:
            await feed.stop()


@pytest.mark.parametrize("leaves", ["killed", "stopped"])
@pytest.mark.parametrize("kind", ["plain", "act"])
async def test_a_follower_ends_with_the_stored_conversation_whoever_answers(
    nursery: Nursery, platform: Platform, kind: str, leaves: str
) -> None:
    # slow enough that the answer is not whole before somebody follows it
    leaving, heir = (nursery.start(platform.orders(pause=0.15, patience=0)) for _ in range(2))
    (said,) = platform.say(f"{kind} story")
    platform.bring(leaving)
    platform.listen(leaving)
    wait_for_rows(platform.url, "SELECT 1 FROM draft")
    if not rows(platform.url, leaving.holds("turn")):
        leaving, heir = heir, leaving
    ((session_id,),) = rows(platform.url, "SELECT id FROM session")
    whole = begins_to_act(said.text) + has_acted(said.text, []) if kind == "act" else answer_to(said.text)
    enough = begins_to_act(said.text) if kind == "act" else answer_to(said.text)[:20]
    async with following(platform.url, session_id) as screens:
        async for screen in screens:
            if screen.growing.startswith(enough) and (kind == "plain" or platform.deeds()):
                break
        seen = screen.growing
        os.kill(leaving.pid, signal.SIGKILL if leaves == "killed" else signal.SIGTERM)
        async for screen in screens:
            assert whole.startswith(screen.growing), "an answer that begins again is shown from its beginning"
            if screen.turn is not None and screen.turn.state.ended:
                break
    leaving.end()
    after = aftermath(platform, heir)
    after.check()
    assert screen.log == [(message.role, message.text) for message in after.messages]
    said_aloud = "".join(message.text for message in after.messages if message.role == "assistant")
    assert said_aloud.startswith(seen)
    assert after.states() == ({"done": 1} if kind == "plain" else {"interrupted": 1})

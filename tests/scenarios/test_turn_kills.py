"""`kill -9` on the whole path from a message to its delivered answer.

Every accepted message is answered once, or visibly not; nothing is sent twice in silence; no tool acts again by itself.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionStore

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("turn_harness")

from turn_harness import KILLED, Nursery, Platform, settled, wait_for_rows  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turn_harness import Said, Worker

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("PALAVER_KILL_SEED", "20261115"))
KILLS = {"sqlite": 140, "postgresql": 60}  # at random

# Where a gateway is killed: before and after each commit, in the middle of an answer, around a send. Each with the
# number of its passing that kills, and where the gateway before it died that left it something to recover.
POINTS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "inbox.before": (2, ()),
    "inbox.accepted": (2, ()),
    "turn.before_claim": (2, ()),
    "turn.claimed": (2, ()),
    "turn.spoke": (9, ()),
    "turn.before_keeping": (3, ()),
    "turn.draft_kept": (3, ()),
    "turn.before_acting": (1, ()),
    "turn.acting": (1, ()),
    "turn.acted": (1, ()),
    "turn.before_steering": (1, ()),
    "turn.steered": (1, ()),
    "turn.before_compacting": (1, ()),
    "turn.compacted": (1, ()),
    "turn.before_end": (2, ()),
    "turn.ended": (2, ()),
    "turn.before_release": (1, ()),
    "turn.released": (1, ()),
    "turn.before_recovery": (1, ("turn.acting", 1)),
    "turn.recovered": (1, ("turn.acting", 1)),
    "delivery.before_claim": (2, ()),
    "delivery.claimed": (1, ()),
    "delivery.before_send": (2, ()),
    "delivery.sent": (1, ()),
    "delivery.before_receipt": (2, ()),
    "delivery.settled": (1, ()),
    "delivery.before_recovery": (1, ("delivery.sent", 1)),
    "delivery.recovered": (1, ("delivery.sent", 1)),
}
STOPPING = {"turn.before_release", "turn.released"}  # passed by a gateway that is told to stop


@pytest.fixture(scope="module")
def started_nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture
def nursery(started_nursery: Nursery) -> Iterator[Nursery]:
    yield started_nursery
    started_nursery.clear()


def with_some_history(nursery: Nursery, platform: Platform) -> None:
    """A conversation with a beginning that can be summarised."""
    worker = nursery.start(platform.orders(pause=0))
    for number in range(7):
        platform.say(f"plain {number}", user="carol")
        platform.bring(worker)
        platform.listen(worker)
        worker.settle()
    worker.kill()


def everything_at_once(platform: Platform) -> None:
    """Messages that lead past every point."""
    platform.say("plain a", "act b", "/steer c", "plain d", user="ada")
    platform.say("act e", "plain f", user="bob")
    platform.say("long g", user="carol")  # too long for the model, if there is some history


def died_of(nursery: Nursery, platform: Platform, dies_at: tuple[Any, ...]) -> int:
    """Bring messages to a gateway until it dies where it is told to."""
    stops = dies_at[0] in STOPPING
    others = {"patience": 0, "pause": 0.02} if stops else {}
    worker = nursery.begin(platform.orders(dies_at=list(dies_at), **others))
    platform.bring(worker)
    platform.listen(worker)
    if stops:
        wait_for_rows(platform.url, "SELECT 1 FROM draft")
        status = worker.stop()
    else:
        status = worker.end() if not worker.settles() else worker.stop()
    platform.after_death()
    return status


CASES = [(point, False) for point in POINTS] + [(point, True) for point in POINTS if point.startswith("delivery.")]


@pytest.mark.parametrize(("point", "knows_keys"), CASES, ids=[f"{at}{'-keyed' if keys else ''}" for at, keys in CASES])
def test_a_gateway_killed_at_any_point_leaves_nothing_unanswered(
    nursery: Nursery, store_url: str, tmp_path: Path, point: str, knows_keys: bool
) -> None:
    if knows_keys and not point.startswith("delivery."):
        pytest.skip("the platform is not reached before")
    platform = Platform(store_url, tmp_path, knows_keys)
    if "compact" in point:
        with_some_history(nursery, platform)
    everything_at_once(platform)
    passing, before = POINTS[point]
    for dies_at in [before, (point, passing)] if before else [(point, passing)]:
        assert died_of(nursery, platform, dies_at) == KILLED, f"{dies_at} was not reached"
    aftermath = settled(nursery, platform, again=platform.said[::2])
    aftermath.check()
    uncertain = [delivery for delivery in aftermath.deliveries if delivery.state == "uncertain"]
    if point in {"delivery.before_send", "delivery.sent", "delivery.before_receipt"} and not knows_keys:
        assert uncertain, "nobody knows whether it arrived, and everybody can see that"


# On the way of an answer to where its question was not asked.
THERE = [
    *("inbox.before", "inbox.accepted", "turn.claimed", "turn.spoke", "turn.acting", "turn.before_end", "turn.ended"),
    *("delivery.claimed", "delivery.before_send", "delivery.sent", "delivery.before_receipt", "delivery.settled"),
]


@pytest.mark.parametrize("point", THERE)
def test_an_answer_that_is_wanted_elsewhere_arrives_there_once_or_is_seen_not_to(
    nursery: Nursery, store_url: str, tmp_path: Path, point: str
) -> None:
    platform = Platform(store_url, tmp_path)
    platform.say("plain a")
    settled(nursery, platform).check()
    platform.say("plain b", "act c", "plain d", there=True)
    assert died_of(nursery, platform, (point, 1)) == KILLED, f"{point} was not reached"
    settled(nursery, platform, again=platform.said[1:]).check()


def test_every_fault_point_on_the_way_is_in_the_table(nursery: Nursery, store_url: str, tmp_path: Path) -> None:
    platform = Platform(store_url, tmp_path)
    with_some_history(nursery, platform)
    everything_at_once(platform)
    worker = nursery.start(platform.orders())
    platform.bring(worker)
    platform.listen(worker)
    worker.settle()
    assert worker.stop() == 0
    leaving = nursery.start(platform.orders(patience=0, pause=0.05))
    platform.say("plain h")
    platform.bring(leaving)
    platform.listen(leaving)
    wait_for_rows(store_url, "SELECT 1 FROM draft")
    assert leaving.stop() == 0
    assert worker.passed | leaving.passed == set(POINTS)
    settled(nursery, platform).check()


class Chance:
    """Messages, moments and places to die at, at random."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._said = 0

    def speak(self, platform: Platform) -> None:
        """Several people speak at once."""
        for user in self._random.sample(["ada", "bob", "dan", "eve", "fay"], self._random.randint(2, 3)):
            kinds = self._random.choices(["plain", "act", "/steer"], [5, 3, 2], k=self._random.randint(1, 2))
            platform.say(*(self._text(kind) for kind in kinds), user=user)
        platform.say(self._text(self._random.choice(["plain", "plain", "long"])), user="carol")

    def _text(self, kind: str) -> str:
        self._said += 1
        return f"{kind} {self._said}"

    def kill(self, nursery: Nursery, platform: Platform) -> None:
        """Let a gateway die: where it is told to, or somewhere on its way."""
        somewhere = self._random.random() < 0.5
        place = [self._random.choice(sorted(POINTS.keys() - STOPPING)), self._random.randint(1, 8)]
        worker = nursery.begin(platform.orders(dies_at=[] if somewhere else place))
        platform.bring(worker, *self.some(platform))
        if somewhere:
            self._kill_at_some_time(worker)
        else:
            worker.tell({"do": "settle"})
        while (heard := worker.hear()) is not None:
            platform.note(heard)
            if "settled" in heard:  # it did not come by that place so often
                os.kill(worker.pid, signal.SIGKILL)
        assert worker.end() == KILLED
        platform.after_death()

    def _kill_at_some_time(self, worker: Worker) -> None:
        time.sleep(self._random.uniform(0, 0.12))
        os.kill(worker.pid, signal.SIGKILL)

    def some(self, platform: Platform) -> list[Said]:
        """Platforms bring what was acknowledged once more, sometimes."""
        late = [said for said in platform.said[-20:] if said.id in platform.acknowledged]
        return self._random.sample(late, min(len(late), self._random.randint(0, 2)))

    def times(self) -> int:
        """How often in a row."""
        return self._random.choices([1, 2, 3], [6, 3, 1])[0]


def test_nothing_is_lost_or_doubled_by_kills_at_random(nursery: Nursery, store_url: str, tmp_path: Path) -> None:
    SessionStore.open(store_url).close()  # a kill may come before the first process has made its tables
    engine = store_url.partition(":")[0]
    chance, platform, kills = Chance(f"{SEED} {engine}"), Platform(store_url, tmp_path), 0
    while kills < KILLS[engine]:
        print(f"PALAVER_KILL_SEED={SEED}, {engine}, after {kills} kills")  # noqa: T201  (shown when the test fails)
        chance.speak(platform)
        for _ in range(chance.times()):
            chance.kill(nursery, platform)
            kills += 1
        aftermath = settled(nursery, platform, again=chance.some(platform))
        aftermath.check()
    states = aftermath.states()
    assert states["done"] > states["interrupted"] + states["failed"]
    with SessionStore.open(store_url) as store:
        assert sum(session.message_count for session in store.list_sessions(limit=100)) == len(aftermath.messages)

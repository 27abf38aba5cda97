"""`kill -9` at every point between the slot of a job and its delivered output, and several servers on one database.

Every slot ends as exactly one run, in one conversation, and its output arrives exactly once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionStore
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.jobs import table as jobs
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions.turn import MAX_TURN_CRASHES
from scenarios.gateway_harness import KILLED, FakePlatform, GatewayLauncher
from scenarios.gateway_process import format_plain_answer, split_text
from scenarios.kill_cases import build_cases
from scenarios.store_harness import fetch_rows, find_inconsistencies
from support.crashing import list_crash_points
from support.job_runs import HEADING, insert_job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

HOUR_MICROS = 3_600_000_000
USERS = ("ada", "bob", "dan")

# Where a server is killed, and at which passing: before and after each commit, during the answer, around the delivery.
CRASH_POINTS: dict[str, int] = {
    "job.before_firing": 2,
    "job.fired": 2,
    "job.before_start": 2,
    "job.started": 1,
    "turn.claimed": 1,
    "turn.agent_event": 9,
    "turn.draft_saved": 2,
    "turn.before_end": 2,
    "turn.ended": 1,
    "delivery.claimed": 1,
    "delivery.sent": 1,
    "delivery.outcome_saved": 1,
}
# The points after a transaction of jobs. What the database contains there differs from the point before; the other
# points change what was sent, and not which statements run.
COMMIT_POINTS = ("job.fired", "job.started", "turn.ended", "delivery.outcome_saved")
# The kills of gateways have the others for all answers.
QUICK_CASES = {
    *(("sqlite", point) for point in CRASH_POINTS if point.startswith("job.") or point in COMMIT_POINTS),
    *(("sqlite", "turn.agent_event"), ("sqlite", "delivery.sent")),
    *(("postgres", point) for point in COMMIT_POINTS),
}


@pytest.fixture
def launcher(gateway_launcher: GatewayLauncher) -> GatewayLauncher:
    return gateway_launcher


@pytest.fixture
def platform(store_url: str, tmp_path: Path) -> FakePlatform:
    """A platform that recognizes what is sent to it twice, so that nothing is uncertain."""
    return FakePlatform(store_url, tmp_path, has_idempotency_keys=True)


def add_due_jobs(url: str, users: tuple[str, ...] = USERS) -> dict[str, int]:
    """Add a job of every person whose slot has just come; return the slots by prompt."""
    slots = {}
    with SessionStore.open(url) as store:
        for user in users:
            source = LoopbackAdapter().get_source(user)
            job_row = insert_job(store, source, "every 1h", prompt=f"plain {user}", timezone="UTC")
            slot = store.clock.now() - timedelta(seconds=2)
            changes = {"anchor": slot}

            def make_due(tx: Any, job_row: Any = job_row, changes: Any = changes, slot: Any = slot) -> None:
                jobs.update_fields(tx, job_row, {**changes, "next_slot": slot}, to_micros(slot))

            store.engine.run(Write(make_due))
            slots[f"plain {user}"] = to_micros(slot)
    return slots


def run_until_crash(launcher: GatewayLauncher, platform: FakePlatform, point: str, passing: int) -> None:
    options = platform.build_options(is_server=True, crash_at=[point, passing])
    gateway = launcher.launch(options)
    assert not gateway.becomes_idle(), f"{point} was not reached {passing} times"
    assert gateway.wait_for_exit() == KILLED


def finish_all_work(launcher: GatewayLauncher, platform: FakePlatform) -> None:
    gateway = launcher.start(platform.build_options(is_server=True))
    gateway.wait_until_idle()
    assert gateway.stop() == 0


def check_every_slot_ended_once(platform: FakePlatform, slots: dict[str, int]) -> None:
    url = platform.url
    runs = fetch_rows(
        url, "SELECT j.prompt, r.slot, r.state, r.slot_count FROM job_run r JOIN job j ON j.no = r.job_no ORDER BY j.no"
    )
    assert runs == [(prompt, slot, "done", 1) for prompt, slot in slots.items()]
    next_slots = fetch_rows(url, "SELECT prompt, next_slot FROM job ORDER BY no")
    assert next_slots == [(prompt, slot + HOUR_MICROS) for prompt, slot in slots.items()]
    sessions = fetch_rows(url, "SELECT key FROM session WHERE platform = 'cron'")
    assert len(sessions) == len(slots), "each run has one conversation"
    deliveries = fetch_rows(url, "SELECT id, state, content FROM delivery ORDER BY content")
    answers = sorted(format_plain_answer(prompt) for prompt in slots)
    assert [(state, content) for _, state, content in deliveries] == [("sent", HEADING + answer) for answer in answers]
    expected_keys = {
        f"{delivery_id}.{number}"
        for delivery_id, _, content in deliveries
        for number in range(1, len(split_text(content)) + 1)
    }
    assert {line["key"] for line in platform.load_sends()} == expected_keys
    in_chats = fetch_rows(
        url,
        "SELECT e.content FROM event e JOIN session s ON s.no = e.session_no"
        f" WHERE s.platform = '{LOOPBACK}' AND e.role = 'assistant' ORDER BY e.content",
    )
    assert [content for (content,) in in_chats] == answers, "the output is a message in the chat's conversation"
    assert find_inconsistencies(url) == []


@pytest.mark.parametrize(
    ("store_url", "point"),
    build_cases([(point,) for point in CRASH_POINTS], QUICK_CASES),
    indirect=["store_url"],
)
def test_a_server_killed_at_any_point_runs_every_slot_once(
    launcher: GatewayLauncher, platform: FakePlatform, point: str
) -> None:
    slots = add_due_jobs(platform.url)
    run_until_crash(launcher, platform, point, CRASH_POINTS[point])
    finish_all_work(launcher, platform)
    check_every_slot_ended_once(platform, slots)


def test_a_run_whose_servers_keep_dying_fails_and_does_not_run_again(
    launcher: GatewayLauncher, platform: FakePlatform
) -> None:
    slots = add_due_jobs(platform.url, ("ada",))
    for _ in range(MAX_TURN_CRASHES):
        run_until_crash(launcher, platform, "turn.agent_event", 3)
    finish_all_work(launcher, platform)
    ((slot, state, reason, turn_state),) = fetch_rows(
        platform.url, "SELECT r.slot, r.state, r.reason, t.state FROM job_run r JOIN turn t ON t.no = r.turn_no"
    )
    assert (slot, state, turn_state) == (slots["plain ada"], "failed", "failed")
    assert f"crashed {MAX_TURN_CRASHES} times" in reason
    (notice,) = fetch_rows(platform.url, "SELECT state, content FROM delivery")
    assert notice[0] == "sent", "the first failure is told, once"
    assert notice[1].startswith('The job "News" has failed: ')


def test_several_servers_on_one_database_fire_every_slot_once(
    launcher: GatewayLauncher, platform: FakePlatform
) -> None:
    slots = add_due_jobs(platform.url, tuple(f"user{number}" for number in range(12)))
    servers = [launcher.launch(platform.build_options(is_server=True, word_seconds=0)) for _ in range(2)]
    for server in servers:
        server.wait_until_idle()
    for server in servers:
        assert server.stop() == 0
    check_every_slot_ended_once(platform, slots)


def test_the_table_has_every_crash_point_of_jobs() -> None:
    points = list_crash_points("job.")
    assert points <= CRASH_POINTS.keys()

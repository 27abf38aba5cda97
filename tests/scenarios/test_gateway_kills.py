"""`kill -9` at every point between a message and its delivered answer.

Every accepted message is answered once, or its failure is visible; nothing is silently sent twice; no tool acts twice.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from palaver import SessionStore
from scenarios.gateway_harness import KILLED, FakePlatform, GatewayLauncher, finish_all_work, wait_for_rows
from scenarios.gateway_process import MEMBERS, REFUSING_CHAT
from scenarios.kill_cases import build_cases
from scenarios.random_killer import AREAS, SHUTDOWN_POINTS, RandomKiller
from support.crashing import list_crash_points

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


pytestmark = pytest.mark.slow

EXAMPLES_PER_RANDOM_KILL = 4  # of the Hypothesis profile

# Where a gateway is killed: before and after each commit, during an answer, around a send. For each crash point:
# at which passing the gateway is killed, and where the gateway before it was killed, to leave it something to recover.
CRASH_POINTS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "inbox.before_accept": (2, ()),
    "inbox.accepted": (2, ()),
    "inbox.command_read": (1, ()),
    "inbox.before_download": (1, ()),
    "inbox.files_received": (1, ()),
    "call.before_hold": (2, ()),
    "call.held": (2, ()),
    "call.before_settle": (2, ()),
    "call.settled": (2, ()),
    "turn.before_claim": (2, ()),
    "turn.claimed": (2, ()),
    "turn.agent_event": (9, ()),
    "turn.before_draft_save": (3, ()),
    "turn.draft_saved": (3, ()),
    "turn.before_tool_mark": (1, ()),
    "turn.before_tool": (1, ()),
    "turn.after_tool": (1, ()),
    "turn.before_steering": (1, ()),
    "turn.steered": (1, ()),
    "turn.before_compaction": (1, ()),
    "turn.compacted": (1, ()),
    "turn.before_end": (2, ()),
    "turn.ended": (2, ()),
    "turn.before_release": (1, ()),
    "turn.released": (1, ()),
    "turn.before_recovery": (1, ("turn.before_tool", 1)),
    "turn.recovered": (1, ("turn.before_tool", 1)),
    "delivery.before_claim": (2, ()),
    "delivery.claimed": (1, ()),
    "delivery.before_mark": (1, ()),  # the first, so that no other delivery is being sent
    "delivery.marked": (1, ()),
    "delivery.before_send": (2, ()),
    "delivery.sent": (1, ()),
    "delivery.before_outcome_save": (2, ()),
    "delivery.outcome_saved": (1, ()),
    "delivery.before_recovery": (1, ("delivery.sent", 1)),
    "delivery.recovered": (1, ("delivery.sent", 1)),
}
# The same where answers are shown while they are being written: a growing message is stored, sent, edited, and replaced
# by the answer or deleted; echoes confirm what was sent.
STREAMING_POINTS: dict[str, int] = {
    "preview.before_save": 1,
    "preview.saved": 1,
    "preview.sent": 1,
    "preview.id_saved": 1,
    "preview.grown": 1,
    "preview.removed": 1,
    "delivery.before_mark": 1,
    "delivery.marked": 1,
    "delivery.before_send": 2,
    "delivery.sent": 1,
    "delivery.before_outcome_save": 1,
    "delivery.outcome_saved": 1,
    "delivery.before_confirmation": 1,
    "delivery.confirmed": 1,
}
# The others differ from what `CRASH_POINTS` has on SQLite only in that the message was already there.
QUICK_STREAMING_POINTS = {
    *(point for point in STREAMING_POINTS if point.startswith("preview.")),
    *("delivery.sent", "delivery.before_confirmation", "delivery.confirmed"),
}


@pytest.fixture
def launcher(gateway_launcher: GatewayLauncher) -> GatewayLauncher:
    return gateway_launcher


def build_history(launcher: GatewayLauncher, platform: FakePlatform) -> None:
    """Build a conversation that is long enough to be compacted."""
    gateway = launcher.start(platform.build_options(word_seconds=0))
    for number in range(7):
        platform.add_messages(f"plain {number}", user="carol")
        platform.send_messages(gateway)
        platform.wait_for_acknowledgements(gateway)
        gateway.wait_until_idle()
    gateway.kill()


def add_messages_for_point(platform: FakePlatform, point: str, number: int = 0) -> None:
    """Add messages that make a gateway pass a crash point; `number` tells them from those for other points."""
    acting_user = MEMBERS[number % len(MEMBERS)]  # one who waits for no earlier answer
    platform.add_messages(f"act a{number}", f"/steer b{number}", f"plain c{number}", user=acting_user)
    platform.add_messages(f"plain d{number}", user="carol")
    if point.startswith("inbox."):
        platform.add_messages("/status", user="carol")
        platform.add_messages(f"file e{number}", user="greg")
    if "compact" in point:
        platform.add_messages(f"long f{number}", user="carol")  # too long for the model, if there is a history


def add_messages_for_all_points(platform: FakePlatform) -> None:
    """Add messages that make a gateway pass every crash point."""
    for point in ("inbox.accepted", "turn.compacted"):
        add_messages_for_point(platform, point, len(platform.messages))


def run_until_crash(launcher: GatewayLauncher, platform: FakePlatform, crash_at: tuple[Any, ...]) -> int:
    """Send messages to a gateway until it is killed at a crash point; return its exit code."""
    is_shutdown = crash_at[0] in SHUTDOWN_POINTS
    options = {"grace_seconds": 0, "word_seconds": 0.02} if is_shutdown else {}
    gateway = launcher.launch(platform.build_options(crash_at=list(crash_at), **options))
    platform.send_messages(gateway)
    platform.wait_for_acknowledgements(gateway)
    if is_shutdown:
        wait_for_rows(platform.url, "SELECT 1 FROM draft")
        exit_code = gateway.stop()
    else:
        exit_code = gateway.wait_for_exit() if not gateway.becomes_idle() else gateway.stop()
    platform.save_drafts()
    return exit_code


# The points right after a commit. Only there, the database differs from the point before: the others, and what a
# platform recognizes, change what was sent and not which statements run. So `make test` tries these on PostgreSQL, too.
COMMIT_POINTS = {
    *("inbox.accepted", "inbox.command_read", "inbox.files_received", "call.held", "call.settled"),
    *("turn.claimed", "turn.draft_saved", "turn.before_tool", "turn.steered", "turn.compacted", "turn.ended"),
    *("turn.released", "turn.recovered"),
    *("delivery.claimed", "delivery.marked", "delivery.outcome_saved", "delivery.recovered", "delivery.confirmed"),
    *("preview.saved", "preview.id_saved", "preview.grown", "preview.removed"),
}
SENDING_POINTS = {"delivery.marked", "delivery.before_send", "delivery.sent", "delivery.before_outcome_save"}
UNSENT_POINT = "delivery.before_mark"
# Where it matters that the platform recognizes what was sent.
KEY_POINTS = {"delivery.sent", "delivery.recovered", "preview.sent", "preview.grown"}


def build_point_cases(points: Collection[str], quick_points: Collection[str]) -> list[Any]:
    """Build a case for each point, engine and kind of platform."""
    quick = {("sqlite", point, False) for point in quick_points} | {
        ("sqlite", point, True) for point in KEY_POINTS if point in points
    }
    return build_cases([(point, has_keys) for point in points for has_keys in (False, True)], quick)


def crash(launcher: GatewayLauncher, platform: FakePlatform, point: str) -> None:
    """Kill a gateway at a point, and before that another one where the table says so."""
    passing, earlier_crash = CRASH_POINTS[point]
    for crash_at in [earlier_crash, (point, passing)] if earlier_crash else [(point, passing)]:
        assert run_until_crash(launcher, platform, crash_at) == KILLED, f"{crash_at} was not reached"


@pytest.mark.parametrize(
    ("store_url", "point", "has_keys"),
    build_point_cases(CRASH_POINTS, {*SENDING_POINTS, UNSENT_POINT}),
    indirect=["store_url"],
)
def test_a_gateway_killed_at_any_point_leaves_nothing_unanswered(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, point: str, has_keys: bool
) -> None:
    platform = FakePlatform(store_url, tmp_path, has_keys)
    if "compact" in point:
        build_history(launcher, platform)
    add_messages_for_point(platform, point)
    crash(launcher, platform, point)
    final = finish_all_work(launcher, platform, duplicates=platform.messages[::2])
    final.check()
    uncertain = [delivery for delivery in final.deliveries if delivery.state == "uncertain"]
    if point in SENDING_POINTS and not has_keys:
        assert uncertain, "it is unknown whether it arrived, and the state says so"
    if point == UNSENT_POINT:
        assert not uncertain, "nothing of it was sent"


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("area", ["inbox.", "call.", "turn.", "delivery."])
def test_gateways_killed_one_after_the_other_at_each_point_leave_nothing_unanswered(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, area: str
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    points = [point for point in CRASH_POINTS if point.startswith(area)]
    if store_url.startswith("postgres"):
        points = [point for point in points if point in COMMIT_POINTS]
    if "turn.compacted" in points:
        build_history(launcher, platform)
    for number, point in enumerate(points):
        add_messages_for_point(platform, point, number)
        crash(launcher, platform, point)
    finish_all_work(launcher, platform, duplicates=platform.messages[::2]).check()


@pytest.mark.parametrize(
    ("store_url", "point", "has_keys"),
    build_point_cases(STREAMING_POINTS, QUICK_STREAMING_POINTS),
    indirect=["store_url"],
)
def test_a_gateway_killed_while_it_shows_an_answer_leaves_no_growing_message_beside_it(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, point: str, has_keys: bool
) -> None:
    platform = FakePlatform(store_url, tmp_path, has_keys, streams=True)
    if has_keys:
        platform.add_messages("plain a", "act b", user="ada")
        platform.add_messages("plain c", user=REFUSING_CHAT)
    else:  # one after the other, because a message that is on its way at that moment cannot be found again
        platform.add_messages("plain a", user=REFUSING_CHAT if point == "preview.removed" else "ada")
    crash_while_streaming(launcher, platform, point)
    final = finish_all_work(launcher, platform, duplicates=platform.messages)
    final.check()
    assert len(final.visible_previews) == int(point == "preview.sent" and not has_keys), (
        "only a message of which not even the id is known stays"
    )


def crash_while_streaming(launcher: GatewayLauncher, platform: FakePlatform, point: str) -> None:
    options = platform.build_options(crash_at=[point, STREAMING_POINTS[point]], word_seconds=0.02)
    gateway = launcher.launch(options)
    platform.send_messages(gateway)
    platform.wait_for_acknowledgements(gateway)
    assert not gateway.becomes_idle(), f"{point} was not reached"
    assert gateway.wait_for_exit() == KILLED


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_gateways_killed_one_after_the_other_while_they_show_answers_leave_no_growing_message(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path
) -> None:
    platform = FakePlatform(store_url, tmp_path, has_idempotency_keys=True, streams=True)
    for number, point in enumerate(point for point in STREAMING_POINTS if point in COMMIT_POINTS):
        platform.add_messages(f"plain {number}", user=REFUSING_CHAT if point == "preview.removed" else "ada")
        crash_while_streaming(launcher, platform, point)
    final = finish_all_work(launcher, platform, duplicates=platform.messages)
    final.check()
    assert final.visible_previews == []


# The points on the way of an answer that is delivered to another place than its question came from.
WEB_REPLY_POINTS = [
    *(
        "inbox.before_accept",
        "inbox.accepted",
        "turn.claimed",
        "turn.agent_event",
        "turn.before_tool",
        "turn.before_end",
        "turn.ended",
    ),
    *(
        "delivery.claimed",
        "delivery.before_send",
        "delivery.sent",
        "delivery.before_outcome_save",
        "delivery.outcome_saved",
    ),
]


# The transactions that differ for such an answer, and where it is unknown whether it arrived.
QUICK_WEB_REPLIES = {("sqlite", "inbox.accepted"), ("sqlite", "delivery.sent"), ("postgres", "turn.ended")}


@pytest.mark.parametrize(
    ("store_url", "point"),
    build_cases([(point,) for point in WEB_REPLY_POINTS], QUICK_WEB_REPLIES),
    indirect=["store_url"],
)
def test_an_answer_to_a_message_from_the_web_arrives_in_the_chat_once_or_its_failure_is_visible(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, point: str
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    platform.add_messages("plain a")
    finish_all_work(launcher, platform).check()
    platform.add_messages("plain b", "act c", "plain d", is_from_web=True)
    assert run_until_crash(launcher, platform, (point, 1)) == KILLED, f"{point} was not reached"
    finish_all_work(launcher, platform, duplicates=platform.messages[1:]).check()


def test_the_table_has_every_crash_point() -> None:
    points = list_crash_points(*AREAS)
    assert CRASH_POINTS.keys() | STREAMING_POINTS.keys() == points


def test_a_gateway_passes_every_crash_point(launcher: GatewayLauncher, store_url: str, tmp_path: Path) -> None:
    platform = FakePlatform(store_url, tmp_path, streams=True)
    build_history(launcher, platform)
    add_messages_for_all_points(platform)
    platform.add_messages("plain i", user="eve")
    gateway = launcher.start(platform.build_options(word_seconds=0.02))
    platform.send_messages(gateway)
    platform.wait_for_acknowledgements(gateway)
    gateway.wait_until_idle()
    assert gateway.stop() == 0
    stopping = launcher.start(platform.build_options(grace_seconds=0, word_seconds=0.05))
    platform.add_messages("plain h")
    platform.send_messages(stopping)
    platform.wait_for_acknowledgements(stopping)
    wait_for_rows(store_url, "SELECT 1 FROM draft")
    assert stopping.stop() == 0
    passed_points = {point for point in gateway.passed_points | stopping.passed_points if point.startswith(AREAS)}
    assert passed_points == CRASH_POINTS.keys() | STREAMING_POINTS.keys()
    finish_all_work(launcher, platform).check()


@pytest.mark.parametrize("has_keys", [False, True], ids=["no_keys", "keys"])
def test_random_kills_lose_nothing_and_duplicate_nothing(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, has_keys: bool, seed: int
) -> None:
    SessionStore.open(store_url).close()  # a gateway may be killed before it has created the tables
    killer, kills = RandomKiller(launcher, random.Random(seed)), 0
    enough = settings().max_examples // EXAMPLES_PER_RANDOM_KILL
    platform = FakePlatform(store_url, tmp_path, has_idempotency_keys=has_keys, streams=True)
    while kills < enough:
        print(f"after {kills} kills")  # noqa: T201  (shown when the test fails)
        killer.add_messages(platform)
        for _ in range(killer.choose_kill_count()):
            killer.run_and_kill(platform)
            kills += 1
        final = finish_all_work(launcher, platform, duplicates=killer.choose_duplicates(platform))
        final.check()
    states = final.count_turn_states()
    assert states["done"] > states["interrupted"] + states["failed"]
    with SessionStore.open(store_url) as store:
        assert sum(session.message_count for session in store.list_sessions(limit=100)) == len(final.messages)

"""`kill -9` around a memory turn: it never runs twice, stores everything or nothing, and keeps no person waiting."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from scenarios.gateway_harness import KILLED, FakePlatform, GatewayLauncher
from scenarios.gateway_process import LEARNED_FACTS
from scenarios.kill_cases import build_cases
from scenarios.store_harness import fetch_rows, find_inconsistencies
from support.crashing import list_crash_points

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# How the turn ends when the process is killed there, how often the model was asked, and what is remembered.
OUTCOMES: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "memory.before_claim": ("done", 1, LEARNED_FACTS),
    "memory.claimed": ("failed", 0, ()),
    "memory.before_end": ("failed", 1, ()),
    "memory.ended": ("done", 1, LEARNED_FACTS),
}
# On PostgreSQL, the points right after a commit.
QUICK_CASES = {*(("sqlite", point) for point in OUTCOMES), ("postgres", "memory.claimed"), ("postgres", "memory.ended")}


@pytest.fixture
def launcher(gateway_launcher: GatewayLauncher) -> GatewayLauncher:
    return gateway_launcher


def test_the_table_has_every_crash_point() -> None:
    assert set(OUTCOMES) == list_crash_points("memory.")


@pytest.mark.parametrize(
    ("store_url", "point"),
    build_cases([(point,) for point in OUTCOMES], QUICK_CASES),
    indirect=["store_url"],
)
def test_a_process_is_killed_during_a_memory_turn(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, point: str
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    victim = launcher.start(platform.build_options(learns=True, is_server=True, crash_at=[point, 1]))
    platform.add_messages("my cat is called Ada")
    platform.send_messages(victim)
    platform.wait_for_acknowledgements(victim)
    victim.wait_until_idle()
    platform.add_messages("/new")
    platform.send_messages(victim)
    assert victim.wait_for_exit() == KILLED
    survivor = launcher.start(platform.build_options(learns=True, is_server=True))
    platform.add_messages("plain again")
    platform.send_messages(survivor)  # and what was not acknowledged
    platform.wait_for_acknowledgements(survivor)
    survivor.wait_until_idle()
    assert survivor.stop() == 0
    state, ask_count, facts = OUTCOMES[point]
    assert fetch_rows(store_url, "SELECT state, kind FROM memory_turn") == [(state, "new")]
    assert [text for (text,) in fetch_rows(store_url, "SELECT text FROM memory ORDER BY no")] == list(facts)
    actions = tmp_path / "actions"
    asked = [json.loads(line) for line in actions.read_text().splitlines()] if actions.exists() else []
    assert asked == [{"question": "learn"}] * ask_count
    assert find_inconsistencies(store_url) == []

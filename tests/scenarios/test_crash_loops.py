"""Processes that die again and again: only a message that really kills them is given up, and takes no other with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.sessions.turn import MAX_TURN_CRASHES
from scenarios.gateway_harness import KILLED, FakePlatform, GatewayLauncher, finish_all_work, wait_for_rows
from scenarios.gateway_process import CALLS_FILE, MEMBERS
from scenarios.store_harness import fetch_rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]


@pytest.fixture
def launcher(gateway_launcher: GatewayLauncher) -> GatewayLauncher:
    return gateway_launcher


def run_until_idle(launcher: GatewayLauncher, platform: FakePlatform, max_kills: int) -> int:
    """Start gateways until one has done all the work; return how many were killed."""
    for kills in range(max_kills + 1):
        gateway = launcher.launch(platform.build_options(word_seconds=0.03))
        platform.send_messages(gateway)
        platform.wait_for_acknowledgements(gateway)
        if gateway.becomes_idle():
            assert gateway.stop() == 0
            return kills
        assert gateway.wait_for_exit() == KILLED
    raise AssertionError("gateways are killed again and again")


def list_turns(platform: FakePlatform) -> list[tuple[str, str, str | None]]:
    return [
        (text, state, error)
        for text, state, error in fetch_rows(
            platform.url,
            "SELECT e.content, t.state, t.error FROM turn t"
            " JOIN event e ON e.session_no = t.session_no AND e.seq = t.input_seq ORDER BY t.no",
        )
    ]


def test_a_message_that_kills_the_process_is_parked_and_takes_no_other_with_it(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    for user in MEMBERS:
        platform.add_messages("poison" if user == "bob" else f"plain {user}", user=user)
    kills = run_until_idle(launcher, platform, max_kills=MAX_TURN_CRASHES + 2)
    turns = {text: (state, error) for text, state, error in list_turns(platform)}
    state, error = turns.pop("poison")
    assert (state, error) == (
        "failed",
        f"Palaver crashed {MAX_TURN_CRASHES} times while answering this message, so it stopped trying. Send /retry to"
        " try it again.",
    )
    assert set(turns.values()) == {("done", None)}
    assert len(turns) == len(MEMBERS) - 1
    calls = (tmp_path / CALLS_FILE).read_text()
    assert calls.count('"poison"') == MAX_TURN_CRASHES == kills


def test_six_kills_while_the_same_message_is_answered_do_not_park_it(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    platform.add_messages("plain ada")
    for _ in range(6):
        gateway = launcher.launch(platform.build_options(holds_answers=True))
        platform.send_messages(gateway)
        platform.wait_for_acknowledgements(gateway)
        called = "id IN (SELECT turn_id FROM model_call c WHERE c.owner = lease_owner AND c.attempt = turn.attempt)"
        wait_for_rows(store_url, f"{gateway.query_claims('turn')} AND {called}")
        gateway.kill()
    finish_all_work(launcher, platform).check()
    assert {state for _, state, _ in list_turns(platform)} == {"done"}
    assert fetch_rows(store_url, "SELECT MAX(crash_count) FROM turn") == [(6,)]


@pytest.mark.parametrize("count", [1, len(MEMBERS)])
def test_messages_whose_process_dies_before_the_agent_is_called_are_all_answered(
    launcher: GatewayLauncher, store_url: str, tmp_path: Path, count: int
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    for user in MEMBERS[:count]:
        platform.add_messages(f"plain {user}", user=user)
    for _ in range(MAX_TURN_CRASHES + 1):
        gateway = launcher.launch(platform.build_options(crash_at=["turn.claimed", 1]))
        platform.send_messages(gateway)
        platform.wait_for_acknowledgements(gateway)
        assert gateway.wait_for_exit() == KILLED
    finish_all_work(launcher, platform).check()
    assert {state for _, state, _ in list_turns(platform)} == {"done"}
    assert fetch_rows(store_url, "SELECT MAX(crash_count) FROM turn") == [(0,)]
    if count == 1:  # of several, each process may have claimed others
        assert fetch_rows(store_url, "SELECT attempt FROM turn") == [(MAX_TURN_CRASHES + 2,)]

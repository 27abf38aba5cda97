"""Expiry watchers that are killed, and that race with messages in other processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from scenarios.store_harness import StoreProcess, fetch_rows, find_inconsistencies
from support.crashing import list_crash_points

if TYPE_CHECKING:
    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]

LANES = [f"user{number}" for number in range(4)]
CRASH_POINTS = ["expiry.before_end", "expiry.ended"]


def count_ends(url: str) -> list[int]:
    """Return how often each session that people began has ended, in the order of their lanes."""
    rows = fetch_rows(
        url,
        "SELECT (SELECT COUNT(*) FROM event e WHERE e.session_no = s.no AND e.kind = 'ended') FROM session s"
        " WHERE s.start_reason = 'first' ORDER BY s.no",
    )
    return [count for (count,) in rows]


def test_the_table_has_every_crash_point() -> None:
    assert set(CRASH_POINTS) == list_crash_points("expiry.")


def test_another_process_goes_on_where_a_watcher_was_killed(launcher: WarmLauncher, store_url: str) -> None:
    with StoreProcess(launcher) as survivor:
        survivor.call("open_store", url=store_url)
        for lane in LANES:
            survivor.call("record_message", lane=lane, text="hello")
        for point, ended_count in zip(CRASH_POINTS, (1, 3), strict=True):
            with StoreProcess(launcher) as victim, pytest.raises(EOFError):
                victim.call("run_expiry_watcher", url=store_url, hours=2, crash_at=[point, 2])
            assert sum(count_ends(store_url)) == ended_count
        survivor.call("run_expiry_watcher", url=store_url, hours=2)  # at once: the owner of the lease is dead
        assert count_ends(store_url) == [1] * len(LANES)
        survivor.call("close_store")
    assert find_inconsistencies(store_url) == []


def test_messages_and_watchers_in_several_processes(launcher: WarmLauncher, store_url: str) -> None:
    """In any order, each message starts one session for the same reason, and each old session ends once."""
    with StoreProcess(launcher) as writer, StoreProcess(launcher) as watcher, StoreProcess(launcher) as other:
        writer.call("open_store", url=store_url)
        for lane in LANES:
            writer.call("record_message", lane=lane, text="hello")
        at = time.monotonic() + 0.3
        watcher.start_call("run_expiry_watcher", url=store_url, hours=2, at=at)
        other.start_call("run_expiry_watcher", url=store_url, hours=2, at=at)
        results = [
            writer.call("record_message_later", url=store_url, lane=lane, text="again", hours=2, at=at)
            for lane in LANES
        ]
        watcher.finish_call()
        other.finish_call()
        writer.call("close_store")
    assert {reason for _, reason in results} == {"idle"}
    assert count_ends(store_url) == [1] * len(LANES)
    assert fetch_rows(store_url, "SELECT COUNT(*) FROM session WHERE ended_at IS NULL") == [(len(LANES),)]
    assert find_inconsistencies(store_url) == []

"""The performance targets of Palaver, and whether a set of results meets them.

A target without measurements in the results is reported as not measured: neither met nor missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.drivers import PEERS
from benchmarks.results import compute_median, compute_median_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.results import Results

PALAVER = "palaver"
TURN_PATH = "turn.median_us"


@dataclass(frozen=True)
class TargetResult:
    """One target and the measured value."""

    target: str
    measured: str
    met: bool | None  # None: not measured

    @property
    def label(self) -> str:
        return {True: "met", False: "**missed**", None: "not measured"}[self.met]


def check_targets(results: Results) -> list[TargetResult]:
    return [result for check in _CHECKS for result in check(results)]


def _check_at_most(target: str, value: float | None, limit: float, unit: str = "×") -> TargetResult:
    measured = "–" if value is None else f"{value:.2f}{unit}"
    return TargetResult(target, measured, None if value is None else value <= limit)


def _check_at_least(target: str, value: float | None, limit: float) -> TargetResult:
    measured = "–" if value is None else f"{value:.2f}×"
    return TargetResult(target, measured, None if value is None else value >= limit)


def _compare(results: Results, work: str, size: int, path: str, driver: str, baseline: str) -> float | None:
    return compute_median_ratio(
        results.get_values(work, driver, size, path), results.get_values(work, baseline, size, path)
    )


def _compare_sizes(results: Results, work: str, path: str, small: int, large: int) -> float | None:
    """Return the ratio of Palaver at the large size to Palaver at the small size, in the same repetition."""
    return compute_median_ratio(
        results.get_values(work, PALAVER, large, path), results.get_values(work, PALAVER, small, path)
    )


def _check_turn(results: Results) -> Iterator[TargetResult]:
    for size in (10, 10_000, 100_000):
        value = _compare(results, "W1", size, TURN_PATH, PALAVER, "raw_full")
        yield _check_at_most(f"turn ≤ 1.5 × raw_full, {size:,} sessions", value, 1.5)
    value = _compare(results, "W1L", 10_000, TURN_PATH, PALAVER, "raw_full")
    yield _check_at_most("turn ≤ 1.5 × raw_full, 10,000 messages in the session", value, 1.5)
    growth = _compare_sizes(results, "W1", TURN_PATH, 10, 100_000)
    yield _check_at_most("turn with 100,000 sessions ≤ 1.2 × with 10", growth, 1.2)


def _check_slow_turns(results: Results) -> Iterator[TargetResult]:
    for size in (10_000, 100_000):
        value = _compare(results, "W1", size, "turn.p99_us", PALAVER, "raw_full")
        yield _check_at_most(f"99th percentile of the turn ≤ raw_full’s, {size:,} sessions", value, 1.0)


def _check_peers(results: Results) -> Iterator[TargetResult]:
    """Compare with every peer, at every size where both were measured."""
    for what, work, path in (
        ("turn", "W1", TURN_PATH),
        ("turn on a long transcript", "W1L", TURN_PATH),
        ("whole transcript", "W2", "load.median_us"),
        ("last 50 messages", "W2", "tail50.median_us"),
        ("first page of the list", "W3", "list50.median_us"),
        ("search, rare word", "W4", "rare.median_us"),
        ("search, common word", "W4", "common.median_us"),
    ):
        yield _check_peers_in(results, what, work, path)


def _check_peers_in(results: Results, what: str, work: str, path: str) -> TargetResult:
    target = f"{what}: faster than every peer at every size"
    leads = []
    for size in results.list_sizes(work, PALAVER):
        for peer in PEERS:
            lead = _compare(results, work, size, path, peer, PALAVER)
            if lead is not None:
                leads.append((lead, peer, size))
    if not leads:
        return TargetResult(target, "–", None)
    lead, peer, size = min(leads)
    measured = f"closest: {peer} at {size:,}, {lead:.1f}× as long ({len(leads)} comparisons)"
    return TargetResult(target, measured, lead > 1.0)


def _check_postgres(results: Results) -> Iterator[TargetResult]:
    for size in results.list_sizes("W1", "palaver_pg") or [10_000]:
        value = _compare(results, "W1", size, TURN_PATH, "palaver_pg", "raw_pg")
        yield _check_at_most(f"PostgreSQL: turn ≤ 1.7 × raw_pg, {size:,} sessions", value, 1.7)


def _check_callers(results: Results) -> Iterator[TargetResult]:
    for driver, form in (("palaver_aio", "async tasks"), ("palaver", "blocking threads")):
        growth = compute_median(results.get_values("W9", driver, None, "times").values())
        yield _check_at_least(f"32 {form} ≥ 5 × the throughput of one", growth, 5.0)


def _check_reading(results: Results) -> Iterator[TargetResult]:
    tail = _compare_sizes(results, "W2", "tail50.median_us", 50, 10_000)
    yield _check_at_most("last 50 of 10,000 messages ≤ 2 × of 50", tail, 2.0)
    load = _compare(results, "W2", 10_000, "load.median_us", PALAVER, "raw_full")
    yield _check_at_most("whole transcript of 10,000 ≤ 2 × a plain select", load, 2.0)
    page = _compare_sizes(results, "W3", "list50.median_us", 1_000, 100_000)
    yield _check_at_most("first page among 100,000 sessions ≤ 1.3 × among 1,000", page, 1.3)


def _check_durability(results: Results) -> Iterator[TargetResult]:
    lines = [
        line
        for line in results.lines
        if line["driver"].startswith(PALAVER) and line["work"] in {"W6P", "W6T", "W7", "W9"}
    ]
    acked = sum(line.get("acked", 0) for line in lines)
    wrong = sum(line.get("lost", 0) + line.get("doubled", 0) + line.get("torn", 0) for line in lines)
    failed = sum(bool(line.get("errors") or line.get("error") or line.get("unreadable")) for line in lines)
    measured = f"{acked:,} acknowledged, {wrong} lost or duplicated, {failed} measurements with failures"
    met = not wrong and not failed if acked else None
    yield TargetResult("every acknowledged message is stored exactly once", measured if lines else "–", met)


_CHECKS: tuple[Callable[[Results], Iterator[TargetResult]], ...] = (
    _check_turn,
    _check_slow_turns,
    _check_peers,
    _check_postgres,
    _check_callers,
    _check_reading,
    _check_durability,
)

"""What Palaver is held to, and whether it was met.

A target that has nothing to be judged by in these results says so; it is neither met nor missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.drivers import PEERS
from benchmarks.results import middle, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.results import Results

OURS = "palaver"
TURN = "turn.median_us"


@dataclass(frozen=True)
class Verdict:
    """One target and what was measured."""

    target: str
    measured: str
    met: bool | None  # None: not measured

    @property
    def word(self) -> str:
        """In a word."""
        return {True: "met", False: "**missed**", None: "not measured"}[self.met]


def verdicts(results: Results) -> list[Verdict]:
    """Every target."""
    return [verdict for judge in _JUDGES for verdict in judge(results)]


def _at_most(target: str, value: float | None, limit: float, unit: str = "×") -> Verdict:
    measured = "–" if value is None else f"{value:.2f}{unit}"
    return Verdict(target, measured, None if value is None else value <= limit)


def _at_least(target: str, value: float | None, limit: float) -> Verdict:
    measured = "–" if value is None else f"{value:.2f}×"
    return Verdict(target, measured, None if value is None else value >= limit)


def _against(results: Results, work: str, size: int, path: str, mine: str, base: str) -> float | None:
    return ratio(results.values(work, mine, size, path), results.values(work, base, size, path))


def _growth(results: Results, work: str, path: str, small: int, large: int) -> float | None:
    """How much more Palaver needs at the large size than at the small one, in the same repetition."""
    return ratio(results.values(work, OURS, large, path), results.values(work, OURS, small, path))


def _turn(results: Results) -> Iterator[Verdict]:
    for size in (10, 10_000, 100_000):
        value = _against(results, "W1", size, TURN, OURS, "raw_full")
        yield _at_most(f"turn ≤ 1.5 × raw_full, {size:,} sessions", value, 1.5)
    value = _against(results, "W1L", 10_000, TURN, OURS, "raw_full")
    yield _at_most("turn ≤ 1.5 × raw_full, 10,000 messages behind it", value, 1.5)
    growth = _growth(results, "W1", TURN, 10, 100_000)
    yield _at_most("turn with 100,000 sessions ≤ 1.2 × with 10", growth, 1.2)


def _worst_turns(results: Results) -> Iterator[Verdict]:
    for size in (10_000, 100_000):
        value = _against(results, "W1", size, "turn.p99_us", OURS, "raw_full")
        yield _at_most(f"99th percentile of the turn ≤ raw_full’s, {size:,} sessions", value, 1.0)


def _ahead(results: Results) -> Iterator[Verdict]:
    """Ahead of every peer, wherever both were measured."""
    for what, work, path in (
        ("turn", "W1", TURN),
        ("turn on a long transcript", "W1L", TURN),
        ("whole transcript", "W2", "load.median_us"),
        ("last 50 messages", "W2", "tail50.median_us"),
        ("first page of the list", "W3", "list50.median_us"),
        ("search, rare word", "W4", "rare.median_us"),
        ("search, common word", "W4", "common.median_us"),
    ):
        yield _ahead_in(results, what, work, path)


def _ahead_in(results: Results, what: str, work: str, path: str) -> Verdict:
    target = f"{what}: ahead of every peer at every size"
    leads = []
    for size in results.sizes(work, OURS):
        for peer in PEERS:
            lead = _against(results, work, size, path, peer, OURS)
            if lead is not None:
                leads.append((lead, peer, size))
    if not leads:
        return Verdict(target, "–", None)
    lead, peer, size = min(leads)
    measured = f"nearest: {peer} at {size:,}, {lead:.1f}× as long ({len(leads)} comparisons)"
    return Verdict(target, measured, lead > 1.0)


def _postgres(results: Results) -> Iterator[Verdict]:
    for size in results.sizes("W1", "palaver_pg") or [10_000]:
        value = _against(results, "W1", size, TURN, "palaver_pg", "raw_pg")
        yield _at_most(f"PostgreSQL: turn ≤ 1.7 × raw_pg, {size:,} sessions", value, 1.7)


def _crowd(results: Results) -> Iterator[Verdict]:
    for driver, form in (("palaver_aio", "awaiting tasks"), ("palaver", "blocking threads")):
        times = middle(results.values("W9", driver, None, "times").values())
        yield _at_least(f"32 {form} ≥ 5 × the throughput of one", times, 5.0)


def _reading(results: Results) -> Iterator[Verdict]:
    tail = _growth(results, "W2", "tail50.median_us", 50, 10_000)
    yield _at_most("last 50 of 10,000 messages ≤ 2 × of 50", tail, 2.0)
    load = _against(results, "W2", 10_000, "load.median_us", OURS, "raw_full")
    yield _at_most("whole transcript of 10,000 ≤ 2 × a plain select", load, 2.0)
    page = _growth(results, "W3", "list50.median_us", 1_000, 100_000)
    yield _at_most("first page among 100,000 sessions ≤ 1.3 × among 1,000", page, 1.3)


def _kept(results: Results) -> Iterator[Verdict]:
    lines = [
        line for line in results.lines if line["driver"].startswith(OURS) and line["work"] in {"W6P", "W6T", "W7", "W9"}
    ]
    acked = sum(line.get("acked", 0) for line in lines)
    wrong = sum(line.get("lost", 0) + line.get("doubled", 0) + line.get("torn", 0) for line in lines)
    failed = sum(bool(line.get("errors") or line.get("error") or line.get("unreadable")) for line in lines)
    measured = f"{acked:,} acknowledged, {wrong} lost or doubled, {failed} measurements with failures"
    met = not wrong and not failed if acked else None
    yield Verdict("every acknowledged message is there, once", measured if lines else "–", met)


_JUDGES: tuple[Callable[[Results], Iterator[Verdict]], ...] = (
    _turn,
    _worst_turns,
    _ahead,
    _postgres,
    _crowd,
    _reading,
    _kept,
)

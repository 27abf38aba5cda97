"""The performance targets of Palaver, and whether a set of results meets them.

Every figure stands beside the raw limit of the same run; `recorded.json` has the ratio of the version before. A target
without measurements in the results is reported as not measured: neither met nor missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.drivers import PEERS
from benchmarks.guard import MAX_RATIO_OF_RECORDED
from benchmarks.recorded import read_recorded
from benchmarks.results import compute_median, compute_median_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.results import Results

PALAVER = "palaver"
TURN_PATH = "turn.median_us"
NEW_TURN_PATH = "new.median_us"


@dataclass(frozen=True)
class TargetResult:
    """One figure, its target, and its ratio to the raw limit."""

    figure: str
    target: str
    measured: str
    met: bool | None  # None: not measured
    ratio: float | None = None  # to the raw limit, which was measured in the same run

    @property
    def label(self) -> str:
        return {True: "met", False: "**missed**", None: "not measured"}[self.met]


def check_targets(results: Results) -> list[TargetResult]:
    return [result for check in _CHECKS for result in check(results)]


def list_ratios(results: Results) -> dict[str, float]:
    """Return the ratios to record: of every figure that was measured."""
    return {each.figure: each.ratio for each in check_targets(results) if each.ratio is not None}


def _check_ratio(figure: str, ratio: float | None, limit: float, base: str) -> TargetResult:
    measured = "–" if ratio is None else f"{ratio:.2f}×"
    return TargetResult(figure, f"≤ {limit:g} × {base}", measured, None if ratio is None else ratio <= limit, ratio)


def _check_value(
    figure: str, value: float | None, limit: float, unit: str, ratio: float | None, *, is_minimum: bool = False
) -> TargetResult:
    """Check a value that has a limit of its own; its ratio to the raw limit is only reported."""
    target = f"{'≥' if is_minimum else '≤'} {limit:,g} {unit}"
    if value is None:
        return TargetResult(figure, target, "–", None)
    measured = f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"
    return TargetResult(figure, target, measured, value >= limit if is_minimum else value <= limit, ratio)


def _compare(results: Results, work: str, size: int | None, path: str, driver: str, base: str) -> float | None:
    return compute_median_ratio(
        results.get_values(work, driver, size, path), results.get_values(work, base, size, path)
    )


def _compare_sizes(results: Results, work: str, path: str, small: int, large: int) -> float | None:
    """Return the ratio of Palaver at the large size to Palaver at the small size, in the same repetition."""
    return compute_median_ratio(
        results.get_values(work, PALAVER, large, path), results.get_values(work, PALAVER, small, path)
    )


def _check_turns(results: Results) -> Iterator[TargetResult]:
    """Check one turn of the store, in its forms."""
    rows = [
        ("turn", TURN_PATH, PALAVER, "raw_full", 1.2, (10, 1_000, 10_000)),
        ("awaited turn", TURN_PATH, "palaver_aio", "raw_full", 1.5, (10, 10_000)),
        ("turn in separate calls", TURN_PATH, "palaver_calls", "raw_full", 1.6, (10, 10_000)),
        ("turn that starts a session", NEW_TURN_PATH, PALAVER, "raw_full", 1.4, (10, 10_000)),
        ("turn on PostgreSQL", TURN_PATH, "palaver_pg", "raw_pg", 1.5, (10, 10_000)),
        ("turn that starts a session, on PostgreSQL", NEW_TURN_PATH, "palaver_pg", "raw_pg", 2.5, (10, 10_000)),
    ]
    for what, path, driver, base, limit, sizes in rows:
        for size in sizes:
            ratio = _compare(results, "W1", size, path, driver, base)
            yield _check_ratio(f"{what}, {size:,} sessions", ratio, limit, base)
    growth = _compare_sizes(results, "W1", TURN_PATH, 10, 10_000)
    yield _check_ratio("turn with 10,000 sessions", growth, 1.2, "with 10")
    slow = _compare(results, "W1", 10_000, "turn.p99_us", PALAVER, "raw_full")
    yield _check_ratio("99th percentile of the turn, 10,000 sessions", slow, 1.0, "raw_full’s")
    long = _compare(results, "W1L", 10_000, TURN_PATH, PALAVER, "raw_full")
    yield _check_ratio("turn, 10,000 messages in the session", long, 1.2, "raw_full")


def _check_path(results: Results) -> Iterator[TargetResult]:
    for level, limit in ((1, 1.8), (10, 2.0), (100, 2.5)):
        ratio = results.get_median("PATH", PALAVER, None, f"levels.{level}.ratio")
        yield _check_ratio(f"path to the stored answer, {level} at once", ratio, limit, "bare awaited turn")


def _check_server(results: Results) -> Iterator[TargetResult]:
    """Check `palaver serve`, next to a FastAPI application that does nothing."""

    def get(row: str, column: str) -> float | None:
        return results.get_median("HTTP", PALAVER, None, f"rows.{row}.{column}")

    values: list[tuple[str, str, float, str]] = [
        ("start to ready", "start to ready, 10 sessions", 600, "ms"),
        ("memory when ready", "idle memory, no followers", 70, "MiB"),
        ("idle processor", "idle CPU, no followers", 0.1, "%"),
    ]
    for figure, row, limit, unit in values:
        # The bare server uses so little of an idle processor that a ratio to it means nothing.
        yield _check_value(figure, get(row, "palaver"), limit, unit, None if unit == "%" else get(row, "ratio"))
    page = get("first page, 100,000 sessions", "ratio")
    yield _check_ratio("first page of 100,000 sessions over HTTP", page, 2.0, "the bare server")
    followers = get("send → received by each of 50 followers of a busy session", "ratio")
    yield _check_ratio("a message to 50 followers", followers, 3.0, "the bare server")


def _check_reading(results: Results) -> Iterator[TargetResult]:
    def check(figure: str, work: str, size: int, path: str, driver: str, base: str, limit: float) -> TargetResult:
        value, ratio = results.get_median(work, driver, size, path), _compare(results, work, size, path, driver, base)
        return _check_value(figure, value, limit, "µs", ratio)

    yield check("newest 50 of 100,000 sessions", "W3", 100_000, "list50.median_us", PALAVER, "raw_full", 120)
    yield check("last 50 messages", "W2", 10_000, "tail50.median_us", PALAVER, "raw_full", 60)
    yield check("last 50 messages on PostgreSQL", "W2", 10_000, "tail50.median_us", "palaver_pg", "raw_pg", 250)
    rare, rare_zh = "rare.median_us", "rare_zh.median_us"
    base = "raw_full_fts"
    yield check("rare word on PostgreSQL, 100,000 messages", "W4", 100_000, rare, "palaver_pg", base, 2_000)
    yield check("rare Chinese word, 1,000,000 messages (--full)", "W4", 1_000_000, rare_zh, PALAVER, base, 2_000)
    load = _compare(results, "W2", 10_000, "load.median_us", PALAVER, "raw_full")
    yield _check_ratio("whole transcript of 10,000", load, 2.0, "raw_full")


def _check_callers(results: Results) -> Iterator[TargetResult]:
    """Check the appends per second of 32 callers, next to those of one caller with hand-written SQL."""
    rows = [
        ("32 tasks", "palaver_aio", "raw_full", 35_000),
        ("32 threads", PALAVER, "raw_full", 22_000),
        ("32 threads on PostgreSQL", "palaver_pg", "raw_pg", 12_000),
    ]
    for figure, driver, base, limit in rows:
        values = results.get_values("W9", driver, None, "by_32")
        ratio = compute_median_ratio(values, results.get_values("W9", base, None, "by_1"))
        yield _check_value(figure, compute_median(values.values()), limit, "appends/s", ratio, is_minimum=True)


def _check_commands(results: Results) -> Iterator[TargetResult]:
    def get(name: str) -> float | None:
        return results.get_median("W10", PALAVER, None, f"commands.{name}.median_us")

    python = get("python alone")
    for name, limit in (("palaver --version", 35), ("palaver sessions list --json", 90)):
        value = get(name)
        ratio = value / python if value and python else None
        yield _check_value(f"`{name}`", None if value is None else value / 1e3, limit, "ms", ratio)


def _check_guard(results: Results) -> Iterator[TargetResult]:
    """Compare what hardly depends on the machine with what was recorded; `make soak` fails when it is worse."""
    recorded = read_recorded()
    limit = f"≤ {(MAX_RATIO_OF_RECORDED - 1) * 100:.0f} % above the recorded"
    for line in results.find_lines("GUARD", PALAVER):
        for name, figure in (line.get("figures") or {}).items():
            ratio = figure["palaver"] / figure["raw"]
            met = name not in recorded or ratio <= recorded[name].ratio * MAX_RATIO_OF_RECORDED
            yield TargetResult(name, limit, f"{figure['palaver']:.1f} {figure['unit']}".strip(), met, ratio)


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
        yield _check_peers_in(results, f"{what}, next to peers", work, path)


def _check_peers_in(results: Results, figure: str, work: str, path: str) -> TargetResult:
    target = "faster than every peer at every size"
    leads = []
    for size in results.list_sizes(work, PALAVER):
        for peer in PEERS:
            lead = _compare(results, work, size, path, peer, PALAVER)
            if lead is not None:
                leads.append((lead, peer, size))
    if not leads:
        return TargetResult(figure, target, "–", None)
    lead, peer, size = min(leads)
    measured = f"closest: {peer} at {size:,}, {lead:.1f}× as long ({len(leads)} comparisons)"
    return TargetResult(figure, target, measured, lead > 1.0)


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
    yield TargetResult("acknowledged messages", "each is stored exactly once", measured if lines else "–", met)


_CHECKS: tuple[Callable[[Results], Iterator[TargetResult]], ...] = (
    _check_turns,
    _check_path,
    _check_server,
    _check_reading,
    _check_callers,
    _check_commands,
    _check_guard,
    _check_durability,
    _check_peers,
)

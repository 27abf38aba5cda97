"""What `make bench` reports: each figure with its target, its ratio to the raw limit, and the version before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks import recorded
from benchmarks.recorded import read_recorded, record
from benchmarks.report import Report
from benchmarks.results import Results
from benchmarks.targets import list_ratios

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = "a machine, 2 cores"


@pytest.fixture(autouse=True)
def recorded_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(recorded, "RECORDED_FILE", tmp_path / "recorded.json")
    return tmp_path / "recorded.json"


def make_line(work: str, driver: str, size: int, rep: int = 0, **values: Any) -> dict[str, Any]:
    return {"work": work, "driver": driver, "size": size, "rep": (0, rep), **values}


def make_turns(*times: tuple[float, float]) -> Results:
    """Results of turns with ten sessions: the time of Palaver and of the raw limit in each repetition."""
    lines = []
    for rep, (palaver, raw) in enumerate(times):
        lines += [
            make_line("W1", "palaver", 10, rep, turn={"median_us": palaver}),
            make_line("W1", "raw_full", 10, rep, turn={"median_us": raw}),
        ]
    return Results(tuple(lines))


def find_row(results: Results, figure: str) -> list[str]:
    rows = [line.split(" | ") for line in Report(results).format_targets().splitlines()]
    [row] = [[cell.strip("| ") for cell in row] for row in rows if row[0] == f"| {figure}"]
    return row


def test_a_ratio_is_computed_within_each_repetition_and_its_median_meets_the_target() -> None:
    results = make_turns((110, 100), (330, 300), (900, 100))
    assert find_row(results, "turn, 10 sessions")[1:4] == ["≤ 1.2 × raw_full", "1.10×", "met"]


def test_a_missed_target_stands_beside_what_was_recorded_and_the_change() -> None:
    record({"turn, 10 sessions": 1.5}, MACHINE)
    row = find_row(make_turns((180, 100)), "turn, 10 sessions")
    assert row[2:] == ["1.80×", "**missed**", "1.80×", "1.50×, +20 %"]


def test_a_value_has_a_target_of_its_own_and_a_ratio_to_the_raw_limit() -> None:
    rows = {"start to ready, 10 sessions": {"palaver": 550.0, "bare": 500.0, "ratio": 1.1, "unit": "ms"}}
    results = Results((make_line("HTTP", "palaver", 0, rows=rows),))
    assert find_row(results, "start to ready")[1:5] == ["≤ 600 ms", "550 ms", "met", "1.10×"]


def test_more_than_a_minimum_meets_the_target() -> None:
    lines = (make_line("W9", "palaver_aio", 100, by_32=36_000), make_line("W9", "raw_full", 100, by_1=18_000))
    assert find_row(Results(lines), "32 tasks")[1:5] == ["≥ 35,000 appends/s", "36,000 appends/s", "met", "2.00×"]


def test_what_was_not_measured_is_named_and_neither_met_nor_missed() -> None:
    report = Report(make_turns((110, 100))).format_targets()
    assert "Not measured in this run: turn, 1,000 sessions;" in report
    assert "| turn, 1,000 sessions" not in report


def test_recording_keeps_what_was_not_measured(recorded_file: Path) -> None:
    record({"turn, 10 sessions": 1.5, "start to ready": 1.2}, MACHINE)
    record(list_ratios(make_turns((110, 100))), "another machine")
    found = read_recorded()
    assert {name: (each.ratio, each.machine) for name, each in found.items()} == {
        "turn, 10 sessions": (1.1, "another machine"),
        "start to ready": (1.2, MACHINE),
    }
    assert len(recorded_file.read_text(encoding="utf-8").splitlines()) == len(found) + 2  # one line for each
    assert json.loads(recorded_file.read_text(encoding="utf-8")).keys() == found.keys()

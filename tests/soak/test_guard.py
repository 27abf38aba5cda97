"""The guard against slow growth: what a turn, the path, the start and memory cost, beside what was recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.guard import MAX_ROUNDS, MIN_ROUNDS, Figure, check, format_report

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SLOWER_TURN = """
from benchmarks import guard
from benchmarks.drivers.palaver import Palaver

run_turn = Palaver.run_turn

def run_turn_and_calculate(self, *arguments):
    run_turn(self, *arguments)
    sum(range(3000))  # about 30 % of the processor time of a turn

Palaver.run_turn = run_turn_and_calculate
guard.MEASUREMENTS = {"turn": guard.measure_turn}
raise SystemExit(guard.main(["--json"]))
"""


def run_guard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False
    )


@pytest.mark.soak
def test_a_turn_the_path_the_start_and_memory_cost_no_more_than_recorded() -> None:
    result = run_guard("-m", "benchmarks.guard")
    sys.stdout.write(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.soak
def test_a_slower_turn_is_noticed() -> None:
    result = run_guard("-c", SLOWER_TURN)
    assert result.returncode == 1, result.stderr
    assert json.loads(result.stdout)["worse"] == ["turn: processor time"], result.stdout


def measure_in_turn(ratios: list[float]) -> Callable[[], dict[str, Figure]]:
    """Return a measurement that takes one ratio after the other from the list."""
    return lambda: {"turn": Figure(ratios.pop(0) * 10, 10, "µs")}


def test_a_noisy_moment_is_measured_again_until_it_shows_that_it_was_noise() -> None:
    ratios = [3.0] * MIN_ROUNDS + [1.0] * MAX_ROUNDS
    figures, worse = check({"turn": 1.0}, {"turn": measure_in_turn(ratios)})
    assert worse == []
    assert figures["turn"].ratio == 1.0


def test_a_change_that_stays_is_named_with_both_ratios_and_the_command_that_records_it() -> None:
    ratios = [1.16] * (MAX_ROUNDS + 1)
    figures, worse = check({"turn": 1.0}, {"turn": measure_in_turn(ratios)})
    assert worse == ["turn"]
    assert len(ratios) == 1  # the rounds are bounded
    last_line = format_report(figures, worse, {"turn": 1.0}).splitlines()[-1]
    assert "turn: 1.16 times the raw limit, recorded 1.00 (+16 %;" in last_line
    assert "python -m benchmarks --record --only GUARD" in last_line


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.14])
def test_a_gain_and_noise_below_the_limit_pass_after_the_fewest_rounds(ratio: float) -> None:
    ratios = [ratio] * MAX_ROUNDS
    _, worse = check({"turn": 1.0}, {"turn": measure_in_turn(ratios)})
    assert worse == []
    assert len(ratios) == MAX_ROUNDS - MIN_ROUNDS


def test_a_figure_that_is_not_recorded_is_reported() -> None:
    figures, worse = check({}, {"turn": measure_in_turn([1.0] * MIN_ROUNDS)})
    assert worse == []
    assert "Not recorded: turn." in format_report(figures, worse, {})

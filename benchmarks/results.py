"""Reads stored results: medians over repetitions, and ratios computed within each repetition."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import drivers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    Line = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The result lines of one or more runs."""

    lines: tuple[Line, ...]
    machines: tuple[Line, ...] = ()

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Results:
        lines, machines = [], []
        for number, path in enumerate(paths):
            with path.open() as file:
                for text in file:
                    line = json.loads(text)
                    if "machine" in line:
                        machines.append(line["machine"])
                    else:
                        lines.append({**line, "rep": (number, line["rep"])})
        return cls(tuple(lines), tuple(machines))

    def find_lines(self, work: str, driver: str, size: int | None = None) -> list[Line]:
        """Return the lines of one measurement, one for each repetition."""
        return [
            line
            for line in self.lines
            if line["work"] == work and line["driver"] == driver and size in (None, line["size"])
        ]

    def list_sizes(self, work: str, driver: str | None = None) -> list[int]:
        return sorted({r["size"] for r in self.lines if r["work"] == work and driver in (None, r["driver"])})

    def list_drivers(self, work: str, size: int | None = None) -> list[str]:
        """Return the measured systems, in the order of the registry."""
        measured = {r["driver"] for r in self.lines if r["work"] == work and size in (None, r["size"])}
        return [name for name in drivers.REGISTRY if name in measured]

    def get_values(self, work: str, driver: str, size: int | None, path: str) -> dict[tuple[int, int], float]:
        """Return one number of a measurement for each repetition. `path` names it, such as `turn.median_us`."""
        values = {}
        for line in self.find_lines(work, driver, size):
            value = get_value(line, path)
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[line["rep"]] = float(value)
        return values

    def get_median(self, work: str, driver: str, size: int | None, path: str) -> float | None:
        return compute_median(self.get_values(work, driver, size, path).values())


def get_value(line: Line, path: str) -> Any:
    """Return the value at a path of keys such as `turn.median_us`, or None."""
    value: Any = line
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def compute_median(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.median(numbers) if numbers else None


def compute_median_ratio(
    values: dict[tuple[int, int], float], base_values: dict[tuple[int, int], float]
) -> float | None:
    """Return the median of the ratios, each computed within one repetition."""
    return compute_median(
        values[rep] / base_values[rep] for rep in values.keys() & base_values.keys() if base_values[rep]
    )

"""Results read back: medians over repetitions, and ratios taken within each repetition."""

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
    """The lines of one or several runs."""

    lines: tuple[Line, ...]
    machines: tuple[Line, ...] = ()

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Results:
        """Every line of these files."""
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

    def of(self, work: str, driver: str, size: int | None = None) -> list[Line]:
        """The lines of one measurement, one for each repetition."""
        return [
            line
            for line in self.lines
            if line["work"] == work and line["driver"] == driver and size in (None, line["size"])
        ]

    def sizes(self, work: str, driver: str | None = None) -> list[int]:
        """The sizes that were measured."""
        return sorted({r["size"] for r in self.lines if r["work"] == work and driver in (None, r["driver"])})

    def drivers(self, work: str, size: int | None = None) -> list[str]:
        """The systems that were measured, in the order of the registry."""
        found = {r["driver"] for r in self.lines if r["work"] == work and size in (None, r["size"])}
        return [name for name in drivers.REGISTRY if name in found]

    def values(self, work: str, driver: str, size: int | None, path: str) -> dict[tuple[int, int], float]:
        """One number of a measurement by repetition; `path` leads to it, like `turn.median_us`."""
        found = {}
        for line in self.of(work, driver, size):
            value = at(line, path)
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[line["rep"]] = float(value)
        return found

    def median(self, work: str, driver: str, size: int | None, path: str) -> float | None:
        """The median over repetitions."""
        return middle(self.values(work, driver, size, path).values())


def at(line: Line, path: str) -> Any:
    """What lies at the end of a path of keys, or None."""
    value: Any = line
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def middle(values: Iterable[float]) -> float | None:
    """The median, or None when there is nothing."""
    known = list(values)
    return statistics.median(known) if known else None


def ratio(mine: dict[tuple[int, int], float], theirs: dict[tuple[int, int], float]) -> float | None:
    """The median of the ratios, each within one repetition."""
    return middle(mine[rep] / theirs[rep] for rep in mine.keys() & theirs.keys() if theirs[rep])

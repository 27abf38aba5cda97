"""The recorded ratios: what each figure was, beside the raw limit of its own run, when a version was measured last.

`recorded.json` has one line for each figure. `python -m benchmarks --record` writes those that it has measured.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.paths import BENCHMARKS_DIR

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDED_FILE = BENCHMARKS_DIR / "recorded.json"


@dataclass(frozen=True)
class Recorded:
    """A figure of a version that was measured."""

    ratio: float
    version: str
    date: str
    machine: str


def read_recorded() -> dict[str, Recorded]:
    if not RECORDED_FILE.exists():
        return {}
    return {name: Recorded(**fields) for name, fields in json.loads(RECORDED_FILE.read_text()).items()}


def record(ratios: Mapping[str, float], machine: str) -> None:
    """Write the ratios of this version; figures that were not measured stay as they are."""
    from palaver import __version__

    date = time.strftime("%Y-%m-%d", time.gmtime())
    new = {name: Recorded(round(ratio, 3), __version__, date, machine) for name, ratio in ratios.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(vars(each))}" for name, each in sorted((read_recorded() | new).items())]
    RECORDED_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")

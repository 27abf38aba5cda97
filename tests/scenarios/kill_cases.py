"""The cases of kill tests: all of them in a soak run, on both engines, and in `make test` those that prove most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ENGINES = ("sqlite", "postgres")


def build_cases(points: Iterable[tuple[Any, ...]], quick: Collection[tuple[Any, ...]]) -> list[Any]:
    """Build a case, `(engine, *point)`, for every engine and point; those that are not `quick` are marked `soak`."""
    cases = [(engine, *point) for engine in ENGINES for point in points]
    assert set(quick) <= set(cases), "a case of `make test` is one of all"
    return [pytest.param(*case, marks=() if case in quick else pytest.mark.soak) for case in cases]

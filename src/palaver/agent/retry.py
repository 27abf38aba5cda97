"""How often something is asked of a provider again, and after how long: one rule for all of them."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A few tries, further and further apart. Times are seconds."""

    tries: int = 3  # with one model, the first included
    first: float = 0.5
    longest: float = 8.0
    patience: float = 30.0  # a provider that asks for more than this is not waited for

    def wait(self, failures: int, *, asked: float | None = None, jitter: float | None = None) -> float | None:
        """How long to wait after so many failures, never shorter than was asked for; None when it is enough."""
        if failures >= self.tries or (asked is not None and asked > self.patience):
            return None
        spread = random.random() if jitter is None else jitter  # noqa: S311  (not a secret)
        step = min(self.first * 2.0 ** (failures - 1), self.longest) * (0.5 + spread / 2)
        return max(step, asked or 0.0)

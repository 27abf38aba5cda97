"""How often and after how long a request to a provider is retried: one policy for all providers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """A few tries with growing waits between them. All times are in seconds."""

    max_tries: int = 3  # with one model, the first included
    first_wait: float = 0.5
    max_wait: float = 8.0
    max_requested_wait: float = 30.0  # no retry if the provider asks for a longer wait

    def get_wait_seconds(
        self, failures: int, *, requested_wait: float | None = None, jitter: float | None = None
    ) -> float | None:
        """Return how long to wait before the next try, at least `requested_wait`; None if there is no next try."""
        if failures >= self.max_tries or (requested_wait is not None and requested_wait > self.max_requested_wait):
            return None
        jitter = random.random() if jitter is None else jitter  # noqa: S311  (not a secret)
        wait = min(self.first_wait * 2.0 ** (failures - 1), self.max_wait) * (0.5 + jitter / 2)
        return max(wait, requested_wait or 0.0)

"""A clock that stands still until it is told to move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Give it to a store instead of the machine's clock."""

    def __init__(self, now: datetime = datetime(2026, 11, 15, 8, 12, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """The moment it was set to."""
        return self._now

    def set(self, now: datetime) -> None:
        """Jump to a moment, forward or back."""
        self._now = now

    def advance(self, **by: float) -> datetime:
        """Move on by some `minutes`, `hours`, `days` …; the new moment."""
        self._now += timedelta(**by)
        return self._now

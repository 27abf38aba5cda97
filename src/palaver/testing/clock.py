"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Pass it to a store instead of the system clock."""

    def __init__(self, now: datetime = datetime(2026, 11, 15, 8, 12, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def set(self, now: datetime) -> None:
        """Jump to a time, forward or back."""
        self._now = now

    def advance(self, **duration: float) -> datetime:
        """Move forward by some `minutes`, `hours`, `days` … and return the new time."""
        self._now += timedelta(**duration)
        return self._now

"""A clock that shows the time of a PostgreSQL server, the same for every process that uses its database.

Processes on several machines compare leases, and the clocks of machines differ. So no process uses its own clock: it
asks the server now and then, on a connection that is in use anyway, and counts on from there with its monotonic clock.

Always true: reading the clock never waits and never asks the server; setting this machine's clock changes nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from palaver.core.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import psycopg

SYNC_INTERVAL_MICROS = 10_000_000  # so a machine that slept, or a server whose clock was set, is soon right again
MIN_CORRECTION_MICROS = 250_000  # smaller differences are ignored, so that network delays do not make time jump
MAX_ROUND_TRIP_MICROS = 1_000_000  # a slower answer is ignored: we do not know when the server gave it


def read_monotonic_micros() -> int:
    """Return microseconds that keep counting even if this machine's clock is set."""
    return time.monotonic_ns() // 1000


class ServerClock:
    """Shows the server's time."""

    def __init__(self, ticks: Callable[[], int] = read_monotonic_micros) -> None:
        self._ticks = ticks
        self._offset: int | None = None  # server time minus ticks
        self._synced_at = 0

    def now(self) -> datetime:
        """Return the current server time, aware, in UTC."""
        return from_micros(self._ticks() + (self._offset or 0))

    @property
    def needs_sync(self) -> bool:
        return self._offset is None or self._ticks() - self._synced_at > SYNC_INTERVAL_MICROS

    def sync(self, connection: psycopg.Connection[tuple[int]]) -> None:
        """Ask the server for its time."""
        sent_at = self._synced_at = self._ticks()
        row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()
        received_at = self._ticks()
        assert row is not None  # noqa: S101
        offset = row[0] - (sent_at + received_at) // 2
        is_fast = received_at - sent_at < MAX_ROUND_TRIP_MICROS
        if self._offset is None or (is_fast and abs(offset - self._offset) > MIN_CORRECTION_MICROS):
            self._offset = offset

"""The time of a PostgreSQL server, for all who work on its database.

Leases are compared between machines, whose clocks differ. So nobody goes by their own: the server is asked now and
then, on a connection that is in use anyway, and the time is counted on from there.

Always true: telling the time asks nobody and never waits; setting the clock of this machine changes nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import psycopg

ASKED_EVERY = 10_000_000  # microseconds; a machine that slept, or a server whose clock was set, is wrong no longer
NOTICED = 250_000  # a smaller difference is left alone, so that time does not go to and fro with the network
SLOW = 1_000_000  # for an answer; whoever waited so long does not know when it was given


def ticks() -> int:
    """Microseconds since some moment, whatever happens to this machine's clock."""
    return time.monotonic_ns() // 1000


class ServerClock:
    """Tells the server's time."""

    def __init__(self, ticks: Callable[[], int] = ticks) -> None:
        self._ticks = ticks
        self._ahead: int | None = None  # of the ticks
        self._asked = 0

    def now(self) -> datetime:
        """The present moment at the server, aware, in UTC."""
        return from_micros(self._ticks() + (self._ahead or 0))

    @property
    def is_due(self) -> bool:
        """Whether the server is to be asked again."""
        return self._ahead is None or self._ticks() - self._asked > ASKED_EVERY

    def ask(self, connection: psycopg.Connection[tuple[int]]) -> None:
        """Ask the server what time it is."""
        began = self._asked = self._ticks()
        row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()
        ended = self._ticks()
        assert row is not None  # noqa: S101
        ahead = row[0] - (began + ended) // 2
        if self._ahead is None or (ended - began < SLOW and abs(ahead - self._ahead) > NOTICED):
            self._ahead = ahead

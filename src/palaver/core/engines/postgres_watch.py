"""Receives changes from PostgreSQL: one connection listens to the notifications that writes send.

Now and then it also compares the server's snapshot, in which every commit leaves a trace. So a change without a
notification is found too, and all who wait for changes need no queries of their own. Behind a pooler only the snapshot
is compared: there, notifications would reach the connections of others.
"""

from __future__ import annotations

import contextlib
import logging
import select
import threading
import time
from typing import TYPE_CHECKING

import psycopg

from palaver.core.engines.file_events import WakeUp

if TYPE_CHECKING:
    from palaver.core.engines.base import OnChange
    from palaver.core.engines.postgres_connection import PooledConnection
    from palaver.core.engines.postgres_pool import PostgresPool

RECONNECT_SECONDS = 0.5  # pause before a new connection when the server has gone away
CHECK_SECONDS = 1.0  # between two reads of the snapshot
CLOSE_SECONDS = 2.0  # for the thread to end; then its connection is broken off

log = logging.getLogger(__name__)


class PostgresWatch:
    """A thread that calls `on_change` after every change by any process.

    It removes itself from `watches`, the engine's list, when it is closed.
    """

    def __init__(self, pool: PostgresPool, on_change: OnChange, watches: list[PostgresWatch]) -> None:
        self._pool = pool
        self._connection: PooledConnection | None = None
        self._on_change = on_change
        self._watches = watches
        self._closed = threading.Event()
        self._wake_up = WakeUp()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="palaver-listen", daemon=True)
        self._thread.start()
        self._listening.wait(5)  # from here on no change is missed

    def close(self) -> None:
        self._closed.set()
        self._wake_up.send()
        with contextlib.suppress(ValueError):  # closed before
            self._watches.remove(self)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive() and (connection := self._connection) is not None:
                connection.abort()
                self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except psycopg.Error as error:  # the connection broke: open another after a pause
                log.debug("postgres_watch_interrupted", extra={"error": str(error)})
            except Exception:  # whatever it is, changes must still be noticed
                log.exception("postgres_watch_failed")
            self._closed.wait(RECONNECT_SECONDS)
        self._wake_up.close()

    def _listen(self) -> None:
        with self._pool.connect() as connection:
            self._connection = connection
            if not connection.is_pooled:
                connection.execute("LISTEN palaver")
            snapshot, check_at = _read_snapshot(connection), time.monotonic() + CHECK_SECONDS
            if self._listening.is_set():
                self._on_change(None)  # a reconnect: what changed in between is not known
            self._listening.set()
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            poll.register(self._wake_up.fd, select.POLLIN)
            while not self._closed.is_set() and self._pool.is_current(connection):
                if time.monotonic() >= check_at:
                    last_snapshot, snapshot = snapshot, _read_snapshot(connection)
                    check_at = time.monotonic() + CHECK_SECONDS
                    if snapshot != last_snapshot:
                        self._on_change(frozenset())
                # Last: the read may have received notifications, which are no longer on the socket.
                payloads = [notify.payload for notify in connection.notifies(timeout=0)]
                if payloads and not self._closed.is_set():
                    self._on_change(frozenset(int(number) for number in payloads if number.lstrip("-").isdecimal()))
                poll.poll(max(0.0, check_at - time.monotonic()) * 1000)


def _read_snapshot(connection: PooledConnection) -> str:
    """Return which transactions are visible now. It is the same as long as none has committed on this server."""
    row = connection.tx.fetch_one("SELECT pg_current_snapshot()::text")
    assert row is not None  # noqa: S101
    return str(row[0])

"""Receives changes from PostgreSQL: one connection listens to the notifications that writes send.

Now and then it also compares the server's snapshot, in which every commit leaves a trace. So a change without a
notification is found too, and all who wait for changes need no queries of their own.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from typing import TYPE_CHECKING

import psycopg

from palaver.storage.engines.file_events import WakeUp
from palaver.storage.engines.postgres_pool import connect

if TYPE_CHECKING:
    from palaver.storage.engines.base import OnChange
    from palaver.storage.engines.postgres_pool import PooledConnection

RECONNECT_SECONDS = 0.5  # pause before a new connection when the server has gone away
CHECK_SECONDS = 1.0  # between two reads of the snapshot


class PostgresWatch:
    """A thread that calls `on_change` after every change by any process.

    It removes itself from `watches`, the engine's list, when it is closed.
    """

    def __init__(self, url: str, on_change: OnChange, watches: list[PostgresWatch]) -> None:
        self._url = url
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
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(psycopg.Error):  # the connection broke: open another after a pause
                self._listen()
            self._closed.wait(RECONNECT_SECONDS)
        self._wake_up.close()

    def _listen(self) -> None:
        with connect(self._url) as connection:
            connection.execute("LISTEN palaver")
            snapshot, check_at = _read_snapshot(connection), time.monotonic() + CHECK_SECONDS
            if self._listening.is_set():
                self._on_change(None)  # a reconnect: what changed in between is not known
            self._listening.set()
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            poll.register(self._wake_up.fd, select.POLLIN)
            while not self._closed.is_set():
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

"""Receives changes from PostgreSQL: one connection listens to the notifications that the schema's triggers send."""

from __future__ import annotations

import contextlib
import select
import threading
from typing import TYPE_CHECKING

import psycopg

from palaver.storage.engines.file_events import WakeUp
from palaver.storage.engines.postgres_pool import connect

if TYPE_CHECKING:
    from palaver.storage.engines.base import OnChange

RECONNECT_SECONDS = 0.5  # pause before a new connection when the server has gone away


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
            if self._listening.is_set():
                self._on_change(None)  # a reconnect: what changed in between is not known
            self._listening.set()
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            poll.register(self._wake_up.fd, select.POLLIN)
            while not self._closed.is_set():
                payloads = [notify.payload for notify in connection.notifies(timeout=0)]
                if payloads and not self._closed.is_set():
                    self._on_change(frozenset(int(number) for number in payloads if number.lstrip("-").isdecimal()))
                poll.poll()

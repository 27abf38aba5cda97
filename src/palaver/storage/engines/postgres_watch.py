"""Being told of changes by PostgreSQL: one connection listens to what the triggers of the schema announce."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from palaver.storage.engines.base import OnChange

AGAIN_AFTER = 1.0  # seconds, when the server has gone away
LOOK = 0.1  # seconds between two looks at whether we are to stop


class PostgresWatch:
    """A thread that tells of every change, by whichever process."""

    def __init__(self, url: str, on_change: OnChange, among: list[PostgresWatch]) -> None:
        self._url = url
        self._on_change = on_change
        self._among = among
        self._closed = threading.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="palaver-listen", daemon=True)
        self._thread.start()
        self._listening.wait(5)  # from here on nothing is missed

    def close(self) -> None:
        """Stop telling."""
        self._closed.set()
        with contextlib.suppress(ValueError):  # closed before
            self._among.remove(self)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(psycopg.Error):  # gone: another connection, after a while
                self._listen()
            self._closed.wait(AGAIN_AFTER)

    def _listen(self) -> None:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
            connection.execute("LISTEN palaver")
            if self._listening.is_set():
                self._on_change(None)  # what happened meanwhile is not known
            self._listening.set()
            while not self._closed.is_set():
                told = [notify.payload for notify in connection.notifies(timeout=LOOK, stop_after=1)]
                told += [notify.payload for notify in connection.notifies(timeout=0)] if told else []
                if told and not self._closed.is_set():
                    self._on_change(frozenset(int(number) for number in told if number.isdecimal()))

"""Keeps the search index up to date in the background, so that no message waits for it.

A thread waits until no message has been stored for a moment, then indexes in small batches, and merges the parts of the
index in small steps. Between them it pauses (`core/fair_slots.py`). A search first indexes, for
a moment, what is missing of the messages that its reader may see: normally all of them. After an import there can be
more; then the search says so (`SearchHits.is_indexing`), and the thread does the rest.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress

from palaver.core.clock import compute_pause
from palaver.core.engines.base import Engine, Read, WorkKind, Write, write_kind
from palaver.core.errors import StoreError
from palaver.sessions import search_table as search

QUIET_SECONDS = 0.25  # without a new message before indexing starts
BATCH_EVENTS = 128  # in one transaction: other writers wait for a few milliseconds
MAX_BACKLOG_MESSAGES = 50_000  # with more than this, the thread no longer waits for a quiet moment
CLOSE_SECONDS = 5.0  # for the batch in progress when the store is closed
MAX_CATCH_UP_SECONDS = 0.5  # that a search spends on indexing; it finishes the batch that it has begun


YIELD_SECONDS = 0.0005  # threads that store messages go first: they share the interpreter with this one


def _index_batch(batch: search.IndexBatch) -> Write[None]:
    return Write(lambda tx: search.index_batch(tx, batch))


# False without a commit, which is nearly always so.
_REBUILD = Write(search.rebuild_sessions, read_first=lambda tx: None if search.has_rebuild(tx) else False)


class Indexer:
    """The background thread that indexes new messages. It starts with the first message."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._notified = 0
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def notify(self) -> None:
        """Tell the indexer that a message is being stored."""
        self._notified += 1
        if self._thread is None:
            with self._starting:
                if self._thread is None and not self._closed.is_set():
                    self._thread = threading.Thread(target=self._run, name="palaver-indexer", daemon=True)
                    self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Stop the thread. The next search indexes what is missing."""
        self._closed.set()
        self._wake.set()
        with self._starting:
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        write_kind.set(WorkKind.BACKGROUND)
        indexed = 0  # value of `_notified` up to which everything is indexed
        while True:
            self._wake.wait()
            notified = self._notified
            if self._closed.wait(QUIET_SECONDS):
                return
            if notified != self._notified and self._notified - indexed < MAX_BACKLOG_MESSAGES:
                self._merge_parts()  # searches have indexed meanwhile
                continue
            self._wake.clear()
            if self._closed.is_set():  # `close` set it before the wake-up that was just cleared
                return
            if self._index_until_done(notified, indexed):
                indexed = notified
            else:
                self._wake.set()

    def _index_until_done(self, notified: int, indexed: int) -> bool:
        """Index until nothing is left; returns False early when new messages come, because storing them goes first."""
        while not self._closed.is_set():
            started = time.perf_counter()
            try:
                batch = self._engine.run(
                    Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS, lambda: time.sleep(YIELD_SECONDS)))
                )
                if batch is not None:
                    self._engine.run(_index_batch(batch))
                    self._closed.wait(compute_pause(time.perf_counter() - started))
                has_more = batch is not None or self._engine.run(_REBUILD)
            except StoreError:  # the disk is full or the server is down: the next message or search tries again
                return True
            self._merge_parts()
            if not has_more:
                return True
            if self._notified != notified and self._notified - indexed < MAX_BACKLOG_MESSAGES:
                return False
        return True

    def _merge_parts(self) -> None:
        if self._engine.name != "sqlite":
            return
        with suppress(StoreError):  # it is tried again with the next message
            is_merging = True
            while is_merging and not self._closed.is_set():
                started = time.perf_counter()
                is_merging = self._engine.run(Write(search.merge_parts))
                self._closed.wait(compute_pause(time.perf_counter() - started))


async def catch_up_index(
    engine: Engine, scope: search.PendingScope = search.EVERYTHING, max_seconds: float = math.inf
) -> None:
    """Index what is stored in these sessions and not yet indexed, for about as long as `max_seconds`."""
    ends_at = time.monotonic() + max_seconds
    find_batch = Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS, scope=scope))
    with suppress(StoreError):  # a full disk, or a lock that something else holds: what is indexed is found
        while (batch := await engine.arun(find_batch)) is not None:
            await engine.arun(_index_batch(batch))
            if time.monotonic() >= ends_at:
                return

"""Keeps the search index up to date in the background, so that no message waits for it.

A thread waits until no message has been stored for a moment, then indexes in small batches. It only saves time: every
search first indexes what is missing, so nothing depends on when this thread runs or whether it runs at all.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from palaver.domain.errors import StoreError
from palaver.domain.search_text import parse_query
from palaver.services.argument_checks import check_count
from palaver.services.operation import ReadAfterWork
from palaver.storage import search
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.domain.session import SearchHit
    from palaver.storage.engines.base import Engine, Transaction

QUIET_SECONDS = 0.25  # without a new message before indexing starts
BATCH_EVENTS = 512  # in one transaction: a few short interruptions of writers rather than many
MAX_BACKLOG_MESSAGES = 50_000  # with more than this, the thread no longer waits for a quiet moment
MAX_HITS = 200


def _index_batch(batch: search.IndexBatch) -> Write[None]:
    return Write(lambda tx: search.index_batch(tx, batch))


def _yield_to_other_threads() -> None:
    """Let threads that store messages go first: they share the interpreter with this one."""
    time.sleep(0.0005)


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
            thread.join()

    def _run(self) -> None:
        indexed = 0  # value of `_notified` up to which everything is indexed
        while True:
            self._wake.wait()
            notified = self._notified
            if self._closed.wait(QUIET_SECONDS):
                return
            if notified != self._notified and self._notified - indexed < MAX_BACKLOG_MESSAGES:
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
            try:
                batch = self._engine.run(
                    Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS, _yield_to_other_threads))
                )
                if batch is None:
                    return True
                self._engine.run(_index_batch(batch))
            except StoreError:  # the disk is full or the server is down: the next message or search tries again
                return True
            if self._notified != notified and self._notified - indexed < MAX_BACKLOG_MESSAGES:
                return False
        return True


def build_search(
    text: str,
    list_audiences: Callable[[Transaction], Sequence[int] | None],
    *,
    limit: int = 20,
    before: int | None = None,
    get_session_no: Callable[[Transaction], int | None] | None = None,
) -> ReadAfterWork[search.IndexBatch, Sequence[SearchHit]]:
    """Build a search that first brings the index up to date: it finds everything that was stored before it began.

    `list_audiences` and `get_session_no` say where to search; None means everywhere.
    """
    check_count("limit", limit, maximum=MAX_HITS)
    check_count("before", before, minimum=0)
    query = parse_query(text)

    def find(tx: Transaction) -> Sequence[SearchHit]:
        session_no = get_session_no(tx) if get_session_no else None
        return search.find_messages(tx, query, list_audiences(tx), limit=limit, before=before, session_no=session_no)

    return ReadAfterWork(Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS)), _index_batch, Read(find))


async def catch_up_index(engine: Engine) -> None:
    """Index everything that is stored and not yet indexed."""
    while (batch := await engine.arun(Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS)))) is not None:
        await engine.arun(_index_batch(batch))

"""Keeps the search index close behind the log, outside of anybody's turn.

A thread waits until the store is quiet for a moment, then indexes in small batches. It is a convenience: a
search catches up by itself first, so nothing depends on when this thread runs or whether it ever does.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from palaver.domain.errors import StoreError
from palaver.domain.search_text import parse_query
from palaver.services.argument_checks import check_count
from palaver.services.operation import After
from palaver.storage import search
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.domain.session import SearchHit
    from palaver.storage.engines.base import Engine, Transaction

QUIET = 0.25  # seconds without a new message before it begins
BATCH = 512  # events in one transaction: few, short stops rather than many
BACKLOG = 50_000  # messages after which it no longer waits for quiet
MOST_HITS = 200


def _index(batch: search.Batch) -> Write[None]:
    return Write(lambda tx: search.index(tx, batch))


def _breathe() -> None:
    """Let those who speak go first: they share the interpreter with this thread."""
    time.sleep(0.0005)


class Indexer:
    """The thread that follows the log."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._news = 0
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def soon(self) -> None:
        """Something is being said."""
        self._news += 1
        if self._thread is None:
            with self._starting:
                if self._thread is None and not self._closed.is_set():
                    self._thread = threading.Thread(target=self._serve, name="palaver-indexer", daemon=True)
                    self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Stop; what is left is indexed by the next search or the next start."""
        self._closed.set()
        self._wake.set()
        with self._starting:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _serve(self) -> None:
        done = 0
        while True:
            self._wake.wait()
            seen = self._news
            if self._closed.wait(QUIET):
                return
            if seen != self._news and self._news - done < BACKLOG:
                continue
            self._wake.clear()
            if self._closed.is_set():  # set before the wake that was cleared just now
                return
            if self._follow(seen, done):
                done = seen
            else:
                self._wake.set()

    def _follow(self, seen: int, done: int) -> bool:
        """Index until nothing is left; False when somebody speaks again, who goes first."""
        while not self._closed.is_set():
            try:
                batch = self._engine.run(Read(lambda tx: search.unindexed(tx, BATCH, _breathe)))
                if batch is None:
                    return True
                self._engine.run(_index(batch))
            except StoreError:  # the disk is full, the server away: the next message or search tries again
                return True
            if self._news != seen and self._news - done < BACKLOG:
                return False
        return True


def search_work(
    text: str,
    audiences: Callable[[Transaction], Sequence[int] | None],
    *,
    limit: int = 20,
    before: int | None = None,
    session_no: Callable[[Transaction], int] | None = None,
) -> After[search.Batch, Sequence[SearchHit]]:
    """Let the index catch up, then find: nothing that was stored before the question is missed."""
    check_count("limit", limit, most=MOST_HITS)
    check_count("before", before, least=0)
    query = parse_query(text)

    def find(tx: Transaction) -> Sequence[SearchHit]:
        where = session_no(tx) if session_no else None
        return search.find(tx, query, audiences(tx), limit=limit, before=before, session_no=where)

    return After(Read(lambda tx: search.unindexed(tx, BATCH)), _index, Read(find))


async def catch_up(engine: Engine) -> None:
    """Let the index follow everything that was stored before."""
    while (batch := await engine.arun(Read(lambda tx: search.unindexed(tx, BATCH)))) is not None:
        await engine.arun(_index(batch))

"""Keeps the search index up to date in the background, so that no message waits for it.

A thread waits until no message has been stored for a moment, then indexes in small batches, and merges the parts of the
index in small steps. Between them it pauses (`core/fair_slots.py`). A search first indexes, for
a moment, what is missing of the messages that its reader may see: normally all of them. After an import there can be
more; then the search says so (`SearchHits.is_indexing`), and the thread does the rest.
"""

from __future__ import annotations

import math
import re
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.clock import compute_pause, to_micros
from palaver.core.engines.base import Read, WorkKind, Write, write_kind
from palaver.core.errors import InvalidInput, SessionNotFound, StoreError
from palaver.core.ids import SESSION_ID_PATTERN
from palaver.core.operation import ReadAfterWork, check_count
from palaver.core.texts import say
from palaver.sessions import search_table as search
from palaver.sessions.model import SearchHits
from palaver.sessions.search_table import SearchConditions
from palaver.sessions.search_text import NO_FILTER, Query, parse_query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.core.engines.base import Engine, Transaction
    from palaver.people.model import Author
    from palaver.sessions.search_text import SearchFilter

QUIET_SECONDS = 0.25  # without a new message before indexing starts
BATCH_EVENTS = 128  # in one transaction: other writers wait for a few milliseconds
MAX_BACKLOG_MESSAGES = 50_000  # with more than this, the thread no longer waits for a quiet moment
CLOSE_SECONDS = 5.0  # for the batch in progress when the store is closed
MAX_HITS = 200
MAX_SEARCH_WAIT_SECONDS = 0.5  # for other writers, before a search goes on with what is indexed
MAX_CATCH_UP_SECONDS = 0.5  # that a search spends on indexing; it finishes the batch that it has begun
_CURSOR = re.compile(rf"({SESSION_ID_PATTERN.pattern})\.([0-9]{{1,15}})")


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
                    Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS, _yield_to_other_threads))
                )
                if batch is not None:
                    self._engine.run(_index_batch(batch))
                    self._closed.wait(compute_pause(time.perf_counter() - started))
            except StoreError:  # the disk is full or the server is down: the next message or search tries again
                return True
            self._merge_parts()
            if batch is None:
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
                is_merging = self._engine.run(_MERGE_PARTS)
                self._closed.wait(compute_pause(time.perf_counter() - started))


_MERGE_PARTS = Write(search.merge_parts)


def build_search(
    text: str,
    list_audiences: Callable[[Transaction], Sequence[int] | None],
    find_session_no: Callable[[Transaction, str], int],
    *,
    limit: int = 20,
    cursor: str | None = None,
    is_typing: bool = False,
    get_session_no: Callable[[Transaction], int | None] | None = None,
    search_filter: SearchFilter = NO_FILTER,
    get_project_no: Callable[[Transaction], int | None] | None = None,
    list_authors: Callable[[Transaction], Sequence[Author] | None] | None = None,
    max_seconds: float | None = None,
) -> ReadAfterWork[search.IndexBatch, SearchHits]:
    """Build a search that first brings the index up to date: it finds everything that was stored before it began.

    If that takes longer than `max_seconds` (None: `MAX_CATCH_UP_SECONDS`), or nothing can be written (a full disk, a
    lock that another process holds), `is_indexing` of the result says that something may be missing. `list_audiences`
    and `get_session_no` say where to search; None means everywhere. `get_project_no` returns the project of the filter,
    `list_authors` its person. `find_session_no` finds the session of the cursor, or raises SessionNotFound. With
    `is_typing`, the last word may be incomplete.
    """
    check_count("limit", limit, maximum=MAX_HITS)
    last_hit = _parse_cursor(cursor)
    query = parse_query(text, is_typing=is_typing)
    if search_filter.without:
        excluded = parse_query(search_filter.without).terms
        query = Query((*query.terms, *(replace(term, excluded=True) for term in excluded)))
    after, until = search_filter.after, search_filter.before

    def get_pending(tx: Transaction) -> search.PendingScope:
        return search.PendingScope(list_audiences(tx), get_session_no(tx) if get_session_no else None)

    def find(tx: Transaction, is_indexing: bool) -> SearchHits:
        before = None if last_hit is None else _find_event_no(tx, last_hit, find_session_no)
        conditions = SearchConditions(
            session_no=get_session_no(tx) if get_session_no else None,
            platform=search_filter.platform,
            role=search_filter.role,
            after=None if after is None else to_micros(after),
            before=None if until is None else to_micros(until),
            project_no=get_project_no(tx) if get_project_no else None,
            authors=list_authors(tx) if list_authors else None,
            archived=search_filter.archived,
        )
        audiences = list_audiences(tx)
        hits = search.find_messages(tx, query, audiences, limit=limit, before=before, conditions=conditions)
        return SearchHits(hits, is_indexing=is_indexing)

    def index_soon(batch: search.IndexBatch) -> Write[None]:
        return Write(lambda tx: search.index_batch(tx, batch), max_wait_seconds=MAX_SEARCH_WAIT_SECONDS)

    return ReadAfterWork(
        Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS, scope=get_pending(tx))),
        index_soon,
        Read(lambda tx: search.has_unindexed(tx, get_pending(tx))),
        lambda is_done: Read(lambda tx: find(tx, not is_done)),
        MAX_CATCH_UP_SECONDS if max_seconds is None else max_seconds,
    )


def _parse_cursor(cursor: str | None) -> tuple[str, int] | None:
    """Return the session and the number of the message that a cursor names."""
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.", key="cursor")
    return match[1], int(match[2])


def _find_event_no(tx: Transaction, hit: tuple[str, int], find_session_no: Callable[[Transaction, str], int]) -> int:
    """Return the number of a message among all messages. It is internal: it would tell how many others there are."""
    session_id, seq = hit
    try:
        event_no = search.find_event_no(tx, find_session_no(tx, session_id), seq)
    except SessionNotFound:
        event_no = None
    if event_no is None:
        raise InvalidInput(
            say(
                "sessions.cursor_last_result_page",
                "cursor: the last result of the page before was deleted. Search again.",
            ),
            key="cursor",
        )
    return event_no


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

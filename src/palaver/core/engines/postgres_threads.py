"""The threads on which a server waits for PostgreSQL: some for each kind of work, as many as it has connections.

Always true: a caller gets its result, or `StoreBusy` before its work has started. Work that has started is waited for,
because a write may be stored; the pool breaks off connections on which nothing comes back.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from palaver.core.engines import postgres_pool
from palaver.core.errors import StoreBusy, StoreClosed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from concurrent.futures import Future

    from palaver.core.engines.base import WorkKind
    from palaver.core.engines.postgres_pool import PostgresPool

T = TypeVar("T")


class PostgresThreads:
    """Runs blocking work for an event loop."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        self._executors = {
            kind: ThreadPoolExecutor(count, f"palaver-postgres-{kind}")
            for kind, count in postgres_pool.MAX_CONNECTIONS.items()
        }
        # One write at a time of those with the same key has a thread: the others would wait in it for the same lock.
        self._locks: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = WeakValueDictionary()

    async def run(self, work: Callable[[], T], kind: WorkKind, key: str | None) -> T:
        """Run work on a thread of its kind; raise `StoreBusy` if it can't start in time."""
        if key is None:
            return await self._run(work, kind)
        async with self._wait_for_turn(key):
            return await self._run(work, kind)

    def close(self) -> None:
        """Let the work that has started finish."""
        for executor in self._executors.values():
            executor.shutdown()

    @asynccontextmanager
    async def _wait_for_turn(self, key: str) -> AsyncIterator[None]:
        place = (asyncio.get_running_loop(), key)
        lock = self._locks.setdefault(place, asyncio.Lock())
        try:
            async with asyncio.timeout(postgres_pool.BUSY_TIMEOUT_SECONDS):
                await lock.acquire()
        except TimeoutError:
            raise StoreBusy(postgres_pool.ALL_BUSY) from None
        try:
            yield
        finally:
            lock.release()

    async def _run(self, work: Callable[[], T], kind: WorkKind) -> T:
        def run_safely() -> T:
            try:
                return work()
            except StopIteration as error:  # a future cannot hold a StopIteration
                raise RuntimeError("a unit of work raised StopIteration") from error

        try:
            future = self._executors[kind].submit(run_safely)
        except RuntimeError:  # the threads have been shut down
            raise StoreClosed from None
        loop = asyncio.get_running_loop()
        start_limit = _StartLimit(loop, self._pool, future)
        try:
            return await asyncio.wrap_future(future, loop=loop)
        except asyncio.CancelledError:
            if start_limit.is_over and not _is_being_canceled():
                raise StoreBusy(postgres_pool.ALL_BUSY) from None
            raise
        finally:
            start_limit.timer.cancel()


class _StartLimit:
    """Cancels work that has not started in time. `asyncio.wait` with a timeout would take longer than a short query."""

    __slots__ = ("_future", "_loop", "_pool", "is_over", "timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: PostgresPool, future: Future[Any]) -> None:
        self._loop = loop
        self._pool = pool
        self._future = future
        self.is_over = False
        self.timer = loop.call_later(postgres_pool.BUSY_TIMEOUT_SECONDS, self._check)

    def _check(self) -> None:
        self._pool.abort_overdue()
        self.is_over = self._future.cancel()
        if not self.is_over:  # it has started, or is done: look again for a connection on which nothing comes back
            self.timer = self._loop.call_later(postgres_pool.BUSY_TIMEOUT_SECONDS, self._check)


def _is_being_canceled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

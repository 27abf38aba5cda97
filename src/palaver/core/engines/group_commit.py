"""Group commit: one writer at a time, and all callers that wait share its next transaction.

A durable commit costs one `fsync`. Callers that arrive while one is under way are collected and run together in the
next transaction, so they share the cost. If one of them fails, the batch runs again with each caller in a savepoint of
its own, so that a failure reaches only the caller whose work failed.
A blocking caller that finds the writer idle writes by itself, which saves a thread switch. Otherwise, and for awaiting
callers, a writer thread does the work.

Always true: a caller is told of success only after the commit that contains its work, and after `confirm`, which
raises an error if what was committed would not be found again.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from palaver.core.errors import StoreBusy, StoreClosed, StoreError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from palaver.core.engines.base import Transaction

T = TypeVar("T")

MAX_BATCH_SIZE = 256  # callers in one transaction; bounds how long the first of them waits
SHORT_LOCK_SECONDS = 0.1  # that another process may hold the write lock before work for later is refused


class WriterConnection(Protocol):
    """The one connection that writes, as the steps that group commit needs."""

    @property
    def tx(self) -> Transaction: ...

    def begin(self, max_wait_seconds: float | None = None) -> None:
        """Take the write lock; raise an error if that takes too long."""

    def commit(self) -> None:
        """Make everything durable; if that fails, roll everything back and raise the error."""

    def rollback(self) -> None:
        """Drop everything since `begin`."""

    def savepoint(self) -> None:
        """Mark where one caller's work begins."""

    def release(self) -> None:
        """Keep one caller's work."""

    def rollback_to_savepoint(self) -> bool:
        """Drop one caller's work; return False if the database has dropped the whole transaction with it."""


class WriteRequest(Generic[T]):
    """One caller's work and, once it has run, its result or error."""

    __slots__ = ("_future", "_gate", "_loop", "error", "result", "run")

    def __init__(self, run: Callable[[Transaction], T], loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.run = run
        self.result: T | None = None
        self.error: BaseException | None = None
        self._loop = loop
        self._future: asyncio.Future[T] | None = loop.create_future() if loop else None
        self._gate: threading.Lock | None = None

    def close_gate(self) -> None:
        """Prepare for a thread that calls `wait`."""
        self._gate = threading.Lock()
        self._gate.acquire()

    def wait(self) -> T:
        """Block until the work is durable; return its result or raise its error."""
        assert self._gate is not None  # noqa: S101
        self._gate.acquire()
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # the work returned it

    @property
    def future(self) -> asyncio.Future[T]:
        assert self._future is not None  # noqa: S101
        return self._future

    def notify_caller(self, loops: dict[asyncio.AbstractEventLoop, list[WriteRequest[Any]]]) -> None:
        """Wake a blocked thread now; add an awaiting caller to `loops`, which takes one call per event loop."""
        if self._gate is not None:
            self._gate.release()
        elif self._loop is not None:
            loops.setdefault(self._loop, []).append(self)


class GroupWriter:
    """Runs units of work on the one connection that writes."""

    def __init__(self, connection: WriterConnection, name: str, confirm: Callable[[], None] = lambda: None) -> None:
        self._connection = connection
        self._confirm = confirm
        self._name = name
        self._write_lock = threading.Lock()  # its holder may use the connection
        self._lock_holder: int | None = None
        self._queue: queue.SimpleQueue[WriteRequest[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._closed = False
        self.blocked_since: float | None = None  # by the monotonic clock, while it waits for the write lock

    def call(self, run: Callable[[Transaction], T], max_wait_seconds: float | None = None) -> T:
        """Do the work and return when it is durable; `max_wait_seconds` is for the lock of other processes."""
        if not self._write_lock.locked() and self._queue.empty():
            # `with`, because an interrupt (Ctrl-C) cannot come between taking the lock and guarding it.
            with self._write_lock:
                return self._run_alone(run, max_wait_seconds)
        if self._lock_holder == threading.get_ident():
            raise StoreError("a unit of work may not start another one on the same store")
        request = WriteRequest(run)
        request.close_gate()
        self._submit(request)
        return request.wait()

    def acall(
        self, run: Callable[[Transaction], T], loop: asyncio.AbstractEventLoop, max_wait_seconds: float | None = None
    ) -> Awaitable[T]:
        """Do the work on the writer thread; after `max_wait_seconds`, raise `StoreBusy` and let it go on alone.

        If another process has held the write lock for a while, work that can be done later is refused at once.
        """
        blocked_since = self.blocked_since
        if max_wait_seconds and blocked_since and time.monotonic() - blocked_since > SHORT_LOCK_SECONDS:
            raise StoreBusy
        request = WriteRequest(run, loop)
        self._submit(request)
        return request.future if max_wait_seconds is None else _wait_for(request.future, max_wait_seconds)

    def run_exclusively(self, action: Callable[[], T]) -> T:
        """Run maintenance that must not meet a writer."""
        with self._write_lock:
            return action()

    def try_exclusively(self, action: Callable[[], object]) -> bool:
        """Run a short action that must not meet a writer, unless there is one now; return whether it ran."""
        if not self._write_lock.acquire(blocking=False):
            return False
        try:
            action()
        finally:
            self._write_lock.release()
        return True

    def close(self, close_connection: Callable[[], None]) -> None:
        """Finish what was submitted, close the connection, and refuse everything from then on."""
        with self._start_lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join()
        with self._write_lock:  # a caller that writes by itself finishes first
            close_connection()
        self._refuse_queued()

    def _run_alone(self, run: Callable[[Transaction], T], max_wait_seconds: float | None) -> T:
        """Let the caller, who holds the write lock, be the writer."""
        if self._closed:
            raise StoreClosed
        connection = self._connection
        try:
            self._lock_holder = threading.get_ident()
            self._begin(max_wait_seconds)
            result = run(connection.tx)
            connection.commit()
            self._confirm()
        except BaseException:
            connection.rollback()
            raise
        finally:
            self._lock_holder = None
        return result

    def _begin(self, max_wait_seconds: float | None = None) -> None:
        self.blocked_since = time.monotonic()
        try:
            self._connection.begin(max_wait_seconds)
        finally:
            self.blocked_since = None

    def _submit(self, request: WriteRequest[Any]) -> None:
        self._queue.put(request)
        if self._thread is None:
            with self._start_lock:
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(target=self._run_thread, name=self._name, daemon=True)
                    self._thread.start()
        if self._closed:  # the thread may have ended already: nothing else would answer the request
            self._refuse_queued()

    def _run_thread(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            with self._write_lock:
                self._lock_holder = threading.get_ident()
                try:
                    self._run_batch(self._collect_batch(first))
                finally:
                    self._lock_holder = None

    def _collect_batch(self, first: WriteRequest[Any]) -> list[WriteRequest[Any]]:
        batch = [first]
        while len(batch) < MAX_BATCH_SIZE:
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                break
            if request is None:  # closing: run what came before, then stop
                self._queue.put(None)
                break
            batch.append(request)
        return batch

    def _run_batch(self, batch: list[WriteRequest[Any]]) -> None:
        """Run the batch in one transaction and tell every caller its result or error."""
        try:
            self._begin()
            if not self._run_as_one(batch):
                self._begin()
                self._run_with_savepoints(batch)
            self._confirm()
        except BaseException as error:  # noqa: BLE001  (given to the callers, whose work was not stored)
            for request in batch:
                request.error = request.error or error
        _notify_callers(batch)

    def _run_as_one(self, batch: list[WriteRequest[Any]]) -> bool:
        """Run the batch without savepoints; return False, having changed nothing, if one of several callers fails."""
        connection = self._connection
        try:
            for request in batch:
                request.result = request.run(connection.tx)
            connection.commit()
        except BaseException:
            connection.rollback()
            if len(batch) == 1:
                raise
            return False  # running the callers one by one shows whose error it is
        return True

    def _run_with_savepoints(self, batch: list[WriteRequest[Any]]) -> None:
        """Run each caller's work in its own savepoint, so that a failure reaches that caller only."""
        try:
            for request in batch:
                if not self._run_in_savepoint(request):
                    raise request.error or StoreError
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise

    def _run_in_savepoint(self, request: WriteRequest[Any]) -> bool:
        """Run one caller's work; return False if its failure has rolled back the whole transaction."""
        self._connection.savepoint()
        try:
            request.result = request.run(self._connection.tx)
        except BaseException as error:  # noqa: BLE001  (the caller gets it)
            request.error = error
            return self._connection.rollback_to_savepoint()
        self._connection.release()
        return True

    def _refuse_queued(self) -> None:
        """Answer the requests that came too late."""
        refused: list[WriteRequest[Any]] = []
        while True:
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                break
            if request is None:
                self._queue.put(None)  # the thread still needs it
                break
            request.error = StoreClosed()
            refused.append(request)
        _notify_callers(refused)


async def _wait_for(future: asyncio.Future[T], max_seconds: float) -> T:
    import asyncio  # a blocking program does not need it

    try:
        return await asyncio.wait_for(future, max_seconds)
    except TimeoutError:
        raise StoreBusy from None


def _notify_callers(requests: list[WriteRequest[Any]]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[WriteRequest[Any]]] = {}
    for request in requests:
        request.notify_caller(loops)
    for loop, awaited in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve_futures, awaited)
        except RuntimeError:  # the loop is closed: no caller is waiting any more, and the work is stored all the same
            continue


def _resolve_futures(requests: list[WriteRequest[Any]]) -> None:
    for request in requests:
        future = request.future
        if future.done():  # its caller was canceled
            continue
        if isinstance(request.error, StopIteration):  # a future cannot hold a StopIteration
            future.set_exception(RuntimeError("a unit of work raised StopIteration"))
        elif request.error is not None:
            future.set_exception(request.error)
        else:
            future.set_result(request.result)

"""Group commit: one writer at a time, and everybody who waits shares its transaction.

A durable commit costs one `fsync`. Callers that arrive while one is under way are gathered and run together
in the next transaction, so the cost is shared. When one of them fails, the batch is run again with each in its
own savepoint, so that one caller's failure is its own.
A blocking caller that finds the writer idle writes by itself: no thread hop is paid. Otherwise, and for
awaiting callers, a writer thread does the work.

Always true: a caller hears of success only after the commit that holds its work.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from palaver.domain.errors import StoreClosed, StoreError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from palaver.storage.engines.base import Transaction

T = TypeVar("T")

MOST_TOGETHER = 256  # callers in one transaction; keeps the first of them from waiting for ever


class Connection(Protocol):
    """What the writer needs of the one connection that writes."""

    @property
    def tx(self) -> Transaction:
        """Its statements."""
        ...

    def begin(self) -> None:
        """Take the write lock."""
        ...

    def commit(self) -> None:
        """Make everything durable; on failure everything is rolled back and the error raised."""
        ...

    def rollback(self) -> None:
        """Forget everything since `begin`."""
        ...

    def savepoint(self) -> None:
        """Mark where one caller's work begins."""
        ...

    def release(self) -> None:
        """Keep one caller's work."""
        ...

    def undo(self) -> bool:
        """Forget one caller's work; False when the whole transaction is gone with it."""
        ...


class Request(Generic[T]):
    """One caller's work and, in the end, its outcome."""

    __slots__ = ("_future", "_gate", "_loop", "error", "result", "run")

    def __init__(self, run: Callable[[Transaction], T], loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.run = run
        self.result: T | None = None
        self.error: BaseException | None = None
        self._loop = loop
        self._future: asyncio.Future[T] | None = loop.create_future() if loop else None
        self._gate: threading.Lock | None = None

    def block(self) -> None:
        """Prepare to be waited for by a thread."""
        self._gate = threading.Lock()
        self._gate.acquire()

    def outcome(self) -> T:
        """The result, or the error it ended with."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # the work returned it

    def wait(self) -> T:
        """Block until the work is durable."""
        assert self._gate is not None  # noqa: S101
        self._gate.acquire()
        return self.outcome()

    @property
    def future(self) -> asyncio.Future[T]:
        """What an awaiting caller waits for."""
        assert self._future is not None  # noqa: S101
        return self._future

    def settle(self, loops: dict[asyncio.AbstractEventLoop, list[Request[Any]]]) -> None:
        """Tell the caller, or note it among those to be told in one call per event loop."""
        if self._gate is not None:
            self._gate.release()
        elif self._loop is not None:
            loops.setdefault(self._loop, []).append(self)


class GroupWriter:
    """Runs work on the one writing connection."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._turn = threading.Lock()  # whoever holds it may use the connection
        self._holder: int | None = None
        self._waiting: queue.SimpleQueue[Request[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    def call(self, run: Callable[[Transaction], T]) -> T:
        """Do the work and return when it is durable."""
        if not self._turn.locked() and self._waiting.empty():
            # `with`, because an interrupt (Ctrl-C) cannot come between taking the turn and minding it.
            with self._turn:
                return self._alone(run)
        if self._holder == threading.get_ident():
            raise StoreError("a unit of work may not start another one on the same store")
        request = Request(run)
        request.block()
        self._submit(request)
        return request.wait()

    async def acall(self, run: Callable[[Transaction], T], loop: asyncio.AbstractEventLoop) -> T:
        """Do the work on the writer thread."""
        request = Request(run, loop)
        self._submit(request)
        return await request.future

    def exclusively(self, do: Callable[[], T]) -> T:
        """Run something while nobody writes (upkeep that must not meet a writer)."""
        with self._turn:
            return do()

    def close(self, let_go: Callable[[], None]) -> None:
        """Finish what was submitted, let go of the connection, then refuse everything."""
        with self._starting:
            self._closed = True
            thread = self._thread
        if thread is not None:
            self._waiting.put(None)
            thread.join()
        with self._turn:  # whoever writes by itself finishes first
            let_go()
        self._refuse_rest()

    def _alone(self, run: Callable[[Transaction], T]) -> T:
        """The caller is the writer. The turn is held."""
        if self._closed:
            raise StoreClosed
        connection = self._connection
        try:
            self._holder = threading.get_ident()
            connection.begin()
            result = run(connection.tx)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            self._holder = None
        return result

    def _submit(self, request: Request[Any]) -> None:
        self._waiting.put(request)
        if self._thread is None:
            with self._starting:
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                    self._thread.start()
        if self._closed:  # the thread may have gone already: nobody else would answer
            self._refuse_rest()

    def _serve(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            with self._turn:
                self._holder = threading.get_ident()
                try:
                    self._together(self._gather(first))
                finally:
                    self._holder = None

    def _gather(self, first: Request[Any]) -> list[Request[Any]]:
        batch = [first]
        while len(batch) < MOST_TOGETHER:
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                break
            if request is None:  # closing: serve what came before, then stop
                self._waiting.put(None)
                break
            batch.append(request)
        return batch

    def _together(self, batch: list[Request[Any]]) -> None:
        """Run the batch in one transaction and tell everybody how it ended."""
        try:
            self._connection.begin()
            if not self._all(batch):
                self._connection.begin()
                self._each(batch)
        except BaseException as error:  # noqa: BLE001  (handed to the callers, whose work did not happen)
            for request in batch:
                request.error = request.error or error
        loops: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = {}
        for request in batch:
            request.settle(loops)
        for loop, requests in loops.items():
            _tell(loop, requests)

    def _all(self, batch: list[Request[Any]]) -> bool:
        """The batch as one. False, and nothing has happened, when it did not go well."""
        connection = self._connection
        try:
            for request in batch:
                request.result = request.run(connection.tx)
            connection.commit()
        except BaseException:  # noqa: BLE001  (whose it is, is found out one by one)
            connection.rollback()
            return False
        return True

    def _each(self, batch: list[Request[Any]]) -> None:
        """The batch with each caller's work in its own savepoint, so that a failure is one caller's alone."""
        try:
            for request in batch:
                if not self._try(request):
                    raise request.error or StoreError
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise

    def _try(self, request: Request[Any]) -> bool:
        """One caller's work in its savepoint. False when its failure took the whole transaction along."""
        self._connection.savepoint()
        try:
            request.result = request.run(self._connection.tx)
        except BaseException as error:  # noqa: BLE001  (it is the caller's, and reaches the caller)
            request.error = error
            return self._connection.undo()
        self._connection.release()
        return True

    def _refuse_rest(self) -> None:
        """Answer those who came too late."""
        loops: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = {}
        while True:
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                break
            if request is None:
                self._waiting.put(None)  # the thread still wants it
                break
            request.error = StoreClosed()
            request.settle(loops)
        for loop, requests in loops.items():
            _tell(loop, requests)


def _tell(loop: asyncio.AbstractEventLoop, requests: list[Request[Any]]) -> None:
    try:
        loop.call_soon_threadsafe(_resolve, requests)
    except RuntimeError:  # the loop is closed: nobody is listening any more, and the work is stored all the same
        return


def _resolve(requests: list[Request[Any]]) -> None:
    for request in requests:
        future = request.future
        if future.done():  # its caller was cancelled
            continue
        if isinstance(request.error, StopIteration):  # which a future cannot hold
            future.set_exception(RuntimeError("a unit of work raised StopIteration"))
        elif request.error is not None:
            future.set_exception(request.error)
        else:
            future.set_result(request.result)

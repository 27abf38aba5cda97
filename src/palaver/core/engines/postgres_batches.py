"""Statements of several callers that share a connection, a round trip and a commit.

Work with a `Write.single_statement` is one statement by itself. While there are more callers with such work than
connections of its kind, their statements go through group writers, each of which sends all that wait in one pipeline.

Always true: a statement of a batch waits for no lock on a row, because the others would wait with it. `is_shared` tells
the statement so: it changes nothing if the row is locked, and the caller then runs its work on a connection of its own.
If a statement of a batch fails, nothing of it was stored, and each statement runs again with a commit of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import select
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from psycopg import OperationalError, errors, pq
from psycopg.adapt import PyFormat, Transformer

from palaver.core.engines.base import Conflict
from palaver.core.engines.group_commit import GroupWriter
from palaver.core.engines.postgres_connection import PostgresTransaction
from palaver.core.engines.postgres_pool import MAX_WORK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psycopg.pq.abc import PGresult

    from palaver.core.engines.base import Row, Transaction, WorkKind
    from palaver.core.engines.group_commit import WriteRequest
    from palaver.core.engines.postgres_connection import PooledConnection, ServerClock
    from palaver.core.engines.postgres_pool import PostgresPool

T = TypeVar("T")

BATCHES_AT_ONCE: Final = 2  # of a kind of work: while the server runs one, this process prepares the other
_FAILURES: Final = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE})


class StatementBatches:
    """Runs single statements of callers that come at the same time, for one kind of work."""

    def __init__(self, pool: PostgresPool, kind: WorkKind, clock: ServerClock) -> None:
        name = f"palaver-postgres-{kind}-batches"
        self._writers = [_BatchWriter(_Pipeline(pool, kind, clock), name) for _ in range(BATCHES_AT_ONCE)]
        self._next_writer = itertools.cycle(self._writers)

    def run(self, single_statement: Callable[[Transaction], T | None]) -> T | None:
        """Run a `Write.single_statement` in the next batch; its changes are durable when this returns.

        None or `Conflict`: it is not enough. Another error: as in a transaction, nothing was changed, unless the
        connection broke.
        """
        return single_statement(next(self._next_writer).shared_tx)

    async def arun(self, single_statement: Callable[[Transaction], T | None]) -> T | None:
        """The same without a thread for each caller: the function runs on the thread of the batch, once to find its
        statement, and once more with the result.
        """
        call, writer = _StatementCall(single_statement), next(self._next_writer)
        await writer.acall(partial(writer.pipeline.send_call, call), asyncio.get_running_loop())
        return call.get_result()

    def close(self) -> None:
        """Finish what has started."""
        for writer in self._writers:
            writer.close(lambda: None)


class _SharedTransaction(PostgresTransaction):
    is_shared = True

    def __init__(self, execute: Callable[[str, Sequence[object]], _Result]) -> None:
        self._execute = execute


class _Result:
    """What a statement has returned, once its batch is durable; as much of a cursor as a transaction needs."""

    __slots__ = ("rowcount", "rows")

    def __init__(self) -> None:
        self.rowcount = -1
        self.rows: list[Row] = []

    def fetchone(self) -> Row | None:
        return self.rows[0] if self.rows else None

    def fetchall(self) -> list[Row]:
        return self.rows


class _StatementSent(Exception):
    """The function has named its statement. It runs again when the result is there."""


class _StatementCall(Generic[T]):
    """A `Write.single_statement` that runs on the thread of the batch. Its error is the caller's, not the batch's."""

    def __init__(self, single_statement: Callable[[Transaction], T | None]) -> None:
        self._single_statement = single_statement
        self._result: T | None = None
        self._error: Exception | None = None
        self._results: list[_Result] = []

    def send(self, send: Callable[[str, Sequence[object]], _Result]) -> None:
        """Find out and send the statement."""

        def send_and_stop(sql: str, params: Sequence[object]) -> _Result:
            self._results = [send(sql, params)]
            raise _StatementSent

        self._run(send_and_stop)

    def finish(self) -> None:
        """Run the function with the result of its statement."""

        def take_result(_sql: str, _params: Sequence[object]) -> _Result:
            if not self._results:
                raise Conflict  # it needs a second statement
            return self._results.pop()

        if isinstance(self._error, _StatementSent):
            self._run(take_result)

    def get_result(self) -> T | None:
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self, execute: Callable[[str, Sequence[object]], _Result]) -> None:
        self._error = None
        try:
            self._result = self._single_statement(_SharedTransaction(execute))
        except Exception as error:  # noqa: BLE001  (given to the caller)
            self._error = error


class _BatchWriter(GroupWriter):
    """Runs a batch again, one by one, only if the server says that nothing of it was stored."""

    def __init__(self, pipeline: _Pipeline, name: str) -> None:
        super().__init__(pipeline, name)
        self.pipeline = pipeline
        self.shared_tx = _SharedTransaction(lambda sql, params: self.call(partial(pipeline.send, sql, params)))

    def _run_as_one(self, batch: list[WriteRequest[Any]]) -> bool:
        was_stored = super()._run_as_one(batch)
        if not was_stored and (error := self.pipeline.unknown_outcome) is not None:
            raise error
        return was_stored


class _Pipeline:
    """A borrowed connection in pipeline mode: a `WriterConnection` whose statements are one transaction up to `commit`.

    It uses libpq itself: the pipeline of psycopg polls the socket for each statement, and each time another thread of
    this process gets its turn, so that 30 statements took as long as 30 round trips.
    """

    def __init__(self, pool: PostgresPool, kind: WorkKind, clock: ServerClock) -> None:
        self._pool = pool
        self._kind = kind
        self._clock = clock
        self._connection: PooledConnection
        self._transformer: Any  # of psycopg: between values of Python and of PostgreSQL
        self._sent: list[_Result | None] = []  # None: a statement was prepared
        self._new_statements: list[str] = []
        self._calls: list[_StatementCall[Any]] = []
        self._is_batch = True
        self._is_refused = False  # the server has rolled the statements back
        self.unknown_outcome: BaseException | None = None  # what went wrong in a commit that may have been stored
        self._exit_stack = ExitStack()

    @property
    def tx(self) -> Transaction:
        return self._connection.tx

    def send(self, sql: str, params: Sequence[object], _tx: Transaction) -> _Result:
        """Send a statement; its result is there after `commit`."""
        pgconn, names = self._connection.pgconn, self._connection.batch_statements
        values = self._transformer.dump_sequence(params, [PyFormat.TEXT] * len(params))
        name = names.get(sql)
        if name is None:
            self._connection.batch_statement_count += 1
            name = names[sql] = b"batch_%d" % self._connection.batch_statement_count
            self._new_statements.append(sql)
            pgconn.send_prepare(name, sql.encode())
            self._sent.append(None)
        pgconn.send_query_prepared(name, values)
        result = _Result()
        self._sent.append(result)
        if not self._is_batch:
            self._receive()
        return result

    def send_call(self, call: _StatementCall[Any], tx: Transaction) -> None:
        """Send the statement of a call, which gets the result in `commit`."""
        call.send(lambda sql, params: self.send(sql, params, tx))
        self._calls.append(call)

    def begin(self, max_wait_seconds: float | None = None) -> None:
        self._is_batch, self._is_refused, self.unknown_outcome = True, False, None
        self._calls, self._new_statements = [], []
        with ExitStack() as stack:
            self._connection = stack.enter_context(self._pool.borrow(self._kind))
            self._clock.sync(self._connection)
            self._transformer = Transformer(self._connection)
            self._connection.pgconn.enter_pipeline_mode()
            self._exit_stack = stack.pop_all()

    def commit(self) -> None:
        try:
            if self._sent:
                self._receive()
            self._connection.pgconn.exit_pipeline_mode()
            self._exit_stack.close()
        except BaseException as error:
            self.unknown_outcome = None if self._is_refused else error
            raise
        for call in self._calls:
            call.finish()

    def rollback(self) -> None:
        """Give the connection back. The server has stored nothing of what it was not asked to commit."""
        connection = self._connection
        if self._sent or connection.pgconn.status != pq.ConnStatus.OK:  # what comes back later is of no use
            self._sent = []
            connection.close()
        else:
            connection.pgconn.exit_pipeline_mode()
        self._exit_stack.close()

    def savepoint(self) -> None:
        """From now on each statement is a transaction: there are no savepoints in a pipeline without BEGIN."""
        self._is_batch = False

    def release(self) -> None:
        """The statement is committed already."""

    def rollback_to_savepoint(self) -> bool:
        return not self._connection.closed

    def _receive(self) -> None:
        """Let the server commit, and wait for all results; raise the error of the first statement that failed."""
        pgconn, sent, error = self._connection.pgconn, iter(self._sent), None
        pgconn.pipeline_sync()
        for result in self._iterate_results():
            if result.status in _FAILURES:
                error = error or errors.error_from_result(result, self._transformer.encoding)
            elif error is None and (target := next(sent)) is not None:
                self._transformer.set_pgresult(result)
                target.rowcount = result.command_tuples or 0
                target.rows = self._transformer.load_rows(0, result.ntuples, tuple)
        self._sent = []
        new_statements, self._new_statements = self._new_statements, []
        if error is not None:
            self._is_refused = True
            for sql in new_statements:  # they may not have been prepared
                self._connection.batch_statements.pop(sql, None)
            raise error

    def _iterate_results(self) -> Iterator[PGresult]:
        """Yield the results up to the end of the transaction."""
        pgconn = self._connection.pgconn
        poll = select.poll()
        while True:
            must_write = pgconn.flush() == 1
            poll.register(pgconn.socket, select.POLLIN | (select.POLLOUT if must_write else 0))
            if not poll.poll(MAX_WORK_SECONDS * 1000):
                raise OperationalError("the server does not answer")
            pgconn.consume_input()
            while not pgconn.is_busy():
                result = pgconn.get_result()
                if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                    return
                if result is not None:
                    yield result
                elif pgconn.status != pq.ConnStatus.OK:
                    raise OperationalError(pgconn.get_error_message())

"""Connections to PostgreSQL that one test leaves to the next.

For every connection the server starts a process, which has to read first what it needs to know about the tables: more
work than most tests are. So a connection that a store closes in good order is reset, as poolers do it, and kept for the
next store that connects to the same database. What is broken or in a transaction is closed, and so is every connection
with other parameters. Processes that tests start have connections of their own. A test that counts or breaks its own
connections takes the fixture `new_connections`.
"""

from __future__ import annotations

import select
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from palaver.core.engines import postgres_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_KEPT_CONNECTIONS = 20  # a store uses at most 16, and its listener one


class WarmConnection(postgres_connection.PooledConnection):
    """A connection that is kept when it is closed, if it has the right parameters."""

    kept: ClassVar[deque[WarmConnection]] = deque()  # the last one closed is the first one used again
    kept_parameters: ClassVar[dict[str, Any] | None] = None
    is_keeping: ClassVar[bool] = True
    parameters: dict[str, Any]
    is_kept = False

    @classmethod
    def connect(cls, *args: Any, **parameters: Any) -> Self:
        with suppress(IndexError):  # none is kept, or another thread has just taken the last one
            while parameters == cls.kept_parameters:
                if _is_idle(kept := cls.kept.pop()) and not _has_input(kept):
                    kept.is_kept = False
                    return kept  # type: ignore[return-value]
                kept.disconnect()
        connection = super().connect(*args, **parameters)
        connection.parameters = parameters
        return connection

    def close(self) -> None:
        has_room = self.is_keeping and len(self.kept) < MAX_KEPT_CONNECTIONS
        if self.is_kept:
            return
        if has_room and self.parameters == self.kept_parameters and _reset(self):
            self.is_kept = True
            self.kept.append(self)
        else:
            self.disconnect()

    def disconnect(self) -> None:
        super().close()


@contextmanager
def keep_connections(url: str) -> Iterator[None]:
    """Keep the connections to this database until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_connection, "PooledConnection", WarmConnection)
        with postgres_connection.connect(url) as connection:
            assert isinstance(connection, WarmConnection)
            WarmConnection.kept_parameters = connection.parameters
        try:
            yield
        finally:
            WarmConnection.kept_parameters = None
            _close_kept_connections()


@contextmanager
def keep_no_connections() -> Iterator[None]:
    """Close the kept connections, and every other one as soon as its store closes it, until the end of the block."""
    WarmConnection.is_keeping = False
    _close_kept_connections()
    try:
        yield
    finally:
        WarmConnection.is_keeping = True


def _close_kept_connections() -> None:
    while WarmConnection.kept:
        WarmConnection.kept.pop().disconnect()


def _is_idle(connection: WarmConnection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def _has_input(connection: WarmConnection) -> bool:
    """Return whether there is something to read: the server says so when it closes a connection."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _reset(connection: WarmConnection) -> bool:
    """Forget what a store may have set; its prepared statements stay. Returns whether the connection still works."""
    try:
        if _is_idle(connection):
            connection.execute("UNLISTEN *; RESET ALL", prepare=False)
            for _ in connection.notifies(timeout=0):
                pass
            return True
    except psycopg.Error:
        pass
    return False

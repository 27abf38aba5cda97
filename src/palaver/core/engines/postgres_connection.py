"""A connection to a PostgreSQL server: its parameters, its time limits, its transactions.

Always true: no statement waits for a lock longer than `lock_timeout`, and no transaction that its process has stopped
working on (a paused machine, a debugger) keeps its locks longer than `idle_in_transaction_session_timeout`. The limits
are part of the connection, so they cost no round trip. A pooler such as PgBouncer does not pass them on, and gives
every transaction another connection: there they are set with BEGIN, in the same message, and nothing is prepared.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict

from palaver.core.engines import migrate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from palaver.core.engines.base import Row
    from palaver.core.engines.postgres_identity import ServerIdentity

CONNECT_TIMEOUT_SECONDS: Final = 5
MAX_NAME_CHARS: Final = 40  # of an application, before our own part

# In milliseconds. `options` in the database URL win.
TIME_LIMITS: Final[Mapping[str, int]] = {
    "lock_timeout": 3_000,
    "statement_timeout": 30_000,
    "idle_in_transaction_session_timeout": 5_000,
}
# For work whose statements may take minutes, or that computes much between two of them.
LONG_TIME_LIMITS: Final[Mapping[str, int]] = {"statement_timeout": 0, "idle_in_transaction_session_timeout": 60_000}

# So that a server that disappears without a word (power, network) is noticed, also in the middle of a statement.
_DEFAULT_PARAMETERS: Final = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}

_BEGIN: Final = {False: "BEGIN", True: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}


class PostgresTransaction:
    """Runs statements on one connection."""

    name: Literal["postgres"] = "postgres"
    supports_data_ctes = True
    for_update = "FOR UPDATE"
    skip_locked = "FOR UPDATE SKIP LOCKED"
    for_key_share = "FOR KEY SHARE"

    def __init__(self, connection: PooledConnection) -> None:
        self._cursor: psycopg.RawCursor[Row] = psycopg.RawCursor(connection)
        self._execute: Any = self._cursor.execute

    def fetch_one(self, sql: str, *params: object) -> Row | None:
        row: Row | None = self._execute(sql, params).fetchone()
        return row

    def fetch_all(self, sql: str, *params: object) -> list[Row]:
        rows: list[Row] = self._execute(sql, params).fetchall()
        return rows

    def execute(self, sql: str, *params: object) -> int:
        count: int = self._execute(sql, params).rowcount
        return count

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._cursor.executemany(sql, rows)

    def lock_name(self, name: str) -> None:
        self._execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", (name,))


class PooledConnection(psycopg.Connection["Row"]):
    """A connection that reuses one cursor."""

    opened_at = 0.0
    lent_at = 0.0
    returned_at = 0.0
    is_pooled = False  # a pooler is between us and the server
    is_doing_long_work = False
    identity: ServerIdentity | None = None  # of the server, where it is known

    @cached_property
    def tx(self) -> PostgresTransaction:
        return PostgresTransaction(self)

    @contextmanager
    def begin(self, limits: Mapping[str, int] | None = None, *, is_read: bool = False) -> Iterator[PostgresTransaction]:
        """Run the block in a transaction, with other time limits than those of the connection."""
        own_limits = {**TIME_LIMITS, **(limits or {})} if self.is_pooled else limits or {}
        settings = [f"SET LOCAL {name} = {value}" for name, value in own_limits.items()]
        self._run_command("; ".join([_BEGIN[is_read], *settings]))
        try:
            yield self.tx
        except BaseException:
            with suppress(psycopg.Error):  # the connection is broken: the server rolls back by itself
                self._run_command("ROLLBACK")
            raise
        self._run_command("COMMIT")

    def _run_command(self, sql: str) -> None:
        self.tx._cursor.execute(sql, prepare=False)

    def abort(self) -> None:
        """End the connection while another thread waits for its answer: that thread gets an error at once."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as connected:
            connected.shutdown(socket.SHUT_RDWR)


def connect(address: str | Mapping[str, Any], *, is_pooled: bool = False) -> PooledConnection:
    """Open a connection with the settings that the store needs; parameters in the URL win."""
    given = conninfo_to_dict(address) if isinstance(address, str) else address
    parameters: dict[str, Any] = {**_DEFAULT_PARAMETERS, **given}
    parameters["application_name"] = name_application(parameters.get("application_name"))
    if not is_pooled:
        options = [f"-c {name}={value}" for name, value in TIME_LIMITS.items()]
        parameters["options"] = " ".join([*options, parameters.get("options", "")]).strip()
    connection = PooledConnection.connect(autocommit=True, prepare_threshold=None if is_pooled else 1, **parameters)
    connection.is_pooled = is_pooled
    return connection


def name_application(given: str | None) -> str:
    """Return the name under which the server lists a connection: the given one, and which migrations we know."""
    return f"{(given or 'palaver')[:MAX_NAME_CHARS]} schema:{migrate.get_newest_number()}"


def list_addresses(url: str) -> list[dict[str, Any]]:
    """Return the connection parameters of each server that a URL names, in its order.

    With several servers, those that only read are left out, unless the URL says otherwise.
    """
    parameters = conninfo_to_dict(url)
    hosts, addresses, ports = (str(parameters.get(name) or "").split(",") for name in ("host", "hostaddr", "port"))
    count = max(len(hosts), len(addresses))
    if count == 1:
        return [dict(parameters)]
    servers = []
    for number in range(count):
        server = {"target_session_attrs": "read-write", **parameters}
        for name, values in (("host", hosts), ("hostaddr", addresses), ("port", ports)):
            value = values[number] if len(values) == count else values[0]
            server.pop(name, None)
            if value:
                server[name] = value
        servers.append(server)
    return servers

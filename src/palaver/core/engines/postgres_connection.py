"""A connection to a PostgreSQL server: its parameters, its time limits, its transactions, its errors, and its server.

Always true: no statement waits for a lock longer than `lock_timeout`, and no transaction that its process has stopped
working on (a paused machine, a debugger) keeps its locks longer than `idle_in_transaction_session_timeout`. The limits
are part of the connection, so they cost no round trip. A pooler such as PgBouncer does not pass them on, and gives
every transaction another connection: there they are set with BEGIN, in the same message, and nothing is prepared.

After a failover the new primary is on a higher timeline than the old one. An old primary that comes back accepts
writes like the new one, and everything written there would be missing from the store. So this process remembers the
highest timeline that it has seen, also in a file in its home folder, and refuses servers that are behind it.
Two servers that were both promoted from the same timeline have the same number and can't be told apart here.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from palaver.core.clock import from_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines import migrate
from palaver.core.errors import (
    InvalidInput,
    PalaverError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from palaver.core.engines.base import Row


log = logging.getLogger(__name__)

_DAMAGED: Final = (
    "PostgreSQL reports damaged data. Check the disk of its server, and restore the latest backup"
    " (docs/guides/backup.md)."
)
_LOST_STATEMENTS: Final = (
    "A connection pooler mixes up prepared statements. Restart Palaver, so that it notices the pooler, or connect"
    " it to PostgreSQL directly."
)
_TOO_SLOW: Final = "PostgreSQL took too long for this, so nothing was changed. Try again later."
_REFUSED_VALUE: Final = "A value is too long, too large, or has characters that can't be stored."

# The longest prefix of the SQLSTATE counts.
_BY_STATE: Final[Mapping[str, tuple[type[PalaverError], str]]] = {
    "08": (StoreUnavailable, ""),
    "22": (InvalidInput, _REFUSED_VALUE),
    "25006": (StoreReadOnly, "PostgreSQL does not allow writing. Check whether the server is a replica."),
    "25P03": (StoreBusy, "This process was paused in the middle of a change, so nothing was changed. Try again."),
    "26": (StoreUnavailable, _LOST_STATEMENTS),
    "42501": (StoreReadOnly, "PostgreSQL does not allow this. Check the rights of Palaver's user there."),
    "42P05": (StoreUnavailable, _LOST_STATEMENTS),
    "53": (StoreBusy, "PostgreSQL is at one of its limits. Try again later."),
    "53100": (StoreFull, "PostgreSQL is out of disk space, so nothing was stored. Free some space and try again."),
    "53200": (StoreFull, "PostgreSQL is out of memory, so nothing was stored. Try again later."),
    "54": (InvalidInput, _REFUSED_VALUE),
    "55P03": (StoreBusy, "Something else is changing the same thing and does not finish. Try again in a moment."),
    "57": (StoreUnavailable, ""),
    "57014": (StoreBusy, _TOO_SLOW),
    "58": (StoreUnavailable, ""),
    "XX001": (StoreDamaged, _DAMAGED),
    "XX002": (StoreDamaged, _DAMAGED),
}


class ServerAway(psycopg.OperationalError):
    """The server was away when it was tried last, which has been logged."""


def translate_error(error: psycopg.Error, server: str) -> PalaverError | None:
    """Return the error to raise instead, and log the details; None for a mistake in Palaver itself."""
    state = error.sqlstate or ""
    if state:
        found = next((_BY_STATE[state[:length]] for length in (5, 2) if state[:length] in _BY_STATE), None)
    elif isinstance(error, psycopg.DataError):  # refused before it was sent
        found = _BY_STATE["22"]
    else:
        found = (StoreUnavailable, "") if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else None
    if found is None:
        return None
    kind, text = found
    if kind is InvalidInput:
        log.warning("postgres_refused_value", extra={"sqlstate": state})  # without its text, which may quote the value
    elif not isinstance(error, ServerAway):
        log.warning("postgres_failed", extra={"server": server, "sqlstate": state, "reason": get_first_line(error)})
    return kind(text)


def get_first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


SYNC_INTERVAL_MICROS = 10_000_000  # so a machine that slept, or a server whose clock was set, is soon right again
MIN_CORRECTION_MICROS = 250_000  # smaller differences are ignored, so that network delays do not make time jump
MAX_ROUND_TRIP_MICROS = 1_000_000  # a slower answer is ignored: we do not know when the server gave it


def read_monotonic_micros() -> int:
    """Return microseconds that keep counting even if this machine's clock is set."""
    return time.monotonic_ns() // 1000


class ServerClock:
    """Shows the time of a PostgreSQL server, the same for every process that uses its database.

    Processes on several machines compare leases, and the clocks of machines differ. So no process uses its own clock:
    it asks the server now and then, on a connection that is in use anyway, and counts on with its monotonic clock.

    Always true: reading the clock never waits and never asks the server; setting this machine's clock changes nothing.
    """

    def __init__(self, ticks: Callable[[], int] = read_monotonic_micros) -> None:
        self._ticks = ticks
        self._offset: int | None = None  # server time minus ticks
        self._synced_at = 0

    def now(self) -> datetime:
        """Return the current server time, aware, in UTC."""
        return from_micros(self._ticks() + (self._offset or 0))

    def sync(self, connection: psycopg.Connection[tuple[int]]) -> None:
        """Ask the server for its time, unless that was done a moment ago."""
        sent_at = self._ticks()
        if self._offset is not None and sent_at - self._synced_at <= SYNC_INTERVAL_MICROS:
            return
        self._synced_at = sent_at
        row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()
        received_at = self._ticks()
        assert row is not None  # noqa: S101
        (server_time,) = row
        offset = server_time - (sent_at + received_at) // 2
        is_fast = received_at - sent_at < MAX_ROUND_TRIP_MICROS
        if self._offset is None or (is_fast and abs(offset - self._offset) > MIN_CORRECTION_MICROS):
            self._offset = offset


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
    name: Literal["postgres"] = "postgres"
    supports_data_ctes = True
    for_update = "FOR UPDATE"
    skip_locked = "FOR UPDATE SKIP LOCKED"
    for_key_share = "FOR KEY SHARE"
    is_shared = False

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

    def try_lock_name(self, name: str) -> bool:
        row = self.fetch_one("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", name)
        return row is not None and row[0]


class PooledConnection(psycopg.Connection["Row"]):
    """A connection that reuses one cursor."""

    opened_at = 0.0
    lent_at = 0.0
    returned_at = 0.0
    is_pooled = False  # a pooler is between us and the server
    is_doing_long_work = False
    identity: ServerIdentity | None = None  # of the server, where it is known
    batch_statement_count = 0

    @cached_property
    def batch_statements(self) -> dict[str, bytes]:
        """The names of the statements that are prepared for batches (`postgres_batches.py`)."""
        return {}

    @cached_property
    def poll_input(self) -> select.poll:
        """Tells whether there is something to read."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return poll

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
            self.batch_statements.clear()  # after a rollback, psycopg lets the server forget what was prepared
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
    # The server lists a connection under the given name, and which migrations we know.
    name = (parameters.get("application_name") or "palaver")[:MAX_NAME_CHARS]
    parameters["application_name"] = f"{name} schema:{migrate.get_newest_number()}"
    if not is_pooled:
        options = [f"-c {name}={value}" for name, value in TIME_LIMITS.items()]
        parameters["options"] = " ".join([*options, parameters.get("options", "")]).strip()
    connection = PooledConnection.connect(autocommit=True, prepare_threshold=None if is_pooled else 1, **parameters)
    connection.is_pooled = is_pooled
    return connection


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


class WrongServer(psycopg.OperationalError):
    """The server answers, but the store must not be used there; the text says why, for the operator."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A database cluster, and one of its histories."""

    system_id: str
    timeline: int


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The facts that a server tells about itself over a new connection."""

    backend_pid: int
    is_replica: bool
    identity: ServerIdentity | None  # None: this server does not tell


_READ_REPORT: Final = "SELECT pg_backend_pid(), pg_is_in_recovery()"
# The timeline of the last checkpoint (pg_control_checkpoint) is the old one for minutes after a promotion.
_READ_IDENTITY: Final = """SELECT (SELECT system_identifier FROM pg_control_system())::text,
    CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"""


def read_report(connection: PooledConnection) -> ServerReport:
    """Ask a server over a new connection, in one message."""
    try:
        cursor = connection.execute(f"{_READ_REPORT}; {_READ_IDENTITY}", prepare=False)
    except (pg.FeatureNotSupported, pg.InsufficientPrivilege, pg.UndefinedFunction):  # a service like PostgreSQL
        pid, is_replica = connection.execute(_READ_REPORT, prepare=False).fetchall()[0]
        return ServerReport(int(pid), bool(is_replica), None)
    pid, is_replica = cursor.fetchall()[0]
    cursor.nextset()
    system_id, timeline = cursor.fetchall()[0]
    identity = None if timeline is None else ServerIdentity(str(system_id), int(timeline, 16))
    return ServerReport(int(pid), bool(is_replica), identity)


class TimelineFile:
    """The highest timeline of every cluster that this machine has used; without a folder it remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / "postgres-timelines.json"

    def load(self, system_id: str) -> int:
        """Return the highest timeline that was seen of a cluster; 0 if none was."""
        return self._read().get(system_id, 0)

    def save(self, identity: ServerIdentity) -> None:
        known = self._read()
        if self.path is None or known.get(identity.system_id, 0) >= identity.timeline:
            return
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_text(json.dumps({**known, identity.system_id: identity.timeline}), encoding="ascii")
            temporary.replace(self.path)
        except OSError as error:  # the process still remembers it
            log.warning("timeline_not_saved", extra={"path": str(self.path), "error": str(error)})

    def _read(self) -> dict[str, int]:
        try:
            found = json.loads(self.path.read_text(encoding="ascii")) if self.path is not None else {}
        except (OSError, ValueError):
            return {}
        return {str(name): value for name, value in found.items() if isinstance(value, int)}

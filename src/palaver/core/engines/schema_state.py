"""Looks at a database without opening it as a store: the migrations that it still needs, and what it holds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import apsw

from palaver.core.engines import migrate
from palaver.core.engines.integrity import check_before_use
from palaver.core.engines.open import get_database_path
from palaver.core.engines.sqlite import DIALECT, SqliteTransaction
from palaver.core.engines.sqlite_file import connect, make_damage_error, translate_error
from palaver.core.engines.table_copy import TargetContent, find_content
from palaver.core.errors import MigrationFailed, StoreBusy

if TYPE_CHECKING:
    from palaver.core.engines.base import Engine, Write


class SchemaState(NamedTuple):
    pending: tuple[str, ...]  # names of migrations that the next start applies
    server: str | None = None  # the version of a PostgreSQL server


def describe_sqlite() -> str:
    return f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


def get_sqlite_path(url: str) -> Path | None:
    """Return the path of a SQLite file; None for PostgreSQL."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def load_schema_state(url: str) -> SchemaState:
    """Read which migrations a database needs; raises `StoreError` if it is damaged, too new, or can't be reached."""
    path = get_sqlite_path(url)
    if path is not None:
        return _load_sqlite_state(path)
    from palaver.core.engines import postgres, postgres_migration

    version, applied = postgres.read_server_state(url)
    pending = tuple(name for name, _ in migrate.list_pending(postgres_migration.DIALECT, applied))
    return SchemaState(pending, f"PostgreSQL {version // 10000}.{version % 10000}")


def _load_sqlite_state(path: Path) -> SchemaState:
    try:
        check_before_use(path, DIALECT)
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.execute("PRAGMA query_only = ON")
            applied = migrate.parse_applied(db.execute(migrate.READ_APPLIED))
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise make_damage_error(path, f"{error}.") from error
    except apsw.Error as error:
        raise translate_error(error, path) from error
    return SchemaState(tuple(name for name, _ in migrate.list_pending(DIALECT, applied)))


def store_batch(engine: Engine, work: Write[None]) -> None:
    """Store a batch of copied rows; raise `MigrationFailed` if they do not fit those that were copied before."""
    try:
        engine.run(work)
    except (StoreBusy, apsw.ConstraintError) as error:
        raise MigrationFailed(
            "The source has changed since the copy began. Stop every server on it, then run the same command again"
            " with --start-over.",
            cause=str(error.__cause__ or error),
        ) from error


def describe_target(url: str) -> TargetContent | None:
    """Return what a database holds; None if it does not exist, or has no rows."""
    if url.startswith(("postgresql://", "postgres://")):
        from palaver.core.engines.postgres import describe_content  # psycopg is an extra

        return describe_content(url)
    path = Path(get_database_path(url)).expanduser().absolute()
    if not path.exists() or path.stat().st_size == 0:
        return None
    check_before_use(path, DIALECT)
    with closing(connect(path, reader=True)) as db:
        return find_content(SqliteTransaction(db))

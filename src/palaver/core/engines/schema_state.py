"""Which migrations a database still needs, found out without opening it as a store, which would apply them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

from palaver.core.engines import migrate, sqlite
from palaver.core.engines.integrity import check_before_use
from palaver.core.engines.sqlite_file import make_damage_error, translate_error


class SchemaState(NamedTuple):
    """What a database says about itself."""

    pending: tuple[str, ...]  # names of migrations that the next start applies
    server: str | None = None  # the version of a PostgreSQL server


def describe_sqlite() -> str:
    """Return the versions of SQLite and of its driver."""
    return f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


def get_sqlite_path(url: str) -> Path | None:
    """Return the path of a SQLite file; None for PostgreSQL."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def load_schema_state(url: str) -> SchemaState:
    """Read which migrations a database needs; raises `StoreError` if it is damaged, too new, or can't be reached."""
    path = get_sqlite_path(url)
    return _load_sqlite_state(path) if path is not None else _load_postgres_state(url)


def _load_sqlite_state(path: Path) -> SchemaState:
    try:
        check_before_use(path, sqlite.DIALECT)
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.execute("PRAGMA query_only = ON")
            applied = migrate.parse_applied(db.execute(migrate.READ_APPLIED))
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise make_damage_error(path, f"{error}.") from error
    except apsw.Error as error:
        raise translate_error(error, path) from error
    return SchemaState(tuple(name for name, _ in migrate.list_pending(sqlite.DIALECT, applied)))


def _load_postgres_state(url: str) -> SchemaState:
    from palaver.core.engines import postgres, postgres_migration

    version, applied = postgres.read_server_state(url)
    pending = tuple(name for name, _ in migrate.list_pending(postgres_migration.DIALECT, applied))
    return SchemaState(pending, f"PostgreSQL {version // 10000}.{version % 10000}")

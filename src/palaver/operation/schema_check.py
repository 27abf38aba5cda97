"""The parts of a complete check that depend on the engine: the SQLite file itself, and a complete schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines import migrate
from palaver.core.engines.base import Read
from palaver.core.engines.integrity import describe_missing_names, find_file_problems, list_expected_names
from palaver.core.engines.sqlite import DIALECT as SQLITE_DIALECT, SqliteEngine
from palaver.operation import invariants

if TYPE_CHECKING:
    from palaver.core.engines.base import Engine


def find_engine_problems(engine: Engine) -> list[str]:
    """Check a SQLite file completely, or that a server answers; return what is wrong."""
    if isinstance(engine, SqliteEngine):
        return find_file_problems(engine.path, SQLITE_DIALECT)
    engine.run(Read(lambda tx: tx.fetch_one("SELECT 1")))
    return []


def find_schema_problems(engine: Engine) -> list[str]:
    """Return which tables, indexes and triggers are missing."""
    if engine.name == "sqlite":
        dialect = SQLITE_DIALECT
    else:
        from palaver.core.engines.postgres_migration import DIALECT as dialect  # noqa: N811  (psycopg is an extra)
    expected = list_expected_names(migrate.load_migrations(dialect).values())
    missing = expected - engine.run(Read(invariants.list_schema_names))
    return [describe_missing_names(missing).rstrip(".")] if missing else []

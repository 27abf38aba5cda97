"""Looks at a database into which a store is to be copied, without changing it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from palaver.core.engines import table_copy
from palaver.core.engines.integrity import check_before_use
from palaver.core.engines.open import get_database_path
from palaver.core.engines.sqlite import DIALECT, SqliteTransaction
from palaver.core.engines.sqlite_file import connect
from palaver.core.errors import MigrationFailed, StoreBusy

if TYPE_CHECKING:
    from palaver.core.engines.base import Engine, Transaction, Write


@dataclass(frozen=True, slots=True)
class TargetContent:
    """What a database holds that is not empty."""

    is_unfinished: bool  # an unfinished copy of a store
    table: str  # one of those that have rows


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


def find_content(tx: Transaction) -> TargetContent | None:
    """Return what the tables of a database hold, also of another program's."""
    tables = table_copy.list_tables(tx)
    names = {table.name for table in tables}
    if "lane_move" in names and table_copy.is_started(tx):
        return TargetContent(is_unfinished=True, table="")
    found = table_copy.find_rows(tx, tables)
    return None if found is None else TargetContent(is_unfinished=False, table=found)

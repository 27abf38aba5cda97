"""Looks at a database into which a store is to be copied, without changing it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from palaver.core.engines.integrity import check_before_use
from palaver.core.engines.open import get_database_path
from palaver.core.engines.sqlite import DIALECT, SqliteTransaction
from palaver.core.engines.sqlite_file import connect
from palaver.core.engines.table_copy import TargetContent, find_content
from palaver.core.errors import MigrationFailed, StoreBusy

if TYPE_CHECKING:
    from palaver.core.engines.base import Engine, Write


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

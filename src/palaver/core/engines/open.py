"""Opens the engine that a database URL names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Engine, Upgrade
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def open_engine(
    url: str,
    *,
    allow_unfinished_copy: bool = False,
    is_exclusive: bool = False,
    state_folder: Path | None = None,
    upgrade: Upgrade = Upgrade.ALONE,
) -> Engine:
    """Open the database at `sqlite:///path`, `postgresql://…` or a plain path, and bring its schema up to date.

    `is_exclusive` refuses a file that another process uses; on a server it has no effect. `state_folder` is where it is
    remembered which of several servers has the database, so that an old one is refused; a file needs none.
    """
    if url.startswith(("postgresql://", "postgres://")):
        from palaver.core.engines.postgres import PostgresEngine  # psycopg is an extra

        return PostgresEngine.open(
            url, allow_unfinished_copy=allow_unfinished_copy, state_folder=state_folder, upgrade=upgrade
        )
    return SqliteEngine.open(
        get_database_path(url),
        allow_unfinished_copy=allow_unfinished_copy,
        is_exclusive=is_exclusive,
        upgrade=upgrade,
    )


def get_database_path(url: str) -> str:
    """Return the path of the file that a URL or a plain path names; refuse everything else."""
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url
    if "://" in path or path.startswith("sqlite:"):
        scheme = url.split("://", maxsplit=1)[0]
        raise ConfigError(
            f"database_url: {scheme}:// is not supported. Use sqlite:///path, postgresql://… or a file path."
        )
    if not path or path == ":memory:":
        raise ConfigError("database_url: an in-memory database would lose everything. Give it a file path.")
    return path

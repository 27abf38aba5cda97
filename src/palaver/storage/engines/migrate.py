"""Schema migrations: numbered SQL files, applied in order, each in one transaction together with its record.

A file is `NNNN_name.sql`, or `NNNN_name.<engine>.sql` where the engines must differ; with both, an engine's own file is
used instead of the other, and has the same result. A file is never edited after a release. A database with migrations that this program does not have was written by a newer version and is refused. So
is one into which `palaver migrate` is still copying another: `COPY_MARKER` is among its records until the end.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from palaver.domain.errors import SchemaTooNew, StoreUnavailable
from palaver.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from palaver.storage.engines.base import Dialect, Transaction

_FILE_NAME = re.compile(r"(?P<name>\d{4}_\w+?)(?:\.(?P<engine>\w+))?\.sql")
_INSERT = re.compile(r"^INSERT INTO (\w+)", re.MULTILINE)

FOLDER = Path(__file__).parents[1] / "migrations"
CREATE_MIGRATION_TABLE = "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)"
COPY_MARKER: Final = "copy_unfinished"


def load_migrations(dialect: Dialect) -> dict[str, str]:
    """Return name → SQL script of every migration for this engine, in order."""
    return {
        name: _substitute(text, dialect) for name, engine, text in _read_files(FOLDER) if engine in {None, dialect.name}
    }


def list_pending(
    dialect: Dialect, applied: Iterable[str], *, allow_unfinished_copy: bool = False
) -> list[tuple[str, str]]:
    """Return the migrations that still have to be applied, as (name, script); refuse a newer or incomplete database."""
    migrations = load_migrations(dialect)
    if COPY_MARKER in applied and not allow_unfinished_copy:
        raise StoreUnavailable(
            f"This database is incomplete: `{format_command('migrate')}` is copying another one into it, or was"
            " interrupted. Run the same command again to finish it."
        )
    if unknown := sorted(set(applied) - migrations.keys() - {COPY_MARKER}):
        raise SchemaTooNew(
            f"A newer version of Palaver wrote this database (it has {', '.join(unknown)})."
            " Upgrade Palaver to open it.",
            unknown=unknown,
        )
    return [(name, script) for name, script in migrations.items() if name not in set(applied)]


def list_seeded_tables() -> frozenset[str]:
    """Return the tables in which a new store has rows from the beginning."""
    texts = [file.read_text(encoding="utf-8") for file in FOLDER.iterdir() if _FILE_NAME.fullmatch(file.name)]
    return frozenset(name for text in texts for name in _INSERT.findall(text))


def apply_migration(tx: Transaction, name: str, now: int, run_script: Callable[[], None]) -> None:
    """Run one migration and record it, in the given transaction."""
    run_script()
    tx.execute("INSERT INTO migration (name, applied_at) VALUES ($1, $2)", name, now)


@lru_cache(maxsize=1)  # a store needs them twice when it is opened
def _read_files(folder: Path) -> tuple[tuple[str, str | None, str], ...]:
    """Return name, engine and text of every migration in a folder, in order."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    matches = [(match, file) for file in files if (match := _FILE_NAME.fullmatch(file.name))]
    return tuple((match["name"], match["engine"], file.read_text(encoding="utf-8")) for match, file in matches)


def _substitute(text: str, dialect: Dialect) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda match: dialect.substitutions[match[1]], text)

"""Schema migrations: numbered SQL files, applied in order, each in one transaction together with its record.

A file is `NNNN_name.sql`, or `NNNN_name.<engine>.sql` where the engines must differ; with both, an engine's own file is
used instead of the other, and has the same result. A file is never edited after a release.

Programs of older versions must not write to a database that has a migration they don't know, unless its file has the
line `OLDER_MAY_WRITE`. The record of each migration says so, too, for the programs that don't have the file: those
refuse to open such a database, and those that have it open stop using it. So is a database refused into which `palaver
migrate` is still copying another: `COPY_MARKER` is among its records until the end.

Migrations of a SQLite file. `PRAGMA user_version` counts them, so that every write can find out about new ones.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Dialect, Row, Transaction, Upgrade
from palaver.core.errors import SchemaTooNew, SchemaTooOld, StoreUnavailable, UpgradeRequired
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import apsw


_FILE_NAME = re.compile(r"(?P<name>\d{4}_\w+?)(?:\.(?P<engine>\w+))?\.sql")
_INSERT = re.compile(r"^INSERT INTO (\w+)", re.MULTILINE)

FOLDER = Path(__file__).parents[1] / "migrations"
CREATE_MIGRATION_TABLE = "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)"
READ_APPLIED = "SELECT * FROM migration"  # the column `lets_older_write` is newer than the table
COPY_MARKER: Final = "copy_unfinished"
OLDER_MAY_WRITE: Final = "-- Older versions may go on writing."

# Previews of Palaver had migrations with these names, or a first one without this table.
_PREVIEW_MIGRATION: Final = "0001_sessions"
_TABLE_OF_FIRST_RELEASE: Final = "sender_id"
_PREVIEW_MIGRATIONS: Final = frozenset({"0001_initial", "0002_search_and_triggers"})


def load_migrations(dialect: Dialect) -> dict[str, str]:
    """Return name → SQL script of every migration for this engine, in order."""
    return dict(_load_files(FOLDER, dialect.name, tuple(dialect.substitutions.items())))


def parse_applied(rows: Iterable[Row]) -> dict[str, bool]:
    """Return the name of each applied migration, and whether older versions may go on writing, from `READ_APPLIED`."""
    return {row[0]: len(row) > 2 and bool(row[2]) for row in rows}


def list_pending(
    dialect: Dialect, applied: Mapping[str, bool], *, allow_unfinished_copy: bool = False
) -> list[tuple[str, str]]:
    """Return the migrations that still have to be applied, as (name, script); refuse a newer or incomplete database."""
    migrations = load_migrations(dialect)
    if COPY_MARKER in applied and not allow_unfinished_copy:
        raise StoreUnavailable(
            f"This database is incomplete: `{format_command('migrate')}` is copying another one into it, or was"
            " interrupted. Run the same command again to finish it."
        )
    refuse_preview(applied)
    newer = {name for name, lets_older_write in applied.items() if not lets_older_write}
    if unknown := sorted(newer - migrations.keys() - {COPY_MARKER}):
        raise SchemaTooNew(
            f"A newer version of Palaver wrote this database (it has {', '.join(unknown)})."
            " Upgrade Palaver to open it.",
            unknown=unknown,
        )
    return [(name, script) for name, script in migrations.items() if name not in applied]


def check_still_usable(dialect: Dialect, applied: Mapping[str, bool]) -> None:
    """Raise `SchemaTooNew` if a database that this program has open was upgraded by a newer version."""
    try:
        list_pending(dialect, applied, allow_unfinished_copy=True)
    except SchemaTooNew as error:
        raise SchemaTooNew(
            "A newer version of Palaver has upgraded this database. This older version no longer uses it: stop it, and"
            " start the newer one.",
            **error.facts,
        ) from None


def lets_older_write(script: str) -> bool:
    """Whether a migration declares that programs that don't know it may go on writing."""
    return OLDER_MAY_WRITE in script.splitlines()


def refuse_upgrade(pending: Iterable[tuple[str, str]]) -> None:
    """Raise the error for a database that has to be upgraded first."""
    names = [name for name, _ in pending]
    raise UpgradeRequired(
        "An older version of Palaver wrote this database. It has to be upgraded before this version can use it, and"
        f" older versions can't use it afterwards.\nMake a backup with `{format_command('backup')}`. Then run"
        f" `{format_command('upgrade --yes')}`, or start the server: `{format_command('serve')}` upgrades it, too.",
        pending=names,
    )


def refuse_preview(applied: Collection[str], names: Collection[str] = (_TABLE_OF_FIRST_RELEASE,)) -> None:
    """Raise `SchemaTooOld` for a database of a preview of Palaver, which no migration leads away from.

    `names` are those of its tables; only needed if just the first two migrations were applied (`may_be_preview`).
    """
    if _PREVIEW_MIGRATION in applied or (may_be_preview(applied) and _TABLE_OF_FIRST_RELEASE not in names):
        raise SchemaTooOld(
            "An early preview of Palaver made this database, before the tables had their present form. This version"
            " can't read or upgrade it, and has not changed it.\nOnly the version that made it can open it: there,"
            " `palaver sessions export` saves conversations. To start with a new database, move this one away, or set"
            " `database_url` to another one."
        )


def may_be_preview(applied: Collection[str]) -> bool:
    """Whether only the tables tell if this is a database of a preview."""
    return set(applied) == _PREVIEW_MIGRATIONS


def get_newest_number() -> int:
    """Return the number of the newest migration that this program has."""
    return max((int(name[:4]) for name, _, _ in _read_files(FOLDER)), default=0)


def list_seeded_tables() -> frozenset[str]:
    """Return the tables in which a new store has rows from the beginning."""
    texts = [file.read_text(encoding="utf-8") for file in FOLDER.iterdir() if _FILE_NAME.fullmatch(file.name)]
    return frozenset(name for text in texts for name in _INSERT.findall(text))


def apply_migration(tx: Transaction, name: str, script: str, now: int, run_script: Callable[[str], object]) -> None:
    """Run one migration and record it, in the given transaction."""
    run_script(script)
    tx.execute("INSERT INTO migration (name, applied_at) VALUES ($1, $2)", name, now)
    if lets_older_write(script):
        tx.execute("UPDATE migration SET lets_older_write = 1 WHERE name = $1", name)


@lru_cache(maxsize=2)  # a store needs them twice when it is opened
def _load_files(folder: Path, engine: str, substitutions: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    words = dict(substitutions)
    return {
        name: re.sub(r"@([A-Z_]+)@", lambda match: words[match[1]], text)
        for name, file_engine, text in _read_files(folder)
        if file_engine in {None, engine}
    }


@lru_cache(maxsize=1)
def _read_files(folder: Path) -> tuple[tuple[str, str | None, str], ...]:
    """Return name, engine and text of every migration in a folder, in order."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    matches = [(match, file) for file in files if (match := _FILE_NAME.fullmatch(file.name))]
    return tuple((match["name"], match["engine"], file.read_text(encoding="utf-8")) for match, file in matches)


class MustBeAlone(Exception):
    """The upgrade has to wait until no other process uses the file."""


def migrate_file(
    db: apsw.Connection,
    tx: Transaction,
    list_pending: Callable[[Mapping[str, bool]], list[tuple[str, str]]],
    upgrade: Upgrade,
    *,
    is_alone: bool,
) -> int:
    """Apply the pending migrations, and return the version of the schema.

    Raises `MustBeAlone` if another process may use the file that does not notice the upgrade.
    """
    version = read_version(db.execute)  # before the list: a later upgrade is found by the first write
    applied = list_applied(tx)
    pending = list_pending(applied)
    if applied and not pending:
        return version
    if applied and upgrade is Upgrade.REFUSE:
        refuse_upgrade(pending)
    if applied and not is_alone and not all(lets_older_write(script) for _, script in pending):
        raise MustBeAlone
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once: the second waits and finds it done
    try:
        tx.execute(CREATE_MIGRATION_TABLE)
        db.execute("COMMIT")
        while True:
            db.execute("BEGIN IMMEDIATE")
            applied = list_applied(tx)
            pending = list_pending(applied)
            if not pending:
                return read_version(db.execute)
            name, script = pending[0]
            apply_migration(tx, name, script, time.time_ns() // 1000, partial(_run_script, db))
            db.execute(f"PRAGMA user_version = {len(applied) + 1}")
            db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def list_applied(tx: Transaction) -> dict[str, bool]:
    if tx.fetch_one("SELECT 1 FROM sqlite_master WHERE name = 'migration'") is None:
        return {}
    return parse_applied(tx.fetch_all(READ_APPLIED))


def read_version(execute: Callable[[str], apsw.Cursor]) -> int:
    """Return a number that every migration changes."""
    return int(execute("PRAGMA user_version").get)


def _run_script(db: apsw.Connection, script: str) -> None:
    for _ in db.execute(script):
        pass

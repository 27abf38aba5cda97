"""Migrations of a SQLite file. `PRAGMA user_version` counts them, so that every write can find out about new ones."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from palaver.core.engine_upgrade import Upgrade
from palaver.core.engines import migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import apsw

    from palaver.core.engines.base import Transaction


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
        migrate.refuse_upgrade(pending)
    if applied and not is_alone and not all(migrate.lets_older_write(script) for _, script in pending):
        raise MustBeAlone
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once: the second waits and finds it done
    try:
        tx.execute(migrate.CREATE_MIGRATION_TABLE)
        db.execute("COMMIT")
        while True:
            db.execute("BEGIN IMMEDIATE")
            applied = list_applied(tx)
            pending = list_pending(applied)
            if not pending:
                return read_version(db.execute)
            name, script = pending[0]
            migrate.apply_migration(tx, name, script, time.time_ns() // 1000, partial(_run_script, db))
            db.execute(f"PRAGMA user_version = {len(applied) + 1}")
            db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def list_applied(tx: Transaction) -> dict[str, bool]:
    if tx.fetch_one("SELECT 1 FROM sqlite_master WHERE name = 'migration'") is None:
        return {}
    return migrate.parse_applied(tx.fetch_all(migrate.READ_APPLIED))


def read_version(execute: Callable[[str], apsw.Cursor]) -> int:
    """Return a number that every migration changes."""
    return int(execute("PRAGMA user_version").get)


def _run_script(db: apsw.Connection, script: str) -> None:
    for _ in db.execute(script):
        pass

"""Schema changes: numbered SQL files, applied in order, each in one transaction with its record.

A file is `NNNN_name.sql`, or `NNNN_name.<engine>.sql` where the engines must differ. Files are never edited
after a release. A database that knows migrations this program does not is refused, with advice.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from palaver.domain.errors import SchemaTooNew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from palaver.storage.engines.base import Dialect, Transaction

_NAME = re.compile(r"(?P<name>\d{4}_\w+?)(?:\.(?P<engine>\w+))?\.sql")

REGISTER = "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)"


def known(dialect: Dialect) -> dict[str, str]:
    """Name → statements of every migration for this engine, in order."""
    found = {}
    folder = resources.files("palaver.storage") / "migrations"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        match = _NAME.fullmatch(file.name)
        if match and match["engine"] in {None, dialect.name}:
            found[match["name"]] = _translated(file.read_text(encoding="utf-8"), dialect)
    return found


def missing(dialect: Dialect, applied: Iterable[str]) -> list[tuple[str, str]]:
    """The migrations still to apply; refuses a database from the future."""
    migrations = known(dialect)
    if unknown := sorted(set(applied) - migrations.keys()):
        raise SchemaTooNew(
            f"A newer Palaver wrote this database (it has {', '.join(unknown)}); upgrade Palaver to open it.",
            unknown=unknown,
        )
    return [(name, script) for name, script in migrations.items() if name not in set(applied)]


def apply(tx: Transaction, name: str, now: int, script: Callable[[], None]) -> None:
    """Run one migration and record it, in the transaction given."""
    script()
    tx.run("INSERT INTO migration (name, applied_at) VALUES ($1, $2)", name, now)


def _translated(text: str, dialect: Dialect) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda match: dialect.words[match[1]], text)

"""Checks of a SQLite file that change nothing in it: a short one before every use, a complete one on request.

Always true: a file that fails the short check has not been written to, not even by recovering its log. The short check
takes the same time however large the file is: it reads the header and the schema, and looks at pages for
`QUICK_CHECK_SECONDS` at most.
"""

from __future__ import annotations

import re
import time
from contextlib import closing
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

import apsw

from palaver.core.engines import migrate
from palaver.core.engines.sqlite_file import connect, make_busy_handler, make_damage_error, open_immutable
from palaver.core.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from palaver.core.engines.base import Dialect

QUICK_CHECK_SECONDS: Final = 0.005
MAX_PROBLEMS: Final = 100  # that a complete check lists
_MAX_NAMES: Final = 5  # of missing tables, in a message
_STEPS_PER_CALL: Final = 50  # of SQLite's program between two looks at the clock

# A statement that changes which names there are.
_CHANGE = re.compile(
    r"^CREATE (?:UNIQUE |VIRTUAL )?(?:TABLE|INDEX|TRIGGER) (?:IF NOT EXISTS )?(?P<created>\w+)"
    r"|^DROP (?:TABLE|INDEX|TRIGGER) (?:IF EXISTS )?(?P<dropped>\w+)"
    r"|^ALTER TABLE (?P<renamed>\w+) RENAME TO (?P<new_name>\w+)",
    re.MULTILINE,
)
_READ_DEFINITIONS: Final = (
    "SELECT type, name, sql FROM sqlite_master WHERE type <> 'index' AND substr(name, 1, 7) <> 'sqlite_'"
)


def check_before_use(path: Path, dialect: Dialect) -> None:
    """Raise `StoreDamaged` if a file is damaged or not a database of Palaver; an absent or empty file is new."""
    real_path = path.resolve()  # SQLite's log is beside the file that a link leads to
    wal_path = real_path.with_name(f"{real_path.name}-wal")
    wal_bytes = get_file_size(wal_path)
    if get_file_size(path) == 0:
        if wal_bytes:
            raise make_damage_error(
                path, f"the file is missing or empty, but its log {wal_path.name} still holds messages."
            )
        return
    if wal_bytes is None:  # no process uses it: it can be read without any other file
        state = get_file_state(path)
        try:
            _check_with(open_immutable(path), path, dialect)
        except (apsw.CorruptError, apsw.NotADBError, StoreDamaged):
            if get_file_size(wal_path) is None and get_file_state(path) == state:
                raise  # else a process has begun to use it, and may have ended already
        else:
            return
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.set_busy_handler(make_busy_handler())
    _check_with(db, path, dialect)


def list_expected_names(scripts: Iterable[str]) -> set[str]:
    """Return the names of the tables, indexes and triggers that these migrations leave behind."""
    names: set[str | None] = set()
    for script in scripts:
        for removed, added in _find_changes(script):
            names.discard(removed)
            names.add(added)
    return {name for name in names if name is not None}


@lru_cache(maxsize=1024)  # of few and small files; searching all of them takes as long as opening a store
def _find_changes(script: str) -> tuple[tuple[str | None, str | None], ...]:
    """Return the name that each statement of a migration removes, and the one that it adds."""
    changes = _CHANGE.finditer(script)
    return tuple((each["dropped"] or each["renamed"], each["created"] or each["new_name"]) for each in changes)


def describe_missing_names(names: Iterable[str]) -> str:
    """Return a sentence about missing tables, indexes and triggers."""
    listed = sorted(names)
    more = f" and {len(listed) - _MAX_NAMES} more" if len(listed) > _MAX_NAMES else ""
    return f"tables or indexes are missing: {', '.join(listed[:_MAX_NAMES])}{more}."


def find_foreign_definitions(db: apsw.Connection, applied: Iterable[str], dialect: Dialect) -> list[str]:
    """Return the triggers, views and tables of a database that its migrations do not make exactly so.

    Such a thing runs statements of its own, or hides rows, whenever the store is used. An index can't.
    """
    scripts = migrate.load_migrations(dialect)
    with closing(apsw.Connection(":memory:")) as fresh:
        fresh.execute(migrate.CREATE_MIGRATION_TABLE)
        for name in sorted(applied):
            fresh.execute(scripts[name])
        made = set(fresh.execute(_READ_DEFINITIONS))
    return [f"{kind} {name}" for kind, name, _ in sorted(set(db.execute(_READ_DEFINITIONS)) - made)]


def describe_foreign_definitions(names: Iterable[str]) -> str:
    """Return sentences about what `find_foreign_definitions` has found."""
    listed = ", ".join(sorted(names)[:_MAX_NAMES])
    return (
        f"Palaver has not made this, or not in this form: {listed}. It may have been added to change or read what is"
        " stored. If you added it yourself, remove it from the database (with DROP), and make a new backup."
    )


def find_file_problems(path: Path, dialect: Dialect) -> list[str]:
    """Check every page, index, foreign key and definition of a file; return what is wrong."""
    problems = []
    try:
        with closing(connect(path, reader=True)) as db:
            found = db.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})")
            problems += [str(text) for (text,) in found if text != "ok"]
            for table, row, parent, _ in islice(db.execute("PRAGMA foreign_key_check"), MAX_PROBLEMS):
                problems.append(f"row {row} of table {table} refers to a row of {parent} that does not exist")
            applied = {name for (name,) in db.execute("SELECT name FROM migration")} - {migrate.COPY_MARKER}
            if foreign := find_foreign_definitions(db, applied, dialect):
                problems.append(describe_foreign_definitions(foreign).rstrip("."))
    except (apsw.CorruptError, apsw.NotADBError) as error:
        problems.append(str(error))
    return problems


def _check_with(db: apsw.Connection, path: Path, dialect: Dialect) -> None:
    """Check the schema and some pages through a connection, and close it."""
    with closing(db):
        db.execute("PRAGMA query_only = ON")
        db.execute("BEGIN")  # all of it from one state: another process may be migrating
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if not names:
            return
        applied = {name for (name,) in db.execute("SELECT name FROM migration")} if "migration" in names else set()
        migrate.refuse_preview(applied, names)
        migrations = migrate.load_migrations(dialect)
        if names != {"migration", "sqlite_autoindex_migration_1"} and not applied & migrations.keys():
            raise StoreDamaged(
                f"{path} is another program's database. Choose another file for Palaver.", is_foreign=True
            )
        if applied - migrations.keys() <= {migrate.COPY_MARKER}:  # else of a newer version, with tables of its own
            expected = list_expected_names(script for name, script in migrations.items() if name in applied)
            if missing := expected - names:
                raise make_damage_error(path, describe_missing_names(missing))
        _check_pages(db, path)


def _check_pages(db: apsw.Connection, path: Path) -> None:
    """Check pages for a short time; finding nothing by then is no promise."""
    deadline = time.monotonic() + QUICK_CHECK_SECONDS
    db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_CALL)
    try:
        [(text,)] = db.execute("PRAGMA quick_check(1)").fetchall()
    except apsw.InterruptError:
        return
    if text != "ok":
        raise make_damage_error(path, f"{str(text).strip()}.")


def get_file_state(path: Path) -> tuple[int, ...] | None:
    """Return what differs after a file was written or replaced; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def get_file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None

"""Reading the SQLite file of another program, which may be running, without changing anything beside it.

Always true: no file is created, changed or removed next to the database, and everything that is read belongs to one
moment. What the other program has committed to its WAL is read too.

    rollback journal             read-only, with SQLite's locks
    WAL, which is empty or gone  as an immutable file: any other way of opening it would create files
    WAL in use                   read-only, through the shared memory that the other program has created
    after a crash                a copy in a temporary folder, where SQLite can repair it
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import apsw

from palaver.core.engines.integrity import get_file_size, get_file_state
from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEADER: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_WRITE_VERSION_OFFSET: Final = 18  # 1: rollback journal, 2: WAL
_BUSY_TIMEOUT_MS: Final = 5_000
_START: Final = (
    "PRAGMA query_only = ON",
    "PRAGMA trusted_schema = OFF",
    "BEGIN",
    "SELECT count(*) FROM sqlite_master",  # from here on, everything belongs to one moment
)


class InvalidForeignDatabase(InvalidInput):
    """This file is not a SQLite database, or it is damaged."""


class ForeignDatabase:
    """An open database of another program. Rows are dicts; columns that an older version lacks are None."""

    def __init__(self, path: Path, db: apsw.Connection, copy_folder: Path | None) -> None:
        self.path = path
        self._db = db
        self._copy_folder = copy_folder
        self._opened_as = get_file_state(path)
        self._columns: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        self._db.close()
        if self._copy_folder is not None:
            shutil.rmtree(self._copy_folder, ignore_errors=True)

    def has_table(self, table: str) -> bool:
        return bool(self.list_columns(table))

    def list_tables(self) -> list[str]:
        return [row["name"] for row in self.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]

    def list_columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of a table; empty if there is no such table."""
        if table not in self._columns:
            rows = self.query("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = frozenset(row["name"] for row in rows)
        return self._columns[table]

    def select(
        self, table: str, columns: Sequence[str], rest: str = "", parameters: Sequence[Any] = ()
    ) -> Iterator[dict[str, Any]]:
        """Read rows of a table one after another; `rest` is what follows the table's name in the statement."""
        existing = self.list_columns(table)
        if not existing:
            return
        chosen = ", ".join(f'"{name}"' if name in existing else f'NULL AS "{name}"' for name in columns)
        yield from self.query(f'SELECT {chosen} FROM "{table}" {rest}', parameters)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        """Run a statement that reads; rows are read as they are asked for."""
        cursor = self._db.cursor()
        try:
            names: list[str] = []
            for row in cursor.execute(statement, tuple(parameters)):
                names = names or [column[0] for column in cursor.getdescription()]
                yield dict(zip(names, row, strict=True))
        except UnicodeDecodeError:
            raise self._make_error("it contains text that is not UTF-8") from None
        except apsw.AuthError as error:
            raise self._make_error("it has a view where a table is expected") from error
        except apsw.Error as error:
            raise self._make_error(str(error)) from error
        finally:
            cursor.close(force=True)

    def _make_error(self, problem: str) -> InvalidForeignDatabase:
        if self._copy_folder is None and get_file_state(self.path) != self._opened_as:
            return InvalidForeignDatabase(
                f"{self.path}: another program has changed this database while it was read ({problem}). Run the import"
                " again.",
                path=str(self.path),
            )
        return _make_damage_error(self.path, problem)


def open_foreign_database(path: Path) -> ForeignDatabase:
    """Open the database of another program; raise InvalidForeignDatabase if it is none, or damaged."""
    is_wal = _read_is_wal(path)
    wal, shared_memory, journal = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))
    opened, options, copy_folder = path, "mode=ro", None
    with ExitStack() as on_failure:
        try:
            if is_wal and not get_file_size(wal):
                options = "mode=ro&immutable=1"
            elif not shared_memory.exists() if is_wal else get_file_size(journal):
                copy_folder = Path(tempfile.mkdtemp(prefix="palaver-import-"))
                on_failure.callback(shutil.rmtree, copy_folder, ignore_errors=True)
                for source in (path, wal, journal):
                    with suppress(FileNotFoundError):
                        shutil.copyfile(source, copy_folder / source.name)
                opened, options = copy_folder / path.name, "mode=rw"
            address = f"file:{quote(str(opened.absolute()))}?{options}"
            db = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
            on_failure.callback(db.close)
            database = ForeignDatabase(path, db, copy_folder)
            db.set_busy_timeout(_BUSY_TIMEOUT_MS)
            db.authorizer = _authorize
            for statement in _START:
                db.execute(statement).fetchall()
        except OSError as error:
            raise _make_damage_error(path, error.strerror or str(error)) from error
        except apsw.Error as error:
            raise _make_damage_error(path, str(error)) from error
        on_failure.pop_all()
    return database


def _authorize(_operation: int, _first: str | None, _second: str | None, _schema: str | None, view: str | None) -> int:
    """Allow no view: it may have the name of a table that is read, and compute rows without end."""
    return apsw.SQLITE_OK if view is None else apsw.SQLITE_DENY


def _read_is_wal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise InvalidForeignDatabase(f"{path}: cannot be read: {error.strerror}.", path=str(path)) from error
    if len(header) < _HEADER_BYTES or not header.startswith(_HEADER):
        raise InvalidForeignDatabase(f"{path}: is not a SQLite database.", path=str(path))
    return header[_WRITE_VERSION_OFFSET] == 2


def _make_damage_error(path: Path, problem: str) -> InvalidForeignDatabase:
    return InvalidForeignDatabase(
        f"{path}: the database is damaged, or cannot be read: {problem}. Repair a copy with"
        f" `sqlite3 {path.name} .recover` and import that.",
        path=str(path),
    )

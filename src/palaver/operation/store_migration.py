"""Moves a store from SQLite to PostgreSQL or back: copies every table, then compares every table.

Always true: the target is not opened as a store before everything in it was compared with the source; a migration that
was interrupted goes on where it was. The source is only read. Attachments are files in the home folder and stay there.
"""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines import table_copy
from palaver.core.engines.base import Engine, Read, Row, Transaction, Upgrade, Write
from palaver.core.engines.open import get_database_path, open_engine
from palaver.core.engines.schema_state import describe_target, store_batch
from palaver.core.engines.table_copy import Table, TableProgress, TableSummary
from palaver.core.errors import InvalidInput, MigrationFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


ROWS_PER_DELETE: Final = 5000
FIRST_BATCH_ROWS: Final = 200


def remove_password(url: str) -> str:
    """Return a database URL without its password, also where it is a parameter."""
    parts = urlsplit(url)
    user, separator, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}{separator}{host}"
    query = "&".join(each for each in parts.query.split("&") if not each.lower().startswith("password="))
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def format_dump_advice(url: str, home: Path) -> str:
    """Say how to back up a PostgreSQL database and its attachments."""
    address = shlex.quote(remove_password(url))
    return (
        "Palaver does not back up PostgreSQL itself. PostgreSQL's own tool does, also while a server is running:\n"
        f"pg_dump --format=custom --file=palaver.dump {address}\n"
        f"Also copy the folder {home / 'attachments'}. To restore, stop Palaver and run:\n"
        f"pg_restore --clean --if-exists --no-owner --dbname={address} palaver.dump\n"
        "See docs/guides/backup.md."
    )


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table of a finished migration, or of one that is only planned."""

    name: str
    row_count: int
    checksum: str  # the same on both sides; empty if it was only counted

    def to_json(self) -> dict[str, Any]:
        return {"table": self.name, "rows": self.row_count, "checksum": self.checksum}


class StoreMigration:
    """Copies the store at one URL into the empty database at another."""

    def __init__(
        self,
        source_url: str,
        target_url: str,
        *,
        start_over: bool = False,
        on_progress: Callable[[str, int], None] = lambda _table, _rows: None,
    ) -> None:
        """`on_progress` is told the table in work and how many of its rows are there."""
        for url in (source_url, target_url):
            if not _is_server(url):
                get_database_path(url)  # refuses other kinds of addresses
        if _is_server(source_url) == _is_server(target_url):
            raise InvalidInput(
                "A store is moved from SQLite to PostgreSQL or back. To copy a SQLite file use `palaver backup`,"
                " for PostgreSQL use pg_dump."
            )
        self._source_url = source_url
        self._target_url = target_url
        self._start_over = start_over
        self._on_progress = on_progress

    def plan(self) -> list[TableReport]:
        """Return what would be copied; checks the target and changes nothing in it."""
        self._refuse_full_target()
        with ExitStack() as stack:
            source = self._open_source(stack)
            tables = source.run(Read(table_copy.list_tables))
            counts = [source.run(Read(partial(table_copy.count_rows, table=table), is_long=True)) for table in tables]
        return [TableReport(table.name, count, "") for table, count in zip(tables, counts, strict=True)]

    def run(self) -> list[TableReport]:
        """Copy everything, compare everything, and only then make the target a store."""
        self._refuse_full_target()
        with ExitStack() as stack:
            source = self._open_source(stack)
            target = open_engine(self._target_url, allow_unfinished_copy=True, is_exclusive=True)
            stack.callback(target.close)
            tables = self._match_tables(source, target)
            self._start(target, tables)
            crash_point("migrate.started")
            for table in tables:
                self._copy_table(source, target, table)
            for table in tables:
                if table.own_references:
                    self._copy_table(source, target, table, is_second_pass=True)
            self._finish_numbers(source, target, tables)
            crash_point("migrate.rows_copied")
            reports = [self._compare(source, target, table) for table in tables]
            crash_point("migrate.before_end")
            target.run(Write(table_copy.end_copy))
            crash_point("migrate.ended")
        return reports

    def _open_source(self, stack: ExitStack) -> Engine:
        if not _is_server(self._source_url) and not (path := Path(get_database_path(self._source_url))).is_file():
            raise InvalidInput(f"The database {path} does not exist.", path=str(path))
        source = open_engine(self._source_url, is_exclusive=True, upgrade=Upgrade.REFUSE)
        stack.callback(source.close)
        return source

    def _refuse_full_target(self) -> None:
        """Refuse a target that holds anything but an unfinished copy; looks at it without changing it."""
        found = describe_target(self._target_url)
        if found is not None and not found.is_unfinished:
            raise InvalidInput(
                f"The target {remove_password(self._target_url)} is not empty: its table {found.table!r} has rows."
                " Choose an empty database."
            )

    def _match_tables(self, source: Engine, target: Engine) -> list[Table]:
        tables = source.run(Read(table_copy.list_tables))
        others = {table.name: table.columns for table in target.run(Read(table_copy.list_tables))}
        if others != {table.name: table.columns for table in tables}:
            raise MigrationFailed("The two databases have different tables. Use the same version of Palaver for both.")
        return tables

    def _start(self, target: Engine, tables: Sequence[Table]) -> None:
        source_name = remove_password(self._source_url) if _is_server(self._source_url) else self._source_url
        if not target.run(Read(table_copy.is_started)):
            now = to_micros(target.clock.now())
            target.run(Write(lambda tx: table_copy.start_copy(tx, tables, source_name, now)))
        elif self._start_over:
            target.run(Write(table_copy.forget_progress))
            while target.run(Write(lambda tx: table_copy.delete_rows(tx, tables, ROWS_PER_DELETE))):
                self._on_progress("deleting the earlier copy", 0)
        elif (earlier := target.run(Read(table_copy.read_source))) != source_name:
            raise MigrationFailed(
                f"The target holds an unfinished copy of another store, {earlier}. Use --start-over to replace it."
            )

    def _copy_table(self, source: Engine, target: Engine, table: Table, *, is_second_pass: bool = False) -> None:
        step = f"{table.name} again" if is_second_pass else table.name
        write = table_copy.update_own_references if is_second_pass else table_copy.insert_rows
        progress = target.run(Read(partial(table_copy.load_progress, name=step)))
        limit = FIRST_BATCH_ROWS
        while not progress.is_done:
            rows = source.run(
                Read(partial(table_copy.read_rows, table=table, after=progress.last_key, limit=limit), is_long=True)
            )
            progress = table_copy.advance(progress, table, rows)
            crash_point("migrate.before_batch")

            def store(tx: Transaction, rows: Sequence[Row] = rows, progress: TableProgress = progress) -> None:
                write(tx, table, rows)
                table_copy.save_progress(tx, step, progress)

            store_batch(target, Write(store, is_long=True))
            crash_point("migrate.batch_copied")
            self._on_progress(table.name, progress.row_count)
            limit = table_copy.choose_batch_size(limit, rows)

    def _finish_numbers(self, source: Engine, target: Engine, tables: Sequence[Table]) -> None:
        serials = [
            (table, source.run(Read(partial(table_copy.read_serial, table=table)))) for table in tables if table.serial
        ]

        def finish(tx: Transaction) -> None:
            for table, number in serials:
                table_copy.write_serial(tx, table, number)
            table_copy.reset_search(tx)

        target.run(Write(finish))

    def _compare(self, source: Engine, target: Engine, table: Table) -> TableReport:
        self._on_progress(f"comparing {table.name}", 0)
        before, after = _summarize(source, table), _summarize(target, table)
        if before != after:
            raise MigrationFailed(
                f"The table {table.name} differs: {before.row_count} rows in the source, {after.row_count} in the"
                " target, or other content. If a server was running on the source, stop it. Then run the same command"
                " again with --start-over.",
                table=table.name,
                source_rows=before.row_count,
                target_rows=after.row_count,
            )
        return TableReport(table.name, before.row_count, f"{before.checksum:016x}")


def _is_server(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def _summarize(engine: Engine, table: Table) -> TableSummary:
    summary, last_key, limit = TableSummary(), None, FIRST_BATCH_ROWS
    read = partial(table_copy.read_rows_to_compare, table=table)
    while rows := engine.run(Read(partial(read, after=last_key, limit=limit), is_long=True)):
        summary = summary.add([row[: len(table.columns)] for row in rows])
        last_key = table_copy.get_key(table, rows[-1])
        limit = table_copy.choose_batch_size(limit, rows)
    return summary

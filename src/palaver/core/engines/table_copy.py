"""Copies the tables of one store into another, on either engine, a batch of rows at a time.

The order of the tables follows from the foreign keys. A column that refers to its own table is filled in a second pass,
when all rows are there. Progress is recorded in the target, in the transaction of each batch, so that a copy can go on
after any interruption, and every row is copied once.

Not copied: the search index, which the target builds itself, and what an engine keeps for itself.
"""

from __future__ import annotations

import json
from dataclasses import replace
from graphlib import TopologicalSorter
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_number, fetch_value
from palaver.core.engines.migrate import COPY_MARKER, list_seeded_tables

if TYPE_CHECKING:
    from collections.abc import Sequence


PROGRESS_TABLE: Final = "store_copy"
# `search` is built anew; `migration` and `access_change` belong to each database; the last is our own.
SKIPPED_TABLES: Final = frozenset({"search", "search_rebuild", "migration", "access_change", PROGRESS_TABLE})
MAX_BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 2_000_000  # aimed at: rows differ in size, so the number of rows is adapted
# Where the target begins to index: at the start of every log.
_SEARCH_COLUMNS: Final = {"session": {"indexed_seq": "0", "unindexed": "CASE WHEN last_seq > 0 THEN 1 ELSE 0 END"}}


@dataclass(frozen=True, slots=True)
class Table:
    """A table as both engines have it."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]  # the primary key
    parents: frozenset[str]  # the tables that it refers to, without itself
    own_references: tuple[str, ...]  # the columns that refer to the table itself
    serial: str | None  # the column that the database numbers


@dataclass(frozen=True, slots=True)
class TableProgress:
    last_key: tuple[object, ...] | None = None
    row_count: int = 0
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class TableSummary:
    """The rows of a table: how many, and a checksum that does not depend on their order."""

    row_count: int = 0
    checksum: int = 0

    def add(self, rows: Sequence[Row]) -> TableSummary:
        checksum = self.checksum
        for row in rows:
            text = json.dumps(row, ensure_ascii=True, separators=(",", ":"))
            checksum += int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
        return TableSummary(self.row_count + len(rows), checksum % 2**64)


# ---- the schema --------------------------------------------------------------------------------------------


def list_tables(tx: Transaction) -> list[Table]:
    """Return the tables to copy, each after those that it refers to."""
    tables = {table.name: table for table in (_load_tables_sqlite(tx) if tx.name == "sqlite" else _load_tables(tx))}
    parents = {name: sorted(tables[name].parents) for name in sorted(tables)}  # sorted: the same order on both engines
    return [tables[name] for name in TopologicalSorter(parents).static_order()]


def _load_tables_sqlite(tx: Transaction) -> list[Table]:
    rows = tx.fetch_all("SELECT name, ncol FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
    names = [name for name, _ in rows if not name.startswith("sqlite_") and name not in SKIPPED_TABLES]
    tables = []
    for name in names:
        columns = tx.fetch_all("SELECT name, pk, type FROM pragma_table_info($1) ORDER BY cid", name)
        references = tx.fetch_all('SELECT "table", "from" FROM pragma_foreign_key_list($1)', name)
        key = tuple(column for column, pk, _ in sorted(columns, key=lambda column: column[1]) if pk)
        is_serial = len(key) == 1 and any(column == key[0] and kind == "INTEGER" for column, _, kind in columns)
        tables.append(_build_table(name, [column for column, _, _ in columns], key, references, is_serial=is_serial))
    return tables


def _load_tables(tx: Transaction) -> list[Table]:
    sql = """SELECT c.relname::text, a.attname::text, a.attidentity <> '' FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
        AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, a.attnum"""
    columns = tx.fetch_all(sql)
    sql = """SELECT c.conrelid::regclass::text, a.attname::text, c.contype::text, c.confrelid::regclass::text
        FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k (no, position)
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.no
        WHERE c.contype IN ('p', 'f') AND c.connamespace = current_schema()::regnamespace
        ORDER BY c.conrelid, c.contype, k.position"""
    keys = tx.fetch_all(sql)
    tables = []
    for name in dict.fromkeys(table for table, _, _ in columns if table not in SKIPPED_TABLES):
        own = [(column, identity) for table, column, identity in columns if table == name]
        key = tuple(column for table, column, kind, _ in keys if table.strip('"') == name and kind == "p")
        references = [
            (to.strip('"'), column) for table, column, kind, to in keys if table.strip('"') == name and kind == "f"
        ]
        is_serial = any(identity for _, identity in own)
        tables.append(_build_table(name, [column for column, _ in own], key, references, is_serial=is_serial))
    return tables


def _build_table(
    name: str, columns: Sequence[str], key: tuple[str, ...], references: Sequence[Row], *, is_serial: bool
) -> Table:
    return Table(
        name=name,
        columns=tuple(sorted(columns)),
        key=key,
        parents=frozenset(parent for parent, _ in references) - {name},
        own_references=tuple(sorted({column for parent, column in references if parent == name})),
        serial=key[0] if is_serial else None,
    )


# ---- reading and writing -----------------------------------------------------------------------------------


def read_rows(tx: Transaction, table: Table, after: tuple[object, ...] | None, limit: int) -> list[Row]:
    """Return the next rows of a table in the order of its key, as they are in the source."""
    return _select(tx, table, [f'"{column}"' for column in table.columns], after, limit)


def read_rows_to_compare(tx: Transaction, table: Table, after: tuple[object, ...] | None, limit: int) -> list[Row]:
    """Return the next rows of a table without what differs in a copy: how far the search index has come."""
    skipped = _SEARCH_COLUMNS.get(table.name, {})
    columns = ["0" if column in skipped else f'"{column}"' for column in table.columns]
    return _select(tx, table, columns, after, limit)


def _select(
    tx: Transaction, table: Table, columns: Sequence[str], after: tuple[object, ...] | None, limit: int
) -> list[Row]:
    """Select columns, followed by those of the key."""
    key = ", ".join(f'"{column}"' for column in table.key)
    where = "" if after is None else f"WHERE ({key}) > ({build_placeholders(len(table.key), first=2)})"
    sql = f'SELECT {", ".join(columns)}, {key} FROM "{table.name}" {where} ORDER BY {key} LIMIT $1'
    return tx.fetch_all(sql, limit, *(after or ()))


def get_key(table: Table, row: Row) -> tuple[object, ...]:
    """Return the key of a row that was read here."""
    return tuple(row[len(table.columns) :])


def insert_rows(tx: Transaction, table: Table, rows: Sequence[Row]) -> None:
    """Add rows that `read_rows` has returned, without what refers to the table itself."""
    names = [column for column in table.columns if column not in table.own_references]
    positions = [table.columns.index(column) for column in names]
    columns = ", ".join(f'"{column}"' for column in names)
    sql = f'INSERT INTO "{table.name}" ({columns}) VALUES ({build_placeholders(len(names))})'
    tx.execute_many(sql, [tuple(row[position] for position in positions) for row in rows])


def update_own_references(tx: Transaction, table: Table, rows: Sequence[Row]) -> None:
    """Fill the columns that refer to the table itself; all rows that they refer to must be there."""
    condition = " AND ".join(f'"{column}" = ${number}' for number, column in enumerate(table.key, 2))
    for column in table.own_references:
        position = table.columns.index(column)
        sql = f'UPDATE "{table.name}" SET "{column}" = $1 WHERE {condition}'
        tx.execute_many(sql, [(row[position], *get_key(table, row)) for row in rows if row[position] is not None])


def reset_search(tx: Transaction) -> None:
    """Let the search index of the target begin at the start of every log."""
    for table, columns in _SEARCH_COLUMNS.items():
        changes = ", ".join(f"{column} = {value}" for column, value in columns.items())
        tx.execute(f"UPDATE {table} SET {changes}")


def read_serial(tx: Transaction, table: Table) -> int:
    """Return the greatest number that a table has ever used, also of rows that were deleted since."""
    if tx.name == "sqlite":
        has_counters = tx.fetch_one("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'") is not None
        select = "SELECT seq FROM sqlite_sequence WHERE name = $1"
        used = fetch_number(tx, select, table.name) if has_counters else 0
    else:
        name = fetch_value(tx, "SELECT pg_get_serial_sequence($1, $2)", f'"{table.name}"', table.serial)
        used = fetch_number(tx, f"SELECT last_value FROM {name} WHERE is_called") if name is not None else 0
    return max(used, fetch_number(tx, f'SELECT MAX("{table.serial}") FROM "{table.name}"'))


def write_serial(tx: Transaction, table: Table, number: int) -> None:
    """Let a table number its next row after `number`."""
    if number == 0:
        return
    if tx.name == "postgres":
        tx.fetch_one("SELECT setval(pg_get_serial_sequence($1, $2), $3)", f'"{table.name}"', table.serial, number)
    elif tx.execute("UPDATE sqlite_sequence SET seq = $2 WHERE name = $1", table.name, number) == 0:
        created_by: str | None = fetch_value(tx, "SELECT sql FROM sqlite_master WHERE name = $1", table.name)
        if "AUTOINCREMENT" in (created_by or ""):  # SQLite never gives a number of this table a second time
            tx.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", table.name, number)


# ---- progress ----------------------------------------------------------------------------------------------


def find_rows(tx: Transaction, tables: Sequence[Table]) -> str | None:
    """Return the name of a table that has rows, apart from those that every new store has; None if there is none."""
    seeded = list_seeded_tables()
    names = [table.name for table in tables if table.name not in seeded]
    return next((name for name in names if tx.fetch_one(f'SELECT 1 FROM "{name}" LIMIT 1')), None)


def count_rows(tx: Transaction, table: Table) -> int:
    return fetch_number(tx, f'SELECT COUNT(*) FROM "{table.name}"')


def is_started(tx: Transaction) -> bool:
    """Return whether a copy into this database has begun and not ended."""
    return tx.fetch_one("SELECT 1 FROM migration WHERE name = $1", COPY_MARKER) is not None


def start_copy(tx: Transaction, tables: Sequence[Table], source: str, now: int) -> None:
    """Mark an empty database as the target of a copy: from now on, it is not opened as a store."""
    for table in reversed(tables):  # the rows that every new store begins with
        tx.execute(f'DELETE FROM "{table.name}"')
    sql = f"""CREATE TABLE {PROGRESS_TABLE} (name TEXT PRIMARY KEY, last_key TEXT, row_count BIGINT NOT NULL,
        is_done SMALLINT NOT NULL)"""
    tx.execute(sql)
    tx.execute(f"INSERT INTO {PROGRESS_TABLE} VALUES ($1, $2, 0, 0)", "", source)
    tx.execute("INSERT INTO migration (name, applied_at) VALUES ($1, $2)", COPY_MARKER, now)


def read_source(tx: Transaction) -> str:
    """Return the name of the store from which a copy has begun."""
    return str(fetch_value(tx, f"SELECT last_key FROM {PROGRESS_TABLE} WHERE name = ''") or "")


def end_copy(tx: Transaction) -> None:
    """Make a database an ordinary store."""
    tx.execute(f"DROP TABLE {PROGRESS_TABLE}")
    tx.execute("DELETE FROM migration WHERE name = $1", COPY_MARKER)


def delete_rows(tx: Transaction, tables: Sequence[Table], limit: int) -> int:
    """Delete up to `limit` rows of a copy that is given up, from the last table to the first; return how many."""
    for table in reversed(tables):
        for column in table.own_references:
            tx.execute(f'UPDATE "{table.name}" SET "{column}" = NULL WHERE "{column}" IS NOT NULL')
        key = ", ".join(f'"{column}"' for column in table.key)
        deleted = tx.execute(
            f'DELETE FROM "{table.name}" WHERE ({key}) IN (SELECT {key} FROM "{table.name}" LIMIT $1)', limit
        )
        if deleted:
            return deleted
    return 0


def forget_progress(tx: Transaction) -> None:
    tx.execute(f"DELETE FROM {PROGRESS_TABLE} WHERE name <> ''")


def load_progress(tx: Transaction, name: str) -> TableProgress:
    """Load how far a step has come: the name of a table, or of its second pass."""
    row = tx.fetch_one(f"SELECT last_key, row_count, is_done FROM {PROGRESS_TABLE} WHERE name = $1", name)
    if row is None:
        return TableProgress()
    return TableProgress(None if row[0] is None else tuple(json.loads(row[0])), int(row[1]), bool(row[2]))


def save_progress(tx: Transaction, name: str, progress: TableProgress) -> None:
    sql = f"""INSERT INTO {PROGRESS_TABLE} (name, last_key, row_count, is_done) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE SET last_key = excluded.last_key, row_count = excluded.row_count,
        is_done = excluded.is_done"""
    tx.execute(
        sql,
        name,
        None if progress.last_key is None else json.dumps(progress.last_key),
        progress.row_count,
        int(progress.is_done),
    )


def advance(progress: TableProgress, table: Table, rows: Sequence[Row]) -> TableProgress:
    """Return the progress after a batch; one without rows is the end."""
    if not rows:
        return replace(progress, is_done=True)
    return TableProgress(get_key(table, rows[-1]), progress.row_count + len(rows))


def choose_batch_size(size: int, rows: Sequence[Row]) -> int:
    """Return how many rows to read next, so that a batch has about `BATCH_BYTES`."""
    total = sum(len(value) for row in rows for value in row if isinstance(value, str)) + 1
    return max(1, min(MAX_BATCH_ROWS, size * 2, size * BATCH_BYTES // total))


@dataclass(frozen=True, slots=True)
class TargetContent:
    """The content of a database that is not empty."""

    is_unfinished: bool  # an unfinished copy of a store
    table: str  # one of those that have rows


def find_content(tx: Transaction) -> TargetContent | None:
    """Return what the tables of a database hold, also of another program's."""
    tables = list_tables(tx)
    names = {table.name for table in tables}
    if "lane_move" in names and is_started(tx):
        return TargetContent(is_unfinished=True, table="")
    found = find_rows(tx, tables)
    return None if found is None else TargetContent(is_unfinished=False, table=found)

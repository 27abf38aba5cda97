"""Fills a Palaver database quickly with the rows that the API would write.

The API writes the first conversation of the plan. The others are copies of its rows with other names, texts and times, so
this module only needs to know the columns that differ between conversations. The store itself updates the search index
afterwards.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from benchmarks.corpus import Plan

    Row = dict[str, Any]

# The tables in which a conversation has rows, parents first, and the column to order each by.
TABLES = {
    "audience": "no",
    "person": "id",
    "audience_member": "person_id",
    "identity": "account",
    "session": "no",
    "lane": "key",
    "event": "no",
    "usage": "turn_id",
}
TIME_COLUMNS = frozenset(
    {"created_at", "active_at", "last_message_at", "last_human_at", "expiry_base", "updated_at", "joined_at"}
)
EVENTS_PER_INSERT = 20_000  # written at once
FIRST_COPY_AGE = timedelta(days=120)  # the copies start this long ago
COPY_INTERVAL = timedelta(seconds=1)


class Bulk(Protocol):
    """A database that accepts many rows at once."""

    def list_filled_tables(self) -> list[str]:
        """Return the names of the tables that have rows."""
        ...

    def load_rows(self, table: str, order: str) -> list[Row]:
        """Return all rows of a table."""
        ...

    def insert_rows(self, table: str, rows: list[Row]) -> None: ...

    def commit_and_close(self) -> None: ...


def copy_conversations(bulk: Bulk, template_key: str, plan: Plan) -> None:
    """Add the conversations of the plan as copies of the one that the API wrote for the chat `template_key`."""
    template = _Template(template_key, {table: bulk.load_rows(table, order) for table, order in TABLES.items()})
    _check_other_tables_empty(bulk)
    first_time = datetime.now(UTC) - FIRST_COPY_AGE
    pending: dict[str, list[Row]] = {table: [] for table in TABLES}

    def flush() -> None:
        for table, rows in pending.items():
            if rows:
                bulk.insert_rows(table, rows)
                rows.clear()

    for i, (key, messages) in enumerate(plan, 1):
        for table, rows in template.copy(
            i, key, [text for _, text in messages], first_time + i * COPY_INTERVAL
        ).items():
            pending[table] += rows
        if len(pending["event"]) >= EVENTS_PER_INSERT:
            flush()
    flush()
    bulk.commit_and_close()


def _check_other_tables_empty(bulk: Bulk) -> None:
    """Check that the tables unknown to this module are empty; otherwise the copies would be incomplete."""
    known = TABLES.keys() | {"access_change", "migration", "search"}  # these have rows that belong to no conversation
    unknown = [
        name for name in bulk.list_filled_tables() if name not in known and not name.startswith(("search_", "sqlite_"))
    ]
    if unknown:
        raise RuntimeError(
            f"a conversation also has rows in {', '.join(unknown)}: add these tables to palaver_seed.TABLES"
        )


@dataclass(frozen=True)
class _Template:
    """The conversation to copy."""

    key: str
    rows: dict[str, list[Row]]

    def copy(self, i: int, key: str, texts: list[str], first_time: datetime) -> dict[str, list[Row]]:
        """Return the rows of copy number `i`."""
        person, session = self.rows["person"][0], self.rows["session"][0]
        events = self.rows["event"]
        texts_left = iter(texts)
        shift_micros = int(first_time.timestamp() * 1e6) - session["created_at"]
        new_ids = {"person": f"p_{i:012x}", "audience": person["audience_no"] + i, "session": session["no"] + i}
        change: dict[str, Callable[[Row, int], Row]] = {
            "audience": lambda row, _: {"no": new_ids["audience"]},
            "person": lambda row, _: {"id": new_ids["person"]},
            "identity": lambda row, _: {"account": key},
            "lane": lambda row, _: {name: row[name].replace(self.key, key) for name in ("key", "source")},
            "session": lambda row, _: self._change_session(row, i, key, texts, first_time),
            "event": lambda row, n: {
                "no": events[0]["no"] + i * len(events) + n,
                "content": next(texts_left) if row["content"] is not None else None,
            },
            "usage": lambda row, n: {"turn_id": f"seed-{i}-{n}"},
        }
        links = {
            "person_id": new_ids["person"],
            "audience_no": new_ids["audience"],
            "session_no": new_ids["session"],
        }
        copies = {
            table: [
                _shift_row(row, links, shift_micros) | (change[table](row, n) if table in change else {})
                for n, row in enumerate(rows)
            ]
            for table, rows in self.rows.items()
        }
        if next(texts_left, None) is not None:
            raise RuntimeError("all conversations of the plan must have as many messages as the first")
        return copies

    def _change_session(self, row: Row, i: int, key: str, texts: list[str], first_time: datetime) -> Row:
        from palaver.sessions.message import make_preview

        return {
            "no": row["no"] + i,
            "id": f"{first_time:%Y%m%d_%H%M%S}_{i:08x}",
            "key": row["key"].replace(self.key, key),
            "source": row["source"].replace(json.dumps(self.key), json.dumps(key)),
            "preview": make_preview(texts[-1]),
            "indexed_seq": 0,
            "unindexed": 1,
        }


def _shift_row(row: Row, links: dict[str, Any], shift_micros: int) -> Row:
    """Return the row with its times shifted and its references pointing to the rows of the copy."""
    new = dict(row)
    for column, value in row.items():
        if value is None:
            continue
        if column in TIME_COLUMNS:
            new[column] = value + shift_micros
        elif column in links:
            new[column] = links[column]
    return new


class SqliteBulk:
    """Adds rows to a SQLite file that no other process has open."""

    def __init__(self, path: Path) -> None:
        import apsw

        self.db = apsw.Connection(str(path))
        self.db.execute("PRAGMA journal_mode = MEMORY")
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("PRAGMA cache_size = -262144")
        self.db.execute("BEGIN IMMEDIATE")

    def list_filled_tables(self) -> list[str]:
        names = [name for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in names if self.db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall()]

    def load_rows(self, table: str, order: str) -> list[Row]:
        columns = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")]
        result = self.db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
        return [dict(zip(columns, row, strict=True)) for row in result]

    def insert_rows(self, table: str, rows: list[Row]) -> None:
        columns = rows[0].keys()
        placeholders = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders})"
        self.db.executemany(statement, (tuple(row.values()) for row in rows))

    def commit_and_close(self) -> None:
        self.db.execute("COMMIT")
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.close()


class PostgresBulk:
    """Adds rows to a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.db = psycopg.connect(url)

    def list_filled_tables(self) -> list[str]:
        names = self._fetch_all("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        return [name for (name,) in names if self._fetch_all(f"SELECT 1 FROM {name} LIMIT 1")]

    def load_rows(self, table: str, order: str) -> list[Row]:
        cursor = self.db.execute(f"SELECT * FROM {table} ORDER BY {order}")
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def insert_rows(self, table: str, rows: list[Row]) -> None:
        columns = ", ".join(rows[0])
        with self.db.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))

    def commit_and_close(self) -> None:
        for table, order in TABLES.items():
            if order == "no":
                sequence = f"pg_get_serial_sequence('{table}', 'no')"
                self._fetch_all(f"SELECT setval({sequence}, (SELECT max(no) FROM {table}))")
        self.db.commit()
        self.db.autocommit = True
        self.db.execute("VACUUM ANALYZE")
        self.db.close()

    def _fetch_all(self, statement: str) -> Iterable[Any]:
        return self.db.execute(statement).fetchall()

"""Fills a Palaver database quickly with what the API would have written.

The first conversation of the plan is written by the API. Every other one is a copy of its rows with other
names, texts and times, so nothing here has to know a column that a conversation does not change. The search
index is then brought up to date by the store itself.
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

# The tables that a conversation has rows in, parents first, and how to read them in order.
TABLES = {
    "audience": "no",
    "person": "id",
    "audience_member": "person_id",
    "identity": "account",
    "session": "no",
    "route": "key",
    "event": "no",
    "usage": "turn_id",
}
TIMES = frozenset({"created_at", "active_at", "last_message_at", "last_human_at", "updated_at", "since", "at"})
CHUNK = 20_000  # events written together
EARLIER = timedelta(days=120)  # how long ago the copies begin
APART = timedelta(seconds=1)


class Bulk(Protocol):
    """A database to which rows are added by the thousand."""

    def tables(self) -> list[str]:
        """The tables that have rows."""
        ...

    def rows(self, table: str, order: str) -> list[Row]:
        """Every row of a table."""
        ...

    def insert(self, table: str, rows: list[Row]) -> None:
        """Add rows."""
        ...

    def finish(self) -> None:
        """Commit, and let go of the database."""
        ...


def copy_conversations(bulk: Bulk, written: str, plan: Plan) -> None:
    """Add the conversations of the plan as copies of the one that the API has written for the chat `written`."""
    model = _Model(written, {table: bulk.rows(table, order) for table, order in TABLES.items()})
    _check_nothing_else(bulk)
    began = datetime.now(UTC) - EARLIER
    waiting: dict[str, list[Row]] = {table: [] for table in TABLES}

    def flush() -> None:
        for table, rows in waiting.items():
            if rows:
                bulk.insert(table, rows)
                rows.clear()

    for i, (key, said) in enumerate(plan, 1):
        for table, rows in model.copy(i, key, [text for _, text in said], began + i * APART).items():
            waiting[table] += rows
        if len(waiting["event"]) >= CHUNK:
            flush()
    flush()
    bulk.finish()


def _check_nothing_else(bulk: Bulk) -> None:
    """A table that this module does not know must be empty, or the copies would lack something."""
    known = TABLES.keys() | {"migration", "search"}
    more = [name for name in bulk.tables() if name not in known and not name.startswith(("search_", "sqlite_"))]
    if more:
        raise RuntimeError(f"a conversation has rows in {', '.join(more)} too; teach palaver_seed to copy them")


@dataclass(frozen=True)
class _Model:
    """The conversation that is copied."""

    key: str
    rows: dict[str, list[Row]]

    def copy(self, i: int, key: str, texts: list[str], began: datetime) -> dict[str, list[Row]]:
        """The rows of copy number `i`."""
        person, session = self.rows["person"][0], self.rows["session"][0]
        events = self.rows["event"]
        texts_left = iter(texts)
        later = int(began.timestamp() * 1e6) - session["created_at"]
        numbers = {"person": f"p_{i:012x}", "audience": person["audience_no"] + i, "session": session["no"] + i}
        change: dict[str, Callable[[Row, int], Row]] = {
            "audience": lambda row, _: {"no": numbers["audience"]},
            "person": lambda row, _: {"id": numbers["person"]},
            "identity": lambda row, _: {"account": key},
            "route": lambda row, _: {name: row[name].replace(self.key, key) for name in ("key", "source")},
            "session": lambda row, _: self._session(row, i, key, texts, began),
            "event": lambda row, n: {
                "no": events[0]["no"] + i * len(events) + n,
                "content": next(texts_left) if row["content"] is not None else None,
            },
            "usage": lambda row, n: {"turn_id": f"seed-{i}-{n}"},
        }
        links = {
            "person_id": numbers["person"],
            "audience_no": numbers["audience"],
            "session_no": numbers["session"],
        }
        copies = {
            table: [
                _shifted(row, links, later) | (change[table](row, n) if table in change else {})
                for n, row in enumerate(rows)
            ]
            for table, rows in self.rows.items()
        }
        if next(texts_left, None) is not None:
            raise RuntimeError("every conversation of the plan must have as many messages as the first")
        return copies

    def _session(self, row: Row, i: int, key: str, texts: list[str], began: datetime) -> Row:
        from palaver.domain.message import preview

        return {
            "no": row["no"] + i,
            "id": f"{began:%Y%m%d_%H%M%S}_{i:08x}",
            "key": row["key"].replace(self.key, key),
            "source": row["source"].replace(json.dumps(self.key), json.dumps(key)),
            "preview": preview(texts[-1]),
            "indexed_seq": 0,
            "unindexed": 1,
        }


def _shifted(row: Row, links: dict[str, Any], later: int) -> Row:
    """The row with its times moved and its references pointing into the copy."""
    new = dict(row)
    for column, value in row.items():
        if value is None:
            continue
        if column in TIMES:
            new[column] = value + later
        elif column in links:
            new[column] = links[column]
    return new


class SqliteBulk:
    """Rows into a SQLite file that nobody else has open."""

    def __init__(self, path: Path) -> None:
        import apsw

        self.db = apsw.Connection(str(path))
        self.db.execute("PRAGMA journal_mode = MEMORY")
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("PRAGMA cache_size = -262144")
        self.db.execute("BEGIN IMMEDIATE")

    def tables(self) -> list[str]:
        names = [name for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in names if self.db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall()]

    def rows(self, table: str, order: str) -> list[Row]:
        columns = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")]
        found = self.db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
        return [dict(zip(columns, row, strict=True)) for row in found]

    def insert(self, table: str, rows: list[Row]) -> None:
        columns = rows[0].keys()
        places = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
        self.db.executemany(statement, (tuple(row.values()) for row in rows))

    def finish(self) -> None:
        self.db.execute("COMMIT")
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.close()


class PostgresBulk:
    """Rows into a database of a server."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.db = psycopg.connect(url)

    def tables(self) -> list[str]:
        names = self._all("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        return [name for (name,) in names if self._all(f"SELECT 1 FROM {name} LIMIT 1")]

    def rows(self, table: str, order: str) -> list[Row]:
        cursor = self.db.execute(f"SELECT * FROM {table} ORDER BY {order}")
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def insert(self, table: str, rows: list[Row]) -> None:
        columns = ", ".join(rows[0])
        with self.db.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))

    def finish(self) -> None:
        for table, order in TABLES.items():
            if order == "no":
                sequence = f"pg_get_serial_sequence('{table}', 'no')"
                self._all(f"SELECT setval({sequence}, (SELECT max(no) FROM {table}))")
        self.db.commit()
        self.db.autocommit = True
        self.db.execute("VACUUM ANALYZE")
        self.db.close()

    def _all(self, statement: str) -> Iterable[Any]:
        return self.db.execute(statement).fetchall()

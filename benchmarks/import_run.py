"""Measures an import of many conversations, beside the raw insert of the same rows with the same engine.

    python -m benchmarks.import_run [--sessions 10000] [--messages 100] [--postgres URL]

Each step runs in a process of its own, on a new database: an import through the importer as from another program, the
insert of the rows that it has written and nothing else, an export in Palaver's own format, and the import of that
export. For each: seconds, CPU seconds, peak memory of the process, size of the database or file. `--messages` is per session. With
`--postgres` the databases are on that server, which is emptied before each step.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import make_text

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS_PER_TRANSACTION = 2000
START = datetime(2025, 1, 1, tzinfo=UTC)
EMPTY_ALL_TABLES = """DO $$ DECLARE found RECORD; BEGIN FOR found IN SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'migration'
    LOOP EXECUTE format('TRUNCATE %I CASCADE', found.relname); END LOOP; END $$"""


@dataclass
class CorpusReader:
    """Makes conversations while they are read."""

    sessions: int
    messages: int
    format: str = "corpus"
    platform: Any = None
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        from palaver import Platform

        self.platform = Platform("chatgpt")
        self.texts = [make_text(number) for number in range(500)]

    def count_conversations(self) -> int:
        return self.sessions

    def read_items(self) -> Iterator[Any]:
        from palaver.transfer.imported import ImportedConversation

        for number in range(self.sessions):
            yield ImportedConversation(
                origin_id=f"c{number}",
                open_entries=lambda number=number: self._read_entries(number),  # type: ignore[misc]
                created_at=START + timedelta(minutes=number),
                title=f"Conversation {number}",
            )

    def _read_entries(self, number: int) -> Iterator[Any]:
        from palaver.sessions.message import Message
        from palaver.transfer.imported import ImportedMessage

        start = START + timedelta(minutes=number)
        for index in range(self.messages):
            role = "user" if index % 2 == 0 else "assistant"
            text = self.texts[(number * 31 + index) % len(self.texts)]
            yield ImportedMessage(message=Message(role, text), at=start + timedelta(seconds=index))

    def close(self) -> None:
        """Do nothing: there are no files."""


def run_step(step: str, url: str, folder: Path, sessions: int, messages: int) -> dict[str, Any]:
    """Run one step in this process."""
    from palaver import SessionStore
    from palaver.media.attachments import Attachments
    from palaver.transfer.exporter import ExportScope, export_records
    from palaver.transfer.importer import Importer
    from palaver.transfer.own_format import format_lines
    from palaver.transfer.restore import restore_export

    path = folder / "export.jsonl"
    with SessionStore.open(url) as store:
        attachments = Attachments(store, folder / "attachments")
        owner = store.get_owner() if step == "import" else None
        rows = load_rows(folder / "rows.jsonl") if step == "raw" else iter(())
        raw = (0.0, 0.0)
        before, cpu_before = time.perf_counter(), time.process_time()
        if step == "import" and owner is not None:
            report = Importer(store, attachments).import_files(CorpusReader(sessions, messages), owner)
            assert report.counts["messages"] == sessions * messages
        elif step == "raw":
            raw = insert_rows(store, rows)
        elif step == "export":
            with path.open("wb") as stream:
                for line in format_lines(export_records(store, attachments, ExportScope())):
                    stream.write(line)
        elif step == "restore":
            restore_export(store, attachments, path)
        elif step == "save":
            save_rows(store, folder / "rows.jsonl")
        seconds, cpu = time.perf_counter() - before, time.process_time() - cpu_before
        if step == "raw":
            seconds, cpu = raw
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    database = Path(url.removeprefix("sqlite:///"))
    size = path.stat().st_size if step == "export" else database.stat().st_size if url.startswith("sqlite") else 0
    return {"seconds": seconds, "cpu": cpu, "memory_mb": memory, "size_mb": size / 1e6}


# ---- the raw insert ----------------------------------------------------------------------------------------


def save_rows(store: Any, path: Path) -> None:
    """Save the rows of a store, so that they can be inserted again."""
    from palaver.core.engines.base import Read

    tables = ("audience", "person", "audience_member", "identity", "session", "event", "read_mark", "imported_item")
    with path.open("w") as stream:
        for table in tables:
            columns = store.engine.run(Read(partial(list_columns, table=table)))
            stream.write(json.dumps([table, columns]) + "\n")
            after = 0
            order = "no" if "no" in columns else None
            while True:
                sql = f"SELECT {', '.join(columns)} FROM {table}"
                sql += f" WHERE no > {after} ORDER BY no LIMIT 5000" if order else ""
                page = store.engine.run(Read(partial(fetch_rows, sql=sql)))
                stream.writelines(json.dumps(row) + "\n" for row in page)
                if order is None or not page:
                    break
                after = page[-1][columns.index("no")]


def fetch_rows(tx: Any, sql: str) -> list[Any]:
    return list(tx.fetch_all(sql))


def insert_batch(tx: Any, statement: str, rows: list[Any]) -> None:
    tx.execute_many(statement, rows)


def list_columns(tx: Any, table: str) -> list[str]:
    if tx.name == "sqlite":
        return [row[1] for row in tx.fetch_all(f"PRAGMA table_info({table})")]
    sql = "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position"
    return [row[0] for row in tx.fetch_all(sql, table)]


def load_rows(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """Yield statements, each with rows for one transaction. Sessions come with their events, as in the import."""
    statement = ""
    rows: list[Any] = []
    with path.open() as stream:
        for line in stream:
            values = json.loads(line)
            if isinstance(values[0], str) and isinstance(values[1], list):
                if rows:
                    yield statement, rows
                table, columns = values
                numbers = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
                statement, rows = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({numbers})", []
                continue
            rows.append(values)
            if len(rows) == ROWS_PER_TRANSACTION:
                yield statement, rows
                rows = []
    if rows:
        yield statement, rows


def insert_rows(store: Any, batches: Iterator[tuple[str, list[Any]]]) -> tuple[float, float]:
    """Insert rows; return the seconds and the CPU seconds that it took. Reading them from the file does not count."""
    from palaver.core.engines.base import Write

    seconds = cpu = 0.0
    for statement, rows in batches:
        before, cpu_before = time.perf_counter(), time.process_time()
        store.engine.run(Write(partial(insert_batch, statement=statement, rows=rows)))
        seconds += time.perf_counter() - before
        cpu += time.process_time() - cpu_before
    return seconds, cpu


# ---- all steps ---------------------------------------------------------------------------------------------


def empty_server(url: str) -> None:
    from palaver import SessionStore
    from palaver.core.engines import postgres_connection

    SessionStore.open(url).close()
    with postgres_connection.connect(url) as connection:
        connection.execute(EMPTY_ALL_TABLES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--postgres")
    parser.add_argument("--step", nargs=3, metavar=("STEP", "URL", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        step, url, folder = arguments.step
        result = run_step(step, url, Path(folder), arguments.sessions, arguments.messages)
        sys.stdout.write(json.dumps(result) + "\n")
        return
    total = arguments.sessions * arguments.messages
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        for step, database in (("import", "a"), ("save", "a"), ("export", "a"), ("raw", "b"), ("restore", "c")):
            url = arguments.postgres or f"sqlite:///{name}/{database}.db"
            if arguments.postgres and step in {"import", "raw", "restore"}:
                empty_server(url)
            command = [sys.executable, "-m", "benchmarks.import_run", "--sessions", str(arguments.sessions)]
            command += ["--messages", str(arguments.messages), "--step", step, url, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results[step] = json.loads(done.stdout.splitlines()[-1])
            if step != "save":
                sys.stdout.write(format_row(step, results[step], total) + "\n")
    for name in ("seconds", "cpu"):
        ratios = (results[step][name] / results["raw"][name] for step in ("import", "restore"))
        sys.stdout.write("{}: import {:.2f}, import of an export {:.2f} × the raw insert\n".format(name, *ratios))


def format_row(step: str, result: dict[str, Any], total: int) -> str:
    rate = total / result["seconds"]
    return (
        f"{step:8} {result['seconds']:8.1f} s  {result['cpu']:8.1f} s CPU  {rate:10,.0f} messages/s  {result['memory_mb']:6.0f} MB peak"
        f"  {result['size_mb']:8.1f} MB stored"
    )


if __name__ == "__main__":
    main()

"""Store processes for tests, direct queries of the database, and a check of its consistency."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import apsw

from palaver.core.engines import postgres_connection
from support.warm_connections import WarmConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.warm_process import WarmLauncher

TIMEOUT_SECONDS = 60.0  # for any answer; only something that hangs takes longer


class CommandFailed(Exception):
    """A store process answered with an error."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class StoreProcess:
    """A process that runs the commands of `store_process.py`; killed at the end, with everything it started."""

    def __init__(self, launcher: WarmLauncher) -> None:
        self._process = launcher.launch_script(Path(__file__).with_name("store_process.py"), stderr=2)
        self._buffer = b""

    def start_call(self, command: str, **arguments: object) -> None:
        """Start a command without waiting for it."""
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()

    def finish_call(self) -> Any:
        """Wait for the result of a command that was started."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the store process does not answer")
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                raise EOFError("the store process has ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise CommandFailed(answer["error"], answer["text"])
        return answer["result"]

    def call(self, command: str, **arguments: object) -> Any:
        self.start_call(command, **arguments)
        return self.finish_call()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class ProcessPool:
    """Store processes that several tests use one after the other; after a failure they are replaced."""

    def __init__(self, launcher: WarmLauncher) -> None:
        self._launcher = launcher
        self._processes: list[StoreProcess] = []

    @contextmanager
    def borrow(self, count: int, url: str | None = None) -> Iterator[list[StoreProcess]]:
        """Lend `count` processes; with a `url`, each has a store open inside the block."""
        while len(self._processes) < count:
            self._processes.append(StoreProcess(self._launcher))
        borrowed = self._processes[:count]
        try:
            for process in borrowed if url is not None else []:
                process.call("open_store", url=url)
            yield borrowed
            for process in borrowed if url is not None else []:
                process.call("close_store")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        while self._processes:
            self._processes.pop().__exit__()


def call_together(processes: list[StoreProcess], command: str, **arguments: object) -> list[Any]:
    """Run a command in all processes at the same moment; return their results."""
    at = time.monotonic() + 0.02
    for process in processes:
        process.start_call(command, at=at, **arguments)
    return [process.finish_call() for process in processes]


# -- the database, without the store -------------------------------------------------------------------------


def fetch_rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Query the database on a separate connection."""
    return fetch_results(url, sql)[0]


def fetch_results(url: str, *statements: str) -> list[list[tuple[Any, ...]]]:
    """Make several queries on one separate connection: opening it takes longer than they do."""
    if url.startswith("sqlite:"):
        db = apsw.Connection(url.removeprefix("sqlite:///"))
        try:
            return [db.execute(sql).fetchall() for sql in statements]
        finally:
            db.close()
    with postgres_connection.connect(url) as connection:
        return [connection.execute(sql.encode()).fetchall() for sql in statements]


_CONNECTIONS = """SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend'"""


def _count_connections(url: str) -> int:
    """Count the connections to the database, except those that are kept for other tests."""
    with postgres_connection.connect(url) as connection:
        row = connection.tx.fetch_one(_CONNECTIONS)
        assert row is not None
        return int(row[0]) - len(WarmConnection.kept)


def wait_for_disconnect(url: str, remaining: int = 0) -> None:
    """Wait until the server has noticed that clients were killed: it first finishes what they had asked for."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while url.startswith("postgres") and _count_connections(url) > remaining:
        assert time.monotonic() < deadline, "the server keeps the connections of a dead client"
        time.sleep(0.005)


_WRONG_COUNTERS = """
    SELECT s.id, s.last_seq, s.message_count, s.input_tokens, s.output_tokens, s.cost_nanos FROM session s
    LEFT JOIN (SELECT session_no, COUNT(*) AS events, MAX(seq) AS last, MIN(seq) AS first,
        SUM(CASE WHEN kind = 'message' THEN 1 ELSE 0 END) AS messages,
        SUM(CASE WHEN kind = 'message' AND hidden_by IS NULL THEN 1 ELSE 0 END) AS visible
        FROM event GROUP BY session_no) e ON e.session_no = s.no
    LEFT JOIN (SELECT session_no, SUM(input_tokens) AS tin, SUM(output_tokens) AS tout, SUM(cost_nanos) AS nanos
        FROM usage GROUP BY session_no) u ON u.session_no = s.no
    WHERE s.is_deleted = 0 AND (e.events IS NULL OR e.first <> 1 OR e.last <> e.events OR s.last_seq <> e.last
        OR s.message_count <> e.visible OR (s.active_at IS NULL) <> (e.messages = 0)
        OR s.input_tokens <> COALESCE(u.tin, 0) OR s.output_tokens <> COALESCE(u.tout, 0)
        OR COALESCE(s.cost_nanos, 0) <> COALESCE(u.nanos, 0)
        OR s.indexed_seq > s.last_seq OR (s.unindexed = 0 AND s.indexed_seq < (SELECT COALESCE(MAX(m.seq), 0)
            FROM event m WHERE m.session_no = s.no AND m.kind = 'message')))"""

_WRONG_ENDS = """
    SELECT s.id, s.end_reason FROM session s WHERE s.is_deleted = 0 AND (s.ended_at IS NOT NULL) <>
        (COALESCE((SELECT MAX(seq) FROM event WHERE session_no = s.no AND kind = 'ended'), 0)
        > COALESCE((SELECT MAX(seq) FROM event WHERE session_no = s.no AND kind = 'reopened'), 0))"""

_LANES_ON_ENDED_SESSIONS = """
    SELECT l.key, s.id FROM lane l JOIN session s ON s.no = l.session_no
    WHERE s.end_reason NOT IN ('idle', 'daily')"""

_EVENTS_WITHOUT_SESSION = """
    SELECT e.no FROM event e LEFT JOIN session s ON s.no = e.session_no WHERE s.no IS NULL"""

_CHECKS = (_WRONG_COUNTERS, _WRONG_ENDS, _LANES_ON_ENDED_SESSIONS, _EVENTS_WITHOUT_SESSION)


def find_inconsistencies(url: str) -> list[tuple[Any, ...]]:
    """Return every row with a wrong counter, number, end or lane, and every fault of the SQLite file itself."""
    checks_of_file = ("PRAGMA integrity_check", "PRAGMA foreign_key_check") if url.startswith("sqlite:") else ()
    results = fetch_results(url, *_CHECKS, *checks_of_file)
    return [row for rows in results for row in rows if row != ("ok",)]

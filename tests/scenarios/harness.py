"""What the scenarios share: processes of their own, a look into the database, and its inner order."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import apsw
import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 60.0  # seconds for any answer; nothing takes that long unless it hangs


class Refused(Exception):
    """The other process answered with an error."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class Worker:
    """A process that does what it is told; killed, with all that it started, in the end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._read = b""

    def ask(self, do: str, **arguments: object) -> None:
        """Tell it to do something, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What came of it."""
        assert self._process.stdout is not None
        until = time.monotonic() + PATIENCE
        while b"\n" not in self._read:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the other process does not answer")
            piece = os.read(self._process.stdout.fileno(), 1 << 20)
            if not piece:
                raise EOFError("the other process has ended")
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"], answer["text"])
        return answer["answer"]

    def call(self, do: str, **arguments: object) -> Any:
        """Tell it, and wait."""
        self.ask(do, **arguments)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class Crew:
    """Several processes that are kept from test to test; after trouble, others take their place."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    @contextmanager
    def hired(self, count: int, url: str | None = None) -> Iterator[list[Worker]]:
        """So many of them; each with a store on `url`, if given, which is closed in the end."""
        while len(self._workers) < count:
            self._workers.append(Worker())
        some = self._workers[:count]
        try:
            for worker in some if url is not None else []:
                worker.call("open_store", url=url)
            yield some
            for worker in some if url is not None else []:
                worker.call("close_store")
        except BaseException:
            self.dismiss()
            raise

    def dismiss(self) -> None:
        """End them all."""
        while self._workers:
            self._workers.pop().__exit__()


def together(crew: list[Worker], do: str, **arguments: object) -> list[Any]:
    """Let all of them do the same at the same moment; their answers."""
    at = time.monotonic() + 0.02
    for worker in crew:
        worker.ask(do, at=at, **arguments)
    return [worker.answer() for worker in crew]


# -- the database, past the library --------------------------------------------------------------------------


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """What the database itself says, on a connection of its own."""
    if url.startswith("sqlite:"):
        db = apsw.Connection(url.removeprefix("sqlite:///"))
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


_CLIENTS = """SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend'"""


def wait_for_clients(url: str, but: int = 0) -> None:
    """A server notices that a client was killed only after it has done what it was asked: wait until it has."""
    until = time.monotonic() + PATIENCE
    while url.startswith("postgres") and rows(url, _CLIENTS)[0][0] > but:
        assert time.monotonic() < until, "the server keeps the connections of a dead client"
        time.sleep(0.005)


_ORDER = """
    SELECT s.id, s.last_seq, s.message_count, s.input_tokens, s.output_tokens, s.cost_nanos FROM session s
    LEFT JOIN (SELECT session_no, COUNT(*) AS events, MAX(seq) AS last, MIN(seq) AS first,
        SUM(CASE WHEN kind = 'message' THEN 1 ELSE 0 END) AS messages,
        SUM(CASE WHEN kind = 'message' AND hidden_by IS NULL THEN 1 ELSE 0 END) AS visible
        FROM event GROUP BY session_no) e ON e.session_no = s.no
    LEFT JOIN (SELECT session_no, SUM(input_tokens) AS tin, SUM(output_tokens) AS tout, SUM(cost_nanos) AS nanos
        FROM usage GROUP BY session_no) u ON u.session_no = s.no
    WHERE e.events IS NULL OR e.first <> 1 OR e.last <> e.events OR s.last_seq <> e.last
        OR s.message_count <> e.visible OR (s.active_at IS NULL) <> (e.messages = 0)
        OR s.input_tokens <> COALESCE(u.tin, 0) OR s.output_tokens <> COALESCE(u.tout, 0)
        OR COALESCE(s.cost_nanos, 0) <> COALESCE(u.nanos, 0)
        OR s.indexed_seq > s.last_seq OR (s.unindexed = 0 AND s.indexed_seq < (SELECT COALESCE(MAX(m.seq), 0)
            FROM event m WHERE m.session_no = s.no AND m.kind = 'message'))"""

_ENDED = """
    SELECT s.id, s.end_reason FROM session s WHERE (s.ended_at IS NOT NULL) <>
        (COALESCE((SELECT MAX(seq) FROM event WHERE session_no = s.no AND kind = 'ended'), 0)
        > COALESCE((SELECT MAX(seq) FROM event WHERE session_no = s.no AND kind = 'reopened'), 0))"""

_LANES = """
    SELECT r.key, s.id FROM route r JOIN session s ON s.no = r.session_no WHERE s.ended_at IS NOT NULL"""

_ORPHANS = """
    SELECT e.no FROM event e LEFT JOIN session s ON s.no = e.session_no WHERE s.no IS NULL"""


def disorder(url: str) -> list[tuple[Any, ...]]:
    """Whatever in the database does not fit together: counters, numbers, ends, lanes, the file itself."""
    found = [row for sql in (_ORDER, _ENDED, _LANES, _ORPHANS) for row in rows(url, sql)]
    if url.startswith("sqlite:"):
        found += [row for row in rows(url, "PRAGMA integrity_check") if row != ("ok",)]
        found += rows(url, "PRAGMA foreign_key_check")
    return found

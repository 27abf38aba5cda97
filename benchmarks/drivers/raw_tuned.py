"""A variant of the limit: messages clustered by session (`WITHOUT ROWID`) and a page cache of 64 MiB.

Shows what other table layouts gain or lose against `raw_full` at the same durability.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import Driver
from benchmarks.drivers.raw import Raw

if TYPE_CHECKING:
    import sqlite3

    from benchmarks.drivers import Messages

SCHEMA = """
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, title TEXT, updated_at REAL NOT NULL,
  n INTEGER NOT NULL DEFAULT 0, tin INTEGER NOT NULL DEFAULT 0, tout INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_recent ON sessions(updated_at, key, n);
CREATE TABLE messages(
  sid INTEGER NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL, content TEXT, ts REAL NOT NULL,
  PRIMARY KEY(sid, seq)) WITHOUT ROWID;
"""

_OF_CHAT = "sid=(SELECT id FROM sessions WHERE key=?)"


class RawTunedFull(Raw):
    schema = SCHEMA

    def _connect(self) -> sqlite3.Connection:
        c = super()._connect()
        c.execute("PRAGMA cache_size=-65536")
        return c

    def _append_message(self, key: str, role: str, content: str, tin: int = 0, tout: int = 0) -> None:
        c = self._connect_thread()
        now = time.time()
        c.execute("BEGIN IMMEDIATE")
        row = c.execute(
            "UPDATE sessions SET updated_at=?, n=n+1, tin=tin+?, tout=tout+? WHERE key=? RETURNING id, n",
            (now, tin, tout, key),
        ).fetchone()
        if row is None:
            row = c.execute(
                "INSERT INTO sessions(key,title,updated_at,n,tin,tout) VALUES (?,?,?,1,?,?) RETURNING id, n",
                (key, key, now, tin, tout),
            ).fetchone()
        c.execute("INSERT INTO messages VALUES (?,?,?,?,?)", (row[0], row[1], role, content, now))
        c.execute("COMMIT")

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self._append_message(key, "user", user)
        self._append_message(key, "assistant", assistant, tin, tout)

    def append(self, key: str, role: str, content: str) -> None:
        self._append_message(key, role, content)

    def load(self, key: str) -> Messages:
        rows = self._connect_thread().execute(
            f"SELECT role,content FROM messages WHERE {_OF_CHAT} ORDER BY seq", (key,)
        )
        return [{"role": r, "content": t} for r, t in rows]

    def load_last(self, key: str, n: int) -> Messages:
        statement = f"SELECT role,content FROM messages WHERE {_OF_CHAT} ORDER BY seq DESC LIMIT ?"
        rows = self._connect_thread().execute(statement, (key, n)).fetchall()
        return [{"role": r, "content": t} for r, t in reversed(rows)]

    def search(self, word: str, n: int) -> list[Any]:
        return Driver.search(self, word, n)

    def undo(self, key: str) -> None:
        c = self._connect_thread()
        c.execute("BEGIN IMMEDIATE")
        statement = "UPDATE sessions SET n=n-2, updated_at=? WHERE key=? RETURNING id, n"
        sid, n = c.execute(statement, (time.time(), key)).fetchone()
        c.execute("DELETE FROM messages WHERE sid=? AND seq>?", (sid, n))
        c.execute("COMMIT")

    def _seed_messages(self, c: sqlite3.Connection, sid: int, messages: list[tuple[str, str]], at: float) -> None:
        rows = [(sid, seq, role, content, at) for seq, (role, content) in enumerate(messages, 1)]
        c.executemany("INSERT INTO messages VALUES (?,?,?,?,?)", rows)


class RawTunedNormal(RawTunedFull):
    synchronous = "NORMAL"
    seed_driver = "raw_tuned_full"

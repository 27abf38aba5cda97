"""Beside the limit: messages clustered by session (`WITHOUT ROWID`) and a page cache of 64 MiB.

Shows what another shape of the tables gains or loses against `raw_full` at the same durability.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import Driver
from benchmarks.drivers.raw import Raw

if TYPE_CHECKING:
    import sqlite3

    from benchmarks.drivers import Said

SCHEMA = """
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, title TEXT, updated_at REAL NOT NULL,
  n INTEGER NOT NULL DEFAULT 0, tin INTEGER NOT NULL DEFAULT 0, tout INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_recent ON sessions(updated_at, key, n);
CREATE TABLE messages(
  sid INTEGER NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL, content TEXT, ts REAL NOT NULL,
  PRIMARY KEY(sid, seq)) WITHOUT ROWID;
"""

_OF_KEY = "sid=(SELECT id FROM sessions WHERE key=?)"


class RawTunedFull(Raw):
    schema = SCHEMA

    def _connect(self) -> sqlite3.Connection:
        c = super()._connect()
        c.execute("PRAGMA cache_size=-65536")
        return c

    def _put(self, key: str, role: str, content: str, tin: int = 0, tout: int = 0) -> None:
        c = self._c()
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

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self._put(key, "user", user)
        self._put(key, "assistant", assistant, tin, tout)

    def append(self, key: str, role: str, content: str) -> None:
        self._put(key, role, content)

    def load(self, key: str) -> Said:
        rows = self._c().execute(f"SELECT role,content FROM messages WHERE {_OF_KEY} ORDER BY seq", (key,))
        return [{"role": r, "content": t} for r, t in rows]

    def tail(self, key: str, n: int) -> Said:
        last = f"SELECT role,content FROM messages WHERE {_OF_KEY} ORDER BY seq DESC LIMIT ?"
        rows = self._c().execute(last, (key, n)).fetchall()
        return [{"role": r, "content": t} for r, t in reversed(rows)]

    def search(self, word: str, n: int) -> list[Any]:
        return Driver.search(self, word, n)

    def undo(self, key: str) -> None:
        c = self._c()
        c.execute("BEGIN IMMEDIATE")
        shorter = "UPDATE sessions SET n=n-2, updated_at=? WHERE key=? RETURNING id, n"
        sid, n = c.execute(shorter, (time.time(), key)).fetchone()
        c.execute("DELETE FROM messages WHERE sid=? AND seq>?", (sid, n))
        c.execute("COMMIT")

    def _seed_messages(self, c: sqlite3.Connection, sid: int, said: list[tuple[str, str]], at: float) -> None:
        rows = [(sid, seq, role, content, at) for seq, (role, content) in enumerate(said, 1)]
        c.executemany("INSERT INTO messages VALUES (?,?,?,?,?)", rows)


class RawTunedNormal(RawTunedFull):
    synchronous = "NORMAL"
    seeds = "raw_tuned_full"

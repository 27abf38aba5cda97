"""The limit: sqlite3 by hand. Two tables, three indexes, one transaction for each message.

A turn is two transactions (the user's message with the session's clock; the answer with the counters), so the
user's message is durable before the model is called.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import OURS, Driver

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Listed, Said

SCHEMA = """
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, title TEXT, updated_at REAL NOT NULL,
  n INTEGER NOT NULL DEFAULT 0, tin INTEGER NOT NULL DEFAULT 0, tout INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_recent ON sessions(updated_at);
CREATE TABLE messages(
  id INTEGER PRIMARY KEY, sid INTEGER NOT NULL, role TEXT NOT NULL, content TEXT, ts REAL NOT NULL);
CREATE INDEX messages_session ON messages(sid, id);
"""
FTS = """
CREATE VIRTUAL TABLE messages_fts USING fts5(content, content='messages', content_rowid='id');
CREATE TRIGGER m_ai AFTER INSERT ON messages BEGIN
  INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER m_ad AFTER DELETE ON messages BEGIN
  INSERT INTO messages_fts(messages_fts, rowid, content) VALUES ('delete', old.id, old.content); END;
"""

_MESSAGE = "INSERT INTO messages(sid,role,content,ts) VALUES (?,?,?,?)"
_OF_KEY = "sid=(SELECT id FROM sessions WHERE key=?)"


class Raw(Driver):
    venv = OURS
    synchronous = "FULL"
    schema = SCHEMA
    fts = False

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.local = threading.local()
        self.opened: list[sqlite3.Connection] = []
        self._c()

    def _c(self) -> sqlite3.Connection:
        """The connection of this thread."""
        c: sqlite3.Connection | None = getattr(self.local, "c", None)
        if c is None:
            c = self.local.c = self._connect()
            self.opened.append(c)
        return c

    def _connect(self) -> sqlite3.Connection:
        c = sqlite3.connect(self.root / "raw.db", isolation_level=None, timeout=30, check_same_thread=False)
        c.execute("PRAGMA journal_mode=WAL")
        c.execute(f"PRAGMA synchronous={self.synchronous}")
        if not c.execute("SELECT 1 FROM sqlite_master WHERE name='sessions'").fetchone():
            c.executescript("BEGIN IMMEDIATE;" + self.schema + (FTS if self.fts else "") + "COMMIT;")
        return c

    def close(self) -> None:
        for c in self.opened:
            c.close()

    def _sid(self, c: sqlite3.Connection, key: str) -> int:
        row = c.execute("SELECT id FROM sessions WHERE key=?", (key,)).fetchone()
        if row:
            return int(row[0])
        new = "INSERT INTO sessions(key,title,updated_at) VALUES (?,?,?)"
        return c.execute(new, (key, key, time.time())).lastrowid or 0

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        c = self._c()
        now = time.time()
        c.execute("BEGIN IMMEDIATE")
        sid = self._sid(c, key)
        c.execute(_MESSAGE, (sid, "user", user, now))
        c.execute("UPDATE sessions SET updated_at=?, n=n+1 WHERE id=?", (now, sid))
        c.execute("COMMIT")
        now = time.time()
        c.execute("BEGIN IMMEDIATE")
        c.execute(_MESSAGE, (sid, "assistant", assistant, now))
        c.execute(
            "UPDATE sessions SET updated_at=?, n=n+1, tin=tin+?, tout=tout+? WHERE id=?",
            (now, tin, tout, sid),
        )
        c.execute("COMMIT")

    def append(self, key: str, role: str, content: str) -> None:
        c = self._c()
        now = time.time()
        c.execute("BEGIN IMMEDIATE")
        sid = self._sid(c, key)
        c.execute(_MESSAGE, (sid, role, content, now))
        c.execute("UPDATE sessions SET updated_at=?, n=n+1 WHERE id=?", (now, sid))
        c.execute("COMMIT")

    def load(self, key: str) -> Said:
        rows = self._c().execute(f"SELECT role,content FROM messages WHERE {_OF_KEY} ORDER BY id", (key,))
        return [{"role": r, "content": t} for r, t in rows]

    def tail(self, key: str, n: int) -> Said:
        last = f"SELECT role,content FROM messages WHERE {_OF_KEY} ORDER BY id DESC LIMIT ?"
        rows = self._c().execute(last, (key, n)).fetchall()
        return [{"role": r, "content": t} for r, t in reversed(rows)]

    def recent(self, n: int) -> Listed:
        newest = "SELECT key,updated_at,n FROM sessions ORDER BY updated_at DESC LIMIT ?"
        return self._c().execute(newest, (n,)).fetchall()

    def search(self, word: str, n: int) -> list[Any]:
        c = self._c()
        if self.fts:
            return c.execute(
                "SELECT m.id, m.sid, snippet(messages_fts,0,'[',']','…',12) FROM messages_fts "
                "JOIN messages m ON m.id=messages_fts.rowid WHERE messages_fts MATCH ? ORDER BY rank LIMIT ?",
                (word, n),
            ).fetchall()
        like = "SELECT id,sid,content FROM messages WHERE content LIKE ? LIMIT ?"
        return c.execute(like, (f"%{word}%", n)).fetchall()

    def undo(self, key: str) -> None:
        c = self._c()
        c.execute("BEGIN IMMEDIATE")
        sid = self._sid(c, key)
        last = "SELECT id FROM messages WHERE sid=? ORDER BY id DESC LIMIT 2"
        c.execute(f"DELETE FROM messages WHERE id IN ({last})", (sid,))
        c.execute("UPDATE sessions SET n=n-2, updated_at=? WHERE id=?", (time.time(), sid))
        c.execute("COMMIT")

    def seed(self, plan: Plan) -> None:
        c = self._c()
        c.execute("BEGIN IMMEDIATE")
        began = time.time() - 10_000_000
        session = "INSERT INTO sessions(key,title,updated_at,n,tin,tout) VALUES (?,?,?,?,10,10)"
        for i, (key, said) in enumerate(plan):
            at = began + i
            sid = c.execute(session, (key, key, at, len(said))).lastrowid or 0
            self._seed_messages(c, sid, said, at)
        c.execute("COMMIT")
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _seed_messages(self, c: sqlite3.Connection, sid: int, said: list[tuple[str, str]], at: float) -> None:
        c.executemany(_MESSAGE, [(sid, role, content, at) for role, content in said])


class RawFull(Raw):
    """`synchronous=FULL`: what was committed survives a power cut. Every ratio is to this one."""


class RawNormal(Raw):
    """`synchronous=NORMAL`: a power cut may take the last commits along."""

    synchronous = "NORMAL"
    seeds = "raw_full"


class RawFullFts(Raw):
    """With a full-text index written in the message's own transaction."""

    fts = True


class RawNormalFts(Raw):
    synchronous = "NORMAL"
    fts = True
    seeds = "raw_full_fts"


class RawFullFtsLazy(Raw):
    """With a full-text index that follows in batches behind a mark; a search lets it catch up first."""

    fts = True
    every = 64

    def _connect(self) -> sqlite3.Connection:
        c = super()._connect()
        c.execute("DROP TRIGGER IF EXISTS m_ai")
        c.execute("CREATE TABLE IF NOT EXISTS fts_mark(id INTEGER)")
        if not c.execute("SELECT 1 FROM fts_mark").fetchone():
            c.execute("INSERT INTO fts_mark SELECT coalesce(max(id),0) FROM messages")
        self.local.turns = 0
        return c

    def settle(self) -> None:
        c = self._c()
        c.execute("BEGIN IMMEDIATE")
        c.execute(
            "INSERT INTO messages_fts(rowid,content) SELECT id,content FROM messages WHERE id>(SELECT id FROM fts_mark)"
        )
        c.execute("UPDATE fts_mark SET id=(SELECT coalesce(max(id),0) FROM messages)")
        c.execute("COMMIT")

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        super().turn(key, user, assistant, tin, tout)
        self.local.turns += 1
        if self.local.turns % self.every == 0:
            self.settle()

    def search(self, word: str, n: int) -> list[Any]:
        self.settle()
        return super().search(word, n)

    def undo(self, key: str) -> None:
        self.settle()  # only what is in the index can be taken out of it
        super().undo(key)

    def seed(self, plan: Plan) -> None:
        super().seed(plan)
        c = self._c()
        c.execute("UPDATE fts_mark SET id=0")
        self.settle()
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")

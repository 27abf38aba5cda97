"""The limit: hand-written SQL with sqlite3. Two tables, three indexes, one transaction for each message.

A turn is two transactions: the user's message with the session's time, and the answer with the counters. So the user's
message is durable before the model is called.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import THIS_INTERPRETER, Driver

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList

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
_OF_CHAT = "sid=(SELECT id FROM sessions WHERE key=?)"


class Raw(Driver):
    venv = THIS_INTERPRETER
    synchronous = "FULL"
    schema = SCHEMA
    fts = False

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.local = threading.local()
        self.connections: list[sqlite3.Connection] = []
        self._connect_thread()

    def _connect_thread(self) -> sqlite3.Connection:
        """Return the connection of this thread. Open it on first use."""
        c: sqlite3.Connection | None = getattr(self.local, "c", None)
        if c is None:
            c = self.local.c = self._connect()
            self.connections.append(c)
        return c

    def _connect(self) -> sqlite3.Connection:
        c = sqlite3.connect(self.root / "raw.db", isolation_level=None, timeout=30, check_same_thread=False)
        c.execute("PRAGMA journal_mode=WAL")
        c.execute(f"PRAGMA synchronous={self.synchronous}")
        if not c.execute("SELECT 1 FROM sqlite_master WHERE name='sessions'").fetchone():
            c.executescript("BEGIN IMMEDIATE;" + self.schema + (FTS if self.fts else "") + "COMMIT;")
        return c

    def close(self) -> None:
        for c in self.connections:
            c.close()

    def _find_or_create(self, c: sqlite3.Connection, key: str) -> int:
        row = c.execute("SELECT id FROM sessions WHERE key=?", (key,)).fetchone()
        if row:
            return int(row[0])
        statement = "INSERT INTO sessions(key,title,updated_at) VALUES (?,?,?)"
        return c.execute(statement, (key, key, time.time())).lastrowid or 0

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        c = self._connect_thread()
        now = time.time()
        c.execute("BEGIN IMMEDIATE")
        sid = self._find_or_create(c, key)
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
        c = self._connect_thread()
        now = time.time()
        c.execute("BEGIN IMMEDIATE")
        sid = self._find_or_create(c, key)
        c.execute(_MESSAGE, (sid, role, content, now))
        c.execute("UPDATE sessions SET updated_at=?, n=n+1 WHERE id=?", (now, sid))
        c.execute("COMMIT")

    def load(self, key: str) -> Messages:
        rows = self._connect_thread().execute(f"SELECT role,content FROM messages WHERE {_OF_CHAT} ORDER BY id", (key,))
        return [{"role": r, "content": t} for r, t in rows]

    def load_last(self, key: str, n: int) -> Messages:
        statement = f"SELECT role,content FROM messages WHERE {_OF_CHAT} ORDER BY id DESC LIMIT ?"
        rows = self._connect_thread().execute(statement, (key, n)).fetchall()
        return [{"role": r, "content": t} for r, t in reversed(rows)]

    def list_recent(self, n: int) -> SessionList:
        statement = "SELECT key,updated_at,n FROM sessions ORDER BY updated_at DESC LIMIT ?"
        return self._connect_thread().execute(statement, (n,)).fetchall()

    def search(self, word: str, n: int) -> list[Any]:
        c = self._connect_thread()
        if self.fts:
            return c.execute(
                "SELECT m.id, m.sid, snippet(messages_fts,0,'[',']','…',12) FROM messages_fts "
                "JOIN messages m ON m.id=messages_fts.rowid WHERE messages_fts MATCH ? ORDER BY rank LIMIT ?",
                (word, n),
            ).fetchall()
        statement = "SELECT id,sid,content FROM messages WHERE content LIKE ? LIMIT ?"
        return c.execute(statement, (f"%{word}%", n)).fetchall()

    def undo(self, key: str) -> None:
        c = self._connect_thread()
        c.execute("BEGIN IMMEDIATE")
        sid = self._find_or_create(c, key)
        statement = "SELECT id FROM messages WHERE sid=? ORDER BY id DESC LIMIT 2"
        c.execute(f"DELETE FROM messages WHERE id IN ({statement})", (sid,))
        c.execute("UPDATE sessions SET n=n-2, updated_at=? WHERE id=?", (time.time(), sid))
        c.execute("COMMIT")

    def seed(self, plan: Plan) -> None:
        c = self._connect_thread()
        c.execute("BEGIN IMMEDIATE")
        start = time.time() - 10_000_000
        session = "INSERT INTO sessions(key,title,updated_at,n,tin,tout) VALUES (?,?,?,?,10,10)"
        for i, (key, messages) in enumerate(plan):
            at = start + i
            sid = c.execute(session, (key, key, at, len(messages))).lastrowid or 0
            self._seed_messages(c, sid, messages, at)
        c.execute("COMMIT")
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _seed_messages(self, c: sqlite3.Connection, sid: int, messages: list[tuple[str, str]], at: float) -> None:
        c.executemany(_MESSAGE, [(sid, role, content, at) for role, content in messages])


class RawFull(Raw):
    """`synchronous=FULL`: commits survive a power failure. All ratios compare to this driver."""


class RawNormal(Raw):
    """`synchronous=NORMAL`: a power failure may lose the last commits."""

    synchronous = "NORMAL"
    seed_driver = "raw_full"


class RawFullFts(Raw):
    """With a full-text index that is updated in the transaction of each message."""

    fts = True


class RawNormalFts(Raw):
    synchronous = "NORMAL"
    fts = True
    seed_driver = "raw_full_fts"


class RawFullFtsLazy(Raw):
    """With a full-text index that is updated in batches; a search updates it first."""

    fts = True
    batch_turns = 64

    def _connect(self) -> sqlite3.Connection:
        c = super()._connect()
        c.execute("DROP TRIGGER IF EXISTS m_ai")
        c.execute("CREATE TABLE IF NOT EXISTS fts_mark(id INTEGER)")
        if not c.execute("SELECT 1 FROM fts_mark").fetchone():
            c.execute("INSERT INTO fts_mark SELECT coalesce(max(id),0) FROM messages")
        self.local.turns = 0
        return c

    def finish_pending_work(self) -> None:
        c = self._connect_thread()
        c.execute("BEGIN IMMEDIATE")
        c.execute(
            "INSERT INTO messages_fts(rowid,content) SELECT id,content FROM messages WHERE id>(SELECT id FROM fts_mark)"
        )
        c.execute("UPDATE fts_mark SET id=(SELECT coalesce(max(id),0) FROM messages)")
        c.execute("COMMIT")

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        super().run_turn(key, user, assistant, tin, tout)
        self.local.turns += 1
        if self.local.turns % self.batch_turns == 0:
            self.finish_pending_work()

    def search(self, word: str, n: int) -> list[Any]:
        self.finish_pending_work()
        return super().search(word, n)

    def undo(self, key: str) -> None:
        self.finish_pending_work()  # only indexed messages can be removed from the index
        super().undo(key)

    def seed(self, plan: Plan) -> None:
        super().seed(plan)
        c = self._connect_thread()
        c.execute("UPDATE fts_mark SET id=0")
        self.finish_pending_work()
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")

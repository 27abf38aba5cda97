"""The limit for Palaver's own tables: hand-written SQL with apsw that writes the same rows with the fewest statements.

Schema, indexes, foreign keys and durability (`synchronous=FULL`) are Palaver's; SQLite's own checkpoints are used. It omits
everything else: policies, value objects, checks, the search index.
"""

from __future__ import annotations

import itertools
import json
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import THIS_INTERPRETER, Driver
from benchmarks.drivers.palaver import Palaver

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList

PREVIEW_CHARS = 120

_FIND_SESSION = """SELECT s.no FROM lane l JOIN session s ON s.no = l.session_no
    WHERE l.key = ?1 AND s.ended_at IS NULL"""
_INSERT_SESSION = """INSERT INTO session (id, key, platform, chat_type, source, audience_no, shared, created_at,
    start_reason, last_seq) VALUES (?, ?, 'telegram', 'dm', ?, ?, 0, ?, 'first', 1) RETURNING no"""
_INSERT_STARTED_EVENT = """INSERT INTO event (session_no, seq, kind, created_at, body)
    VALUES (?1, 1, 'started', ?2, '{"reason": "first"}')"""
_COUNT_USER_MESSAGE = """UPDATE session SET last_seq = last_seq + 1, message_count = message_count + 1, last_message_at = ?2,
    last_human_at = ?2, active_at = ?2, preview = ?3, redo_seq = NULL, unindexed = 1
    WHERE no = ?1 RETURNING last_seq"""
_COUNT_ANSWER = """UPDATE session SET last_seq = last_seq + 1, message_count = message_count + 1,
    last_message_at = ?2, preview = ?3, redo_seq = NULL, model = 'bench-model',
    input_tokens = input_tokens + ?4, output_tokens = output_tokens + ?5, unpriced_turns = unpriced_turns + 1
    WHERE no = ?1 RETURNING last_seq"""
_INSERT_USAGE = """INSERT INTO usage (session_no, turn_id, model, created_at, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens, cost_status) VALUES (?1, ?2, 'bench-model', ?3, ?4, ?5, 0, 0, 0, 'unknown')"""
_INSERT_MESSAGE = """INSERT INTO event (session_no, seq, kind, created_at, role, content)
    VALUES (?1, ?2, 'message', ?3, ?4, ?5)"""
_FROM_VISIBLE = """FROM event WHERE kind = 'message' AND hidden_by IS NULL
    AND session_no = (SELECT session_no FROM lane WHERE key = ?1) ORDER BY seq"""
_LIST_RECENT = """SELECT key, active_at, message_count FROM session
    WHERE active_at IS NOT NULL AND archived_at IS NULL ORDER BY active_at DESC, no DESC LIMIT ?1"""


class RawApsw(Driver):
    venv = THIS_INTERPRETER
    modules = ("apsw", "palaver")
    seed_driver = "palaver"

    def open(self) -> None:
        self.path = self.root / "palaver.db"
        if not self.path.exists():
            palaver = Palaver(self.root)
            palaver.open()
            palaver.close()
        self.local = threading.local()
        self.turns = map(f"{time.time_ns()}-{{}}".format, itertools.count())
        self._connect_thread()

    def _connect_thread(self) -> Any:
        """Return the connection of this thread. Open it on first use."""
        c = getattr(self.local, "c", None)
        if c is None:
            import apsw

            c = self.local.c = apsw.Connection(str(self.path))
            c.set_busy_timeout(30_000)
            c.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            c.execute("PRAGMA synchronous = FULL")
            c.execute("PRAGMA foreign_keys = ON")
            c.execute("PRAGMA cache_size = -16384")
        return c

    def close(self) -> None:
        self._connect_thread().close()

    @staticmethod
    def _build_lane_key(key: str) -> str:
        return f"agent:main:telegram:dm:{key}"

    def _find_or_create_session(self, c: Any, key: str, now: int) -> int:
        for (no,) in c.execute(_FIND_SESSION, (self._build_lane_key(key),)).fetchall():
            return int(no)
        return self._create_session(c, key, now)

    def _create_session(self, c: Any, key: str, now: int) -> int:
        person = f"p_{secrets.token_hex(6)}"
        audience = c.execute("INSERT INTO audience (created_at) VALUES (?1) RETURNING no", (now,)).fetchall()[0][0]
        c.execute("INSERT INTO person VALUES (?, '', 'guest', ?, ?)", (person, audience, now))
        c.execute("INSERT INTO audience_member VALUES (?, ?, ?)", (person, audience, now))
        c.execute("INSERT INTO identity VALUES ('telegram', ?, ?, ?)", (key, person, now))
        names = ("platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")
        values = ("telegram", key, None, "dm", key, None, None, None)
        source = json.dumps(dict(zip(names, values, strict=True)), separators=(",", ":"))
        id_time = time.strftime("%Y%m%d_%H%M%S", time.gmtime(now // 1_000_000))
        session = (f"{id_time}_{secrets.token_hex(4)}", self._build_lane_key(key), source, audience, now)
        no = c.execute(_INSERT_SESSION, session).fetchall()[0][0]
        c.execute(_INSERT_STARTED_EVENT, (no, now))
        c.execute("INSERT INTO lane VALUES (?, ?, ?, ?, 0, ?)", (self._build_lane_key(key), no, source, audience, now))
        return int(no)

    def append(self, key: str, role: str, content: str) -> None:
        self._append_user_message(key, role, content)

    def _append_user_message(self, key: str, role: str, content: str) -> int:
        c = self._connect_thread()
        now = time.time_ns() // 1000
        c.execute("BEGIN IMMEDIATE")
        no = self._find_or_create_session(c, key, now)
        seq = c.execute(_COUNT_USER_MESSAGE, (no, now, content[:PREVIEW_CHARS])).fetchall()[0][0]
        c.execute(_INSERT_MESSAGE, (no, seq, now, role, content))
        c.execute("COMMIT")
        return no

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        no = self._append_user_message(key, "user", user)
        c = self._connect_thread()
        now = time.time_ns() // 1000
        c.execute("BEGIN IMMEDIATE")
        c.execute(_INSERT_USAGE, (no, next(self.turns), now, tin, tout))
        seq = c.execute(_COUNT_ANSWER, (no, now, assistant[:PREVIEW_CHARS], tin, tout)).fetchall()[0][0]
        c.execute(_INSERT_MESSAGE, (no, seq, now, "assistant", assistant))
        c.execute("COMMIT")

    def load(self, key: str) -> Messages:
        rows = self._connect_thread().execute(f"SELECT role, content {_FROM_VISIBLE}", (self._build_lane_key(key),))
        return [{"role": role, "content": content} for role, content in rows]

    def load_last(self, key: str, n: int) -> Messages:
        statement = f"SELECT role, content {_FROM_VISIBLE} DESC LIMIT ?2"
        rows = self._connect_thread().execute(statement, (self._build_lane_key(key), n)).fetchall()
        return [{"role": role, "content": content} for role, content in reversed(rows)]

    def list_recent(self, n: int) -> SessionList:
        rows = self._connect_thread().execute(_LIST_RECENT, (n,)).fetchall()
        return [(key.rpartition(":")[2], at, count) for key, at, count in rows]

    def seed(self, plan: Plan) -> None:
        raise NotImplementedError("it uses the stores that the palaver driver fills")

    @classmethod
    def list_seed_sources(cls) -> list[Path]:
        return Palaver.list_seed_sources()

"""The limit for Palaver's own tables: apsw by hand, the same rows, the fewest statements that write them.

The schema, its indexes and its foreign keys are Palaver's; durability is the same (`synchronous=FULL`). The
checkpoint is SQLite's own. What it leaves out is everything else: policies, values, checks, the search index.
"""

from __future__ import annotations

import itertools
import json
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import OURS, Driver
from benchmarks.drivers.palaver import Palaver

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Listed, Said

PREVIEW = 120

_FIND = """SELECT s.no FROM route r JOIN session s ON s.no = r.session_no
    WHERE r.key = ?1 AND s.ended_at IS NULL"""
_BEGIN = """INSERT INTO session (id, key, platform, chat_type, source, audience_no, shared, created_at,
    start_reason, last_seq) VALUES (?, ?, 'telegram', 'dm', ?, ?, 0, ?, 'first', 1) RETURNING no"""
_STARTED = """INSERT INTO event (session_no, seq, kind, at, body)
    VALUES (?1, 1, 'started', ?2, '{"reason": "first"}')"""
_HEARD = """UPDATE session SET last_seq = last_seq + 1, message_count = message_count + 1, last_message_at = ?2,
    last_human_at = ?2, active_at = ?2, preview = ?3, redo_seq = NULL, unindexed = 1
    WHERE no = ?1 RETURNING last_seq"""
_ANSWERED = """UPDATE session SET last_seq = last_seq + 1, message_count = message_count + 1,
    last_message_at = ?2, preview = ?3, redo_seq = NULL, model = 'bench-model',
    input_tokens = input_tokens + ?4, output_tokens = output_tokens + ?5, unpriced_turns = unpriced_turns + 1
    WHERE no = ?1 RETURNING last_seq"""
_USED = """INSERT INTO usage (session_no, turn_id, model, at, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens, cost_status) VALUES (?1, ?2, 'bench-model', ?3, ?4, ?5, 0, 0, 0, 'unknown')"""
_SAID = """INSERT INTO event (session_no, seq, kind, at, role, content)
    VALUES (?1, ?2, 'message', ?3, ?4, ?5)"""
_VISIBLE = """FROM event WHERE kind = 'message' AND hidden_by IS NULL
    AND session_no = (SELECT session_no FROM route WHERE key = ?1) ORDER BY seq"""
_RECENT = """SELECT key, active_at, message_count FROM session
    WHERE active_at IS NOT NULL AND archived_at IS NULL ORDER BY active_at DESC, no DESC LIMIT ?1"""


class RawApsw(Driver):
    venv = OURS
    modules = ("apsw", "palaver")
    seeds = "palaver"

    def open(self) -> None:
        self.path = self.root / "palaver.db"
        if not self.path.exists():
            palaver = Palaver(self.root)
            palaver.open()
            palaver.close()
        self.local = threading.local()
        self.turns = map(f"{time.time_ns()}-{{}}".format, itertools.count())
        self._c()

    def _c(self) -> Any:
        """The connection of this thread."""
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
        self._c().close()

    @staticmethod
    def _lane(key: str) -> str:
        return f"agent:main:telegram:dm:{key}"

    def _find(self, c: Any, key: str, now: int) -> int:
        for (no,) in c.execute(_FIND, (self._lane(key),)).fetchall():
            return int(no)
        return self._begin(c, key, now)

    def _begin(self, c: Any, key: str, now: int) -> int:
        person = f"p_{secrets.token_hex(6)}"
        audience = c.execute("INSERT INTO audience (created_at) VALUES (?1) RETURNING no", (now,)).fetchall()[0][0]
        c.execute("INSERT INTO person VALUES (?, '', 'guest', ?, ?)", (person, audience, now))
        c.execute("INSERT INTO audience_member VALUES (?, ?, ?)", (person, audience, now))
        c.execute("INSERT INTO identity VALUES ('telegram', ?, ?, ?)", (key, person, now))
        names = ("platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")
        values = ("telegram", key, None, "dm", key, None, None, None)
        source = json.dumps(dict(zip(names, values, strict=True)), separators=(",", ":"))
        born = time.strftime("%Y%m%d_%H%M%S", time.gmtime(now // 1_000_000))
        session = (f"{born}_{secrets.token_hex(4)}", self._lane(key), source, audience, now)
        no = c.execute(_BEGIN, session).fetchall()[0][0]
        c.execute(_STARTED, (no, now))
        c.execute("INSERT INTO route VALUES (?, ?, ?, ?, 0, ?)", (self._lane(key), no, source, audience, now))
        return int(no)

    def append(self, key: str, role: str, content: str) -> None:
        self._hear(key, role, content)

    def _hear(self, key: str, role: str, content: str) -> int:
        c = self._c()
        now = time.time_ns() // 1000
        c.execute("BEGIN IMMEDIATE")
        no = self._find(c, key, now)
        seq = c.execute(_HEARD, (no, now, content[:PREVIEW])).fetchall()[0][0]
        c.execute(_SAID, (no, seq, now, role, content))
        c.execute("COMMIT")
        return no

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        no = self._hear(key, "user", user)
        c = self._c()
        now = time.time_ns() // 1000
        c.execute("BEGIN IMMEDIATE")
        c.execute(_USED, (no, next(self.turns), now, tin, tout))
        seq = c.execute(_ANSWERED, (no, now, assistant[:PREVIEW], tin, tout)).fetchall()[0][0]
        c.execute(_SAID, (no, seq, now, "assistant", assistant))
        c.execute("COMMIT")

    def load(self, key: str) -> Said:
        rows = self._c().execute(f"SELECT role, content {_VISIBLE}", (self._lane(key),))
        return [{"role": role, "content": content} for role, content in rows]

    def tail(self, key: str, n: int) -> Said:
        last = f"SELECT role, content {_VISIBLE} DESC LIMIT ?2"
        rows = self._c().execute(last, (self._lane(key), n)).fetchall()
        return [{"role": role, "content": content} for role, content in reversed(rows)]

    def recent(self, n: int) -> Listed:
        rows = self._c().execute(_RECENT, (n,)).fetchall()
        return [(key.rpartition(":")[2], at, count) for key, at, count in rows]

    def seed(self, plan: Plan) -> None:
        raise NotImplementedError("it opens the stores that are seeded for Palaver")

    @classmethod
    def seeded_by(cls) -> list[Path]:
        return Palaver.seeded_by()

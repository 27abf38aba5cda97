"""PostgreSQL: the limit by hand (psycopg, one statement and one commit for each message) and one peer on it."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import OURS, Driver
from benchmarks.drivers.openai_agents import OaSqlalchemy

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Listed, Said

SCHEMA = """
CREATE TABLE sessions(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE, title text,
  updated_at double precision NOT NULL, n integer NOT NULL DEFAULT 0, tin bigint NOT NULL DEFAULT 0,
  tout bigint NOT NULL DEFAULT 0);
CREATE INDEX sessions_recent ON sessions(updated_at);
CREATE TABLE messages(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sid bigint NOT NULL, role text NOT NULL, content text,
  ts double precision NOT NULL);
CREATE INDEX messages_session ON messages(sid, id);
"""
APPEND = """
WITH s AS (INSERT INTO sessions(key,title,updated_at,n,tin,tout)
  VALUES (%(k)s,%(k)s,%(now)s,1,%(tin)s,%(tout)s)
  ON CONFLICT(key) DO UPDATE SET updated_at=excluded.updated_at, n=sessions.n+1, tin=sessions.tin+excluded.tin,
  tout=sessions.tout+excluded.tout RETURNING id)
INSERT INTO messages(sid,role,content,ts) SELECT id,%(role)s,%(text)s,%(now)s FROM s
"""

_OF_KEY = "sid=(SELECT id FROM sessions WHERE key=%s)"


def dsn() -> str:
    """The address of the database to measure, as the harness gives it."""
    return os.environ["PERF_PG_DSN"]


class RawPg(Driver):
    venv = OURS
    modules = ("psycopg",)
    server = "postgres"

    def open(self) -> None:
        import psycopg

        self.psycopg = psycopg
        self.local = threading.local()
        self.opened: list[Any] = []
        if self._c().execute("SELECT to_regclass('sessions')").fetchone()[0] is None:
            self._c().execute(SCHEMA)

    def _c(self) -> Any:
        """The connection of this thread."""
        c = getattr(self.local, "c", None)
        if c is None:
            c = self.local.c = self.psycopg.connect(dsn(), autocommit=True, prepare_threshold=1)
            self.opened.append(c)
        return c

    def close(self) -> None:
        for c in self.opened:
            c.close()

    def _append(self, key: str, role: str, text: str, tin: int = 0, tout: int = 0) -> None:
        given = {"k": key, "now": time.time(), "tin": tin, "tout": tout, "role": role, "text": text}
        self._c().execute(APPEND, given)

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self._append(key, "user", user)
        self._append(key, "assistant", assistant, tin, tout)

    def append(self, key: str, role: str, content: str) -> None:
        self._append(key, role, content)

    def load(self, key: str) -> Said:
        rows = self._c().execute(f"SELECT role,content FROM messages WHERE {_OF_KEY} ORDER BY id", (key,))
        return [{"role": r, "content": t} for r, t in rows]

    def tail(self, key: str, n: int) -> Said:
        last = f"SELECT role,content FROM messages WHERE {_OF_KEY} ORDER BY id DESC LIMIT %s"
        rows = self._c().execute(last, (key, n)).fetchall()
        return [{"role": r, "content": t} for r, t in reversed(rows)]

    def recent(self, n: int) -> Listed:
        newest = "SELECT key,updated_at,n FROM sessions ORDER BY updated_at DESC LIMIT %s"
        rows: Listed = self._c().execute(newest, (n,)).fetchall()
        return rows

    def seed(self, plan: Plan) -> None:
        c = self._c()
        began = time.time() - 10_000_000
        sessions: list[tuple[object, ...]] = []
        messages: list[tuple[object, ...]] = []
        for i, (key, said) in enumerate(plan):
            sessions.append((key, key, began + i, len(said), 10, 10))
            messages += [(i + 1, role, content, began + i) for role, content in said]
        with c.transaction(), c.cursor() as cursor:
            with cursor.copy("COPY sessions(key,title,updated_at,n,tin,tout) FROM STDIN") as copy:
                for row in sessions:
                    copy.write_row(row)
            with cursor.copy("COPY messages(sid,role,content,ts) FROM STDIN") as copy:
                for row in messages:
                    copy.write_row(row)
        c.execute("VACUUM ANALYZE")

    def store_bytes(self) -> int:
        return int(self._c().execute("SELECT pg_database_size(current_database())").fetchone()[0])


class OaSqlalchemyPg(OaSqlalchemy):
    modules = ("agents", "sqlalchemy", "greenlet", "asyncpg")
    server = "postgres"

    async def aopen(self) -> None:
        import asyncpg
        from agents.extensions.memory import SQLAlchemySession
        from sqlalchemy.ext.asyncio import create_async_engine

        self.cls = SQLAlchemySession
        self.engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda *_: asyncpg.connect(dsn()))
        await SQLAlchemySession("warm", engine=self.engine, create_tables=True).get_items()

    def seed(self, plan: Plan) -> None:
        async def fill() -> None:
            from sqlalchemy import text

            session = text("INSERT INTO agent_sessions(session_id) VALUES (:k)")
            message = text("INSERT INTO agent_messages(session_id,message_data) VALUES (:k,:d)")
            async with self.engine.begin() as c:
                for key, said in plan:
                    await c.execute(session, {"k": key})
                    rows = [{"k": key, "d": json.dumps({"role": r, "content": t})} for r, t in said]
                    await c.execute(message, rows)

        self.run(fill())

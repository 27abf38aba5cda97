"""PostgreSQL: hand-written SQL (psycopg, one statement and one commit for each message) as the limit, and one peer."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import THIS_INTERPRETER, Driver
from benchmarks.drivers.openai_agents import OaSqlalchemy

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList

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

_OF_CHAT = "sid=(SELECT id FROM sessions WHERE key=%s)"


def get_database_url() -> str:
    """Return the URL of the database to measure, which the harness sets."""
    return os.environ["PERF_PG_DSN"]


class RawPg(Driver):
    venv = THIS_INTERPRETER
    modules = ("psycopg",)
    server = "postgres"

    def open(self) -> None:
        import psycopg

        self.psycopg = psycopg
        self.local = threading.local()
        self.connections: list[Any] = []
        if self._connect_thread().execute("SELECT to_regclass('sessions')").fetchone()[0] is None:
            self._connect_thread().execute(SCHEMA)

    def _connect_thread(self) -> Any:
        """Return the connection of this thread. Open it on first use."""
        c = getattr(self.local, "c", None)
        if c is None:
            c = self.local.c = self.psycopg.connect(get_database_url(), autocommit=True, prepare_threshold=1)
            self.connections.append(c)
        return c

    def close(self) -> None:
        for c in self.connections:
            c.close()

    def _append(self, key: str, role: str, text: str, tin: int = 0, tout: int = 0) -> None:
        values = {"k": key, "now": time.time(), "tin": tin, "tout": tout, "role": role, "text": text}
        self._connect_thread().execute(APPEND, values)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self._append(key, "user", user)
        self._append(key, "assistant", assistant, tin, tout)

    def append(self, key: str, role: str, content: str) -> None:
        self._append(key, role, content)

    def load(self, key: str) -> Messages:
        rows = self._connect_thread().execute(f"SELECT role,content FROM messages WHERE {_OF_CHAT} ORDER BY id", (key,))
        return [{"role": r, "content": t} for r, t in rows]

    def load_last(self, key: str, n: int) -> Messages:
        statement = f"SELECT role,content FROM messages WHERE {_OF_CHAT} ORDER BY id DESC LIMIT %s"
        rows = self._connect_thread().execute(statement, (key, n)).fetchall()
        return [{"role": r, "content": t} for r, t in reversed(rows)]

    def list_recent(self, n: int) -> SessionList:
        statement = "SELECT key,updated_at,n FROM sessions ORDER BY updated_at DESC LIMIT %s"
        rows: SessionList = self._connect_thread().execute(statement, (n,)).fetchall()
        return rows

    def seed(self, plan: Plan) -> None:
        c = self._connect_thread()
        start = time.time() - 10_000_000
        sessions: list[tuple[object, ...]] = []
        messages: list[tuple[object, ...]] = []
        for i, (key, chat) in enumerate(plan):
            sessions.append((key, key, start + i, len(chat), 10, 10))
            messages += [(i + 1, role, content, start + i) for role, content in chat]
        with c.transaction(), c.cursor() as cursor:
            with cursor.copy("COPY sessions(key,title,updated_at,n,tin,tout) FROM STDIN") as copy:
                for row in sessions:
                    copy.write_row(row)
            with cursor.copy("COPY messages(sid,role,content,ts) FROM STDIN") as copy:
                for row in messages:
                    copy.write_row(row)
        c.execute("VACUUM ANALYZE")

    def measure_store_bytes(self) -> int:
        return int(self._connect_thread().execute("SELECT pg_database_size(current_database())").fetchone()[0])


class OaSqlalchemyPg(OaSqlalchemy):
    modules = ("agents", "sqlalchemy", "greenlet", "asyncpg")
    server = "postgres"

    async def aopen(self) -> None:
        import asyncpg
        from agents.extensions.memory import SQLAlchemySession
        from sqlalchemy.ext.asyncio import create_async_engine

        self.cls = SQLAlchemySession
        self.engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=lambda *_: asyncpg.connect(get_database_url())
        )
        await SQLAlchemySession("warm", engine=self.engine, create_tables=True).get_items()

    def seed(self, plan: Plan) -> None:
        async def fill() -> None:
            from sqlalchemy import text

            session = text("INSERT INTO agent_sessions(session_id) VALUES (:k)")
            message = text("INSERT INTO agent_messages(session_id,message_data) VALUES (:k,:d)")
            async with self.engine.begin() as c:
                for key, messages in plan:
                    await c.execute(session, {"k": key})
                    rows = [{"k": key, "d": json.dumps({"role": r, "content": t})} for r, t in messages]
                    await c.execute(message, rows)

        self.run(fill())

"""agno: sessions and runs in SqliteDb.

A turn does what Agent.run does around the model call: get_session (all runs), then upsert_session and upsert_run with both
messages and metrics. agno writes a run after the answer, so the user's message is not durable before that. No search; the
list of sessions has no message count.
"""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import Driver

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList


class Agno(Driver):
    venv = "agno"
    modules = ("agno", "sqlalchemy", "greenlet")

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        import logging

        logging.disable(logging.CRITICAL)
        from agno.db.base import SessionType
        from agno.db.sqlite import SqliteDb
        from agno.models.message import Message
        from agno.run.agent import RunOutput
        from agno.run.base import RunStatus
        from agno.session.agent import AgentSession

        try:
            from agno.metrics import RunMetrics as Metrics
        except ImportError:
            from agno.models.metrics import Metrics
        self.message, self.output, self.status = Message, RunOutput, RunStatus
        self.session, self.metrics, self.kind = AgentSession, Metrics, SessionType.AGENT
        self.db = SqliteDb(db_file=str(self.root / "agno.db"))
        self.n = time.time_ns()

    def close(self) -> None:
        self.db.close()

    def _build_run(self, key: str, pairs: list[tuple[str, str]], tin: int, tout: int) -> Any:
        self.n += 1
        return self.output(
            run_id=f"r{self.n}",
            session_id=key,
            agent_id="a",
            agent_name="a",
            status=self.status.completed,
            messages=[self.message(role=role, content=text) for role, text in pairs],
            content=pairs[-1][1],
            metrics=self.metrics(input_tokens=tin, output_tokens=tout, total_tokens=tin + tout),
        )

    def _write_run(self, key: str, pairs: list[tuple[str, str]], tin: int, tout: int) -> None:
        session = self.db.get_session(session_id=key, session_type=self.kind)
        if session is None:
            session = self.session(
                session_id=key,
                agent_id="a",
                user_id="u",
                session_data={"session_name": key, "session_state": {}},
                created_at=int(time.time()),
                runs=[],
            )
        run = self._build_run(key, pairs, tin, tout)
        session.upsert_run(run)
        totals = session.session_data.setdefault("session_metrics", {"input_tokens": 0, "output_tokens": 0})
        totals["input_tokens"] += tin
        totals["output_tokens"] += tout
        self.db.upsert_session(session)
        self.db.upsert_run(run, session_id=key, user_id="u", run_index=len(session.runs) - 1)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self._write_run(key, [("user", user), ("assistant", assistant)], tin, tout)

    def append(self, key: str, role: str, content: str) -> None:
        self._write_run(key, [(role, content)], 1, 0)

    def load(self, key: str) -> Messages:
        session = self.db.get_session(session_id=key, session_type=self.kind)
        return [{"role": m.role, "content": m.content} for m in session.get_messages()]

    def load_last(self, key: str, n: int) -> Messages:
        session = self.db.get_session(session_id=key, session_type=self.kind, runs_limit=n // 2)
        return [{"role": m.role, "content": m.content} for m in session.get_messages()]

    def list_recent(self, n: int) -> SessionList:
        rows, _ = self.db.get_sessions(
            session_type=self.kind,
            limit=n,
            page=1,
            sort_by="updated_at",
            sort_order="desc",
            deserialize=False,
            include_runs=False,
        )
        return [(r["session_id"], r["updated_at"], None) for r in rows]

    def undo(self, key: str) -> None:
        session = self.db.get_session(session_id=key, session_type=self.kind, runs_limit=1)
        self.db.delete_run(session.runs[-1].run_id)

    def seed(self, plan: Plan) -> None:
        """Write one turn with the API, then copy its rows with other ids, texts and times."""
        self.run_turn("template", "@", "@", 10, 10)
        self.close()
        c = sqlite3.connect(self.root / "agno.db")
        c.row_factory = sqlite3.Row
        session = dict(c.execute("SELECT * FROM agno_sessions").fetchone())
        run = dict(c.execute("SELECT * FROM agno_runs").fetchone())
        start = int(time.time()) - 400_000
        n = 0
        for i, (key, messages) in enumerate(plan):
            session.update(session_id=key, created_at=start + i, updated_at=start + i)
            c.execute(_build_insert("agno_sessions", session), tuple(session.values()))
            batch = []
            for j in range(0, len(messages), 2):
                n += 1
                row = _copy_run(run, key, n, messages[j : j + 2])
                batch.append(tuple({**row, "run_index": j // 2, "created_at": start + i}.values()))
            c.executemany(_build_insert("agno_runs", run), batch)
        c.execute("DELETE FROM agno_runs WHERE session_id='template'")
        c.execute("DELETE FROM agno_sessions WHERE session_id='template'")
        c.commit()
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        c.close()


def _build_insert(table: str, row: dict[str, Any]) -> str:
    return f"INSERT INTO {table}({','.join(row)}) VALUES ({','.join('?' * len(row))})"


def _copy_run(run: dict[str, Any], key: str, n: int, messages: list[tuple[str, str]]) -> dict[str, Any]:
    """Copy a run row with other messages."""
    data = json.loads(run["run_data"])
    data.update(run_id=f"s{n}", session_id=key, content=messages[-1][1])
    for message, (_, text) in zip(data["messages"], messages, strict=False):
        message.update(content=text, id=f"m{n}")
    return {**run, "run_id": f"s{n}", "session_id": key, "run_data": json.dumps(data)}

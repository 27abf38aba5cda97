"""openai-agents: SQLiteSession, AdvancedSQLiteSession and SQLAlchemySession (sqlite+aiosqlite).

It has one Session object for each conversation. A gateway with many chats cannot keep all of them open (each holds a
connection per worker thread), so a turn opens one, uses it and closes it, as its examples do for a request; for comparison,
`OaSqliteCached` keeps them open. Only AdvancedSQLiteSession has token counters; none lists sessions or has a search.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import AsyncDriver

if TYPE_CHECKING:
    from typing import ClassVar

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages

_INSERT_STRUCTURE = (
    "INSERT INTO message_structure(session_id,message_id,branch_id,message_type,sequence_number,"
    "user_turn_number,branch_turn_number) VALUES (?,?,'main',?,?,?,?)"
)
_INSERT_USAGE = (
    "INSERT INTO turn_usage(session_id,branch_id,user_turn_number,requests,input_tokens,output_tokens,"
    "total_tokens) VALUES (?,'main',?,1,10,10,20)"
)


class OaSqlite(AsyncDriver):
    venv = "openai_agents"
    modules: ClassVar[tuple[str, ...]] = ("agents",)
    advanced = False

    async def aopen(self) -> None:
        self._create_root()
        from agents.memory import SQLiteSession

        self.cls: Any = SQLiteSession
        self.cls("warm", self.path).close()

    def _create_root(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.path = str(self.root / "agents.db")

    def _open_session(self, key: str) -> Any:
        return self.cls(key, self.path)

    def _close_session(self, session: Any) -> None:
        session.close()

    async def arun_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = self._open_session(key)
        try:
            await session.add_items([{"role": "user", "content": user}])
            await session.add_items([{"role": "assistant", "content": assistant}])
        finally:
            self._close_session(session)

    async def aappend(self, key: str, role: str, content: str) -> None:
        session = self._open_session(key)
        try:
            await session.add_items([{"role": role, "content": content}])
        finally:
            self._close_session(session)

    async def aload(self, key: str) -> Messages:
        return await self._get_items(key)

    async def aload_last(self, key: str, n: int) -> Messages:
        return await self._get_items(key, limit=n)

    async def _get_items(self, key: str, **limit: int) -> Messages:
        session = self._open_session(key)
        try:
            items: Messages = await session.get_items(**limit)
            return items
        finally:
            self._close_session(session)

    async def aundo(self, key: str) -> None:
        session = self._open_session(key)
        try:
            await session.pop_item()
            await session.pop_item()
        finally:
            self._close_session(session)

    def seed(self, plan: Plan) -> None:
        import sqlite3

        c = sqlite3.connect(self.path)
        for key, messages in plan:
            c.execute("INSERT OR IGNORE INTO agent_sessions(session_id) VALUES (?)", (key,))
            turn = 0
            for i, (role, text) in enumerate(messages, 1):
                message = "INSERT INTO agent_messages(session_id,message_data) VALUES (?,?)"
                no = c.execute(message, (key, json.dumps({"role": role, "content": text}))).lastrowid
                if self.advanced:
                    turn += role == "user"
                    c.execute(_INSERT_STRUCTURE, (key, no, role, i, turn, turn))
                    if role == "assistant":
                        c.execute(_INSERT_USAGE, (key, turn))
        c.commit()
        c.close()


class OaSqliteCached(OaSqlite):
    """Keeps one Session object open for each chat: the number of file descriptors grows with the number of chats."""

    max_sessions = 1000
    seed_driver = "oa_sqlite"

    async def aopen(self) -> None:
        await super().aopen()
        self.open_sessions: dict[str, Any] = {}

    def _open_session(self, key: str) -> Any:
        session = self.open_sessions.get(key)
        if session is None:
            session = self.open_sessions[key] = self.cls(key, self.path)
        return session

    def _close_session(self, session: Any) -> None:
        pass

    async def aclose(self) -> None:
        for session in self.open_sessions.values():
            session.close()


class OaAdvanced(OaSqlite):
    advanced = True

    async def aopen(self) -> None:
        self._create_root()
        from agents.extensions.memory.advanced_sqlite_session import AdvancedSQLiteSession
        from agents.usage import Usage

        self.cls, self.usage = AdvancedSQLiteSession, Usage
        AdvancedSQLiteSession(session_id="warm", db_path=self.path, create_tables=True).close()

    def _open_session(self, key: str) -> Any:
        return self.cls(session_id=key, db_path=self.path)

    async def arun_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = self._open_session(key)
        try:
            await session.add_items([{"role": "user", "content": user}])
            await session.add_items([{"role": "assistant", "content": assistant}])
            usage = self.usage(requests=1, input_tokens=tin, output_tokens=tout, total_tokens=tin + tout)
            await session.store_run_usage(_RunResult(usage))
        finally:
            session.close()


class _RunResult:
    """The part of a run's result that `store_run_usage` reads."""

    def __init__(self, usage: Any) -> None:
        self.context_wrapper = type("Context", (), {"usage": usage})()


class OaSqlalchemy(OaSqlite):
    modules: ClassVar[tuple[str, ...]] = ("agents", "sqlalchemy", "greenlet", "aiosqlite")

    async def aopen(self) -> None:
        self._create_root()
        from agents.extensions.memory import SQLAlchemySession
        from sqlalchemy.ext.asyncio import create_async_engine

        self.cls = SQLAlchemySession
        self.engine: Any = create_async_engine(f"sqlite+aiosqlite:///{self.path}")
        await SQLAlchemySession("warm", engine=self.engine, create_tables=True).get_items()

    def _open_session(self, key: str) -> Any:
        return self.cls(key, engine=self.engine)

    def _close_session(self, session: Any) -> None:
        pass

    async def aclose(self) -> None:
        await self.engine.dispose()

"""openai-agents: SQLiteSession, AdvancedSQLiteSession and SQLAlchemySession (sqlite+aiosqlite).

Its unit is one Session object per conversation. A gateway with many chats cannot keep one open for each (each
holds a connection per worker thread), so a turn builds it, uses it and closes it, as its examples do for a
request; `OaSqliteCached` keeps the objects, for comparison. Token counters only in AdvancedSQLiteSession; no
list of sessions and no search in any.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import AsyncDriver

if TYPE_CHECKING:
    from typing import ClassVar

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Said

_STRUCTURE = (
    "INSERT INTO message_structure(session_id,message_id,branch_id,message_type,sequence_number,"
    "user_turn_number,branch_turn_number) VALUES (?,?,'main',?,?,?,?)"
)
_USAGE = (
    "INSERT INTO turn_usage(session_id,branch_id,user_turn_number,requests,input_tokens,output_tokens,"
    "total_tokens) VALUES (?,'main',?,1,10,10,20)"
)


class OaSqlite(AsyncDriver):
    venv = "openai_agents"
    modules: ClassVar[tuple[str, ...]] = ("agents",)
    advanced = False

    async def aopen(self) -> None:
        self._place()
        from agents.memory import SQLiteSession

        self.cls: Any = SQLiteSession
        self.cls("warm", self.path).close()

    def _place(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.path = str(self.root / "agents.db")

    def _session(self, key: str) -> Any:
        return self.cls(key, self.path)

    def _done(self, session: Any) -> None:
        session.close()

    async def aturn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = self._session(key)
        try:
            await session.add_items([{"role": "user", "content": user}])
            await session.add_items([{"role": "assistant", "content": assistant}])
        finally:
            self._done(session)

    async def aappend(self, key: str, role: str, content: str) -> None:
        session = self._session(key)
        try:
            await session.add_items([{"role": role, "content": content}])
        finally:
            self._done(session)

    async def aload(self, key: str) -> Said:
        return await self._items(key)

    async def atail(self, key: str, n: int) -> Said:
        return await self._items(key, limit=n)

    async def _items(self, key: str, **limit: int) -> Said:
        session = self._session(key)
        try:
            items: Said = await session.get_items(**limit)
            return items
        finally:
            self._done(session)

    async def aundo(self, key: str) -> None:
        session = self._session(key)
        try:
            await session.pop_item()
            await session.pop_item()
        finally:
            self._done(session)

    def seed(self, plan: Plan) -> None:
        import sqlite3

        c = sqlite3.connect(self.path)
        for key, said in plan:
            c.execute("INSERT OR IGNORE INTO agent_sessions(session_id) VALUES (?)", (key,))
            turn = 0
            for i, (role, text) in enumerate(said, 1):
                message = "INSERT INTO agent_messages(session_id,message_data) VALUES (?,?)"
                no = c.execute(message, (key, json.dumps({"role": role, "content": text}))).lastrowid
                if self.advanced:
                    turn += role == "user"
                    c.execute(_STRUCTURE, (key, no, role, i, turn, turn))
                    if role == "assistant":
                        c.execute(_USAGE, (key, turn))
        c.commit()
        c.close()


class OaSqliteCached(OaSqlite):
    """One open Session object per chat, kept: file descriptors grow with the number of chats."""

    most_sessions = 1000
    seeds = "oa_sqlite"

    async def aopen(self) -> None:
        await super().aopen()
        self.kept: dict[str, Any] = {}

    def _session(self, key: str) -> Any:
        session = self.kept.get(key)
        if session is None:
            session = self.kept[key] = self.cls(key, self.path)
        return session

    def _done(self, session: Any) -> None:
        pass

    async def aclose(self) -> None:
        for session in self.kept.values():
            session.close()


class OaAdvanced(OaSqlite):
    advanced = True

    async def aopen(self) -> None:
        self._place()
        from agents.extensions.memory.advanced_sqlite_session import AdvancedSQLiteSession
        from agents.usage import Usage

        self.cls, self.usage = AdvancedSQLiteSession, Usage
        AdvancedSQLiteSession(session_id="warm", db_path=self.path, create_tables=True).close()

    def _session(self, key: str) -> Any:
        return self.cls(session_id=key, db_path=self.path)

    async def aturn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = self._session(key)
        try:
            await session.add_items([{"role": "user", "content": user}])
            await session.add_items([{"role": "assistant", "content": assistant}])
            used = self.usage(requests=1, input_tokens=tin, output_tokens=tout, total_tokens=tin + tout)
            await session.store_run_usage(_Result(used))
        finally:
            session.close()


class _Result:
    """As much of a run's result as the usage is read from."""

    def __init__(self, usage: Any) -> None:
        self.context_wrapper = type("Context", (), {"usage": usage})()


class OaSqlalchemy(OaSqlite):
    modules: ClassVar[tuple[str, ...]] = ("agents", "sqlalchemy", "greenlet", "aiosqlite")

    async def aopen(self) -> None:
        self._place()
        from agents.extensions.memory import SQLAlchemySession
        from sqlalchemy.ext.asyncio import create_async_engine

        self.cls = SQLAlchemySession
        self.engine: Any = create_async_engine(f"sqlite+aiosqlite:///{self.path}")
        await SQLAlchemySession("warm", engine=self.engine, create_tables=True).get_items()

    def _session(self, key: str) -> Any:
        return self.cls(key, engine=self.engine)

    def _done(self, session: Any) -> None:
        pass

    async def aclose(self) -> None:
        await self.engine.dispose()

"""google-adk: DatabaseSessionService (SQLAlchemy over sqlite+aiosqlite) and SqliteSessionService.

A turn does what its Runner does: get_session (all events), create the session if missing, append_event for the user and
for the model with usage_metadata. One application, one user. list_sessions returns all sessions, without limit, title or
count; there is no search; a rewind is another event.
"""

from __future__ import annotations

import json
import sqlite3
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import AsyncDriver

if TYPE_CHECKING:
    from typing import ClassVar

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList

APP, USER = "bench", "u"


class Adk(AsyncDriver):
    venv = "adk"
    modules: ClassVar[tuple[str, ...]] = ("google.adk", "aiosqlite")

    def create_service(self) -> Any:
        raise NotImplementedError

    async def aopen(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        import logging

        logging.disable(logging.WARNING)
        from google.adk.events import Event
        from google.adk.sessions.base_session_service import GetSessionConfig
        from google.genai import types

        self.event, self.types, self.config = Event, types, GetSessionConfig
        self.path = self.root / "adk.db"
        self.service = self.create_service()
        self.n = 0
        await self.service.get_session(app_name=APP, user_id=USER, session_id="warm")

    async def aclose(self) -> None:
        close = getattr(self.service, "close", None)
        if close:
            await close()

    def _build_event(self, role: str, text: str, tin: int = 0, tout: int = 0) -> Any:
        types = self.types
        usage = {}
        if role == "assistant":
            usage["usage_metadata"] = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=tin, candidates_token_count=tout, total_token_count=tin + tout
            )
        self.n += 1
        roles = ("user", "user") if role == "user" else ("bot", "model")
        content = types.Content(role=roles[1], parts=[types.Part(text=text)])
        return self.event(author=roles[0], invocation_id=f"i{self.n}", content=content, **usage)

    async def _get_or_create(self, key: str, config: Any = None) -> Any:
        get, create = self.service.get_session, self.service.create_session
        session = await get(app_name=APP, user_id=USER, session_id=key, config=config)
        return session or await create(app_name=APP, user_id=USER, session_id=key)

    def _get_read_config(self) -> Any:
        """Return how much of the session a turn reads. Default: everything."""
        return None

    async def arun_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = await self._get_or_create(key, self._get_read_config())
        await self.service.append_event(session, self._build_event("user", user))
        await self.service.append_event(session, self._build_event("assistant", assistant, tin, tout))

    async def aappend(self, key: str, role: str, content: str) -> None:
        session = await self._get_or_create(key, self.config(num_recent_events=0))
        await self.service.append_event(session, self._build_event(role, content))

    @staticmethod
    def _to_messages(session: Any) -> Messages:
        return [
            {
                "role": "user" if e.content.role == "user" else "assistant",
                "content": e.content.parts[0].text,
            }
            for e in session.events
        ]

    async def aload(self, key: str) -> Messages:
        return self._to_messages(await self._get_or_create(key))

    async def aload_last(self, key: str, n: int) -> Messages:
        return self._to_messages(await self._get_or_create(key, self.config(num_recent_events=n)))

    async def alist_recent(self, n: int) -> SessionList:
        response = await self.service.list_sessions(app_name=APP, user_id=USER)
        return [(s.id, s.last_update_time, None) for s in reversed(response.sessions[-n:])]

    def seed(self, plan: Plan) -> None:
        """Write one turn with the API, then copy its rows with other ids, texts and times."""
        self.run_turn("template", "@@TEXT@@", "@@TEXT@@", 10, 10)
        self.run(self.aclose())
        c = sqlite3.connect(self.path)
        c.row_factory = sqlite3.Row
        session = dict(c.execute("SELECT * FROM sessions WHERE id='template'").fetchone())
        events = c.execute("SELECT * FROM events WHERE session_id='template' ORDER BY rowid")
        user, model = (dict(row) for row in events)
        start = time.time() - 400_000
        n = 0
        for i, (key, messages) in enumerate(plan):
            at = start + i
            times = {
                "create_time": _format_time(at, session["create_time"]),
                "update_time": _format_time(at + 0.5, session["update_time"]),
            }
            session.update(id=key, **times)
            c.execute(_build_insert("sessions", session), tuple(session.values()))
            batch = []
            for j, (role, text) in enumerate(messages):
                n += 1
                row = user if role == "user" else model
                batch.append(tuple(_copy_event(row, key, n, text, at + j * 1e-5).values()))
            c.executemany(_build_insert("events", user), batch)
        c.execute("DELETE FROM events WHERE session_id='template'")
        c.execute("DELETE FROM sessions WHERE id='template'")
        c.commit()
        c.close()


def _build_insert(table: str, row: dict[str, Any]) -> str:
    return f"INSERT INTO {table}({','.join(row)}) VALUES ({','.join('?' * len(row))})"


def _copy_event(row: dict[str, Any], key: str, n: int, text: str, at: float) -> dict[str, Any]:
    """Copy an event row with another text."""
    data = json.loads(row["event_data"])
    new = {"id": f"{n:08x}-0000-4000-8000-000000000000", "invocation_id": f"s{n}"}
    data.update(new, timestamp=at)
    data["content"]["parts"][0]["text"] = text
    stamp = _format_time(at, row["timestamp"])
    return {**row, **new, "session_id": key, "timestamp": stamp, "event_data": json.dumps(data)}


def _format_time(at: float, sample: object) -> object:
    """Format a time in the same way as the sample that this variant has stored."""
    if isinstance(sample, float):
        return at
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).strftime("%Y-%m-%d %H:%M:%S.%f")


class AdkDatabase(Adk):
    modules = ("google.adk", "sqlalchemy", "greenlet", "aiosqlite")

    def create_service(self) -> Any:
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return DatabaseSessionService(db_url=f"sqlite+aiosqlite:///{self.path}")


class AdkSqlite(Adk):
    """Opens a new connection and thread for every call."""

    def create_service(self) -> Any:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return SqliteSessionService(str(self.path))


class AdkDatabase50(AdkDatabase):
    """With `GetSessionConfig(num_recent_events=50)`: the documented way to limit what a turn reads."""

    seed_driver = "adk_db"

    def _get_read_config(self) -> Any:
        return self.config(num_recent_events=50)


class AdkSqlite50(AdkSqlite):
    """With the same limit."""

    seed_driver = "adk_sqlite"

    def _get_read_config(self) -> Any:
        return self.config(num_recent_events=50)

"""google-adk: DatabaseSessionService (SQLAlchemy over sqlite+aiosqlite) and SqliteSessionService.

A turn is what its Runner does: get_session (all events), create it when missing, append_event for the user
and for the model with usage_metadata. One application, one user. list_sessions returns every session, without
limit, title or count; there is no search; a rewind is another event.
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
    from benchmarks.drivers import Listed, Said

APP, USER = "bench", "u"


class Adk(AsyncDriver):
    venv = "adk"
    modules: ClassVar[tuple[str, ...]] = ("google.adk", "aiosqlite")

    def make(self) -> Any:
        """The service of this variant."""
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
        self.service = self.make()
        self.n = 0
        await self.service.get_session(app_name=APP, user_id=USER, session_id="warm")

    async def aclose(self) -> None:
        close = getattr(self.service, "close", None)
        if close:
            await close()

    def _event(self, role: str, text: str, tin: int = 0, tout: int = 0) -> Any:
        types = self.types
        used = {}
        if role == "assistant":
            used["usage_metadata"] = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=tin, candidates_token_count=tout, total_token_count=tin + tout
            )
        self.n += 1
        who = ("user", "user") if role == "user" else ("bot", "model")
        content = types.Content(role=who[1], parts=[types.Part(text=text)])
        return self.event(author=who[0], invocation_id=f"i{self.n}", content=content, **used)

    async def _get(self, key: str, config: Any = None) -> Any:
        get, create = self.service.get_session, self.service.create_session
        session = await get(app_name=APP, user_id=USER, session_id=key, config=config)
        return session or await create(app_name=APP, user_id=USER, session_id=key)

    def _looked_at(self) -> Any:
        """How much of the session a turn reads: all of it, by default."""
        return None

    async def aturn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = await self._get(key, self._looked_at())
        await self.service.append_event(session, self._event("user", user))
        await self.service.append_event(session, self._event("assistant", assistant, tin, tout))

    async def aappend(self, key: str, role: str, content: str) -> None:
        session = await self._get(key, self.config(num_recent_events=0))
        await self.service.append_event(session, self._event(role, content))

    @staticmethod
    def _dicts(session: Any) -> Said:
        return [
            {
                "role": "user" if e.content.role == "user" else "assistant",
                "content": e.content.parts[0].text,
            }
            for e in session.events
        ]

    async def aload(self, key: str) -> Said:
        return self._dicts(await self._get(key))

    async def atail(self, key: str, n: int) -> Said:
        return self._dicts(await self._get(key, self.config(num_recent_events=n)))

    async def arecent(self, n: int) -> Listed:
        found = await self.service.list_sessions(app_name=APP, user_id=USER)
        return [(s.id, s.last_update_time, None) for s in reversed(found.sessions[-n:])]

    def seed(self, plan: Plan) -> None:
        """One turn by the API, then copies of its rows with other ids, texts and times."""
        self.turn("template", "@@TEXT@@", "@@TEXT@@", 10, 10)
        self.run(self.aclose())
        c = sqlite3.connect(self.path)
        c.row_factory = sqlite3.Row
        session = dict(c.execute("SELECT * FROM sessions WHERE id='template'").fetchone())
        events = c.execute("SELECT * FROM events WHERE session_id='template' ORDER BY rowid")
        user, model = (dict(row) for row in events)
        began = time.time() - 400_000
        n = 0
        for i, (key, said) in enumerate(plan):
            at = began + i
            times = {
                "create_time": _stamp(at, session["create_time"]),
                "update_time": _stamp(at + 0.5, session["update_time"]),
            }
            session.update(id=key, **times)
            c.execute(_insert("sessions", session), tuple(session.values()))
            batch = []
            for j, (role, text) in enumerate(said):
                n += 1
                row = user if role == "user" else model
                batch.append(tuple(_copied(row, key, n, text, at + j * 1e-5).values()))
            c.executemany(_insert("events", user), batch)
        c.execute("DELETE FROM events WHERE session_id='template'")
        c.execute("DELETE FROM sessions WHERE id='template'")
        c.commit()
        c.close()


def _insert(table: str, row: dict[str, Any]) -> str:
    return f"INSERT INTO {table}({','.join(row)}) VALUES ({','.join('?' * len(row))})"


def _copied(row: dict[str, Any], key: str, n: int, text: str, at: float) -> dict[str, Any]:
    """An event like this one with another text."""
    data = json.loads(row["event_data"])
    new = {"id": f"{n:08x}-0000-4000-8000-000000000000", "invocation_id": f"s{n}"}
    data.update(new, timestamp=at)
    data["content"]["parts"][0]["text"] = text
    stamp = _stamp(at, row["timestamp"])
    return {**row, **new, "session_id": key, "timestamp": stamp, "event_data": json.dumps(data)}


def _stamp(at: float, like: object) -> object:
    """A time in the form that this variant stores."""
    if isinstance(like, float):
        return at
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).strftime("%Y-%m-%d %H:%M:%S.%f")


class AdkDatabase(Adk):
    modules = ("google.adk", "sqlalchemy", "greenlet", "aiosqlite")

    def make(self) -> Any:
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return DatabaseSessionService(db_url=f"sqlite+aiosqlite:///{self.path}")


class AdkSqlite(Adk):
    """A new connection and thread for every call."""

    def make(self) -> Any:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return SqliteSessionService(str(self.path))


class AdkDatabase50(AdkDatabase):
    """With `GetSessionConfig(num_recent_events=50)`: the documented way to bound what a turn reads."""

    seeds = "adk_db"

    def _looked_at(self) -> Any:
        return self.config(num_recent_events=50)


class AdkSqlite50(AdkSqlite):
    """The same bound."""

    seeds = "adk_sqlite"

    def _looked_at(self) -> Any:
        return self.config(num_recent_events=50)

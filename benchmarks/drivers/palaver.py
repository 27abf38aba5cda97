"""Palaver, through its public library.

A turn is `record_user_message` and `append_to_transcript` with the usage: two durable transactions. After it, the messages
are searchable, and the session's position in lists and its totals are up to date. Each chat of the benchmark is a Telegram
direct message of a different person. Reading a transcript first looks up the session of the chat, as a gateway does; this
is part of the measured time.
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import THIS_INTERPRETER, AsyncDriver, Driver
from benchmarks.drivers.palaver_seed import PostgresBulk, SqliteBulk, copy_conversations
from benchmarks.drivers.postgres import get_database_url
from benchmarks.paths import BENCHMARKS_DIR, REPOSITORY_DIR

if TYPE_CHECKING:
    from pathlib import Path
    from typing import ClassVar

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList
    from benchmarks.drivers.palaver_seed import Bulk

PACKAGE_DIR = REPOSITORY_DIR / "src" / "palaver"


class Palaver(Driver):
    venv = THIS_INTERPRETER
    modules: ClassVar[tuple[str, ...]] = ("palaver",)

    def open(self) -> None:
        from palaver import SessionSource, SessionStore, TurnUsage

        self.source, self.usage = SessionSource, TurnUsage
        self.store = SessionStore.open(self._get_database_url())
        self.turns = map(f"{time.time_ns()}-{{}}".format, itertools.count())

    def _get_database_url(self) -> str:
        return f"sqlite:///{self.root / 'palaver.db'}"

    def close(self) -> None:
        self.store.close()

    def _build_source(self, key: str) -> Any:
        return self.source("telegram", key, user_id=key)

    def _find_session_id(self, key: str) -> str:
        return self.store.get_or_create_session(self._build_source(key)).session_id

    def _build_usage(self, tin: int, tout: int) -> Any:
        return self.usage(turn_id=next(self.turns), model="bench-model", input_tokens=tin, output_tokens=tout)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        recorded = self.store.record_user_message(self._build_source(key), user)
        self.store.append_to_transcript(recorded.session_id, assistant, usage=self._build_usage(tin, tout))

    def append(self, key: str, role: str, content: str) -> None:
        self.store.record_user_message(self._build_source(key), {"role": role, "content": content})

    def load(self, key: str) -> Messages:
        return self.store.load_transcript(self._find_session_id(key))

    def load_last(self, key: str, n: int) -> Messages:
        return self.store.load_transcript(self._find_session_id(key), limit=n)

    def list_recent(self, n: int) -> SessionList:
        page = self.store.list_sessions(limit=n)
        return [(session.key.rpartition(":")[2], session.active_at, session.message_count) for session in page]

    def search(self, word: str, n: int) -> list[Any]:
        return list(self.store.search(word, limit=n))

    def search_own(self, key: str, word: str, n: int) -> list[Any]:
        view = self.store.seen_by(self.store.get_or_create_person(self._build_source(key)).principal)
        return list(view.search(word, limit=n))

    def undo(self, key: str) -> None:
        self.store.undo(self._find_session_id(key))

    def rewrite(self, key: str) -> None:
        session_id = self._find_session_id(key)
        self.store.rewrite_transcript(session_id, self.store.load_transcript(session_id)[:-2])

    def finish_pending_work(self) -> None:
        self.store.search("aneverwrittenword")  # a search updates the index first

    def list_commands(self) -> dict[str, tuple[list[str], dict[str, str]]]:
        home = {"PALAVER_HOME": str(self.root)}
        return {
            "python alone": ([sys.executable, "-c", "pass"], {}),
            "palaver --version": ([sys.executable, "-m", "palaver", "--version"], home),
            "palaver sessions list --json": (
                [sys.executable, "-m", "palaver", "sessions", "list", "--json"],
                home,
            ),
        }

    def seed(self, plan: Plan) -> None:
        key, messages = next(plan)
        for (_, user), (_, assistant) in zip(messages[::2], messages[1::2], strict=False):
            self.run_turn(key, user, assistant, 10, 10)
        if len(messages) % 2:
            self.append(key, *messages[-1])
        self.close()
        copy_conversations(self._open_bulk(), key, plan)
        Palaver.open(self)
        self.finish_pending_work()

    def _open_bulk(self) -> Bulk:
        return SqliteBulk(self.root / "palaver.db")

    @classmethod
    def list_seed_sources(cls) -> list[Path]:
        sources = [PACKAGE_DIR / "sessions" / "search_text.py", PACKAGE_DIR / "sessions" / "search_table.py"]
        sources += sorted((PACKAGE_DIR / "core" / "migrations").glob("*.sql"))
        return [*super().list_seed_sources(), BENCHMARKS_DIR / "drivers" / "palaver_seed.py", *sources]


class PalaverCalls(Palaver):
    """The same turn in four calls, for a gateway that does each step itself."""

    seed_driver = "palaver"

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session_id = self.store.get_or_create_session(self._build_source(key)).session_id
        self.store.append_to_transcript(session_id, {"role": "user", "content": user})
        self.store.append_to_transcript(session_id, {"role": "assistant", "content": assistant})
        self.store.update_session(session_id, self._build_usage(tin, tout))


class PalaverAio(AsyncDriver, Palaver):
    """The same calls through the async store."""

    seed_driver = "palaver"

    async def aopen(self) -> None:
        Palaver.open(self)

    async def aclose(self) -> None:
        Palaver.close(self)

    async def arun_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        recorded = await self.store.aio.record_user_message(self._build_source(key), user)
        await self.store.aio.append_to_transcript(recorded.session_id, assistant, usage=self._build_usage(tin, tout))

    async def aappend(self, key: str, role: str, content: str) -> None:
        await self.store.aio.record_user_message(self._build_source(key), {"role": role, "content": content})

    async def aload(self, key: str) -> Messages:
        entry = await self.store.aio.get_or_create_session(self._build_source(key))
        return await self.store.aio.load_transcript(entry.session_id)

    async def aload_last(self, key: str, n: int) -> Messages:
        entry = await self.store.aio.get_or_create_session(self._build_source(key))
        return await self.store.aio.load_transcript(entry.session_id, limit=n)

    async def alist_recent(self, n: int) -> SessionList:
        page = await self.store.aio.list_sessions(limit=n)
        return [(session.key.rpartition(":")[2], session.active_at, session.message_count) for session in page]

    async def aundo(self, key: str) -> None:
        entry = await self.store.aio.get_or_create_session(self._build_source(key))
        await self.store.aio.undo(entry.session_id)


class PalaverPg(Palaver):
    """On PostgreSQL."""

    modules = ("palaver", "psycopg")
    server = "postgres"

    def _get_database_url(self) -> str:
        return get_database_url()

    def _open_bulk(self) -> Bulk:
        return PostgresBulk(get_database_url())

    def measure_store_bytes(self) -> int:
        import psycopg

        with psycopg.connect(get_database_url()) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    def list_commands(self) -> dict[str, tuple[list[str], dict[str, str]]]:
        return Driver.list_commands(self)

    def seed(self, plan: Plan) -> None:
        import psycopg

        super().seed(plan)
        with psycopg.connect(get_database_url(), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

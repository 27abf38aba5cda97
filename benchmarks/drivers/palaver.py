"""Palaver, through its public library.

A turn is `record_user_message` and `append_to_transcript` with the usage: two durable transactions, the
messages searchable, the session's place in the lists and its totals up to date. A chat of the benchmark is a
direct message on Telegram with a person of its own. Reading a transcript first asks which session the chat is
on, as a gateway would; that is part of what is measured.
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import OURS, AsyncDriver, Driver
from benchmarks.drivers.palaver_seed import PostgresBulk, SqliteBulk, copy_conversations
from benchmarks.drivers.postgres import dsn
from benchmarks.places import HERE, REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path
    from typing import ClassVar

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Listed, Said
    from benchmarks.drivers.palaver_seed import Bulk

PACKAGE = REPOSITORY / "src" / "palaver"


class Palaver(Driver):
    venv = OURS
    modules: ClassVar[tuple[str, ...]] = ("palaver",)

    def open(self) -> None:
        from palaver import SessionSource, SessionStore, TurnUsage

        self.source, self.usage = SessionSource, TurnUsage
        self.store = SessionStore.open(self._url())
        self.turns = map(f"{time.time_ns()}-{{}}".format, itertools.count())

    def _url(self) -> str:
        return f"sqlite:///{self.root / 'palaver.db'}"

    def close(self) -> None:
        self.store.close()

    def _source(self, key: str) -> Any:
        return self.source("telegram", key, user_id=key)

    def _session_id(self, key: str) -> str:
        return self.store.get_or_create_session(self._source(key)).session_id

    def _used(self, tin: int, tout: int) -> Any:
        return self.usage(turn_id=next(self.turns), model="bench-model", input_tokens=tin, output_tokens=tout)

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        recorded = self.store.record_user_message(self._source(key), user)
        self.store.append_to_transcript(recorded.session_id, assistant, usage=self._used(tin, tout))

    def append(self, key: str, role: str, content: str) -> None:
        self.store.record_user_message(self._source(key), {"role": role, "content": content})

    def load(self, key: str) -> Said:
        return self.store.load_transcript(self._session_id(key))

    def tail(self, key: str, n: int) -> Said:
        return self.store.load_transcript(self._session_id(key), limit=n)

    def recent(self, n: int) -> Listed:
        page = self.store.list_sessions(limit=n)
        return [(each.key.rpartition(":")[2], each.active_at, each.message_count) for each in page]

    def search(self, word: str, n: int) -> list[Any]:
        return list(self.store.search(word, limit=n))

    def search_own(self, key: str, word: str, n: int) -> list[Any]:
        view = self.store.seen_by(self.store.person_for(self._source(key)).principal)
        return list(view.search(word, limit=n))

    def undo(self, key: str) -> None:
        self.store.undo(self._session_id(key))

    def rewrite(self, key: str) -> None:
        session_id = self._session_id(key)
        self.store.rewrite_transcript(session_id, self.store.load_transcript(session_id)[:-2])

    def settle(self) -> None:
        self.store.search("nobodyhassaidthis")  # a search first lets the index catch up

    def commands(self) -> dict[str, tuple[list[str], dict[str, str]]]:
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
        key, said = next(plan)
        for (_, user), (_, assistant) in zip(said[::2], said[1::2], strict=False):
            self.turn(key, user, assistant, 10, 10)
        if len(said) % 2:
            self.append(key, *said[-1])
        self.close()
        copy_conversations(self._bulk(), key, plan)
        Palaver.open(self)
        self.settle()

    def _bulk(self) -> Bulk:
        return SqliteBulk(self.root / "palaver.db")

    @classmethod
    def seeded_by(cls) -> list[Path]:
        ours = [PACKAGE / "domain" / "words.py", PACKAGE / "storage" / "search.py"]
        ours += sorted((PACKAGE / "storage" / "migrations").glob("*.sql"))
        return [*super().seeded_by(), HERE / "drivers" / "palaver_seed.py", *ours]


class PalaverCalls(Palaver):
    """The same turn by four calls, for a gateway that does each step by itself."""

    seeds = "palaver"

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session_id = self.store.get_or_create_session(self._source(key)).session_id
        self.store.append_to_transcript(session_id, {"role": "user", "content": user})
        self.store.append_to_transcript(session_id, {"role": "assistant", "content": assistant})
        self.store.update_session(session_id, self._used(tin, tout))


class PalaverAio(AsyncDriver, Palaver):
    """The same calls, awaited."""

    seeds = "palaver"

    async def aopen(self) -> None:
        Palaver.open(self)

    async def aclose(self) -> None:
        Palaver.close(self)

    async def aturn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        recorded = await self.store.aio.record_user_message(self._source(key), user)
        await self.store.aio.append_to_transcript(recorded.session_id, assistant, usage=self._used(tin, tout))

    async def aappend(self, key: str, role: str, content: str) -> None:
        await self.store.aio.record_user_message(self._source(key), {"role": role, "content": content})

    async def aload(self, key: str) -> Said:
        entry = await self.store.aio.get_or_create_session(self._source(key))
        return await self.store.aio.load_transcript(entry.session_id)

    async def atail(self, key: str, n: int) -> Said:
        entry = await self.store.aio.get_or_create_session(self._source(key))
        return await self.store.aio.load_transcript(entry.session_id, limit=n)

    async def arecent(self, n: int) -> Listed:
        page = await self.store.aio.list_sessions(limit=n)
        return [(each.key.rpartition(":")[2], each.active_at, each.message_count) for each in page]

    async def aundo(self, key: str) -> None:
        entry = await self.store.aio.get_or_create_session(self._source(key))
        await self.store.aio.undo(entry.session_id)


class PalaverPg(Palaver):
    """On PostgreSQL."""

    modules = ("palaver", "psycopg")
    server = "postgres"

    def _url(self) -> str:
        return dsn()

    def _bulk(self) -> Bulk:
        return PostgresBulk(dsn())

    def store_bytes(self) -> int:
        import psycopg

        with psycopg.connect(dsn()) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    def commands(self) -> dict[str, tuple[list[str], dict[str, str]]]:
        return Driver.commands(self)

    def seed(self, plan: Plan) -> None:
        import psycopg

        super().seed(plan)
        with psycopg.connect(dsn(), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

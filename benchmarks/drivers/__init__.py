"""Drivers of the systems under test: one small file for each system, with one interface.

A driver works in one directory (`root`) or in one database of a server, which the harness fills from a cached seed. A
method raises `UnsupportedError` if the system has no call for it; the report says so. Drivers import their system inside
`open()`, so that the harness can load a driver without having the system installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks import corpus, measure

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import ClassVar

    from benchmarks.corpus import Plan

    Messages = list[dict[str, Any]]
    SessionList = list[tuple[str, Any, int | None]]

T = TypeVar("T")

THIS_INTERPRETER = ""  # for `venv`: the interpreter that runs the benchmark


class UnsupportedError(Exception):
    """The system has no call for this."""


class Driver:
    """One system. Only `run_turn`, `append`, `load` and `seed` are required."""

    venv: ClassVar[str] = "raw"  # folder of its virtual environment, or THIS_INTERPRETER
    modules: ClassVar[tuple[str, ...]] = ()  # must be importable there
    concurrency: ClassVar[str] = "threads"  # how callers share one open store: threads or asyncio tasks
    server: ClassVar[str] = ""  # "postgres": the store is the database that PERF_PG_DSN names
    seed_driver: ClassVar[str] = ""  # another driver that fills the stores of this one
    max_sessions: ClassVar[int] = 10**9  # larger stores are not measured

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def open(self) -> None:
        """Open the store in `root`. Create it if it does not exist."""

    def close(self) -> None:
        """Close the store."""

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        """Run one gateway turn: find or create the session, store the user's message and the answer, count the tokens."""
        raise NotImplementedError

    def append(self, key: str, role: str, content: str) -> None:
        """Append one message durably. Find or create the session."""
        raise NotImplementedError

    def load(self, key: str) -> Messages:
        """Return the whole transcript as `{"role": …, "content": …}`."""
        raise NotImplementedError

    def load_last(self, key: str, n: int) -> Messages:
        """Return the last `n` messages."""
        raise UnsupportedError("no call for the last messages")

    def list_recent(self, n: int) -> SessionList:
        """Return (key, last activity, number of messages or None) of the `n` most recently active sessions, newest first."""
        raise UnsupportedError("no call that lists sessions")

    def search(self, word: str, n: int) -> list[Any]:
        """Return up to `n` messages with this word, of all people."""
        raise UnsupportedError("no search")

    def search_own(self, key: str, word: str, n: int) -> list[Any]:
        """Return up to `n` messages with this word that the person of this chat may see."""
        raise UnsupportedError("no search for one person")

    def undo(self, key: str) -> None:
        """Remove the last turn from the transcript."""
        raise UnsupportedError("no call that removes the last turn")

    def rewrite(self, key: str) -> None:
        """Rewrite the whole transcript without its last turn, if the system has a call for it."""
        raise UnsupportedError("no call that rewrites a transcript")

    def finish_pending_work(self) -> None:
        """Finish the work that the system defers until after a turn."""
        raise UnsupportedError("no deferred work")

    def list_commands(self) -> dict[str, tuple[list[str], dict[str, str]]]:
        """Return the commands to measure: name in the report → (arguments, environment)."""
        raise UnsupportedError("no commands to measure")

    def seed(self, plan: Plan) -> None:
        """Fill the empty store, untimed, with the rows that the API would write."""
        raise NotImplementedError

    def measure_store_bytes(self) -> int:
        return measure.measure_tree_bytes(self.root)

    @classmethod
    def list_seed_sources(cls) -> list[Path]:
        """Return the files that determine what a seed contains. After a change of one, the seeds are filled again."""
        return [Path(corpus.__file__), Path(inspect.getfile(cls))]


class AsyncDriver(Driver):
    """For async systems: the same methods with an `a` before their names, on a private event loop."""

    concurrency = "tasks"

    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.run(self.aopen())

    def close(self) -> None:
        self.run(self.aclose())
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self.run(self.arun_turn(key, user, assistant, tin, tout))

    def append(self, key: str, role: str, content: str) -> None:
        self.run(self.aappend(key, role, content))

    def load(self, key: str) -> Messages:
        return self.run(self.aload(key))

    def load_last(self, key: str, n: int) -> Messages:
        return self.run(self.aload_last(key, n))

    def list_recent(self, n: int) -> SessionList:
        return self.run(self.alist_recent(n))

    def undo(self, key: str) -> None:
        self.run(self.aundo(key))

    async def aopen(self) -> None:
        """See `open`."""

    async def aclose(self) -> None:
        """See `close`."""

    async def arun_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        """See `run_turn`."""
        raise NotImplementedError

    async def aappend(self, key: str, role: str, content: str) -> None:
        """See `append`."""
        raise NotImplementedError

    async def aload(self, key: str) -> Messages:
        """See `load`."""
        raise NotImplementedError

    async def aload_last(self, key: str, n: int) -> Messages:
        """See `load_last`."""
        return Driver.load_last(self, key, n)

    async def alist_recent(self, n: int) -> SessionList:
        """See `list_recent`."""
        return Driver.list_recent(self, n)

    async def aundo(self, key: str) -> None:
        """See `undo`."""
        Driver.undo(self, key)


# name → (module, class), in the order of the report
REGISTRY: dict[str, tuple[str, str]] = {
    "raw_full": ("raw", "RawFull"),
    "raw_normal": ("raw", "RawNormal"),
    "raw_full_fts": ("raw", "RawFullFts"),
    "raw_normal_fts": ("raw", "RawNormalFts"),
    "raw_full_fts_lazy": ("raw", "RawFullFtsLazy"),
    "raw_tuned_full": ("raw_tuned", "RawTunedFull"),
    "raw_tuned_normal": ("raw_tuned", "RawTunedNormal"),
    "raw_apsw": ("raw_apsw", "RawApsw"),
    "raw_pg": ("postgres", "RawPg"),
    "palaver": ("palaver", "Palaver"),
    "palaver_calls": ("palaver", "PalaverCalls"),
    "palaver_aio": ("palaver", "PalaverAio"),
    "palaver_pg": ("palaver", "PalaverPg"),
    "hermes": ("hermes", "Hermes"),
    "hermes_nojson": ("hermes", "HermesNoJson"),
    "oa_sqlite": ("openai_agents", "OaSqlite"),
    "oa_sqlite_cached": ("openai_agents", "OaSqliteCached"),
    "oa_advanced": ("openai_agents", "OaAdvanced"),
    "oa_sqlalchemy": ("openai_agents", "OaSqlalchemy"),
    "oa_sqlalchemy_pg": ("postgres", "OaSqlalchemyPg"),
    "langgraph": ("langgraph_saver", "LangGraph"),
    "langgraph_graph": ("langgraph_saver", "LangGraphGraph"),
    "adk_db": ("adk", "AdkDatabase"),
    "adk_db_50": ("adk", "AdkDatabase50"),
    "adk_sqlite": ("adk", "AdkSqlite"),
    "adk_sqlite_50": ("adk", "AdkSqlite50"),
    "agno": ("agno_db", "Agno"),
    "nanobot": ("nanobot_sessions", "Nanobot"),
    "llm": ("llm_logs", "LlmLogs"),
}

PEERS = tuple(name for name in REGISTRY if not name.startswith(("raw_", "palaver")))


def load(name: str) -> type[Driver]:
    module, cls = REGISTRY[name]
    found: type[Driver] = getattr(importlib.import_module(f"benchmarks.drivers.{module}"), cls)
    return found


def fingerprint(name: str) -> str:
    """Return a digest that changes whenever the seeds of a driver would."""
    digest = hashlib.sha256()
    for path in load(name).list_seed_sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]

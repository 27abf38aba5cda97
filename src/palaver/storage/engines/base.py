"""The port to a database: units of work, transactions, and the short list of what engines do differently.

A unit of work is a plain function over a transaction. It may run more than once (after a conflict with
another process), so it does nothing but read, decide and write through the transaction it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from palaver.domain.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from palaver.domain.clock import Clock

A = TypeVar("A")
T = TypeVar("T")

Row = tuple[Any, ...]


class Conflict(Exception):
    """Another process changed what this unit of work had read; run it again."""


class Transaction(Protocol):
    """Statements inside one transaction. Parameters are `$1`, `$2`, … in every statement."""

    @property
    def name(self) -> Literal["sqlite", "postgres"]:
        """Which engine this is."""
        ...

    bundles: bool  # one statement may change several tables (data-changing CTEs), saving round trips
    lock: str  # ends a SELECT whose rows this transaction is about to change

    def one(self, sql: str, *params: object) -> Row | None:
        """The first row, or None."""
        ...

    def all(self, sql: str, *params: object) -> list[Row]:
        """Every row."""
        ...

    def run(self, sql: str, *params: object) -> int:
        """Run a change; the number of rows it changed."""
        ...

    def hold(self, name: str) -> None:
        """Let nobody else who holds this name go on before this transaction ends."""
        ...

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run one change for many rows of parameters."""
        ...


@dataclass(slots=True)  # one or two for every message: not frozen, which would make them slower to make
class Read(Generic[T]):
    """Work that looks at one consistent state and changes nothing."""

    run: Callable[[Transaction], T]
    # A few rows by index, always. An engine in this process reads them where it is asked: a thread would cost more.
    quick: bool = False


@dataclass(slots=True)
class Write(Generic[T]):
    """Work that is stored whole and durably, or not at all."""

    run: Callable[[Transaction], T]
    # The answer when nothing has to change, or None. Tried first, as a read: it costs no commit.
    look: Callable[[Transaction], T | None] | None = None
    quick: bool = False  # the look is a few rows by index, always
    # The same work as reads and one guarded, changing statement, or None when it needs more than that. An
    # engine across a network runs it without opening a transaction: fewer round trips.
    short: Callable[[Transaction], T | None] | None = None


Work = Read[T] | Write[T]


class Engine(Protocol):
    """A database. Safe to use from several threads; several processes may open the same one."""

    @property
    def name(self) -> Literal["sqlite", "postgres"]:
        """Which engine this is."""
        ...

    @property
    def clock(self) -> Clock:
        """What tells the same time to all who work on this database, wherever they are."""
        ...

    def run(self, work: Work[T]) -> T:
        """Do the work now and return its result; a `Write` is durable when this returns."""
        ...

    async def arun(self, work: Work[T]) -> T:
        """Do the work without blocking the event loop."""
        ...

    def watch(self, on_change: OnChange) -> Watch:
        """Be told, on some thread, of every change that anybody makes, until the watch is closed."""
        ...

    def close(self) -> None:
        """Finish what is under way and let go of the database."""
        ...


# Called with the numbers of the sessions that have changed; None when it is not known which.
OnChange = Callable[[frozenset[int] | None], None]


class Watch(Protocol):
    """Somebody is being told of changes."""

    def close(self) -> None:
        """Stop telling."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the words of a migration file that stand between @ signs read in one engine."""

    name: Literal["sqlite", "postgres"]
    words: Mapping[str, str]


async def on_thread(threads: ThreadPoolExecutor, run: Callable[[A], T], argument: A) -> T:
    """Run something on one of the engine's threads."""
    from asyncio import get_running_loop  # a blocking program does without it

    def guarded() -> T:
        try:
            return run(argument)
        except StopIteration as error:  # which a future cannot hold
            raise RuntimeError("a unit of work raised StopIteration") from error

    try:
        waiting = get_running_loop().run_in_executor(threads, guarded)
    except RuntimeError:  # the threads have been told to stop
        raise StoreClosed from None
    return await waiting

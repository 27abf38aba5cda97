"""The port to a database: units of work, transactions, and the short list of what the engines do differently.

A unit of work is a plain function that takes a transaction. `docs/engine-work.md` explains how to write one and which
of the fields below to set. The important rule: the engine may run the function more than once (after a conflict with
another process), so it does nothing but read, decide and write through the transaction it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum, auto
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from palaver.core.dataclass import dataclass
from palaver.core.errors import StoreClosed

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from palaver.core.clock import Clock


class Upgrade(Enum):
    """Whether a store is brought up to date when it is opened. A new one always is."""

    REFUSE = auto()  # raise `UpgradeRequired`
    ALONE = auto()  # yes, unless a server of an older version uses it
    TAKE_OVER = auto()  # yes; servers of older versions stop using it, where they can be told to


ReadinessCode = Literal[
    "database_slow", "database_locked", "disk_full", "disk_nearly_full", "too_many_connections", "turns_waiting"
]


@dataclass(frozen=True, slots=True)
class ReadinessProblem:
    """What keeps a server from serving everything, for monitoring and for `palaver doctor`; everybody can read it."""

    code: ReadinessCode
    message: str
    is_blocking: bool  # messages can't be stored, so the server is not ready


T = TypeVar("T")

Row = tuple[Any, ...]


class Conflict(Exception):
    """Another process changed something that this unit of work has read. The engine runs the work again."""


class Transaction(Protocol):
    """Runs statements inside one transaction. Parameters are written `$1`, `$2`, … on both engines."""

    @property
    def name(self) -> Literal["sqlite", "postgres"]: ...

    supports_data_ctes: bool  # one statement can change several tables (data-modifying CTEs): fewer round trips
    for_update: str  # append it to a SELECT whose rows this transaction will change; empty where it is not needed
    skip_locked: str  # the same, but rows that another transaction has locked are left out: it may be a paused process
    # Append it to a SELECT of a row that must stay as it is until this transaction ends: another one that selects it
    # `for_update` waits. Changes of other columns without that, and others with `for_key_share`, do not wait.
    for_key_share: str
    # The next statement runs together with those of other callers (`Write.single_statement`): it must not wait for the
    # lock of a row, but change nothing.
    is_shared: bool

    def fetch_one(self, sql: str, *params: object) -> Row | None:
        """Return the first row, or None."""

    def fetch_all(self, sql: str, *params: object) -> list[Row]: ...

    def execute(self, sql: str, *params: object) -> int:
        """Run a statement that changes rows, and return how many it changed."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run one statement for each row of parameters."""

    def lock_name(self, name: str) -> None:
        """Lock a name until this transaction ends: another transaction that locks the same name waits."""

    def try_lock_name(self, name: str) -> bool:
        """Lock a name like `lock_name`, or return False if another transaction has locked it."""


@dataclass(slots=True)  # one or two for every message: not frozen, because frozen ones are slower to create
class Read(Generic[T]):
    """A unit of work that sees one consistent state of the database and changes nothing."""

    run: Callable[[Transaction], T]
    # Set it if the work always reads just a few rows by index. An engine inside this process (SQLite) then reads
    # them on the event loop, because handing them to a thread would cost more than the read.
    is_quick: bool = False
    is_quick_if: Callable[[Transaction], bool] | None = None  # the same, if this, which is quick itself, says so
    is_long: bool = False  # its statements may take minutes; an engine with a time limit lets them


@dataclass(slots=True)
class Write(Generic[T]):
    """A unit of work whose changes are stored all together and durably, or not at all."""

    run: Callable[[Transaction], T]
    # Runs before `run`, as a read. If it returns a result, there is nothing to change and the work is done without
    # a commit. If it returns None, the engine goes on with `run`.
    read_first: Callable[[Transaction], T | None] | None = None
    is_quick: bool = False  # the same promise as in `Read`, about `read_first`
    # Does the same work with reads and exactly one changing statement that guards itself by its WHERE clause; returns
    # None, having changed nothing, if that is not enough. An engine across a network (PostgreSQL) tries it before
    # `run` and without a transaction, which saves two round trips.
    single_statement: Callable[[Transaction], T | None] | None = None
    is_long: bool = False  # as in `Read`
    # Set it for work that can be done later: if other writers prevent it for so long, the engine raises `StoreBusy`.
    # The work may be done all the same, after that.
    max_wait_seconds: float | None = None
    frees_space: bool = False  # it deletes: on a full disk, the engine makes room for it if it can


Work = Read[T] | Write[T]


class WorkKind(StrEnum):
    """Whom a unit of work serves. An engine across a network has connections for each kind.

    So writes that wait for a lock keep no connection from reads, nor from writes of another kind.
    """

    READ = "read"  # every `Read`, whoever asks
    REQUEST = "request"  # writes for people: messages that are accepted, changes on the page
    TURN = "turn"  # writes of running turns
    BACKGROUND = "background"  # writes of everything else


# The kind of the writes that this task starts; loops and runs set it for themselves.
write_kind: ContextVar[WorkKind] = ContextVar("write_kind", default=WorkKind.REQUEST)

# What the writes of this task change, such as the id of a conversation, if it is known before. An engine across a
# network lets one write at a time of a process wait for the same thing.
write_key: ContextVar[str | None] = ContextVar("write_key", default=None)


def get_kind(work: Work[T]) -> WorkKind:
    return WorkKind.READ if isinstance(work, Read) else write_kind.get()


class Engine(Protocol):
    """A database. Safe to use from several threads; several processes may open the same database."""

    @property
    def name(self) -> Literal["sqlite", "postgres"]: ...

    @property
    def clock(self) -> Clock:
        """A clock that shows the same time to every process that uses this database, on any machine."""

    def run(self, work: Work[T]) -> T:
        """Do the work now and return its result; a `Write` is durable when this returns."""

    async def arun(self, work: Work[T]) -> T:
        """Do the work without blocking the event loop."""

    def watch(self, on_change: OnChange) -> Watch:
        """Call `on_change`, on some thread, after every change by any process, until the watch is closed."""

    def find_problems(self) -> Sequence[ReadinessProblem]:
        """Return what keeps the database from working well, without waiting; raise `StoreError` if nothing works."""

    def maintain(self) -> None:
        """Do what keeps the database usable; a server calls it from time to time, on a thread."""

    def close(self) -> None:
        """Finish the work that has started and close every connection."""


ACCESS_CHANGE: Final = -1  # among the numbers of changed sessions: a person may see or do less than before
SETTINGS_CHANGE: Final = -2  # among the numbers of changed sessions: an owner has changed settings
WORK_CHANGE: Final = -3  # among the numbers of changed sessions: there may be something to run, to stop or to send

# Called with the numbers of the sessions that have changed, or with None if the engine does not know which. An empty
# set means that there was a commit, of which the engine may or may not have reported everything.
OnChange = Callable[[frozenset[int] | None], None]


class Watch(Protocol):
    """A running subscription to changes."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """The replacements of one engine for the words between @ signs in a migration file."""

    name: Literal["sqlite", "postgres"]
    substitutions: Mapping[str, str]


def run_without_stop_iteration(run: Callable[..., T], *arguments: object) -> T:
    """Run a function whose result or error goes into a future, which cannot hold a StopIteration."""
    try:
        return run(*arguments)
    except StopIteration as error:
        raise RuntimeError("a unit of work raised StopIteration") from error


async def run_on_thread(threads: ThreadPoolExecutor, run: Callable[..., T], *arguments: object) -> T:
    from asyncio import get_running_loop  # imported here: a blocking program does not need asyncio

    try:
        future = get_running_loop().run_in_executor(threads, run_without_stop_iteration, run, *arguments)
    except RuntimeError:  # the threads have been shut down
        raise StoreClosed from None
    return await future


def build_placeholders(count: int, first: int = 1) -> str:
    """Return the parameters of an IN list: `$1, $2, $3`."""
    return ", ".join(f"${number}" for number in range(first, first + count))


def list_columns(columns: type, **expressions: str) -> str:
    """Return the fields of a NamedTuple or dataclass as a statement selects them: columns, or an expression for one."""
    return ", ".join(f"{expressions[name]} AS {name}" if name in expressions else name for name in _list_names(columns))


@cache
def _list_names(columns: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(columns)) if is_dataclass(columns) else columns._fields  # type: ignore[attr-defined]


def fetch_value(tx: Transaction, sql: str, *params: object) -> T | None:
    """Return the first column of the first row; None if there is no row."""
    row = tx.fetch_one(sql, *params)
    return None if row is None else row[0]


def fetch_number(tx: Transaction, sql: str, *params: object) -> int:
    """Return the number in the first column of the first row, such as a count; 0 if there is no row."""
    value: int | None = fetch_value(tx, sql, *params)
    return value or 0

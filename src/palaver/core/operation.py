"""Operations: one definition of a unit of work, three ways to call it.

A method marked `@operation` only describes work. Its object has a runner, and the runner decides how the call behaves:

- `BlockingRunner`: the call blocks until the work is done and returns the result;
- `AsyncRunner`: the call returns an awaitable of the result;
- `TransactionRunner`: the call runs inside a transaction that is already open and returns the result.

A method that is one transaction is marked `@read_operation` or `@write_operation`: it gets the transaction, and its
callers don't pass one. A number out of range that a caller passes is refused with the name of the argument.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from palaver.core.engines.base import Engine, Transaction, Work

P = ParamSpec("P")
B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadAfterWork(Generic[B, T]):
    """A read that runs after pending work: as long as `find_work` returns something, `do_work` is run on it first.

    After `max_seconds`, or if it can't be stored now (a full disk, a lock that something else holds), the rest of the
    work is left to others: `read` gets whether all of it was done.
    """

    find_work: Read[B | None]
    do_work: Callable[[B], Write[None]]
    has_work: Read[bool]
    read: Callable[[bool], Read[T]]
    max_seconds: float


@dataclass(frozen=True, slots=True)
class WriteThenWork(Generic[B, T]):
    """A write that leaves work behind: after it, `do_work` is run as long as `find_work` returns something."""

    write: Write[T]
    find_work: Read[B | None]
    do_work: Callable[[B], Write[None]]
    pause_seconds: float  # after each piece of the work, so that other writers come in between


class BlockingRunner:
    """Runs work on the calling thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run(self, work: AnyWork[T]) -> T:
        if isinstance(work, ReadAfterWork):
            is_done, ends_at = True, time.monotonic() + work.max_seconds
            try:
                while is_done and (batch := self._engine.run(work.find_work)) is not None:
                    self._engine.run(work.do_work(batch))
                    is_done = time.monotonic() < ends_at or not self._engine.run(work.has_work)
            except StoreError:  # an error that concerns the read, too, is met there
                is_done = False
            return self._engine.run(work.read(is_done))
        if isinstance(work, WriteThenWork):
            result = self._engine.run(work.write)
            while (piece := self._engine.run(work.find_work)) is not None:
                self._engine.run(work.do_work(piece))
                time.sleep(work.pause_seconds)
            return result
        return self._engine.run(work)


class AsyncRunner:
    """Runs work without blocking the event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run(self, work: AnyWork[T]) -> Awaitable[T]:
        if isinstance(work, Read | Write):  # nearly always: no coroutine of its own
            return self._engine.arun(work)
        return self._run_with_other_work(work)

    async def _run_with_other_work(self, work: ReadAfterWork[Any, T] | WriteThenWork[Any, T]) -> T:
        if isinstance(work, ReadAfterWork):
            is_done, ends_at = True, time.monotonic() + work.max_seconds
            try:
                while is_done and (batch := await self._engine.arun(work.find_work)) is not None:
                    await self._engine.arun(work.do_work(batch))
                    is_done = time.monotonic() < ends_at or not await self._engine.arun(work.has_work)
            except StoreError:
                is_done = False
            return await self._engine.arun(work.read(is_done))
        import asyncio  # a blocking program does not need it

        result = await self._engine.arun(work.write)
        while (piece := await self._engine.arun(work.find_work)) is not None:
            await self._engine.arun(work.do_work(piece))
            await asyncio.sleep(work.pause_seconds)
        return result


class TransactionRunner:
    """Runs work inside an open transaction: it is committed with that transaction, or not at all.

    The transaction may be one that only reads, so pending work is not run: its caller does that before it opens it.
    Work that a write leaves behind is not run either: it is in transactions of its own.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def run(self, work: AnyWork[T]) -> T:
        if isinstance(work, ReadAfterWork):
            return work.read(not work.has_work.run(self._tx)).run(self._tx)
        return work.write.run(self._tx) if isinstance(work, WriteThenWork) else work.run(self._tx)


class Operations(Generic[R]):
    """Base of every class with operations; `R` is the runner that carries them out."""

    def __init__(self, runner: R) -> None:
        self._runner = runner


class operation(Generic[P, T]):  # noqa: N801  (used as a decorator)
    """A method that describes work; the runner of its object carries it out."""

    def __init__(self, describe: Callable[Concatenate[Any, P], AnyWork[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, instance: Operations[BlockingRunner] | Operations[TransactionRunner], owner: type
    ) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Operations[AsyncRunner], owner: type) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, Any]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        describe = self.describe

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._runner.run(describe(instance, *args, **kwargs))

        return call


def read_operation(run: Callable[Concatenate[Any, Transaction, P], T]) -> operation[P, T]:
    return _describe_transaction(Read, run)


def write_operation(run: Callable[Concatenate[Any, Transaction, P], T]) -> operation[P, T]:
    return _describe_transaction(Write, run)


def _describe_transaction(
    kind: type[Read[T] | Write[T]], run: Callable[Concatenate[Any, Transaction, P], T]
) -> operation[P, T]:
    def describe(instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> AnyWork[T]:
        return kind(lambda tx: run(instance, tx, *args, **kwargs))

    describe.__doc__ = run.__doc__
    return operation(describe)


MAX_INTEGER = 2**53  # the largest whole number that every JSON client can represent
MAX_MINUTES = 10_000_000  # nineteen years


def check_count(name: str, value: int | None, *, minimum: int = 1, maximum: int = MAX_INTEGER) -> None:
    """Refuse anything but a whole number within the range; None is accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidInput(f"{name}: {value!r} is not allowed. Give a whole number from {minimum} to {maximum}.")


def check_minutes(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_MINUTES:
        raise InvalidInput(f"{name}: {value!r} is not allowed. Give a number from 0 to {MAX_MINUTES}.")


class Page(tuple[T, ...], Generic[T]):
    """A page of a list, and the cursor for the next page (None at the end)."""

    cursor: str | None

    def __new__(cls, items: Iterable[T], cursor: str | None = None) -> Page[T]:
        page = super().__new__(cls, items)
        page.cursor = cursor
        return page


def iterate_pages(load_page: Callable[..., Page[T]]) -> Iterator[T]:
    """Yield the items of all pages of a list, and load each page when it is needed."""
    page = load_page()
    yield from page
    while page.cursor is not None:
        page = load_page(cursor=page.cursor)
        yield from page


async def load_all_pages(load_page: Callable[..., Awaitable[Page[T]]]) -> list[T]:
    """Return the items of all pages of a list."""
    page = await load_page()
    items = [*page]
    while page.cursor is not None:
        page = await load_page(cursor=page.cursor)
        items += page
    return items


if TYPE_CHECKING:
    AnyWork = Work[T] | ReadAfterWork[Any, T] | WriteThenWork[Any, T]

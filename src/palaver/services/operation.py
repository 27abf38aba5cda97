"""One definition, three ways to call it: blocking on the store, awaited on its `aio` twin, or within a transaction.

A method marked `@operation` only describes the work. Looked up on a `Blocking` object it does the work and
returns the result; looked up on an `Awaiting` one it returns an awaitable of the same result; on a `Within` it is
done as part of the transaction that is under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.storage.engines.base import Engine, Read, Transaction, Work, Write

P = ParamSpec("P")
B = TypeVar("B")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class After(Generic[B, T]):
    """A read that waits for other work: as long as `todo` finds some, it is done first."""

    todo: Read[B | None]
    do: Callable[[B], Write[None]]
    then: Read[T]


class Blocking:
    """Operations block until they are done."""

    _engine: Engine

    def _perform(self, work: Work[T] | After[Any, T]) -> T:
        if isinstance(work, After):
            while (todo := self._engine.run(work.todo)) is not None:
                self._engine.run(work.do(todo))
            return self._engine.run(work.then)
        return self._engine.run(work)


class Awaiting:
    """Operations are awaited."""

    _engine: Engine

    async def _perform(self, work: Work[T] | After[Any, T]) -> T:
        if isinstance(work, After):
            while (todo := await self._engine.arun(work.todo)) is not None:
                await self._engine.arun(work.do(todo))
            return await self._engine.arun(work.then)
        return await self._engine.arun(work)


class Within:
    """Operations are part of a transaction that is under way: they happen with it, or not at all."""

    _tx: Transaction

    def _perform(self, work: Work[T] | After[Any, T]) -> T:
        if isinstance(work, After):
            while (todo := work.todo.run(self._tx)) is not None:
                work.do(todo).run(self._tx)
            return work.then.run(self._tx)
        return work.run(self._tx)


class operation(Generic[P, T]):  # noqa: N801  (used as a decorator)
    """A method that describes work; how it is done depends on the object it is called on."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Work[T] | After[Any, T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Blocking | Within, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, Any]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        """Bind to an object."""
        if instance is None:
            return self
        describe = self.describe

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._perform(describe(instance, *args, **kwargs))

        return call

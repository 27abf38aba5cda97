"""The base of a view's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from palaver.core.operation import Operations, R

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.sessions.view.scope import ViewScope

P = TypeVar("P")


class ViewPart(Operations[R]):
    """Operations on one kind of thing, within the scope of the view that they are part of."""

    def __init__(self, runner: R, scope: ViewScope) -> None:
        super().__init__(runner)
        self._scope = scope

    def part(self, kind: Callable[[R, ViewScope], P]) -> P:
        """Return the operations of another room, such as memories, for the same principal."""
        return kind(self._runner, self._scope)

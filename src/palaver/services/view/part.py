"""The base of a view's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.services.operation import Operations, R

if TYPE_CHECKING:
    from palaver.services.view.scope import ViewScope


class ViewPart(Operations[R]):
    """Operations on one kind of thing, within the scope of the view that they are part of."""

    def __init__(self, runner: R, scope: ViewScope) -> None:
        super().__init__(runner)
        self._scope = scope

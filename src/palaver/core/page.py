"""One page of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable


T = TypeVar("T")


class Page(tuple[T, ...], Generic[T]):
    """A page of a list, and the cursor for the next page (None at the end)."""

    cursor: str | None

    def __new__(cls, items: Iterable[T], cursor: str | None = None) -> Page[T]:
        page = super().__new__(cls, items)
        page.cursor = cursor
        return page

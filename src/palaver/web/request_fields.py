"""Request bodies whose fields are declared in a room and not repeated here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, create_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

M = TypeVar("M", bound=BaseModel)


def with_fields(fields: Mapping[str, tuple[Any, Any]]) -> Callable[[type[M]], type[M]]:
    """Add fields to a request body: for each name its type and its default, `...` if it is required."""

    def decorate(body: type[M]) -> type[M]:
        extended: type[M] = create_model(  # type: ignore[call-overload]
            body.__name__,
            __base__=body,
            __doc__=body.__doc__,
            __module__=body.__module__,
            **fields,
        )
        return extended

    return decorate

"""Wire shapes: the JSON of a noun, declared once as a TypedDict, for the API, `--json` in the terminal and tools.

The module needs no pydantic: pydantic calls the methods of `Doc` and `_TimeText` when the web builds its schemas. A
module with shapes imports `TypedDict` from here, and everything that their annotations name at run time.

Always true: every key is there, null if it has no value. Times are in ISO 8601 and UTC; a text has no lone surrogates
and is in the language of the request.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from palaver.core.clock import format_time
from palaver.core.dataclass import dataclass
from palaver.core.text import make_storable
from palaver.core.texts import current_language, translate

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # pydantic does not take that of `typing`

__all__ = ["Doc", "FormFieldJson", "Time", "TypedDict", "build_json", "format_short_micros", "format_time"]

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (in UTC: without a zone, its text has none)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Doc:
    """Describes a key of a shape in the OpenAPI document."""

    text: str = ""
    example: object = None

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        description = {"description": self.text} if self.text else {}
        examples = {} if self.example is None else {"examples": [self.example]}
        return {**handler(schema), **description, **examples}


class FormFieldJson(TypedDict):
    """A text that a form asks for, besides the fields that have a place of their own there."""

    name: str
    label: str
    help: str
    max_chars: int


class _TimeText:
    """Marks a time. All are of one length in the terminal and in files; the API leaves out a fraction of zero."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        shorten = core_schema.plain_serializer_function_ser_schema(_shorten_time, when_used="json")
        return core_schema.str_schema(serialization=shorten)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}


Time = Annotated[str, _TimeText()]


def build_json(shape: type[T], value: object, **others: object) -> T:
    """Build a shape from the attributes of a value that have the names of its keys; `others` has all other keys.

    A key whose type is a shape, or a list of one, is built from the value in the same way.
    """
    keys: Mapping[str, object] = shape.__annotations__
    nested = _find_nested_shapes(shape)  # type: ignore[arg-type]
    return {key: _to_json(others[key] if key in others else getattr(value, key), nested.get(key)) for key in keys}  # type: ignore[return-value]


@cache
def _find_nested_shapes(shape: type) -> Mapping[str, type]:
    """Return the shapes of the keys that have one, alone, optional or in a list."""
    hints = get_type_hints(shape).items()
    return {key: found for key, hint in hints if (found := _find_shape(hint)) is not None}


def _find_shape(hint: Any) -> type | None:
    if isinstance(hint, type) and hasattr(hint, "__total__"):
        return hint
    return next((found for each in get_args(hint) if (found := _find_shape(each)) is not None), None)


def _to_json(value: Any, shape: type | None = None) -> Any:
    if isinstance(value, str):
        return make_storable(translate(value, current_language.get()))
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, list | tuple):
        return [_to_json(each, shape) for each in value]
    if isinstance(value, Mapping):
        return {key: _to_json(each) for key, each in value.items()}
    return value if shape is None or value is None else build_json(shape, value)


def _shorten_time(text: str) -> str:
    return text if text.endswith("Z") else text.removesuffix("+00:00").removesuffix(".000000") + "Z"


@lru_cache(maxsize=1024)  # a list that is read again has the same times, and to format them would take longest
def format_short_micros(micros: int) -> str:
    """Format a stored time as the API does."""
    return (_EPOCH + micros * _MICROSECOND).isoformat() + "Z"  # `isoformat` leaves out a fraction of zero

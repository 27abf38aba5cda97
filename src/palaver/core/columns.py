"""The columns of a table, derived from the fields of the value that its rows hold.

A field's type says how it is stored: a time as microseconds since 1970, a list or an object as JSON, an enum as its
value. So a new column is a new field of the value: selecting, reading, writing and exporting it follow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from palaver.core.clock import from_micros, to_micros
from palaver.core.source import SessionSource, decode_source, encode_source
from palaver.core.text import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from palaver.core.engines.base import Row, Transaction

T = TypeVar("T")
ColumnKind = Literal["text", "number", "time", "json"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column, which has the name of the field, and how its values are stored; None is always NULL."""

    name: str
    kind: ColumnKind
    has_default: bool  # of the field; it stands for NULL
    is_optional: bool  # NULL is None
    encode: Callable[[Any], Any] | None = None  # None: stored as it is
    decode: Callable[[Any], Any] | None = None

    @property
    def is_required(self) -> bool:
        return not (self.has_default or self.is_optional)


class Columns(Generic[T]):
    """The columns that hold a dataclass, in the order of its fields."""

    def __init__(self, value_class: type[T], *, without: Collection[str] = ()) -> None:
        """`without` names the fields that are no columns: `decode` gets them from its caller."""
        self._value_class = value_class
        hints = get_type_hints(value_class)
        held = [field for field in fields(value_class) if field.name not in without]  # type: ignore[arg-type]
        self.columns = tuple(_make_column(field, hints[field.name]) for field in held)
        self._decoders = [(column.name, column.decode) for column in self.columns]
        self._with_default = {column.name for column in self.columns if column.has_default}
        self._encoders = {column.name: column.encode for column in self.columns}

    def __len__(self) -> int:
        return len(self.columns)

    def format_select(self, alias: str = "") -> str:
        """Return the columns as a statement selects them, of the table with this alias."""
        return ", ".join(f"{alias}.{column.name}" if alias else column.name for column in self.columns)

    def decode(self, row: Row, **others: Any) -> T:
        """Return the value of a row that begins with these columns."""
        for (name, decode), value in zip(self._decoders, row, strict=False):
            if value is not None:
                others[name] = value if decode is None else decode(value)
            elif name not in self._with_default:
                others[name] = None
        return self._value_class(**others)

    def encode(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return fields as they are stored; raises KeyError for the name of a field that is no column."""
        encoded = {}
        for name, value in values.items():
            encode = self._encoders[name]
            encoded[name] = value if encode is None or value is None else encode(value)
        return encoded


def insert_row(tx: Transaction, table: str, values: Mapping[str, object]) -> None:
    placeholders = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    tx.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders})", *values.values())


def update_row(tx: Transaction, table: str, key_column: str, key: object, values: Mapping[str, object]) -> None:
    assignments = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, 2))
    tx.execute(f"UPDATE {table} SET {assignments} WHERE {key_column} = $1", key, *values.values())


def _make_column(field: Field[Any], hint: Any) -> Column:
    is_optional = get_origin(hint) in {UnionType, Union} and NoneType in get_args(hint)
    if is_optional:
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    has_default = field.default is not MISSING or field.default_factory is not MISSING
    kind, encode, decode = _find_codec(get_origin(hint) or hint)
    return Column(field.name, kind, has_default, is_optional, encode, decode)


def _find_codec(held: Any) -> tuple[ColumnKind, Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
    if held is datetime:
        return "time", to_micros, from_micros
    if held is tuple:
        return "json", lambda value: encode_json(list(value)), lambda text: tuple(json.loads(text))
    if held is Mapping:
        return "json", lambda value: encode_json(dict(value)), json.loads
    if held is SessionSource:
        return "json", encode_source, decode_source
    if issubclass(held, StrEnum):
        return "text", str, held
    if held not in {str, int}:
        raise TypeError(f"a column can't hold {held!r}")
    return "number" if held is int else "text", None, None

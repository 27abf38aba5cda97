"""The columns of a table, derived from the fields of the value that its rows hold.

A field's type says how it is stored: a time as microseconds since 1970, a list, an object or a dataclass as JSON, an
enum as its value. So a new column is a new field of the value: selecting, reading, writing and exporting it follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from palaver.core import ids
from palaver.core.clock import format_micros, from_micros, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.source import Platform, SessionSource, decode_source, encode_source
from palaver.core.text import encode_json, make_storable
from palaver.core.texts import load_text, store_text

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

T = TypeVar("T")
TRANSLATABLE: Final = {"is_translatable": True}  # metadata of a field whose text is stored with its code and facts
ColumnKind = Literal["text", "translatable", "number", "time", "json"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column, which has the name of the field, and how its values are stored; None is always NULL."""

    name: str
    kind: ColumnKind
    is_optional: bool  # NULL is None
    default: Callable[[], Any] | None = None  # of the field; it stands for NULL
    encode: Callable[[Any], Any] | None = None  # None: stored as it is
    decode: Callable[[Any], Any] | None = None

    @property
    def is_required(self) -> bool:
        return self.default is None and not self.is_optional

    @property
    def write(self) -> Callable[[Any], Any] | None:
        """Make JSON of what is stored; None: it is stored as JSON has it."""
        if self.kind == "time":
            return format_micros
        if self.kind == "json":
            return json.loads
        return bool if self.decode is bool else None

    def format_reader(self, source: str, used: dict[str, Any], read: Callable[[Any], Any] | None) -> str:
        """Return the expression that reads what is stored in `source` with `read`; it uses the names in `used`."""
        value, name = source, self.name
        if read is not None:
            used[f"read_{name}"] = read
            value = f"read_{name}({source})"
        if self.default is not None:
            used[f"default_{name}"] = self.default
            return f"default_{name}() if {source} is None else {value}"
        return f"None if {source} is None else {value}" if read is not None and self.is_optional else value


class StoredValue:
    """Base of a frozen dataclass whose values can be a row: a field is decoded when it is read for the first time.

    A page of a list has many values, of which most readers use a few fields. Such a class has no slots: a slot without
    a value raises an error first, which costs more than to decode a field.
    """

    row: Sequence[Any]


class _StoredField:
    """Reads a field of the row when the value does not have it yet."""

    def __init__(self, name: str, read: Callable[[Sequence[Any]], Any]) -> None:
        self._name = name
        self._read = read

    def __get__(self, instance: StoredValue | None, owner: type) -> Any:
        if instance is None:
            return self
        value = self._read(instance.row)
        object.__setattr__(instance, self._name, value)
        return value


class _PlainField:
    """Reads a field that is stored as it is: to keep it in the value would take longer than to read it again."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, instance: StoredValue | None, owner: type) -> Any:
        return self if instance is None else instance.row[self._place]


class Columns(Generic[T]):
    """The columns that hold a dataclass, in the order of its fields."""

    def __init__(
        self, value_class: type[T], *, without: Collection[str] = (), types: Collection[type] = (), **expressions: str
    ) -> None:
        """`without` names the fields that are no columns: `decode` gets them from its caller. `expressions` are what is
        selected for fields that are derived from columns. `types` are those of fields that the module of the class
        imports for type checking only.
        """
        self._value_class = value_class
        self._expressions = expressions
        self._types = types
        self._fields = [field for field in fields(value_class) if field.name not in without]  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._fields)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        found = find_field_types(self._value_class, *self._types)
        return tuple(_make_column(field, *found[field.name]) for field in self._fields)

    @cached_property
    def _encoders(self) -> dict[str, Callable[[Any], Any] | None]:
        return {column.name: column.encode for column in self.columns}

    def format_select(self, alias: str = "", **expressions: str) -> str:
        """Return the columns as a statement selects them, of the table with this alias."""
        prefix = f"{alias}." if alias else ""
        derived = self._expressions | expressions
        names = [field.name for field in self._fields]
        return ", ".join(f"{derived[name]} AS {name}" if name in derived else prefix + name for name in names)

    def decode(self, row: Sequence[Any], **others: Any) -> T:
        """Return the value of a row that begins with these columns."""
        return self._decode_columns(*row, **others)

    @cached_property
    def _decode_columns(self) -> Callable[..., T]:
        """Make the value that columns hold: `lambda id, at: make(id=id, at=read_at(at))`, compiled for speed."""
        used: dict[str, Any] = {"make": self._value_class}
        arguments = [f"{each.name}={each.format_reader(each.name, used, each.decode)}" for each in self.columns]
        names = ", ".join(each.name for each in self.columns)
        compiled: Callable[..., T] = eval(  # noqa: S307  (the names of the fields of a class)
            f"lambda {names}, *_, **others: make({', '.join(arguments)}, **others)", used
        )
        return compiled

    def compile_reader(
        self, *, first: int = 0, **others: Callable[[Sequence[Any]], Any]
    ) -> Callable[[Sequence[Any]], T]:
        """Return what makes a `StoredValue` of a row that has these columns, after `first` others.

        `others` read its other fields. A class has one such function.
        """
        used: dict[str, Any] = {}
        sources = []
        for place, column in enumerate(self.columns, first):
            source = f"row[{place}]"
            reader = column.format_reader(source, used, column.decode)
            if reader == source:
                setattr(self._value_class, column.name, _PlainField(place))
            else:
                sources.append(f"{column.name!r}: lambda row: {reader}")
        readers = eval(f"{{{', '.join(sources)}}}", used) | others  # noqa: S307  (the names of the fields of a class)
        for name, read_field in readers.items():
            setattr(self._value_class, name, _StoredField(name, read_field))
        make, set_field, value_class = object.__new__, object.__setattr__, self._value_class

        def read(row: Sequence[Any]) -> T:
            value = make(value_class)
            set_field(value, "row", row)
            return value

        return read

    def encode_value(self, value: T) -> dict[str, object]:
        """Return all fields of a value as they are stored."""
        return self.encode({column.name: getattr(value, column.name) for column in self.columns})

    def encode(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return fields as they are stored; raises KeyError for the name of a field that is no column."""
        encoded = {}
        for name, value in values.items():
            encode = self._encoders[name]
            encoded[name] = value if encode is None or value is None else encode(value)
        return encoded


def compile_writer(
    columns: Sequence[Column],
    keys: Iterable[str],
    *,
    first: int = 0,
    write_time: Callable[[int], str] = format_micros,
    **derived: tuple[str, Callable[..., Any] | None],
) -> Callable[..., dict[str, Any]]:
    """Return what makes JSON-ready data of a row that has these columns after `first` others: `write(row, open=True)`.

    It has these keys, in this order. `derived` says of which columns a key is made that is none (`row`: of all), and by
    what function of what is stored in them (None: it is only called otherwise). The caller passes all other values.
    """
    by_name = {column.name: column for column in columns}
    sources = {column.name: f"row[{place}]" for place, column in enumerate(columns, first)} | {"row": "row"}
    # Python makes a dict of more than 15 keys from several: a copy, of which the values are set, takes half as long.
    used: dict[str, Any] = {"empty": dict.fromkeys(keys)}
    others, lines = [], []
    for key in used["empty"]:
        names, write = derived.get(key, (key, None))
        column, condition, value = by_name.get(names), "", key
        if column is not None:
            write = write or (write_time if column.kind == "time" else column.write)
            if column.default is None and column.is_optional:
                condition = f"if {sources[names]} is not None: "
            value = replace(column, is_optional=False).format_reader(sources[names], used, write)
        elif write is not None:
            used[f"write_{key}"] = write
            value = f"write_{key}({', '.join(sources[name] for name in names.split())})"
        else:
            others.append(key)
        lines.append(f"  {condition}data[{key!r}] = {value}")
    head = f"def write_row({', '.join(['row', *others])}):\n  data = empty.copy()\n"
    exec(f"{head}{chr(10).join(lines)}\n  return data", used)  # noqa: S102  (the names of the fields of a class)
    compiled: Callable[..., dict[str, Any]] = used["write_row"]
    return compiled


def insert_row(tx: Transaction, table: str, values: Mapping[str, object]) -> None:
    placeholders = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    tx.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders})", *values.values())


def update_row(
    tx: Transaction, table: str, key_column: str, key: object, values: Mapping[str, object], *, only: str = "TRUE"
) -> int:
    """Change the rows with this key, `only` those that it describes; return how many."""
    assignments = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, 2))
    return tx.execute(f"UPDATE {table} SET {assignments} WHERE {key_column} = $1 AND {only}", key, *values.values())


def find_field_types(value_class: type, *types: type) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field of a dataclass, and whether it may be None; see `types` of `Columns`."""
    hints = get_type_hints(value_class, localns=_KNOWN_TYPES | {each.__name__: each for each in types})
    return {field.name: _split_optional(hints[field.name]) for field in fields(value_class)}


def _split_optional(hint: Any) -> tuple[Any, bool]:
    is_optional = get_origin(hint) in {UnionType, Union} and NoneType in get_args(hint)
    if is_optional:
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    return getattr(hint, "__supertype__", hint), is_optional  # of a NewType, the type below it


def _make_column(field: Field[Any], hint: Any, is_optional: bool) -> Column:
    default = None if field.default_factory is MISSING else field.default_factory
    if field.default is not MISSING and field.default is not None:
        default = lambda: field.default  # noqa: E731
    held = get_origin(hint) or hint
    kind, encode, decode = _TRANSLATABLE_CODECS[held] if field.metadata == TRANSLATABLE else _find_codec(held)
    return Column(field.name, kind, is_optional or field.default is None, default, encode, decode)


_Codec = tuple[ColumnKind, "Callable[[Any], Any] | None", "Callable[[Any], Any] | None"]
_CODECS: dict[Any, _Codec] = {
    str: ("text", None, None),
    int: ("number", None, None),
    bool: ("number", int, bool),
    datetime: ("time", to_micros, from_micros),
    float: ("number", None, None),
    tuple: ("json", lambda value: encode_json(list(value)), lambda text: tuple(json.loads(text))),
    Mapping: ("json", lambda value: encode_json(dict(value)), json.loads),
    Platform: ("text", str, lru_cache(Platform)),
    SessionSource: ("json", encode_source, decode_source),
}
_TRANSLATABLE_CODECS: dict[Any, _Codec] = {
    str: ("translatable", lambda text: make_storable(store_text(text)), load_text),
    tuple: (
        "json",
        lambda texts: encode_json([store_text(text) for text in texts]) if texts else None,
        lambda column: tuple(map(load_text, json.loads(column))),
    ),
    Mapping: (
        "json",
        lambda texts: encode_json({name: store_text(text) for name, text in texts.items()}),
        lambda column: {name: load_text(text) for name, text in json.loads(column).items()},
    ),
}


# A module need not import these at run time only because the fields of its classes have these types.
_KNOWN_TYPES = {**vars(ids), "datetime": datetime, "Mapping": Mapping, "Platform": Platform}


def _find_codec(held: Any) -> _Codec:
    if held in _CODECS:
        return _CODECS[held]
    if hasattr(held, "from_text"):
        return "text", str, held.from_text
    if issubclass(held, StrEnum):
        return "text", str, {str(member): member for member in held}.__getitem__
    if isinstance(held, type) and is_dataclass(held):
        inner = Columns(held)
        return (
            "json",
            lambda value: encode_json(inner.encode_value(value)),
            lambda text: inner.decode([json.loads(text).get(column.name) for column in inner.columns]),
        )
    raise TypeError(f"a column can't hold {held!r}")

"""The JSON of sessions, usage, events, messages and search hits: one set of keys for the API, `--json` and exports.

Always true: every key is there, null if it has no value. Times are in ISO 8601 and UTC and all have the same length,
so they sort as text. Money is text, because a float would round it. Reading what was written gives an equal value:
`X.from_dict(x.to_dict()) == x`. Keys that a newer version may have added are ignored, and so are keys that are derived
from others (`display_name`, the name of an event's person). A value that is missing or of the wrong type raises
`InvalidInput` with its key.

`--json` and exports contain this data as it is. The API's schemas declare the part of it that a caller may see and add
fields that depend on the caller; they leave out the ids that platforms use for chats and people.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, TypeVar

from palaver.core.clock import format_time
from palaver.core.columns import find_field_types
from palaver.core.errors import InvalidInput

T = TypeVar("T")
C = TypeVar("C", bound=StrEnum)


def write_keys(keys: str, value: object, **others: object) -> dict[str, Any]:
    """Return these keys as JSON-ready data: from `others`, or from the attributes of a value with their names."""
    return {key: _write_value(others[key] if key in others else getattr(value, key)) for key in keys.split()}


def _write_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, str):
        return str(value)  # a member of an enum, too
    return value.to_dict() if hasattr(value, "to_dict") else value


class JsonReader:
    """Reads the fields of one JSON object, and names the field that is not valid."""

    def __init__(self, name: str, data: object) -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{name}: expected a mapping of fields, not {type(data).__name__}", key=name)
        self._name = name
        self._data = data

    def read(self, key: str, kind: type[T]) -> T:
        """Read a value of this type; times and members of enums are stored as text."""
        if issubclass(kind, datetime):
            return self._read_time(key)  # type: ignore[return-value]
        if issubclass(kind, StrEnum):
            return self._read_choice(key, kind)
        value = self._data.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self._make_error(key, value, kind.__name__)
        return value

    def read_optional(self, key: str, kind: type[T]) -> T | None:
        return None if self._data.get(key) is None else self.read(key, kind)

    def read_fields(self, value_class: type, *, without: Collection[str]) -> dict[str, Any]:
        """Read the fields of a dataclass, except for some, by their types."""
        return {
            name: self.read_optional(name, kind) if is_optional else self.read(name, kind)
            for name, (kind, is_optional) in find_field_types(value_class).items()
            if name not in without
        }

    def read_object(self, key: str) -> Mapping[str, Any]:
        return self.read(key, Mapping)  # type: ignore[type-abstract]

    def read_optional_object(self, key: str) -> Mapping[str, Any] | None:
        return None if self._data.get(key) is None else self.read_object(key)

    def _read_time(self, key: str) -> datetime:
        text = self.read(key, str)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self._make_error(key, text, "a time in ISO 8601") from None
        if moment.utcoffset() is None:
            raise self._make_error(key, text, "a time with a time zone")
        return moment.astimezone(UTC)

    def read_dollars(self, key: str) -> Decimal | None:
        text = self.read_optional(key, str)
        try:
            return None if text is None else Decimal(text)
        except InvalidOperation:
            raise self._make_error(key, text, "an amount such as 0.25") from None

    def _read_choice(self, key: str, choices: type[C]) -> C:
        value = self.read(key, str)
        try:
            return choices(value)
        except ValueError:
            raise self._make_error(key, value, ", ".join(choices)) from None

    def _make_error(self, key: str, value: object, allowed: str) -> InvalidInput:
        return InvalidInput(f"{self._name}.{key}: {value!r} is not allowed ({allowed})", key=key)

"""Reads from a type and its annotations what a form needs: for settings, and for the accounts of platforms."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from palaver.config.validators import Rule, ValueForm

_N = TypeVar("_N")
_KINDS = ((bool, "boolean"), (int, "integer"), (float, "number"))


@dataclass(frozen=True, kw_only=True)
class ValueHint:
    """The type of a value, and what its annotation says about it."""

    type: Any  # without None; of a list, the type of its items
    named: Any = None  # of a dictionary, the type of its values
    notes: tuple[Any, ...] = ()
    item_notes: tuple[Any, ...] = ()  # of each item of a list
    is_list: bool = False
    is_optional: bool = False

    @classmethod
    def read(cls, hint: Any, notes: tuple[Any, ...] = ()) -> Self:
        hint, notes = _unwrap(hint, notes)
        is_optional = False
        if get_origin(hint) in (Union, types.UnionType):
            options = [each for each in get_args(hint) if each is not type(None)]
            is_optional = len(options) < len(get_args(hint))
            hint, notes = _unwrap(options[0], notes)
        if get_origin(hint) is dict:
            return cls(type=dict, named=get_args(hint)[1], notes=notes)
        is_list = get_origin(hint) in (list, tuple)
        item_notes: tuple[Any, ...] = ()
        if is_list:
            hint, item_notes = _unwrap(get_args(hint)[0], ())
        return cls(type=hint, notes=notes, item_notes=item_notes, is_list=is_list, is_optional=is_optional)

    @property
    def help(self) -> str:
        return self.find(str) or ""

    @property
    def rule(self) -> Rule | None:
        return next((note for note in (*self.item_notes, *self.notes) if isinstance(note, Rule)), None)

    def find(self, kind: type[_N]) -> _N | None:
        return next((note for note in self.notes if isinstance(note, kind)), None)

    def describe(self) -> dict[str, Any]:
        form = self._derive_form() if self.rule is None else self.rule.form
        return {**vars(form), "is_list": self.is_list, "is_optional": self.is_optional}

    def _derive_form(self) -> ValueForm:
        """Return the form of values whose type alone, with the limits that pydantic knows, says which are valid."""
        notes = (*self.item_notes, *self.notes)
        choices = tuple(map(str, get_args(self.type))) if get_origin(self.type) is Literal else ()
        kind = "choice" if choices else next((name for each, name in _KINDS if each is self.type), "text")
        minimum, maximum, pattern = (
            next((getattr(note, name) for note in notes if hasattr(note, name)), None)
            for name in ("ge", "le", "pattern")
        )
        return ValueForm(kind, choices, minimum, maximum, pattern)


def _unwrap(hint: Any, notes: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the type of an annotated hint, and its annotations, the outer ones last."""
    while get_origin(hint) is Annotated:
        hint, *inner = get_args(hint)
        notes = (*inner, *notes)
    return hint, notes

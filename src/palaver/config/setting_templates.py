"""Every setting that exists, described as data, so that a page, the terminal and the API can offer it.

A template is a key in which `<name>` stands for a name that the operator chooses: `providers.<name>.api_key`. The
templates are derived from the annotations of the sections.

Keys of single settings are text: `turns.max_running`, `prices."openai:gpt-5.4-mini".input`. Always true:
`parse_key(format_path(path)) == path`. A part with a dot, a quote or a space is put in double quotes.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import types
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeVar, Union, get_args, get_origin
from urllib.parse import urlsplit

from palaver.config.schema import ConfigFile, KeyPath
from palaver.config.setting_names import name_part
from palaver.config.validators import NEEDS_RESTART, STARTS_PROGRAM, NotStorable, Rule, SentTo, ValueForm, Variable
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.texts import name_text, say

if TYPE_CHECKING:
    from collections.abc import Iterator


SettingPath = tuple[str, ...]

NAME: Final = "<name>"
MAX_KEY_CHARS: Final = 500
_N = TypeVar("_N")
_KINDS = ((bool, "boolean"), (int, "integer"), (float, "number"))
_PLAIN_PART = re.compile(r"[^\s.\"]+")
_PART = re.compile(r'("(?:[^"\\]|\\.)*")|([^\s."]+)')


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


@dataclass(frozen=True, kw_only=True)
class SettingTemplate(ValueForm):
    """One setting, or all settings of one kind."""

    key: str
    allowed: str  # the valid values, in words
    rule: Rule | None = None  # of its value, or of each value of a list
    is_list: bool = False
    is_optional: bool = False  # null is valid too
    default: object = None
    is_secret: bool = False
    is_terminal_only: bool = False  # it starts a program on the server, so it can't be changed on the page
    help: str = ""
    is_adapter_setting: bool = False  # the manifest of its platform describes it
    addresses: tuple[str, ...] = ()  # the keys of the settings that say where this secret is sent
    variables: tuple[Variable, ...] = ()
    needs_restart: bool = False
    unstorable_reason: str | None = None  # why it can't be changed while Palaver runs

    @functools.cached_property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))

    def list_addresses(self, path: SettingPath) -> list[SettingPath]:
        """Return the settings that say where the secret at a path is sent; nothing for what is no secret."""
        return [
            tuple(path[index] if part == NAME else part for index, part in enumerate(key.split(".")))
            for key in self.addresses
        ]


def format_path(path: SettingPath) -> str:
    return ".".join(part if _PLAIN_PART.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


def parse_key(key: str) -> SettingPath:
    """Return the parts of a key. Raises InvalidInput."""
    parts: list[str] = []
    position = 0
    while len(key) <= MAX_KEY_CHARS:
        match = _PART.match(key, position)
        if match is None:
            break
        try:
            parts.append(json.loads(match[1]) if match[1] else match[2])
        except ValueError:
            break
        position = match.end()
        if position == len(key):
            return tuple(parts)
        if key[position] != ".":
            break
        position += 1
    raise InvalidInput(
        say(
            "settings.not_a_key",
            "{key} is not the key of a setting. Write it with dots, as in turns.max_running, and put a"
            " part that contains a dot in double quotes, as in {example}.",
            key=repr(key[:60]),
            example='prices."openai:gpt-5.4-mini".input',
        ),
        key=key[:60],
    )


def list_setting_keys() -> tuple[str, ...]:
    """Return every key of config.yaml, dotted; `<name>` stands for a section whose name the operator chooses."""
    return tuple(dict.fromkeys(template.key.removesuffix(f".{NAME}") for template in list_templates()))


@functools.cache
def list_templates() -> tuple[SettingTemplate, ...]:
    """Return the templates of all settings, in the order of the schema."""
    return tuple(itertools.starmap(_make_template, _iterate_section(ConfigFile, "")))


def iterate_variables() -> Iterator[tuple[str, Variable, Rule | None]]:
    """Yield the environment variables, each with the key and the rule of its setting."""
    for key, hint, *_ in _iterate_section(ConfigFile, ""):
        for note in hint.notes:
            if isinstance(note, Variable):
                yield key, note, hint.rule


@functools.cache
def _list_by_length() -> dict[int, list[SettingTemplate]]:
    by_length: dict[int, list[SettingTemplate]] = {}
    for template in list_templates():
        by_length.setdefault(len(template.parts), []).append(template)
    return by_length


def find_template(path: SettingPath) -> SettingTemplate | None:
    """Return the template of a setting; None if this is no setting, but a section or nothing known."""
    for template in _list_by_length().get(len(path), ()):
        if all(known in (NAME, part) for known, part in zip(template.parts, path, strict=True)):
            return template
    return None


def list_part_names() -> dict[str, str]:
    """Return the names of all parts of keys, in the order of the schema."""
    return {part: name_part(part) for template in list_templates() for part in template.parts if part != NAME}


def list_parts_below(path: SettingPath) -> set[str]:
    """Return the parts of keys that can follow this one, `<name>` for any; none if it is no section."""
    return {
        template.parts[len(path)]
        for template in list_templates()
        if len(template.parts) > len(path)
        and all(known in (NAME, part) for known, part in zip(template.parts, path, strict=False))
    }


def has_password(value: object) -> bool:
    """Whether a value is a URL with a password, or with a query that may hold a token."""
    if not isinstance(value, str) or "://" not in value:
        return False
    try:
        address = urlsplit(value)
    except ValueError:
        return True
    return "@" in address.netloc or bool(address.query)


def is_literal_text(path: KeyPath) -> bool:
    """Whether a value is text, such as an id, so that 007 and 1712345678.1200 must not be read as numbers."""
    template = find_template(tuple(part for part in path if isinstance(part, str)))
    return template is not None and template.rule is not None and template.rule.is_literal


def to_plain(value: object) -> object:
    """Return a value of a section as config.yaml would hold it."""
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value


_Parameters = tuple[str, ValueHint, object, str, str]  # of `_make_template`


def _iterate_section(section: type, prefix: str, help_frame: str = "{}") -> Iterator[_Parameters]:
    """Yield of each setting of a section: its key, its hint, its default, and the prefix and help frame of the section.

    In a help frame `{}` stands for the help text of a setting.
    """
    for each in fields(section):
        default = None if each.default is MISSING else each.default
        yield from _iterate_value(f"{prefix}{each.name}", ValueHint.read(each.type), default, prefix, help_frame)


def _iterate_value(key: str, hint: ValueHint, default: object, prefix: str, help_frame: str) -> Iterator[_Parameters]:
    if hint.named is not None:
        yield from _iterate_value(f"{key}.{NAME}", ValueHint.read(hint.named), None, prefix, help_frame)
    elif isinstance(hint.type, type) and is_dataclass(hint.type):
        yield from _iterate_section(hint.type, f"{key}.", hint.help or "{}")
    else:
        yield key, hint, default, prefix, help_frame


def _make_template(key: str, hint: ValueHint, default: object, prefix: str, help_frame: str) -> SettingTemplate:
    allowed = say("allowed.text", "text") if hint.rule is None else hint.rule.allowed
    addresses = hint.find(SentTo)
    not_storable = hint.find(NotStorable)
    return SettingTemplate(
        **hint.describe(),
        key=key,
        rule=hint.rule,
        allowed=say("allowed.list_of", "a list; each: {allowed}", allowed=allowed) if hint.is_list else allowed,
        default=to_plain(default),
        is_secret=addresses is not None,
        is_terminal_only=STARTS_PROGRAM in hint.notes,
        is_adapter_setting=hint.type is object,
        addresses=() if addresses is None else tuple(f"{prefix}{each}" for each in addresses.keys),
        variables=tuple(each for each in hint.notes if isinstance(each, Variable)),
        needs_restart=NEEDS_RESTART in hint.notes,
        unstorable_reason=None if not_storable is None else name_text(f"setting.{key}.unstorable", not_storable.reason),
        help=name_text(f"setting.{key}", help_frame.replace("{}", hint.help)),
    )

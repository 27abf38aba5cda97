"""What is wrong with the settings, in words that help to mend it.

Owns the check of a document against the shape, the sentences about what it finds, and how a value may be shown.

Always true: all mistakes are found, not the first; an unknown name comes with the nearest known one, or with those
there are; and no value that may be a secret is shown. Pydantic is loaded when there is a document to check.
"""

from __future__ import annotations

import difflib
import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from palaver.config.schema import NAMED, File, is_private, known_keys
from palaver.config.validators import TOOLSETS
from palaver.domain.source import BUILT_IN, ChatType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.config.document import Document
    from palaver.config.schema import KeyPath

_SECRET: Final = re.compile("token|secret|password|key", re.IGNORECASE)
_ADDRESSES: Final = frozenset({"database_url", "base_url", "url"})
_KINDS: Final = {dict: "a section", list: "a list", type(None): "nothing"}
_KNOWN_NAMES: Final[Mapping[str | int, Sequence[str]]] = {
    "platforms": BUILT_IN,
    "reset_by_platform": BUILT_IN,
    "reset_by_type": tuple(map(str, ChatType)),
    "toolsets": TOOLSETS,
}


def validated(document: Document) -> tuple[File, list[str]]:
    """The file in its known shape, and every mistake in it, by line."""
    from pydantic import TypeAdapter, ValidationError

    file = File()
    try:
        file = TypeAdapter(File).validate_python(document.data)
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            path = tuple(part for part in error["loc"] if part != "[key]")
            if path not in document.unreadable:
                document.complain(path, _in_words(error))
    return file, [text for _, text in sorted(document.mistakes, key=itemgetter(0))]


def shown(path: KeyPath, value: object) -> str:
    """A value as it may stand in a message: short, on one line, and never a secret."""
    if type(value) in _KINDS:
        return _KINDS[type(value)]
    if isinstance(value, str) and path[-1] in _ADDRESSES:
        scheme = re.match(r"[\w+.-]+://", value)
        return f"{scheme[0]}…" if scheme else "…"
    if is_private(path) or any(_SECRET.search(str(part)) for part in path):
        return "…"
    if isinstance(value, str) and len(value) > 60:
        value = f"{value[:59]}…"
    return json.dumps(value, ensure_ascii=False, default=str)


def _in_words(error: Mapping[str, Any]) -> str:
    """A mistake that pydantic found, as the operator should read it."""
    path: KeyPath = error["loc"]
    match error["type"]:
        case "unexpected_keyword_argument":
            return _unknown(path)
        case "missing":
            return "this is missing"
        case "together":
            return str(error["msg"])
        case "value_error" if path[-1] == "[key]":
            return _misnamed(path, error["ctx"]["error"])
        case "value_error":
            allowed = error["ctx"]["error"]
        case "tuple_type":
            allowed = "a list"
        case _:
            allowed = "a section with keys of its own"
    return f"{shown(path, error['input'])} is not allowed ({allowed})"


def _misnamed(path: KeyPath, allowed: object) -> str:
    """What to say of a name that the operator may not give."""
    known = _KNOWN_NAMES.get(path[0])
    return f"unknown name ({_nearest(str(path[-2]), known)})" if known else f"this cannot be a name ({allowed})"


def _unknown(path: KeyPath) -> str:
    """What to say of a key that does not exist: the nearest one that does, here or in another section."""
    *section, key = (str(part) for part in path)
    if len(section) > 1 and section[0] in NAMED:
        section[1] = "<name>"
    prefix = "".join(f"{part}." for part in section)
    here = {known.removeprefix(prefix).partition(".")[0] for known in known_keys() if known.startswith(prefix)}
    elsewhere = [known for known in known_keys() if known.rpartition(".")[2] == key]
    if elsewhere and not difflib.get_close_matches(key, here):
        return f"unknown key (did you mean {elsewhere[0]}?)"
    return f"unknown key ({_nearest(key, sorted(here))})"


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"

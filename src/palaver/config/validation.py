"""Checks a document against the schema, and words the problems so that the operator can fix them.

Always true: all problems are found, not only the first; an unknown name comes with the closest known one, or with the
list of known ones; and no value that may be a secret is shown. Pydantic is imported only if there is a document.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from palaver.config.schema import ConfigFile, may_hold_secret
from palaver.config.setting_templates import NAME, list_setting_keys, list_templates
from palaver.config.validators import TOOLSET_NAMES
from palaver.core.source import BUILT_IN_PLATFORMS, ChatType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import TypeAdapter

    from palaver.config.document import Document
    from palaver.config.schema import KeyPath

    KeyProblem = tuple[KeyPath, str]

_SECRET_NAME: Final = re.compile("token|secret|password|key", re.IGNORECASE)
_URL_KEYS: Final = frozenset({"database_url", "base_url", "url"})
_TYPE_NAMES: Final = {dict: "a section", list: "a list", type(None): "an empty value"}
_KNOWN_NAMES: Final[Mapping[str | int, Sequence[str]]] = {
    "platforms": BUILT_IN_PLATFORMS,
    "reset_by_platform": BUILT_IN_PLATFORMS,
    "reset_by_type": tuple(map(str, ChatType)),
    "toolsets": TOOLSET_NAMES,
}


def validate_document(document: Document) -> tuple[ConfigFile, list[str]]:
    """Return the validated file, and all problems in it, in the order of their lines."""
    file, problems = validate_data(document.data)
    for path, text in problems:
        if path not in document.unreadable_keys:
            document.add_problem(path, text)
    return file, [text for _, text in sorted(document.problems, key=itemgetter(0))]


def validate_data(data: Mapping[str, object]) -> tuple[ConfigFile, list[KeyProblem]]:
    """Return the validated settings, wherever they come from, and all problems with them."""
    if not data:
        return ConfigFile(), []

    from pydantic import ValidationError

    file, problems = ConfigFile(), []
    try:
        file = _get_adapter().validate_python(data)
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            path = tuple(part for part in error["loc"] if part != "[key]")
            problems.append((path, _describe_error(error)))
    return file, [*problems, *_find_missing_servers(file), *_find_missing_profiles(file)]


@functools.cache
def _get_adapter() -> TypeAdapter[ConfigFile]:
    from pydantic import TypeAdapter

    return TypeAdapter(ConfigFile)


def _find_missing_servers(file: ConfigFile) -> Iterator[KeyProblem]:
    """Yield a problem for each MCP server that a profile names and the settings do not have."""
    for name, profile in file.profiles.items():
        for index, toolset in enumerate(profile.toolsets or ()):
            server = toolset.removeprefix("mcp:")
            if server != toolset and server not in file.mcp_servers:
                known = ", ".join(f"mcp:{each}" for each in file.mcp_servers) or "none"
                path = ("profiles", name, "toolsets", index)
                yield path, f"there is no {server} in mcp_servers (known: {known})"


def _find_missing_profiles(file: ConfigFile) -> Iterator[KeyProblem]:
    """Yield a problem for each budget of a profile that the settings do not have."""
    for name in file.budgets.profiles:
        if name not in file.profiles:
            suggestion = _suggest_name(name, list(file.profiles) or ["none"])
            yield ("budgets", "profiles", name), f"there is no profile {name} ({suggestion})"


def format_value(path: KeyPath, value: object) -> str:
    """Return a value for a message: short, on one line, and never a secret."""
    if type(value) in _TYPE_NAMES:
        return _TYPE_NAMES[type(value)]
    if isinstance(value, str) and path[-1] in _URL_KEYS:
        scheme = re.match(r"[\w+.-]+://", value)
        return f"{scheme[0]}…" if scheme else "…"
    if may_hold_secret(path) or any(_SECRET_NAME.search(str(part)) for part in path):
        return "…"
    if isinstance(value, str) and len(value) > 60:
        value = f"{value[:59]}…"
    return json.dumps(value, ensure_ascii=False, default=str)


def _describe_error(error: Mapping[str, Any]) -> str:
    """Return the message for an error that pydantic found."""
    path: KeyPath = error["loc"]
    match error["type"]:
        case "unexpected_keyword_argument":
            return _describe_unknown_key(path)
        case "missing":
            return "this key is required"
        case "together":
            return str(error["msg"])
        case "value_error" if path[-1] == "[key]":
            return _describe_invalid_name(path, error["ctx"]["error"])
        case "value_error":
            allowed = error["ctx"]["error"]
        case "tuple_type":
            allowed = "a list"
        case _:
            allowed = "a section with keys"
    return f"{format_value(path, error['input'])} is not allowed ({allowed})"


def _describe_invalid_name(path: KeyPath, allowed: object) -> str:
    known = _KNOWN_NAMES.get(path[0]) if len(path) == 3 else None  # deeper: the name of an account
    return f"unknown name ({_suggest_name(str(path[-2]), known)})" if known else f"this name is not valid ({allowed})"


def _describe_unknown_key(path: KeyPath) -> str:
    """Return a message with the closest key that exists, in this section or in another one."""
    *section, key = (str(part) for part in path)
    in_section = {
        parts[len(section)]
        for parts in (template.parts for template in list_templates())
        if len(parts) > len(section) and all(known in (NAME, part) for known, part in zip(parts, section, strict=False))
    }
    in_other_sections = [known for known in list_setting_keys() if known.rpartition(".")[2] == key]
    if in_other_sections and not difflib.get_close_matches(key, in_section):
        return f"unknown key (did you mean {min(in_other_sections, key=_count_parts)}?)"
    return f"unknown key ({_suggest_name(key, sorted(in_section))})"


def _suggest_name(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def _count_parts(key: str) -> int:
    return key.count(".")

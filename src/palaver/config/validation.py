"""Checks a document against the schema, and words the problems so that the operator can fix them.

Always true: all problems are found, not only the first; an unknown name comes with the closest known one, or with the
list of known ones; and no value that may be a secret is shown. Pydantic is imported only if there is a document.
"""

from __future__ import annotations

import functools
import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from palaver.config.schema import ConfigFile, KeyPath, format_key, may_hold_secret
from palaver.config.setting_templates import is_literal_text, list_parts_below, list_setting_keys
from palaver.config.validators import TOOLSET_NAMES
from palaver.core.errors import ConfigError
from palaver.core.source import BUILT_IN_PLATFORMS, ChatType
from palaver.core.texts import read_message, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import TypeAdapter
    from yaml import MappingNode, Node, SafeLoader, ScalarNode

    KeyProblem = tuple[KeyPath, str]

FILE_NAME: Final = "config.yaml"


def read_document(path: Path) -> Document | None:
    """Return the file as data; None when it does not exist or is empty."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: can't read this file ({error.strerror})", file=str(path)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{FILE_NAME}:{line}: this is not UTF-8 text", file=str(path)) from error
    return _parse_yaml(text, path)


def _parse_yaml(text: str, path: Path) -> Document | None:
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None or root.tag == "tag:yaml.org,2002:null":
            return None
        if isinstance(root, yaml.MappingNode):
            return Document(loader, root)
        kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
        location, problem = f"{root.start_mark.line + 1}", f"expected lines of `key: value`, found {kind}"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        problem = f"this is not valid YAML: {_remove_quotations(reason)}"
    except yaml.reader.ReaderError as error:
        line, column = text.count("\n", 0, error.position), text.rfind("\n", 0, error.position)
        location = f"{line + 1}:{error.position - column}"
        problem = f"this is not valid YAML: the character U+{ord(text[error.position]):04X} is not allowed"
    except RecursionError:
        location, problem = "1", "this is nested too deeply"
    raise ConfigError(f"{FILE_NAME}:{location}: {problem}", file=str(path))


def _remove_quotations(reason: str) -> str:
    """Remove from the parser's message what it quotes from the file, which may be secret; single characters stay."""
    return re.sub(
        r"'([^']*)'|\"([^\"]*)\"",
        lambda match: match[0] if re.fullmatch(r"\\?.|<[a-z ]+>", match[1] or match[2] or "") else "'…'",
        reason,
    )


class Document:
    """The file as plain data, the line number of every key, and the problems found so far."""

    def __init__(self, loader: SafeLoader, root: MappingNode) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[tuple[int, str]] = []  # line, message
        self.unreadable_keys: set[KeyPath] = set()
        self._loader = loader
        self._open_nodes: set[int] = set()  # the nodes being read, to detect one that contains itself
        self._flattened: set[int] = set()  # the mappings whose merge keys have been resolved
        self.data = self._read_mapping(root, ())

    def add_problem(self, path: KeyPath, text: str, line: int | None = None) -> None:
        """Record a problem at a key; if the key is not in the file, at the nearest section around it."""
        existing = path
        while existing and existing not in self.lines:
            existing = existing[:-1]
        line = line or self.lines.get(existing, 1)
        key = format_key(path)
        self.problems.append((line, f"{FILE_NAME}:{line}: {key}: {text}" if key else f"{FILE_NAME}:{line}: {text}"))

    def _read_node(self, node: Node, path: KeyPath) -> object:
        from yaml import MappingNode, ScalarNode, SequenceNode

        if id(node) in self._open_nodes:
            self._add_unreadable(path, "this contains itself")
            return None
        self._open_nodes.add(id(node))
        value: object = None
        if isinstance(node, ScalarNode):
            value = self._read_scalar(node, path)
        elif isinstance(node, MappingNode) and node.tag == "tag:yaml.org,2002:map":
            value = self._read_mapping(node, path)
        elif isinstance(node, SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            value = [self._read_node(item, (*path, index)) for index, item in enumerate(node.value)]
        else:
            self._add_unreadable(path, "YAML tags are not supported here")
        self._open_nodes.remove(id(node))
        return value

    def _read_mapping(self, node: MappingNode, path: KeyPath) -> dict[str, object]:
        if id(node) not in self._flattened:
            self._check_keys(node, path)
            self._loader.flatten_mapping(node)
            self._flattened.add(id(node))
        data: dict[str, object] = {}
        for key, value in node.value:
            if isinstance(key.value, str):
                key_path = (*path, key.value)
                self.lines[key_path] = key.start_mark.line + 1
                data[key.value] = self._read_node(value, key_path)
        return data

    def _check_keys(self, node: MappingNode, path: KeyPath) -> None:
        first_lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                self.add_problem(path, "a key must be plain text, not a list or a section", line)
            elif key.value in first_lines:
                self.add_problem((*path, key.value), f"given twice (first on line {first_lines[key.value]})", line)
            else:
                first_lines[key.value] = line

    def _read_scalar(self, node: ScalarNode, path: KeyPath) -> object:
        from yaml import YAMLError

        if node.tag not in self._loader.yaml_constructors:
            self._add_unreadable(path, "YAML tags are not supported here")
            return None
        if is_literal_text(path) and node.tag != "tag:yaml.org,2002:null":
            return node.value
        try:
            return self._loader.construct_object(node)
        except (YAMLError, ValueError, LookupError, AttributeError):  # for example for `!!int x` and `!!bool x`
            self._add_unreadable(path, "this value does not match its YAML tag")
            return None

    def _add_unreadable(self, path: KeyPath, text: str) -> None:
        self.unreadable_keys.add(path)
        self.add_problem(path, text)


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
    """Yield a problem for each MCP server that a profile or a chat names and the settings do not have."""
    named = [("profiles", name, each.toolsets) for name, each in file.profiles.items()]
    named += [("chats", name, each.toolsets) for name, each in file.chats.items()]
    for section, name, toolsets in named:
        for index, toolset in enumerate(toolsets or ()):
            server = toolset.removeprefix("mcp:")
            if server != toolset and server not in file.mcp_servers:
                known = ", ".join(f"mcp:{each}" for each in file.mcp_servers) or "none"
                suggestion = say("settings.known_names", "known: {names}", names=known)
                text = say(
                    "settings.no_server",
                    "there is no {server} in mcp_servers ({suggestion})",
                    server=server,
                    suggestion=suggestion,
                )
                yield (section, name, "toolsets", index), text


def _find_missing_profiles(file: ConfigFile) -> Iterator[KeyProblem]:
    """Yield a problem for each budget and each chat with a profile that the settings do not have."""
    named: list[tuple[KeyPath, str]] = [(("budgets", "profiles", name), name) for name in file.budgets.profiles]
    named += [(("chats", chat, "profile"), each.profile) for chat, each in file.chats.items() if each.profile]
    for path, name in named:
        if name not in file.profiles:
            suggestion = suggest_name(name, list(file.profiles) or ["none"])
            text = say(
                "settings.no_profile", "there is no profile {name} ({suggestion})", name=name, suggestion=suggestion
            )
            yield path, text


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
            return say("settings.key_required", "this key is required")
        case "together":
            text: str = error["ctx"]["text"]
            return text
        case "value_error" if path[-1] == "[key]":
            return _describe_invalid_name(path, read_message(error["ctx"]["error"]))
        case "value_error":
            allowed = read_message(error["ctx"]["error"])
        case "tuple_type":
            allowed = say("allowed.list", "a list")
        case _:
            allowed = say("allowed.section_keys", "a section with keys")
    return say(
        "settings.not_allowed",
        "{value} is not allowed ({allowed})",
        value=format_value(path, error["input"]),
        allowed=allowed,
    )


def _describe_invalid_name(path: KeyPath, allowed: object) -> str:
    known = _KNOWN_NAMES.get(path[0]) if len(path) == 3 else None  # deeper: the name of an account
    return (
        say("settings.unknown_name", "unknown name ({suggestion})", suggestion=suggest_name(str(path[-2]), known))
        if known
        else say("settings.name_not_valid", "this name is not valid ({allowed})", allowed=allowed)
    )


def _describe_unknown_key(path: KeyPath) -> str:
    """Return a message with the closest key that exists, in this section or in another one."""
    from difflib import get_close_matches

    *section, key = (str(part) for part in path)
    in_section = list_parts_below(tuple(section))
    in_other_sections = [known for known in list_setting_keys() if known.rpartition(".")[2] == key]
    if in_other_sections and not get_close_matches(key, in_section):
        shortest = min(in_other_sections, key=lambda known: known.count("."))
        suggestion = _suggest_other_name(shortest)
    else:
        suggestion = suggest_name(key, sorted(in_section))
    return say("settings.unknown_key", "unknown key ({suggestion})", suggestion=suggestion)


def _suggest_other_name(name: str) -> str:
    return say("settings.did_you_mean", "did you mean {name}?", name=name)


def suggest_name(name: str, known: Sequence[str]) -> str:
    """Return the closest of the known names, or all of them."""
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), known, n=1)
    return (
        _suggest_other_name(close[0])
        if close
        else say("settings.known_names", "known: {names}", names=", ".join(known))
    )

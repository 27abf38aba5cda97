"""Reads config.yaml into plain data, with the line number of every key.

Owns the name of the file, the parsing of YAML, and the errors that do not depend on what a key means. `schema` says
which keys exist; `validation` checks their values.

Always true: YAML builds only plain data; a key that is given twice is an error, the last one does not win; and no
message from here quotes a value. The parser is imported only if there is a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from palaver.config.schema import format_key
from palaver.config.setting_templates import is_literal_text
from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from yaml import MappingNode, Node, SafeLoader, ScalarNode

    from palaver.config.schema import KeyPath

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

"""Reading config.yaml: the file as plain data, with the line on which every key stands.

Owns the name of the file, the YAML in it, and what can be wrong with a file before anybody asks what its keys mean.
Which keys there are is said in `shape`; whether they hold what they may, in `mistakes`.

Always true: YAML builds nothing but plain data; a key given twice is a mistake, and the last does not win; and no
message from here quotes a value. The parser is loaded when there is a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from palaver.config.schema import dotted, is_as_written
from palaver.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from yaml import MappingNode, Node, SafeLoader, ScalarNode

    from palaver.config.schema import KeyPath

FILE_NAME: Final = "config.yaml"


def read_document(path: Path) -> Document | None:
    """The file as data; None when there is none or nothing in it."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})", file=str(path)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{FILE_NAME}:{line}: this is not UTF-8 text", file=str(path)) from error
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> Document | None:
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None or root.tag == "tag:yaml.org,2002:null":
            return None
        if isinstance(root, yaml.MappingNode):
            return Document(loader, root)
        kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
        place, what = f"{root.start_mark.line + 1}", f"settings are lines of `key: value`, this is {kind}"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        what = f"this is not YAML: {_without_quotations(problem)}"
    except yaml.reader.ReaderError as error:
        line, column = text.count("\n", 0, error.position), text.rfind("\n", 0, error.position)
        place = f"{line + 1}:{error.position - column}"
        what = f"this is not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
    except RecursionError:
        place, what = "1", "this is nested too deeply"
    raise ConfigError(f"{FILE_NAME}:{place}: {what}", file=str(path))


def _without_quotations(problem: str) -> str:
    """The parser's words without pieces of the file, which may be secret; one character may stay."""
    return re.sub(
        r"'([^']*)'|\"([^\"]*)\"",
        lambda found: found[0] if re.fullmatch(r"\\?.|<[a-z ]+>", found[1] or found[2] or "") else "'…'",
        problem,
    )


class Document:
    """The file as plain data, the line of every key in it, and what is wrong with it."""

    def __init__(self, loader: SafeLoader, root: MappingNode) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.mistakes: list[tuple[int, str]] = []
        self.unreadable: set[KeyPath] = set()
        self._loader = loader
        self._open: set[int] = set()  # the nodes being read, to notice one that holds itself
        self._flat: set[int] = set()  # the mappings whose merge keys have been followed
        self.data = self._mapping(root, ())

    def complain(self, path: KeyPath, text: str, line: int | None = None) -> None:
        """Note a mistake at a key, or at the nearest section around one that is not there."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = line or self.lines.get(known, 1)
        key = dotted(path)
        self.mistakes.append((line, f"{FILE_NAME}:{line}: {key}: {text}" if key else f"{FILE_NAME}:{line}: {text}"))

    def _value(self, node: Node, path: KeyPath) -> object:
        from yaml import MappingNode, ScalarNode, SequenceNode

        if id(node) in self._open:
            self._give_up(path, "this holds itself")
            return None
        self._open.add(id(node))
        value: object = None
        if isinstance(node, ScalarNode):
            value = self._scalar(node, path)
        elif isinstance(node, MappingNode) and node.tag == "tag:yaml.org,2002:map":
            value = self._mapping(node, path)
        elif isinstance(node, SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            value = [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        else:
            self._give_up(path, "a tag has no meaning here")
        self._open.remove(id(node))
        return value

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, object]:
        if id(node) not in self._flat:
            self._check_keys(node, path)
            self._loader.flatten_mapping(node)
            self._flat.add(id(node))
        data: dict[str, object] = {}
        for key, value in node.value:
            if isinstance(key.value, str):
                here = (*path, key.value)
                self.lines[here] = key.start_mark.line + 1
                data[key.value] = self._value(value, here)
        return data

    def _check_keys(self, node: MappingNode, path: KeyPath) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                self.complain(path, "a key is plain text, not a list or a section", line)
            elif key.value in first:
                self.complain((*path, key.value), f"given twice (first on line {first[key.value]})", line)
            else:
                first[key.value] = line

    def _scalar(self, node: ScalarNode, path: KeyPath) -> object:
        from yaml import YAMLError

        if node.tag not in self._loader.yaml_constructors:
            self._give_up(path, "a tag has no meaning here")
            return None
        if is_as_written(path) and node.tag != "tag:yaml.org,2002:null":
            return node.value
        try:
            return self._loader.construct_object(node)
        except (YAMLError, ValueError, LookupError, AttributeError):  # as it fails on !!int x, !!bool x …
            self._give_up(path, "this is not a value of the kind it is written as")
            return None

    def _give_up(self, path: KeyPath, text: str) -> None:
        self.unreadable.add(path)
        self.complain(path, text)

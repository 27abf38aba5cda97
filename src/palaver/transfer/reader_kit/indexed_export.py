"""An export whose conversations are items of JSON files: how it is opened and read, whichever program wrote it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from palaver.core.dataclass import dataclass
from palaver.transfer.imported import ImportedConversation, ImportedItem, ImportProblem, InvalidImport
from palaver.transfer.reader_kit.export_files import (
    DamagedFile,
    ItemFile,
    ItemSpan,
    ListProblem,
    UnreadableItem,
    close_on_error,
    open_export,
)
from palaver.transfer.reader_kit.values import UNKNOWN_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path


MAX_PROBLEMS: Final = 1000  # listed one by one
# Of JSON: conversations that are kept from the search for them until they are read, so that a usual export is parsed
# once. Beyond it, only one conversation is in memory at a time, and each is parsed again when it is read: that takes a
# twentieth of the time of an import, and reading it back in any other form (`marshal`) as long.
MAX_KEPT_BYTES: Final = 8_000_000


@dataclass(frozen=True, slots=True)
class Identity:
    """The id, times and account of a conversation, by which it is indexed."""

    origin_id: str  # empty: the program gave none
    created_at: datetime | None
    updated_at: datetime | None = None
    group: str = ""  # whose it is, if a file has the conversations of several accounts


@dataclass(frozen=True, slots=True)
class IndexedItem:
    origin_id: str
    created_at: datetime
    updated_at: datetime | None
    group: str
    file: ItemFile
    span: ItemSpan
    folded: tuple[str, ...] = ()  # where else it is

    @property
    def where(self) -> str:
        return f"{self.file.name}, item {self.span.number}"


class IndexedExport(ABC):
    """Reads the conversations of several JSON files, the oldest first; one that cannot be read is reported."""

    how_to_get: ClassVar[str]
    needed: ClassVar[str] = "no conversations.json in it"  # what an export without conversations has not
    list_key: ClassVar[str] = "conversations"  # under which an object has the list of them

    def __init__(self, path: Path) -> None:
        """Open an export; raise InvalidImport, with how to get one, if it is none."""
        self._files = open_export(path, how_to_get=self.how_to_get)
        self._conversations: list[ItemFile] = []
        self._kept: dict[tuple[ItemFile, ItemSpan], dict[str, Any]] = {}
        self._last: tuple[IndexedItem, dict[str, Any]] | None = None
        with close_on_error(self):
            # A single file may have any name.
            names = self._files.names
            names = names if names == [path.name] else self._choose_files(names)
            if not names:
                raise InvalidImport(f"{path.name} has {self.needed}. {self.how_to_get}", path=str(path))
            for name in names:
                self._conversations.append(self._open_file(name))
        self._items: list[IndexedItem] | None = None  # None: the files were not read yet
        self._problems: list[ImportProblem] = []
        self._problem_count = 0
        self._kept_bytes = 0

    def _open_file(self, name: str) -> ItemFile:
        try:
            file = self._files.open_file(name)
            with close_on_error(file):
                return ItemFile(name, file, list_keys=(self.list_key,))
        except DamagedFile as error:
            raise InvalidImport(f"{name} cannot be read. {error}", file=name) from error
        except InvalidImport as error:
            raise InvalidImport(f"{error} {self.how_to_get}", file=name) from error

    def count_conversations(self) -> int:
        return len(self._list_conversations())

    def read_items(self) -> Iterator[ImportedItem]:
        items = self._list_conversations()
        yield from self._problems
        yield from self._read_other_items()
        for item in items:
            try:
                yield self._describe(item, self._read(item))
            except (UnreadableItem, RecursionError) as error:
                yield ImportProblem(where=item.where, what=str(error) or "It is nested too deeply.")

    def close(self) -> None:
        self._last = None
        self._kept.clear()
        for file in self._conversations:
            file.close()
        self._files.close()

    @abstractmethod
    def _choose_files(self, names: list[str]) -> list[str]:
        """Return the names of the files with conversations."""

    @abstractmethod
    def _identify(self, content: dict[str, Any]) -> Identity | None:
        """Return by what a conversation is indexed; None if it is none."""

    @abstractmethod
    def _describe(self, item: IndexedItem, content: dict[str, Any]) -> ImportedConversation:
        """Return a conversation without its messages."""

    def _read_other_items(self) -> Iterable[ImportedItem]:
        """Read what an export has besides conversations."""
        return ()

    def _read(self, item: IndexedItem) -> dict[str, Any]:
        """Return a conversation; the last one stays in memory, because it is usually read twice in a row."""
        if self._last is None or self._last[0] is not item:
            self._last = None
            content = self._kept.pop((item.file, item.span), None)
            self._last = item, item.file.read_item(item.span) if content is None else content
        return self._last[1]

    def _list_conversations(self) -> list[IndexedItem]:
        """Read all files once, and list what is in them."""
        if self._items is not None:
            return self._items
        found: dict[tuple[str, str], IndexedItem] = {}
        for file in self._conversations:
            for span in file.find_spans():
                if isinstance(span, ListProblem):
                    self._add_problem(f"{file.name}, byte {span.start:,}", span.what)
                else:
                    self._add_item(found, file, span)
        if self._problem_count > MAX_PROBLEMS:
            count = self._problem_count - MAX_PROBLEMS
            self._problems.append(ImportProblem(where="all files", what=f"{count:,} more items cannot be read."))
        self._items = sorted(found.values(), key=lambda item: (item.created_at, item.origin_id))
        return self._items

    def _add_item(self, found: dict[tuple[str, str], IndexedItem], file: ItemFile, span: ItemSpan) -> None:
        where = f"{file.name}, item {span.number}"
        try:
            content = file.read_item(span)
            identity = self._identify(content) if isinstance(content, dict) else None
        except UnreadableItem as error:
            self._add_problem(where, str(error))
            return
        if identity is None:
            self._add_problem(where, "This is not a conversation.")
            return
        origin_id = identity.origin_id or f"content-{hashlib.sha256(file.read_bytes(span)).hexdigest()[:32]}"
        created_at = identity.created_at or identity.updated_at or UNKNOWN_TIME
        item = IndexedItem(origin_id, created_at, identity.updated_at, identity.group, file, span)
        other = found.get((identity.group, origin_id))
        found[identity.group, origin_id] = item if other is None else _fold(other, item)
        self._kept_bytes += span.end - span.start
        if self._kept_bytes <= MAX_KEPT_BYTES:
            self._kept[file, span] = content

    def _add_problem(self, where: str, what: str) -> None:
        self._problem_count += 1
        if self._problem_count <= MAX_PROBLEMS:
            self._problems.append(ImportProblem(where=where, what=what))


def _fold(first: IndexedItem, second: IndexedItem) -> IndexedItem:
    """Return the newer one of two versions of a conversation."""
    is_newer = (second.updated_at or UNKNOWN_TIME) >= (first.updated_at or UNKNOWN_TIME)
    kept, folded = (second, first) if is_newer else (first, second)
    note = f"{folded.where}: the same conversation as {kept.where}, which is as new or newer"
    return replace(kept, folded=(*first.folded, *second.folded, note))

"""An export whose conversations are items of JSON files: how it is opened and read, whichever program wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from palaver.transfer.imported import ImportProblem, InvalidImport
from palaver.transfer.readers.conversation_index import open_item_files
from palaver.transfer.readers.json_stream import UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from palaver.transfer.imported import ImportedConversation, ImportedItem
    from palaver.transfer.readers.archive import ExportFiles
    from palaver.transfer.readers.conversation_index import ConversationIndex, IndexedItem
    from palaver.transfer.readers.json_stream import ItemFile


def open_conversation_files(
    files: ExportFiles, path: Path, is_conversations: Callable[[str], object], how_to_get: str
) -> list[ItemFile]:
    """Open the files with conversations; raise InvalidImport, with how to get an export, if there are none."""
    names = [name for name in files.names if is_conversations(name)]
    if files.names == [path.name]:
        names = files.names  # a single file may have any name
    if not names:
        raise InvalidImport(f"{path.name} has no conversations.json in it. {how_to_get}", path=str(path))
    return open_item_files(files, sorted(names), ("conversations",), how_to_get)


class IndexedExport(ABC):
    """Reads the conversations of an index, the oldest first; one that cannot be read is reported."""

    def __init__(self, files: ExportFiles, index: ConversationIndex) -> None:
        self._files = files
        self._index = index

    def count_conversations(self) -> int:
        self._index.build()
        return len(self._list_conversations())

    def read_items(self) -> Iterator[ImportedItem]:
        self._index.build()
        yield from self._index.problems
        yield from self._read_other_items()
        for item in self._list_conversations():
            try:
                yield self._describe(item, self._index.read(item))
            except (UnreadableItem, RecursionError) as error:
                yield ImportProblem(where=item.where, what=str(error) or "It is nested too deeply.")

    def close(self) -> None:
        self._index.close()
        self._files.close()

    @abstractmethod
    def _describe(self, item: IndexedItem, content: dict[str, Any]) -> ImportedConversation:
        """Return a conversation without its messages."""

    def _list_conversations(self) -> Sequence[IndexedItem]:
        return self._index.items

    def _read_other_items(self) -> Iterable[ImportedItem]:
        """Read what an export has besides conversations."""
        return ()

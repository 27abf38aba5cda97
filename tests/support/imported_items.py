"""Reads everything that a reader of another program's files yields, for tests."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from palaver.transfer.imported import (
    ImportedAccount,
    ImportedCompaction,
    ImportedConversation,
    ImportedJob,
    ImportedMemory,
    ImportedMessage,
    ImportProblem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from palaver.transfer.imported import ImportedEntry, ImportReader

T = TypeVar("T")


@dataclass
class ReadConversation:
    facts: ImportedConversation
    entries: list[ImportedEntry]
    problems: list[ImportProblem]
    files: list[tuple[str, bytes]]  # of all messages

    @property
    def messages(self) -> list[ImportedMessage]:
        return [entry for entry in self.entries if isinstance(entry, ImportedMessage)]

    @property
    def compactions(self) -> list[ImportedCompaction]:
        return [entry for entry in self.entries if isinstance(entry, ImportedCompaction)]

    @property
    def visible(self) -> list[dict[str, Any]]:
        return [each.message.to_dict() for each in self.messages if not each.hidden]

    @property
    def hidden_texts(self) -> list[str]:
        return [each.message.text for each in self.messages if each.hidden]


@dataclass
class ReadItems:
    conversations: list[ReadConversation] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)

    def find(self, kind: type[T]) -> list[T]:
        return [item for item in self.others if isinstance(item, kind)]

    @property
    def problems(self) -> list[ImportProblem]:
        return self.find(ImportProblem)

    @property
    def jobs(self) -> list[ImportedJob]:
        return self.find(ImportedJob)

    @property
    def accounts(self) -> list[ImportedAccount]:
        return self.find(ImportedAccount)

    @property
    def memories(self) -> list[ImportedMemory]:
        return self.find(ImportedMemory)


def read_everything(reader: ImportReader) -> ReadItems:
    """Read all items; each conversation twice, because a reader must be able to."""
    read = ReadItems()
    try:
        for item in reader.read_items():
            if not isinstance(item, ImportedConversation):
                read.others.append(item)
                continue
            entries = list(item.open_entries())
            assert _describe(entries) == _describe(list(item.open_entries()))
            problems = [entry for entry in entries if isinstance(entry, ImportProblem)]
            rest = [entry for entry in entries if not isinstance(entry, ImportProblem)]
            files = [
                (file.name, b"".join(file.open_chunks()))
                for entry in entries
                if isinstance(entry, ImportedMessage)
                for file in entry.files
            ]
            read.conversations.append(ReadConversation(item, rest, problems, files))
        count = reader.count_conversations()
        assert count is None or count >= len(read.conversations)
    finally:
        reader.close()
    return read


def _describe(entries: list[Any]) -> list[Any]:
    return [
        (entry.message.to_dict(), entry.at, entry.hidden) if isinstance(entry, ImportedMessage) else entry
        for entry in entries
    ]


def make_zip(path: Path, files: Mapping[str, object]) -> Path:
    """Write a zip file; what is neither text nor bytes is written as JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


def make_zip_bytes(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()

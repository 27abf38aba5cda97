"""A reader of conversations that a test makes up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from palaver.core.source import Platform
from palaver.sessions.message import Message
from palaver.transfer.imported import (
    ImportedCompaction,
    ImportedConversation,
    ImportedEntry,
    ImportedFile,
    ImportedItem,
    ImportedMessage,
    ImportProblem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

START = datetime(2025, 3, 1, 8, tzinfo=UTC)


@dataclass
class MadeReader:
    """Reads the given items."""

    items: Sequence[ImportedItem]
    format: str = "chatgpt"
    platform: Platform = field(default_factory=lambda: Platform("chatgpt"))
    is_closed: bool = False

    def count_conversations(self) -> int | None:
        return sum(isinstance(item, ImportedConversation) for item in self.items)

    def read_items(self) -> Iterator[ImportedItem]:
        yield from self.items

    def close(self) -> None:
        self.is_closed = True


def make_message(text: str | None, number: int = 0, role: str = "user", **fields: Any) -> ImportedMessage:
    options = {name: fields.pop(name) for name in ("hidden", "files") if name in fields}
    message = Message.from_dict({"role": role, "content": text, **fields})
    return ImportedMessage(message=message, at=START + timedelta(minutes=number), **options)


def make_exchange(*texts: str) -> list[ImportedEntry]:
    """Make messages of a person and answers, in turns."""
    return [make_message(text, number, "user" if number % 2 == 0 else "assistant") for number, text in enumerate(texts)]


def make_compaction(summary: str, number: int, kept_count: int = 0) -> ImportedCompaction:
    return ImportedCompaction(summary=summary, at=START + timedelta(minutes=number), kept_count=kept_count)


def make_file(name: str, data: bytes) -> ImportedFile:
    return ImportedFile(name=name, open_chunks=lambda: iter([data]))


def make_conversation(
    origin_id: str, entries: Sequence[ImportedEntry | ImportProblem], **fields: Any
) -> ImportedConversation:
    fields.setdefault("created_at", START)
    return ImportedConversation(origin_id=origin_id, open_entries=lambda: iter(entries), **fields)

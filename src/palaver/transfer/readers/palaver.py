"""Reads an export of Palaver as if it came from another program: conversations and memories, without people.

People import their own exports with it, into a store in which they are not the operator. The operator's import keeps
everything as it was (`transfer/restore.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import from_micros
from palaver.core.errors import InvalidInput
from palaver.core.source import Platform
from palaver.sessions.events import EventKind
from palaver.sessions.message import Message
from palaver.sessions.message_table import UnreadableRow, decode_message, find_facts
from palaver.sessions.speech import ATTACHMENT_PART_TYPE
from palaver.transfer.imported import (
    ImportedCompaction,
    ImportedConversation,
    ImportedEntry,
    ImportedFile,
    ImportedItem,
    ImportedMemory,
    ImportedMessage,
    ImportedProject,
    ImportProblem,
)
from palaver.transfer.own_format import (
    BadLine,
    InvalidRecord,
    NumberedRecord,
    Record,
    RecordStream,
    decode_fields,
    get_event_fields,
    read_lines,
)
from palaver.transfer.reader_kit.values import read_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path


_MAX_INDEXED: Final = 200_000  # files and projects of one export


class PalaverReader:
    format = "palaver"
    platform = Platform.WEB

    def __init__(self, path: Path) -> None:
        RecordStream(path, lambda _problem: None).close()  # checks the header
        self._path = path
        self._files: dict[str, int] = {}  # where in the export the bytes of each begin
        self._projects: dict[str, ImportedProject] = {}

    def count_conversations(self) -> int | None:
        return None

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""

    def read_items(self) -> Iterator[ImportedItem]:
        with self._path.open("rb") as stream:
            for line in read_lines(stream):
                if isinstance(line, BadLine):
                    yield ImportProblem(where=f"{self._path.name}, line {line.number}", what=line.what)
                    continue
                try:
                    item = self._read_item(line, stream.tell())
                except InvalidInput as error:
                    yield ImportProblem(where=f"{self._path.name}, line {line.number}", what=str(error))
                else:
                    if item is not None:
                        yield item

    def _read_item(self, line: NumberedRecord, offset: int) -> ImportedItem | None:
        record = line.record
        match record["type"]:
            case "project" if len(self._projects) < _MAX_INDEXED:
                if (name := _get_text(record, "name")) is not None:
                    project = ImportedProject(name=name, color=_get_text(record, "color"))
                    self._projects[str(record.get("id"))] = project
            case "attachment" if len(self._files) < _MAX_INDEXED:
                self._files[str(record.get("id"))] = offset
            case "session":
                return self._read_session(record, offset)
            case "memory":
                if (text := _get_text(record, "text")) is not None:
                    at = read_time(record.get("created_at"))
                    return ImportedMemory(origin_id=str(record.get("id")), text=text, at=at)
        return None

    def _read_session(self, record: Record, offset: int) -> ImportedConversation:
        session_id = str(record.get("id"))
        created_at = read_time(record.get("created_at"))
        if created_at is None:
            raise InvalidRecord("created_at is missing, or not a time", key="created_at")
        return ImportedConversation(
            origin_id=session_id,
            open_entries=lambda: self._read_entries(session_id, offset),
            created_at=created_at,
            title=_get_text(record, "title"),
            active_at=read_time(record.get("active_at")),
            pinned="pinned_at" in record,
            archived="archived_at" in record,
            project=self._projects.get(str(record.get("project"))),
            parent_origin_id=_get_text(record, "parent"),
            model=_get_text(record, "model"),
            provider=_get_text(record, "provider"),
            workspace=_get_text(record, "workspace"),
        )

    def _read_entries(self, session_id: str, offset: int) -> Iterator[ImportedEntry | ImportProblem]:
        """Yield the messages and summaries of a conversation, which follow its line."""
        visible: list[int] = []
        with self._path.open("rb") as stream:
            stream.seek(offset)
            for line in read_lines(stream):
                if isinstance(line, BadLine):
                    yield ImportProblem(where=f"conversation {session_id}", what=line.what)
                    continue
                record = line.record
                if record["type"] != "event" or record.get("session") != session_id:
                    return
                try:
                    entry = self._read_event(record, visible)
                except (InvalidInput, UnreadableRow) as error:
                    yield ImportProblem(where=f"conversation {session_id}, event {record.get('seq')}", what=str(error))
                else:
                    if entry is not None:
                        yield entry

    def _read_event(self, record: Record, visible: list[int]) -> ImportedEntry | None:
        seq, kind, created_at, role, content, body, _, platform_id, hidden_by, _ = decode_fields(
            get_event_fields(record.get("kind")), record
        )
        at = from_micros(created_at)
        if kind == EventKind.COMPACTED:
            facts = find_facts(body)
            first_kept = facts.get("first_kept_seq")
            kept = len(visible) - bisect_left(visible, first_kept) if isinstance(first_kept, int) else 0
            return ImportedCompaction(summary=str(facts.get("summary") or ""), at=at, kept_count=kept)
        if kind != EventKind.MESSAGE:
            return None
        message = decode_message(role, content, body, platform_id)
        if hidden_by is None:
            visible.append(seq)
        return self._take_files(message, at, hidden=hidden_by is not None)

    def _take_files(self, message: Message, at: datetime, *, hidden: bool) -> ImportedMessage:
        """Turn the parts of a message that refer to files into files: they get ids of their own."""
        content: Any = message.content
        parts = (
            [] if content is None or isinstance(content, str) else [(each, self._find_file(each)) for each in content]
        )
        files = [file for _, file in parts if file is not None]
        if parts:
            content = [part for part, file in parts if file is None]
        extra = {key: value for key, value in message.extra.items() if key != "answers"}
        clean = Message(message.role, content, message.author, message.platform_message_id, extra)
        return ImportedMessage(message=clean, at=at, hidden=hidden, files=tuple(files))

    def _find_file(self, part: Any) -> ImportedFile | None:
        if not isinstance(part, dict) or part.get("type") != ATTACHMENT_PART_TYPE:
            return None
        name = str(part.get("name") or "file")
        return ImportedFile(name=name, open_chunks=lambda: self._read_file(str(part.get("id"))))

    def _read_file(self, attachment_id: str) -> Iterator[bytes]:
        if attachment_id not in self._files:
            raise InvalidInput("its bytes are not in this file")
        with closing(RecordStream(self._path, lambda _problem: None)) as stream:
            stream.seek(self._files[attachment_id])
            yield from stream.take_chunks(attachment_id)


open_reader = PalaverReader


def _get_text(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    return value if isinstance(value, str) else None

"""Records as messages of ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.text import is_storable
from palaver.sessions.message import Author
from palaver.transfer.imported import ImportedFile, ImportedMessage
from palaver.transfer.readers.hermes.texts import clean_text, split_sender
from palaver.transfer.readers.values import (
    CHUNK_BYTES,
    as_dict,
    as_text,
    build_message,
    join_result_parts,
    note_missing_file,
    read_data_url,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.transfer.readers.hermes.records import Record

_IMAGE_TYPES: Final = frozenset({"image_url", "input_image", "image"})


@dataclass(frozen=True, slots=True)
class MessageRules:
    """What is the same for all messages of a conversation."""

    has_senders: bool  # several people write here, and their names stand before their words
    sender_ids: dict[str, str]  # by name, where they are known
    upload_folder: Path | None = None  # only files in it are read


def build_imported_message(record: Record, at: datetime, rules: MessageRules) -> ImportedMessage:
    if record.role == "tool":
        message = build_message(
            "tool",
            join_result_parts(record.content),
            tool_call_id=record.tool_call_id or "unknown",
            tool_name=record.tool_name,
        )
        return ImportedMessage(message=message, at=at, hidden=record.is_undone)
    content, files = _split_content(record)
    author: Author | None = None
    if record.role == "user" and rules.has_senders:
        content, author = _take_sender(content, rules)
    notes = [note for item in record.attachments if (note := _attach(item, files, rules))]
    message = build_message(
        record.role,
        _append_notes(content, notes),
        tool_calls=record.tool_calls,
        reasoning=record.reasoning,
    )
    platform_id = record.platform_message_id if is_storable(record.platform_message_id) else ""
    if author or platform_id:
        message = replace(message, author=author, platform_message_id=platform_id or None)
    return ImportedMessage(message=message, at=at, hidden=record.is_undone, files=tuple(files))


def _split_content(record: Record) -> tuple[str, list[ImportedFile]]:
    if isinstance(record.content, str):
        return clean_text(record.role, record.content), []
    texts, files = [], []
    for part in record.content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(text := as_dict(part).get("text"), str):
            texts.append(text)
        elif url := _find_url(as_dict(part)):
            file = read_data_url(url)
            if file is not None:
                files.append(file)
            else:
                texts.append(url if not url.startswith("data:") else note_missing_file("image"))
        else:
            texts.append(note_missing_file(as_text(as_dict(part).get("type")) or "file"))
    return clean_text(record.role, "\n".join(texts)), files


def _find_url(part: dict[str, Any]) -> str:
    if part.get("type") not in _IMAGE_TYPES:
        return ""
    image = part.get("image_url", part.get("url"))
    return as_text(image) or as_text(as_dict(image).get("url"))


def _take_sender(content: str, rules: MessageRules) -> tuple[str, Author | None]:
    name, sender_id, rest = split_sender(content)
    if not name:
        return content, None
    return rest, Author(as_text(name), sender_id or rules.sender_ids.get(name))


def _attach(item: object, files: list[ImportedFile], rules: MessageRules) -> str:
    """Add an uploaded file; return a note for the text if it no longer exists."""
    name = as_text(item) or as_text(as_dict(item).get("name"))
    path = as_text(as_dict(item).get("path")) or name
    if not path:
        return ""
    name = Path(name or path).name
    found = _find_upload(path, rules.upload_folder)
    if found is None:
        return note_missing_file(name)
    files.append(ImportedFile(name=name, open_chunks=lambda: _read_chunks(found)))
    return ""


def _find_upload(path: str, folder: Path | None) -> Path | None:
    """Return the path of an uploaded file, if it is inside of the folder of uploads."""
    if folder is None or "\0" in path:
        return None
    try:
        found = (folder / path).resolve()
        return found if found.is_relative_to(folder.resolve()) and found.is_file() else None
    except (OSError, ValueError):
        return None


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _append_notes(content: str, notes: list[str]) -> str:
    return "\n".join([content, *notes] if content else notes)

"""One conversation of Hermes, from all places where it is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.core.text import is_storable
from palaver.sessions.message import Author
from palaver.sessions.model import EndReason
from palaver.transfer.imported import (
    ImportedCompaction,
    ImportedConversation,
    ImportedFile,
    ImportedMessage,
    ImportProblem,
)
from palaver.transfer.readers.hermes.folding import DROP, SUMMARIZE, PlannedRecord, plan_conversation, read_planned
from palaver.transfer.readers.hermes.records import clean_text, split_sender, to_datetime
from palaver.transfer.readers.values import (
    CHUNK_BYTES,
    UNKNOWN_TIME,
    as_dict,
    as_text,
    build_message,
    format_missing_file,
    join_result_parts,
    read_data_url,
    read_time,
    read_title,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.core.source import SessionSource
    from palaver.sessions.usage import TurnUsage
    from palaver.transfer.imported import ImportedEntry, ImportedProject
    from palaver.transfer.readers.hermes.folding import ConversationPlan, Copy
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
                texts.append(url if not url.startswith("data:") else format_missing_file("image"))
        else:
            texts.append(format_missing_file(as_text(as_dict(part).get("type")) or "file"))
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
        return format_missing_file(name)
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


# --------------------------------------------------------------------------------------------------

_END_REASONS: Final = {
    "idle": EndReason.IDLE,
    "daily": EndReason.DAILY,
    "session_reset": EndReason.MANUAL,
    "new_command": EndReason.MANUAL,
    "suspended": EndReason.MANUAL,
    "session_switch": EndReason.SWITCHED,
}


@dataclass(slots=True, kw_only=True)
class ConversationParts:
    """Everything that is known about a conversation, before its messages are read."""

    origin_id: str
    sessions: list[list[Copy]]  # the copies of each session
    rules: MessageRules
    source: SessionSource | None = None
    is_current: bool = False
    title: str = ""
    parent_id: str = ""
    first: dict[str, Any] = field(default_factory=dict)  # rows of the first and the last session
    last: dict[str, Any] = field(default_factory=dict)
    page: dict[str, Any] = field(default_factory=dict)  # fields of the file of the page
    project: ImportedProject | None = None
    profile: str = ""
    model: str = ""
    provider: str = ""
    usage: tuple[TurnUsage, ...] = ()
    created_at: datetime | None = None


def build_conversation(parts: ConversationParts) -> ImportedConversation | None:
    """Plan how the copies are folded; None if there are no messages, as Hermes lists no empty sessions."""
    plan = plan_conversation(parts.sessions)
    if not plan.message_count:
        return None
    starts = (parts.created_at, read_time(parts.page.get("created_at")), _find_first_time(plan))
    created_at = min((start for start in starts if start is not None), default=UNKNOWN_TIME)
    ended_at, end_reason = (None, None) if parts.is_current else _read_end(parts.last)
    return ImportedConversation(
        origin_id=parts.origin_id,
        open_entries=lambda: read_entries(plan, parts.rules, created_at),
        created_at=created_at,
        source=parts.source,
        title=read_title(parts.title) or None,
        ended_at=ended_at,
        end_reason=end_reason,
        is_current=parts.is_current,
        pinned=bool(parts.page.get("pinned")),
        archived=bool(parts.page.get("archived") or parts.last.get("archived")),
        project=parts.project,
        parent_origin_id=parts.parent_id or None,
        model=parts.model or None,
        provider=parts.provider or None,
        profile=parts.profile or None,
        personality=_read_text(parts.page.get("personality")),
        workspace=_read_text(parts.page.get("workspace")) or _read_text(parts.last.get("cwd")),
        usage=parts.usage,
        folded=plan.folded,
    )


def read_entries(
    plan: ConversationPlan, rules: MessageRules, created_at: datetime
) -> Iterator[ImportedEntry | ImportProblem]:
    """Read the conversation as people saw it, with the summaries that the agent saw."""
    at = created_at
    for planned in read_planned(plan):
        if isinstance(planned, ImportProblem):
            yield planned
            continue
        record = planned.record
        if record.at is not None:
            at = to_datetime(record.at)
        if planned.action == DROP:
            continue
        try:
            yield _build_entry(planned, at, rules)
        except InvalidInput as error:
            yield ImportProblem(where=record.where, what=str(error))


def _build_entry(planned: PlannedRecord, at: datetime, rules: MessageRules) -> ImportedEntry:
    record = planned.record
    if planned.action == SUMMARIZE:
        kept_count = max(planned.kept_count, record.kept_count)
        return ImportedCompaction(summary=record.summary or "", at=at, kept_count=kept_count)
    return build_imported_message(record, at, rules)


def _find_first_time(plan: ConversationPlan) -> datetime | None:
    for session in plan.sessions:
        for time in session.marks.times:
            if not math.isnan(time):
                return to_datetime(time)
    return None


def _read_end(row: dict[str, Any]) -> tuple[datetime | None, EndReason | None]:
    reason = _END_REASONS.get(str(row.get("end_reason")))
    ended_at = read_time(row.get("ended_at"))
    return (ended_at, reason) if reason and ended_at else (None, None)


def _read_text(value: object) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None

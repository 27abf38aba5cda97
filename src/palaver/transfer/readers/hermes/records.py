"""A record: one stored copy of a message, in whichever file it was found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.hermes.texts import read_summary
from palaver.transfer.readers.values import as_dict, as_id, as_list, as_text, build_call, read_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EARLIEST_SECONDS: Final = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST_SECONDS: Final = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
_SHOWN_ROLES: Final = frozenset({"user", "assistant", "tool"})
_SKIPPED_ROLES: Final = frozenset({"session_meta", "system"})  # tools and prompts, which are made again here


@dataclass(slots=True, kw_only=True)
class Record:
    role: str
    content: str | list[Any]
    where: str  # for problems: a file, with a line or an id
    at: float | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str = ""
    tool_name: str = ""
    reasoning: str = ""
    platform_message_id: str = ""
    attachments: list[Any] = field(default_factory=list)
    is_undone: bool = False
    has_lost_time: bool = False  # `at` says only when the transcript was rewritten
    summary: str | None = None
    is_merged_summary: bool = False
    kept_count: int = 0  # of a summary that says so itself

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        parts = (part if isinstance(part, str) else as_dict(part).get("text") for part in self.content)
        return "\n".join(part for part in parts if isinstance(part, str))


def read_record(data: Mapping[str, Any], where: str, zone: tzinfo | None) -> Record | ImportProblem | None:
    """Read a message as Hermes stores it; None for what is not part of the conversation."""
    role = data.get("role")
    if role in _SKIPPED_ROLES:
        return None
    if role not in _SHOWN_ROLES:
        return ImportProblem(where=where, what=f"The message has the role {role!r}, which is not known.")
    content = data.get("content")
    record = Record(
        role=role,
        content=content if isinstance(content, list) else _to_text(content),
        where=where,
        at=read_seconds(data.get("timestamp", data.get("_ts")), zone),
        tool_calls=_read_tool_calls(data.get("tool_calls")) if role == "assistant" else [],
        tool_call_id=as_id(data.get("tool_call_id")) if role == "tool" else "",
        tool_name=as_text(data.get("tool_name") or data.get("name")) if role == "tool" else "",
        reasoning=_read_reasoning(data) if role == "assistant" else "",
        platform_message_id=as_id(data.get("platform_message_id") or data.get("message_id")),
        attachments=as_list(data.get("attachments")),
    )
    if found := read_summary(record.text):
        record.summary, record.is_merged_summary = found
    has_content = bool(record.content or record.tool_calls or record.reasoning or record.attachments)
    return record if has_content or role == "tool" else None


def merge_records(records: Sequence[Record]) -> Record:
    """Join the copies of one message: the words as people saw them come from the last copy, the time from the first."""
    if len(records) == 1:
        return records[0]
    merged = replace(records[-1])
    for other in records[:-1]:
        merged.tool_calls = merged.tool_calls or other.tool_calls
        merged.tool_name = merged.tool_name or other.tool_name
        merged.reasoning = merged.reasoning or other.reasoning
        merged.platform_message_id = merged.platform_message_id or other.platform_message_id
        merged.attachments = merged.attachments or other.attachments
        merged.is_undone = merged.is_undone or other.is_undone
        if isinstance(other.content, list) and not isinstance(merged.content, list):
            merged.content = other.content  # it has the images
    times = sorted((record.has_lost_time, number) for number, record in enumerate(records) if record.at is not None)
    merged.at = records[times[0][1]].at if times else None
    return merged


def read_seconds(value: object, zone: tzinfo | None) -> float | None:
    """Read a time; one without a time zone is in the zone of Hermes or, if that is None, of this machine."""
    if type(value) is float and _EARLIEST_SECONDS <= value < _LATEST_SECONDS:  # as in the database
        return value
    if isinstance(value, str) and len(value) <= 40:
        try:
            local = datetime.fromisoformat(value.strip())
            value = (local.replace(tzinfo=zone) if local.tzinfo is None else local).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    time = read_time(value)
    return None if time is None else time.timestamp()


def to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _to_text(content: object) -> str:
    if content is None or isinstance(content, str):
        return as_text(content)
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    return json.dumps(content, ensure_ascii=False, default=str)


def _read_reasoning(data: Mapping[str, Any]) -> str:
    return as_text(data.get("reasoning")) or as_text(data.get("reasoning_content"))


def _read_tool_calls(value: object) -> list[dict[str, Any]]:
    calls = []
    for number, call in enumerate(as_list(value)):
        function = as_dict(as_dict(call).get("function"))
        call_id = as_id(as_dict(call).get("id")) or as_id(as_dict(call).get("call_id")) or f"call_{number}"
        name = as_text(function.get("name")) or as_text(as_dict(call).get("name"))
        calls.append(build_call(call_id, name, function.get("arguments", as_dict(call).get("arguments"))))
    return calls

"""The files of Hermes' web page: `webui/sessions/<id>.json` and `projects.json`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.imported import ImportedProject, ImportProblem
from palaver.transfer.readers.hermes.compactions import measure_overlap
from palaver.transfer.readers.hermes.json_object import UnreadableObject, read_members
from palaver.transfer.readers.hermes.marks import make_key
from palaver.transfer.readers.hermes.records import Record, read_record, read_seconds
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.plain_file import read_plain_file
from palaver.transfer.readers.values import as_dict, as_list, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo
    from pathlib import Path

_MAX_CONTEXT_KEYS: Final = 4_096
_LISTS: Final = ("messages", "tool_calls", "context_messages")
_LARGE_MEMBERS: Final = frozenset({"anchor_activity_scenes", "gateway_routing_history", "context_engine_state"})


@dataclass(slots=True)
class WebuiSession:
    """One file, without its messages."""

    path: Path
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    message_count: int = 0
    summary: str = ""
    context_keys: list[int] = field(default_factory=list)  # of what the model saw after the summary

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def title(self) -> str:
        title = as_text(self.fields.get("title")).strip()
        return "" if title in {"Untitled", "New Chat"} else title


def read_webui_session(path: Path, name: str, zone: tzinfo | None) -> WebuiSession | ImportProblem:
    """Read everything but the messages; a file that ends too early gives what it has."""
    session = WebuiSession(path, name)
    try:
        for key, value in read_members(path, _LISTS):
            if key == "messages":
                session.message_count += 1
            elif key == "context_messages":
                _read_context(session, value, zone)
            elif key not in _LISTS and key not in _LARGE_MEMBERS:
                session.fields[key] = value
    except UnreadableObject as error:
        if not session.fields:
            return ImportProblem(where=name, what=f"{error} The file is left out.")
    except OSError as error:
        return ImportProblem(where=name, what=f"The file cannot be read: {error.strerror}.")
    session.summary = session.summary or as_text(session.fields.get("compression_anchor_summary")).strip()
    return session


def _read_context(session: WebuiSession, data: object, zone: tzinfo | None) -> None:
    record = read_record(as_dict(data), session.name, zone)
    if not isinstance(record, Record):
        return
    if record.summary is not None:
        session.summary, session.context_keys = record.summary, []
    elif session.summary and len(session.context_keys) < _MAX_CONTEXT_KEYS:
        session.context_keys.append(make_key(record))


def open_webui_records(
    session: WebuiSession, zone: tzinfo | None, *, with_summary: bool
) -> Iterator[Record | ImportProblem]:
    """Read the messages as people saw them, the summary at its place and the prompt that has no answer yet."""
    number, visible = 0, 0
    anchor = session.fields.get("compression_anchor_visible_idx") if with_summary and session.summary else None
    recent: deque[int] = deque(maxlen=_MAX_CONTEXT_KEYS)
    last_text = ""
    try:
        for key, data in read_members(session.path, _LISTS):
            if key != "messages":
                continue
            number += 1
            record = read_record(as_dict(data), f"{session.name}, message {number}", zone)
            if record is not None:
                yield record
            if isinstance(record, Record):
                recent.append(make_key(record))
                if record.role == "user":
                    last_text = record.text.strip()
                visible += record.role != "tool" and bool(record.text.strip())
                if isinstance(anchor, int) and visible == anchor + 1:
                    yield _make_summary(session, record.at, measure_overlap(list(recent), session.context_keys))
                    anchor = None
    except UnreadableObject as error:
        yield ImportProblem(where=f"{session.name}, after message {number}", what=str(error))
    except OSError as error:
        yield ImportProblem(where=session.name, what=f"The file cannot be read: {error.strerror}.")
    yield from _read_pending(session, last_text, zone)


def _make_summary(session: WebuiSession, at: float | None, kept_count: int) -> Record:
    return Record(role="user", content="", where=session.name, at=at, summary=session.summary, kept_count=kept_count)


def _read_pending(session: WebuiSession, last_text: str, zone: tzinfo | None) -> Iterator[Record]:
    text = as_text(session.fields.get("pending_user_message")).strip()
    if text and text != last_text:
        yield Record(
            role="user",
            content=text,
            where=session.name,
            at=read_seconds(session.fields.get("pending_started_at"), zone),
            attachments=as_list(session.fields.get("pending_attachments")),
        )


def read_projects(path: Path, name: str) -> tuple[dict[str, ImportedProject], list[ImportProblem]]:
    """Read `projects.json`: projects by their ids."""
    try:
        data = parse_json(read_plain_file(path))
    except FileNotFoundError:
        return {}, []
    except (OSError, UnreadableItem) as error:
        return {}, [ImportProblem(where=name, what=f"Projects cannot be read: {error}")]
    projects = {}
    for item in map(as_dict, as_list(data)):
        project_id, title = as_text(item.get("project_id")), as_text(item.get("name")).strip()
        if project_id and title:
            projects[project_id] = ImportedProject(name=title, color=as_text(item.get("color")) or None)
    return projects, []

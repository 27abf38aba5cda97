"""Transcripts in files: `<id>.jsonl`, a message in each line, and `session_<id>.json`, written by the agent itself."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import field
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.files import iterate_lines
from palaver.transfer.imported import ImportProblem
from palaver.transfer.reader_kit.export_files import MAX_ITEM_BYTES, UnreadableItem, parse_json
from palaver.transfer.reader_kit.values import as_dict, as_list, as_text, describe_read_error, open_plain_file
from palaver.transfer.readers.hermes.folding import measure_overlap
from palaver.transfer.readers.hermes.records import Record, make_key, read_record, read_seconds

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from datetime import tzinfo
    from pathlib import Path
    from typing import TextIO


CHUNK_CHARS: Final = 65_536
MAX_ITEM_CHARS: Final = 64_000_000
_WHITE_SPACE: Final = " \t\r\n"

_MAX_CONTEXT_KEYS: Final = 4_096
_LISTS: Final = ("messages", "tool_calls", "context_messages")
_LARGE_MEMBERS: Final = frozenset({"anchor_activity_scenes", "gateway_routing_history", "context_engine_state"})


def read_members(path: Path, lists: Container[str]) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object; of the named lists each item, as `(key, item)`.

    Raises UnreadableItem where the file stops being JSON, and OSError if it cannot be read; what came before is valid.
    """
    with TextIOWrapper(open_plain_file(path), encoding="utf-8-sig", errors="replace") as file:
        yield from _ObjectReader(file).read(lists)


class _ObjectReader:
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decoder = json.JSONDecoder(strict=False)
        self._buffer = ""
        self._position = 0

    def read(self, lists: Container[str]) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        while self._peek() != "}":
            key = self._read_value()
            self._expect(":")
            if key in lists and self._peek() == "[":
                self._expect("[")
                while self._peek() != "]":
                    yield key, self._read_value()
                    self._skip_comma("]")
                self._expect("]")
            else:
                yield key, self._read_value()
            self._skip_comma("}")

    def _peek(self) -> str:
        while True:
            while self._position < len(self._buffer) and self._buffer[self._position] in _WHITE_SPACE:
                self._position += 1
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._fill():
                raise UnreadableItem("The file ends too early.")

    def _expect(self, char: str) -> None:
        found = self._peek()
        if found != char:
            raise UnreadableItem(f"It is not valid JSON: {found!r} instead of {char!r}.")
        self._position += 1

    def _skip_comma(self, end: str) -> None:
        if self._peek() != end:
            self._expect(",")

    def _read_value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._position)
            except RecursionError:
                raise UnreadableItem("It is nested too deeply.") from None
            except ValueError:
                if not self._fill():
                    raise UnreadableItem("The file ends in the middle of an item, or is not valid JSON.") from None
                continue
            if end == len(self._buffer) and self._fill():  # a number may go on
                continue
            self._position = end
            return value

    def _fill(self) -> bool:
        """Read more of the file, always as much again as there is, so that long items are not parsed too often."""
        rest = self._buffer[self._position :]
        if len(rest) > MAX_ITEM_CHARS:
            raise UnreadableItem(f"An item has more than {MAX_ITEM_CHARS // 1_000_000} million characters.")
        more = self._file.read(max(CHUNK_CHARS, len(rest)))
        self._buffer, self._position = rest + more, 0
        return bool(more)


def open_transcript(path: Path, name: str, zone: tzinfo | None) -> Iterator[Record | ImportProblem]:
    """Read `<id>.jsonl`; a line that is damaged is a problem, and the rest is read."""
    try:
        with open_plain_file(path) as file:
            for number, (_, line) in enumerate(iterate_lines(file, MAX_ITEM_BYTES), 1):
                if line is None or line.strip():
                    found = _read_line(line, f"{name}, line {number}", zone)
                    if found is not None:
                        yield found
    except OSError as error:
        yield ImportProblem(where=name, what=describe_read_error(error, "The file"))


def _read_line(line: bytes | None, where: str, zone: tzinfo | None) -> Record | ImportProblem | None:
    try:
        data = parse_json(line)
    except UnreadableItem as error:
        return ImportProblem(where=where, what=str(error))
    if not isinstance(data, dict):
        return ImportProblem(where=where, what="The line is not a message.")
    return read_record(data, where, zone)


def open_snapshot(path: Path, name: str, zone: tzinfo | None) -> Iterator[Record | ImportProblem]:
    """Read the messages of `session_<id>.json`, the conversation as the agent saw it, or of a file of the page."""
    number = 0
    try:
        for key, data in read_members(path, _LISTS):
            if key == "messages":
                number += 1
                if record := read_record(as_dict(data), f"{name}, message {number}", zone):
                    yield record
    except UnreadableItem as error:
        yield ImportProblem(where=f"{name}, after message {number}", what=str(error))
    except OSError as error:
        yield ImportProblem(where=name, what=describe_read_error(error, "The file"))


@dataclass(slots=True)
class WebuiSession:
    """One file of Hermes' web page, `webui/sessions/<id>.json`, without its messages."""

    path: Path
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    summary: str = ""
    context_keys: list[int] = field(default_factory=list)  # of what the model saw after the summary

    @property
    def title(self) -> str:
        title = as_text(self.fields.get("title")).strip()
        return "" if title in {"Untitled", "New Chat"} else title


def read_webui_session(path: Path, name: str, zone: tzinfo | None) -> WebuiSession | ImportProblem:
    """Read everything but the messages; a file that ends too early gives what it has."""
    session = WebuiSession(path, name)
    try:
        for key, value in read_members(path, _LISTS):
            if key == "context_messages":
                _read_context(session, value, zone)
            elif key not in _LISTS and key not in _LARGE_MEMBERS:
                session.fields[key] = value
    except UnreadableItem as error:
        if not session.fields:
            return ImportProblem(where=name, what=f"{error} The file is left out.")
    except OSError as error:
        return ImportProblem(where=name, what=describe_read_error(error, "The file"))
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
    visible = 0
    anchor = session.fields.get("compression_anchor_visible_idx") if with_summary and session.summary else None
    recent: deque[int] = deque(maxlen=_MAX_CONTEXT_KEYS)
    last_text = ""
    for record in open_snapshot(session.path, session.name, zone):
        yield record
        if isinstance(record, Record):
            recent.append(make_key(record))
            if record.role == "user":
                last_text = record.text.strip()
            visible += record.role != "tool" and bool(record.text.strip())
            if isinstance(anchor, int) and visible == anchor + 1:
                kept_count = measure_overlap(list(recent), session.context_keys)
                where, summary = session.name, session.summary
                yield Record(role="user", content="", where=where, at=record.at, summary=summary, kept_count=kept_count)
                anchor = None
    yield from _read_pending(session, last_text, zone)


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

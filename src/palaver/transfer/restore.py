"""Imports a file in Palaver's own format into a store, for its operator: people, conversations, files, everything.

What is here with the same id stays as it is. A line that is not valid is reported with its number and left out. A long
session is written by several transactions, and no list shows it before the last; a run after a crash continues with the
first event that is missing.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import closing
from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import from_micros, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction
from palaver.core.errors import InvalidInput
from palaver.core.ids import SESSION_ID_PATTERN, PersonId
from palaver.core.source import Platform, decode_source
from palaver.core.titles import clean_title, parse_title_slot
from palaver.media import table as attachments
from palaver.sessions import hidden_ranges as read_marks, table as sessions, usage_table as usage
from palaver.sessions.events import EventKind
from palaver.sessions.speech import Attachment, AttachmentNotFound, AttachmentTooLarge, parse_attachment_id
from palaver.transfer import import_rows, imports_table as imports, restore_rows
from palaver.transfer.import_rows import EventRow, find_session_no, find_value, insert_row, insert_row_if_new
from palaver.transfer.imports_table import ItemKey
from palaver.transfer.own_format import (
    EXPORTED_TABLES,
    InvalidRecord,
    Record,
    RecordStream,
    check_text,
    decode_columns,
    decode_fields,
    get_event_fields,
)
from palaver.transfer.report import Batch, ImportReport, Step, WriteQueue
from palaver.transfer.restore_rows import PERSON, PROJECT, AudienceDirectory, get_list, get_optional_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore


ATTACHMENT: Final = "attachment"  # what later steps look up
EVENTS_PER_STEP: Final = 250
_SEQ_COUNTERS = ("last_seq", "message_count", "tool_call_count")
_EVENT_KIND = re.compile(r"[a-z_]{1,40}")


def restore_export(
    store: SessionStore,
    attachments: Attachments | None,
    path: Path,
    *,
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Import an export of Palaver. `on_progress` is called with the bytes that were read, and with all."""
    report = ImportReport("palaver", is_dry_run=dry_run)
    queue = WriteQueue(store.engine, report)
    with closing(RecordStream(path, report.add_problem)) as stream:
        now, size = to_micros(store.clock.now()), stream.size
        restore = (
            _DryRun(store, stream, report) if dry_run else _Restore(store, stream, report, attachments, queue, now)
        )
        for number, record in stream.read():
            try:
                restore.add(record)
            except (InvalidRecord, InvalidInput) as error:
                stream.report(number, str(error))
            if on_progress is not None:
                on_progress(stream.position, size)
        queue.flush()
        stream.check_end()
    if not dry_run:
        store.indexer.notify()
    return report


@dataclass(slots=True)
class _DryRun:
    """Counts what would come in."""

    _store: SessionStore
    _stream: RecordStream
    _report: ImportReport
    _audiences: AudienceDirectory = field(default_factory=AudienceDirectory)

    def add(self, record: Record) -> None:
        kind = record["type"]
        if kind == "audience":
            self._audiences.add(record)
        exported = EXPORTED_TABLES.get(kind)
        if exported is None:
            return
        value = check_text(exported.key, record.get(exported.key))
        same = {exported.key: value}
        is_here = self._store.engine.run(Read(lambda tx: find_value(tx, kind, "1", same))) is not None
        if kind == "session":
            self._read_session(record, is_here=is_here)
            return
        if kind == "attachment":
            deque(self._stream.take_chunks(value), maxlen=0)
        self._report.count("unchanged" if is_here else exported.report_kind)

    def _read_session(self, record: Record, *, is_here: bool) -> None:
        session = SessionRestore(record, self._audiences, 0)
        events = self._stream.read_parts("event", session.id, session.read_event)
        messages = sum(event.kind == "message" for event in events)
        if is_here:
            self._report.count("unchanged")
        else:
            self._report.count("conversations")
            self._report.count("messages", messages)


@dataclass(slots=True)
class _Restore:
    _store: SessionStore
    _stream: RecordStream
    _report: ImportReport
    _attachments: Attachments | None
    _queue: WriteQueue
    _now: int
    _audiences: AudienceDirectory = field(default_factory=AudienceDirectory)

    def add(self, record: Record) -> None:
        match record["type"]:
            case "audience":
                self._audiences.add(record)
            case "person":
                self._queue.add(restore_rows.make_person_step(record, self._audiences), rows=5)
            case "attachment":
                self._add_attachment(record)
            case "session":
                self._add_session(record)
            case "usage":
                self._queue.add(_make_orphan_usage_step(record, self._audiences))
            case kind if kind in EXPORTED_TABLES:
                self._queue.add(restore_rows.make_step(record, self._audiences))
            case kind:
                raise InvalidRecord(f"a line of type {kind[:40]!r} is not expected here", key="type")

    def _add_session(self, record: Record) -> None:
        session = SessionRestore(record, self._audiences, self._now)
        self._queue.add(session.start, rows=2)
        rows: list[EventRow] = []
        chars = 0
        for row in self._stream.read_parts("event", session.id, session.read_event):
            rows.append(row)
            chars += row.size
            if len(rows) >= EVENTS_PER_STEP or chars >= 500_000:
                self._queue.add(partial(session.write_events, rows=rows), rows=len(rows), chars=chars)
                rows, chars = [], 0
        if rows:
            self._queue.add(partial(session.write_events, rows=rows), rows=len(rows), chars=chars)
        lines = self._stream.read_parts("usage", session.id, partial(_read_usage, audiences=self._audiences))
        while used := list(islice(lines, EVENTS_PER_STEP)):
            self._queue.add(partial(session.write_usage, rows=used), rows=len(used))
        self._queue.add(session.finish, rows=2)

    def _add_attachment(self, record: Record) -> None:
        values = decode_columns(EXPORTED_TABLES["attachment"].fields, record)
        file_person = check_text("person", record.get("person"))
        try:
            attachment_id = parse_attachment_id(values["id"])
        except AttachmentNotFound:
            raise InvalidRecord(f"id: {values['id'][:40]!r} is not the id of a file", key="id") from None
        self._queue.flush()  # the people before it are here now
        same = {"id": attachment_id, "sha256": values["sha256"]}
        is_here = self._store.engine.run(Read(lambda tx: find_value(tx, "attachment", "no", same))) is not None
        chunks = self._stream.take_chunks(attachment_id)
        try:
            if not is_here:
                self._store_file(values, file_person, chunks)
        finally:
            deque(chunks, maxlen=0)  # also those of a file that is left out
        self._queue.add(
            lambda tx, batch: batch.set(ATTACHMENT, attachment_id, find_value(tx, "attachment", "no", same))
        )

    def _store_file(self, values: dict[str, Any], file_person: str, chunks: Iterator[bytes]) -> None:
        if self._attachments is None:
            raise InvalidRecord("files can't be stored here")
        # If its sender was not exported, it belongs to the person whose export this is.
        owner = str(self._stream.header.get("person"))
        person_id = self._queue.find(PERSON, file_person) or self._queue.find(PERSON, owner)
        if person_id is None:
            raise InvalidRecord("its sender is not in this file", key="person")
        created_at = from_micros(values["created_at"])
        attachment = Attachment(**values | {"person_id": PersonId(person_id), "created_at": created_at})
        try:
            self._attachments.restore(attachment, chunks)
        except (InvalidInput, AttachmentTooLarge) as error:
            raise InvalidRecord(str(error)) from None
        self._report.count("files")


class SessionRestore:
    """One session of the file while its lines are read."""

    def __init__(self, record: Record, audiences: AudienceDirectory, now: int) -> None:
        self._audiences = audiences
        self._ref = audiences.check(record)
        self._columns = _read_session(record)
        self.id: str = self._columns["id"]
        self._key = ItemKey("palaver", "conversation", "", self.id)
        self._now = now
        self._project = get_optional_text(record, "project")
        self._parent = get_optional_text(record, "parent")
        self._attachments = [check_text("attachments", each) for each in record.get("attachments") or ()]
        self._marks = [
            (check_text("person", each.get("person")), decode_columns(read_marks.EXPORT.fields, each))
            for each in get_list(record, "read_marks")
        ]
        self._last_seq = 0
        self._event_count = 0
        self._message_count = 0
        self._ends_hidden = False  # what has hidden the last event is missing

    @property
    def is_complete(self) -> bool:
        """Return whether every event of the log was in the file: the last one, too, which nothing can have hidden."""
        return bool(self._event_count == self._columns["last_seq"] == self._last_seq) and not self._ends_hidden

    def start(self, tx: Transaction, batch: Batch) -> None:
        """Insert the session, unless it is here; remember its number if there is something to write."""
        item = imports.find(tx, self._key)
        no = find_session_no(tx, self.id)
        if item is not None and no is None:
            batch.report.count("deleted")
        elif no is not None and (item is None or item.is_done):
            batch.report.count("unchanged")
        else:
            if no is None:
                audience_no = self._audiences.resolve(tx, batch, self._ref)
                no = import_rows.start_session(tx, self._columns | {"audience_no": audience_no})
                imports.add(tx, self._key, self._now, session_id=self.id, is_done=False)
            batch.set_session(self.id, no)

    def read_event(self, record: Mapping[str, Any]) -> EventRow:
        row = EventRow._make(decode_fields(get_event_fields(record.get("kind")), record))
        if row.seq <= self._last_seq:
            raise InvalidRecord(f"seq: {row.seq} is not after {self._last_seq}", key="seq")
        if not _EVENT_KIND.fullmatch(row.kind):
            raise InvalidRecord(f"kind: {row.kind[:40]!r} is not allowed", key="kind")
        self._last_seq = row.seq
        self._ends_hidden = row.hidden_by is not None
        self._event_count += 1
        if row.kind == EventKind.MESSAGE:
            self._message_count += 1
        return row

    def write_events(self, tx: Transaction, batch: Batch, rows: list[EventRow]) -> None:
        no = batch.get_session_no(self.id)
        if no is None:
            return
        stored = find_value(tx, "session", "last_seq", {"no": no}) or 0
        missing = [
            row._replace(person_id=row.person_id and (batch.get(PERSON, row.person_id) or row.person_id))
            for row in rows
            if row.seq > stored
        ]
        import_rows.append_events(tx, no, missing)

    def write_usage(self, tx: Transaction, batch: Batch, rows: list[tuple[dict[str, Any], int | None]]) -> None:
        no = batch.get_session_no(self.id)
        for columns, ref in rows if no is not None else ():
            audience_no = None if ref is None else self._audiences.resolve(tx, batch, ref)
            insert_row_if_new(tx, "usage", columns | {"session_no": no, "audience_no": audience_no})

    def finish(self, tx: Transaction, batch: Batch) -> None:
        """Show the session in lists, with its title, counters, project and files."""
        no = batch.get_session_no(self.id)
        if no is None:
            return
        columns: dict[str, Any] = {
            name: self._columns[name]
            for name in ("active_at", "last_seq", "message_count", "compaction_seq", "redo_seq")
        }
        columns["parent_no"] = find_session_no(tx, self._parent)
        columns["project_no"] = None if self._project is None else batch.get(PROJECT, self._project)
        columns["unindexed"] = int(self._message_count > 0)
        if not self.is_complete:
            columns["last_seq"] = max(self._last_seq, find_value(tx, "session", "last_seq", {"no": no}) or 0)
        import_rows.update_session(tx, no, columns)
        if not self.is_complete:
            import_rows.repair_session(tx, no)
        if self._columns["title"] is not None:
            import_rows.set_free_title(tx, no, self._columns["title"], batch.report, is_own_format=True)
        file_nos = (batch.get(ATTACHMENT, each) for each in self._attachments)
        attachments.use_in_session(tx, no, [each for each in file_nos if each is not None])
        for file_person, mark in self._marks:
            person_id = batch.get(PERSON, file_person)
            if person_id is not None:
                insert_row_if_new(tx, "read_mark", mark | {"session_no": no, "person_id": person_id})
        imports.save_progress(
            tx, self._key, entry_count=self._event_count, digest="", last_seq=self._last_seq, is_done=True
        )
        batch.report.count("conversations")
        batch.report.count("messages", self._message_count)


def _read_session(record: Record) -> dict[str, Any]:
    columns = decode_columns(sessions.EXPORT.fields, record)
    if not SESSION_ID_PATTERN.fullmatch(columns["id"]):
        raise InvalidRecord(f"id: {columns['id'][:40]!r} is not the id of a session", key="id")
    Platform(columns["platform"])
    decode_source(columns["source"])
    if (columns["ended_at"] is None) != (columns["end_reason"] is None):
        raise InvalidRecord("end_reason: a session has it if, and only if, it has ended", key="end_reason")
    columns["expiry_base"] = columns["last_human_at"] or columns["created_at"]
    if any(columns[name] < 0 for name in _SEQ_COUNTERS):
        raise InvalidRecord("message_count: a number can't be negative", key="message_count")
    if columns["title"] is not None:
        columns["title"] = clean_title(columns["title"])
        slot = parse_title_slot(columns["title"])
        columns |= {"title_base": slot.base, "title_number": slot.number}
    return columns


def _read_usage(record: Mapping[str, Any], audiences: AudienceDirectory) -> tuple[dict[str, Any], int | None]:
    columns = decode_columns(usage.EXPORT.fields, record)
    return columns, audiences.check(record) if "audience" in record else None


def _make_orphan_usage_step(record: Record, audiences: AudienceDirectory) -> Step:
    columns, ref = _read_usage(record, audiences)
    same = {name: columns[name] for name in ("created_at", "turn_id", "model")}

    def run(tx: Transaction, batch: Batch) -> None:
        if find_value(tx, "usage", "session_no", same) is None:
            audience_no = None if ref is None else audiences.resolve(tx, batch, ref)
            number = import_rows.find_free_usage_no(tx)
            insert_row(tx, "usage", columns | {"session_no": number, "audience_no": audience_no})

    return run

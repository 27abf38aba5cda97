"""Imports a file in Palaver's own format into a store, for its operator: people, conversations, files, everything.

What is here with the same id stays as it is. A line that is not valid is reported with its number and left out.
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from palaver.core.clock import from_micros, to_micros
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidInput
from palaver.core.ids import PersonId
from palaver.sessions.speech import Attachment, AttachmentNotFound, AttachmentTooLarge, parse_attachment_id
from palaver.transfer import restore_rows, restore_sessions
from palaver.transfer.export_records import EXPORTED_TABLES, InvalidRecord, check_text, decode_columns
from palaver.transfer.import_rows import find_value, has_row
from palaver.transfer.own_format import Record, RecordStream
from palaver.transfer.report import ImportReport, WriteQueue
from palaver.transfer.restore_rows import PERSON, AudienceDirectory
from palaver.transfer.restore_sessions import ATTACHMENT, EVENTS_PER_STEP, SessionRestore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore


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
        is_here = self._store.engine.run(Read(lambda tx: has_row(tx, kind, exported.key, value)))
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
        """Write one record, with the lines that belong to it."""
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
                self._queue.add(restore_sessions.make_orphan_usage_step(record, self._audiences))
            case kind if kind in EXPORTED_TABLES:
                self._queue.add(restore_rows.make_step(record, self._audiences))
            case kind:
                raise InvalidRecord(f"a line of type {kind[:40]!r} is not expected here", key="type")

    def _add_session(self, record: Record) -> None:
        session = SessionRestore(record, self._audiences, self._now)
        self._queue.add(session.start, rows=2)
        rows = []
        chars = 0
        for row in self._stream.read_parts("event", session.id, session.read_event):
            rows.append(row)
            chars += row.size
            if len(rows) >= EVENTS_PER_STEP or chars >= 500_000:
                self._queue.add(session.make_events_step(rows), rows=len(rows), chars=chars)
                rows, chars = [], 0
        if rows:
            self._queue.add(session.make_events_step(rows), rows=len(rows), chars=chars)
        read_usage = partial(restore_sessions.read_usage, audiences=self._audiences)
        usage = self._stream.read_parts("usage", session.id, read_usage)
        while used := list(islice(usage, EVENTS_PER_STEP)):
            self._queue.add(session.make_usage_step(used), rows=len(used))
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

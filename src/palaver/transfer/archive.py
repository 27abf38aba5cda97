"""Everything about one person in one .zip: what they may see, in formats that people and programs can read.

Always true: it contains what the person owns and the conversations that they take part in, as they see them, and no
secret: no password, key or token.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import deque
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from html import escape
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from palaver.core.clock import Clock, compute_pause
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidInput, NotFound, PalaverError, SessionNotFound, TooManyAttempts
from palaver.core.files import write_pieces_atomically
from palaver.core.operation import iterate_pages
from palaver.jobs import table as jobs
from palaver.media import table as attachments
from palaver.memory.service import MemoryOperations
from palaver.people import table as people
from palaver.sessions.export import (
    DocumentFormat,
    clean_document_text,
    format_message_count,
    format_place,
    format_time,
    format_title,
)
from palaver.transfer.documents import Documents, make_file_name
from palaver.transfer.reader_kit.export_files import read_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from palaver.core.ids import PersonId
    from palaver.media.attachments import Attachments
    from palaver.people.model import Person, Principal
    from palaver.sessions.model import Session
    from palaver.sessions.store import SessionStore
    from palaver.sessions.view import SessionView
    from palaver.transfer.exporter import ExportScope


_CHUNK_BYTES: Final = 64 * 1024
_FILE_MODE: Final = 0o600 << 16
_EARLIEST: Final = datetime(1980, 1, 1, tzinfo=UTC)  # that a .zip file can name

_PAGE_ROWS: Final = 100
_USAGE_PERIOD: Final = timedelta(days=3650)
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_README: Final = """\
Everything that Palaver has stored about you
============================================

conversations/html/   Your conversations to read: open index.html in a browser. It needs no network.
conversations/markdown/   The same as text.
files/                The files that you have sent.
memories.json         What the agent remembers about you.
jobs.json             Your scheduled jobs.
usage.json            How many tokens your conversations have used, by model, and what they cost.
account.json          Your name, your role, and the accounts that are linked to you. No passwords and no keys.
palaver.jsonl         All of it for a program: Palaver can import it again ("palaver import palaver palaver.jsonl").

Conversations that you share with other people are here as you see them. What other people write in their own
conversations is not.
"""
MAX_EXPORTS_PER_PERIOD: Final = 5
PERIOD: Final = timedelta(hours=1)


class _Buffer:
    """The bytes of the zip file that were not taken yet. It can't be rewound, so the zip file does not try."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        data, self.data = bytes(self.data), bytearray()
        return data


class ArchiveFile(NamedTuple):
    name: str
    chunks: Iterable[bytes]
    at: datetime


class _IndexEntry(NamedTuple):
    file_name: str
    title: str
    details: str


def iterate_sessions(view: SessionView) -> Iterator[Session]:
    """Yield every conversation of a view that has messages, archived ones last."""
    for state in ("active", "archived"):
        yield from iterate_pages(partial(view.list, state=state, limit=_PAGE_ROWS))


def iterate_document_files(
    documents: Documents,
    principal: Principal,
    sessions: Iterable[Session],
    document_format: DocumentFormat,
    now: datetime,
    *,
    everything: bool = False,
    folder: str = "",
) -> Iterator[ArchiveFile]:
    """Yield a file for each conversation, and then the index. A conversation that was deleted meanwhile is left out."""
    entries: list[_IndexEntry] = []
    for session in sessions:
        try:
            document = documents.iterate(principal, session.id, document_format, everything=everything)
        except SessionNotFound:
            continue
        name = make_file_name(session, document_format.suffix)
        details = f"{format_place(session)}, {format_time(session.created_at)}, {format_message_count(session)}"
        entries.append(_IndexEntry(name, clean_document_text(format_title(session)), clean_document_text(details)))
        yield ArchiveFile(folder + name, _encode_until_deleted(document), session.active_at or now)
    if document_format is not DocumentFormat.JSONL:
        index = _format_index(entries, document_format)
        yield ArchiveFile(f"{folder}index.{document_format.suffix}", (piece.encode() for piece in index), now)


def iterate_zip(files: Iterable[ArchiveFile]) -> Iterator[bytes]:
    """Yield the bytes of a .zip with these files, which are read only as fast as the result is."""
    buffer = _Buffer()
    archive = ZipFile(buffer, "w", ZIP_DEFLATED, allowZip64=True)  # type: ignore[call-overload]
    for file in files:
        info = ZipInfo(file.name, max(file.at.astimezone(UTC), _EARLIEST).timetuple()[:6])
        info.compress_type = ZIP_DEFLATED
        info.external_attr = _FILE_MODE
        with archive.open(info, "w", force_zip64=True) as entry:
            for chunk in file.chunks:
                entry.write(chunk)
                if len(buffer.data) >= _CHUNK_BYTES:
                    yield buffer.take()
        yield buffer.take()
    archive.close()
    yield buffer.take()  # the directory: without it, programs say that the file is damaged


def write_folder(folder: Path, files: Iterable[ArchiveFile]) -> int:
    """Write files into a folder that is empty or does not exist, readable by its owner only; return how many."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PalaverError(f"{folder} already exists and is not an empty folder. Choose another one.", path=str(folder))
    count = 0
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in files:
            path = folder / file.name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                for chunk in file.chunks:
                    stream.write(chunk)
            count += 1
    except OSError as error:
        raise PalaverError(f"Could not write to {folder}: {error.strerror}.", path=str(folder)) from error
    return count


def _encode_until_deleted(document: Iterator[str]) -> Iterator[bytes]:
    """Yield a document; the rest of one whose conversation is deleted meanwhile is missing."""
    try:
        for chunk in document:
            yield chunk.encode()
    except SessionNotFound:
        yield b"\n\nThis conversation was deleted during the export.\n"


def _format_index(entries: Iterable[_IndexEntry], document_format: DocumentFormat) -> Iterator[str]:
    if document_format is DocumentFormat.MARKDOWN:
        yield "# Conversations\n\n"
        for entry in entries:
            label = entry.title.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            yield f"- [{label}](<{entry.file_name}>), {entry.details}\n"
        return
    from palaver.transfer.html_export import PAGE_END, format_page_start

    yield format_page_start("Conversations")
    yield '<main>\n<h1>Conversations</h1>\n<ul class="list">\n'
    for entry in entries:
        link = f'<a href="{escape(entry.file_name)}" dir="auto">{escape(entry.title)}</a>'
        yield f'<li>{link}<br><span class="note">{escape(entry.details)}</span></li>\n'
    yield "</ul>\n" + PAGE_END


class PersonArchives:
    """Makes archives of people from one store. It blocks: call it on a thread."""

    def __init__(self, store: SessionStore, files: Attachments | None) -> None:
        self._store = store
        self._files = files
        self._documents = Documents(store, files)

    def iterate(self, principal: Principal) -> Iterator[bytes]:
        """Yield the .zip of a person, while it is made."""
        return iterate_zip(self._iterate_files(principal))

    def _iterate_files(self, principal: Principal) -> Iterator[ArchiveFile]:
        now, view = self._store.clock.now(), self._store.seen_by(principal)
        today = now.date()
        job_rows = self._store.engine.run(Read(lambda tx: jobs.list_owned(tx, principal.person_id)))
        memories = [
            {"text": entry.memory.text, "shared": entry.shared, "created_at": entry.memory.created_at}
            for entry in iterate_pages(partial(view.part(MemoryOperations).list, limit=_PAGE_ROWS))
        ]
        usage = view.usage.report("model", first=today - _USAGE_PERIOD, last=today)

        def make(name: str, content: str) -> ArchiveFile:
            return ArchiveFile(name, [content.encode()], now)

        yield make("README.txt", _README)
        yield make("account.json", _format_json(self._load_account(principal.person_id)))
        yield make("memories.json", _format_json(memories))
        yield make("jobs.json", _format_json([asdict(row.job) for row in job_rows]))
        yield make("usage.json", _format_json(asdict(usage)))
        for document_format in (DocumentFormat.HTML, DocumentFormat.MARKDOWN):
            folder = f"conversations/{document_format}/"
            yield from iterate_document_files(
                self._documents, principal, iterate_sessions(view), document_format, now, folder=folder
            )
        yield from self._iterate_attachments(principal.person_id)
        from palaver.transfer.exporter import ExportScope, export_records
        from palaver.transfer.own_format import format_lines, keep_visible_records

        records = export_records(self._store, self._files, ExportScope(principal.person_id))
        yield ArchiveFile("palaver.jsonl", format_lines(keep_visible_records(records, principal.person_id)), now)

    def _load_account(self, person_id: PersonId) -> dict[str, Any]:
        row = self._store.engine.run(Read(lambda tx: people.find_by_id(tx, person_id)))
        if row is None:
            raise NotFound("Person not found.")
        member = self._store.engine.run(Read(lambda tx: people.find_person(tx, person_id)))
        return {name: getattr(row.person, name) for name in ("id", "name", "role", "timezone")} | {
            "platforms": list(member.platforms) if member else [],
            "chat_accounts": [asdict(each) for each in member.chat_accounts] if member else [],
            "sign_in_methods": asdict(member.sign_in_methods) if member and member.sign_in_methods else None,
        }

    def _iterate_attachments(self, person_id: PersonId) -> Iterator[ArchiveFile]:
        if self._files is None:
            return
        after = 0
        while page := self._store.engine.run(
            Read(lambda tx, after=after: attachments.list_of_person(tx, person_id, after, _PAGE_ROWS))  # type: ignore[misc]
        ):
            for no, file in page:
                after = no
                try:
                    path = self._files.get_path(file)
                except PalaverError:  # its bytes are gone
                    continue
                name = _NOT_IN_NAMES.sub("-", file.name).strip("-.") or "file"
                yield ArchiveFile(f"files/{file.id}-{name}", read_path(path), file.created_at)


def _format_json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2, default=str) + "\n"


class PersonExports:
    """Lets each person download the archive of their data: one at a time in this process, and not all the time."""

    def __init__(self, archives: PersonArchives, clock: Clock) -> None:
        self._archives = archives
        self._clock = clock
        self._lock = Lock()
        self._running: set[PersonId] = set()
        self._started: dict[PersonId, deque[datetime]] = {}

    def start(self, principal: Principal) -> Iterator[bytes]:
        """Return the archive of a person, to be read on a thread; raises `TooManyAttempts`."""
        now, person_id = self._clock.now(), principal.person_id
        with self._lock:
            self._started = {each: times for each, times in self._started.items() if now - times[-1] < PERIOD}
            if person_id in self._running:
                raise TooManyAttempts(
                    "Your data is being downloaded already. Wait until that download has ended.", retry_after=10
                )
            times = self._started.setdefault(person_id, deque(maxlen=MAX_EXPORTS_PER_PERIOD))
            if len(times) == MAX_EXPORTS_PER_PERIOD and now - times[0] < PERIOD:
                wait = PERIOD - (now - times[0])
                raise TooManyAttempts(
                    f"You have downloaded your data {MAX_EXPORTS_PER_PERIOD} times within an hour. Try again later.",
                    retry_after=wait.total_seconds(),
                )
            times.append(now)
        return self._iterate(principal)

    def _iterate(self, principal: Principal) -> Iterator[bytes]:
        with self._lock:
            self._running.add(principal.person_id)
        try:
            started = time.perf_counter()
            for chunk in self._archives.iterate(principal):
                pause = compute_pause(time.perf_counter() - started)
                yield chunk
                time.sleep(pause)
                started = time.perf_counter()
        finally:
            with self._lock:
                self._running.discard(principal.person_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The conversations to export, and the target. The operator asks for it, who sees everything."""

    store: SessionStore
    attachments: Attachments | None
    owner: Person
    target: Path
    session_ids: tuple[str, ...] = ()  # only these
    person: Person | None = None  # everything of this person; neither: everything
    overwrite: bool = False

    @property
    def scope(self) -> ExportScope:
        from palaver.transfer.exporter import ExportScope

        if self.session_ids:
            return ExportScope(session_ids=self.session_ids)
        return ExportScope(None if self.person is None else self.person.id)

    def list_sessions(self) -> Iterator[Session]:
        if self.person is not None and not self.session_ids:
            return iterate_sessions(self.store.seen_by(self.person.principal))
        view = self.store.seen_by(self.owner.principal, everything=True)
        return map(view.get, self.session_ids) if self.session_ids else iterate_sessions(view)


@dataclass(frozen=True, slots=True)
class ExportResult:
    path: Path
    file_count: int
    size: int  # bytes


def export_jsonl(request: ExportRequest) -> ExportResult:
    """Write one file in Palaver's own format, which can be imported again."""
    from palaver.transfer.exporter import export_records
    from palaver.transfer.own_format import format_lines

    return _write_file(request, format_lines(export_records(request.store, request.attachments, request.scope)))


def export_documents(request: ExportRequest, document_format: DocumentFormat) -> ExportResult:
    """Write a document to read: one file for one conversation, a folder with an index for several."""
    documents, principal = Documents(request.store, request.attachments), request.owner.principal
    if len(request.session_ids) == 1:
        document = documents.iterate(principal, request.session_ids[0], document_format, everything=True)
        return _write_file(request, (chunk.encode() for chunk in document))
    files = iterate_document_files(
        documents, principal, request.list_sessions(), document_format, request.store.clock.now(), everything=True
    )
    count = write_folder(request.target, files)
    size = sum(path.stat().st_size for path in request.target.rglob("*") if path.is_file())
    return ExportResult(request.target, count, size)


def export_archive(request: ExportRequest) -> ExportResult:
    if request.person is None:
        raise InvalidInput("A .zip has everything about one person: add --person NAME.", key="person")
    archives = PersonArchives(request.store, request.attachments)
    return _write_file(request, archives.iterate(request.person.principal))


EXPORT_FORMATS: Final[Mapping[str, Callable[[ExportRequest], ExportResult]]] = {
    "jsonl": export_jsonl,
    "markdown": partial(export_documents, document_format=DocumentFormat.MARKDOWN),
    "html": partial(export_documents, document_format=DocumentFormat.HTML),
    "zip": export_archive,
}
FORMAT_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".zip": "zip",
}


def _write_file(request: ExportRequest, chunks: Iterable[bytes]) -> ExportResult:
    """Write a file that only its owner can read, which appears complete or not at all."""
    write_pieces_atomically(request.target, chunks, overwrite=request.overwrite)
    return ExportResult(request.target, 1, request.target.stat().st_size)

"""Several conversations as documents: one file for each, and an index that links to them, in a .zip or a folder."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from palaver.core.errors import PalaverError, SessionNotFound
from palaver.sessions.document_format import DocumentFormat
from palaver.sessions.document_words import (
    clean_document_text,
    format_message_count,
    format_place,
    format_time,
    format_title,
)
from palaver.transfer.documents import make_file_name
from palaver.transfer.html_export import PAGE_END, format_page_start
from palaver.transfer.zip_stream import ZipStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from palaver.people.model import Principal
    from palaver.sessions.model import Session
    from palaver.sessions.view import SessionView
    from palaver.transfer.documents import Documents

_PAGE_SESSIONS = 100


class ArchiveFile(NamedTuple):
    """A file of an archive: its name, with folders, and what it contains."""

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
        cursor: str | None = None
        while True:
            page = view.list(state=state, limit=_PAGE_SESSIONS, cursor=cursor)
            yield from page
            cursor = page.cursor
            if cursor is None:
                break


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
    """Yield the bytes of a .zip with these files."""
    archive = ZipStream()
    for file in files:
        yield from archive.add(file.name, file.chunks, file.at)
    yield from archive.finish()


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
    yield format_page_start("Conversations")
    yield '<main>\n<h1>Conversations</h1>\n<ul class="list">\n'
    for entry in entries:
        link = f'<a href="{escape(entry.file_name)}" dir="auto">{escape(entry.title)}</a>'
        yield f'<li>{link}<br><span class="note">{escape(entry.details)}</span></li>\n'
    yield "</ul>\n" + PAGE_END

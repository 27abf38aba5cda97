"""The formats of `palaver export`: each writes some conversations, a person's or all of them to a file or a folder."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput, PalaverError
from palaver.people.model import Principal
from palaver.sessions.document_format import DocumentFormat
from palaver.transfer.archive import PersonArchives
from palaver.transfer.document_archive import iterate_document_files, iterate_sessions, write_folder
from palaver.transfer.documents import Documents
from palaver.transfer.exporter import Exporter, ExportScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from palaver.media.attachments import Attachments
    from palaver.people.model import Person
    from palaver.sessions.model import Session
    from palaver.sessions.store import SessionStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """What to export, and where to. The operator asks for it, who sees everything."""

    store: SessionStore
    attachments: Attachments | None
    owner: Person
    target: Path
    session_ids: tuple[str, ...] = ()  # only these
    person: Person | None = None  # everything of this person; neither: everything
    overwrite: bool = False

    @property
    def scope(self) -> ExportScope:
        if self.session_ids:
            return ExportScope.of_sessions(self.session_ids)
        return ExportScope.everything() if self.person is None else ExportScope.of_person(self.person.id)

    def list_sessions(self) -> Iterator[Session]:
        """Yield the conversations with messages that are exported."""
        if self.session_ids:
            view = self.store.seen_by(self.owner.principal, everything=True)
            yield from (view.get(session_id) for session_id in self.session_ids)
        elif self.person is None:
            yield from iterate_sessions(self.store.seen_by(self.owner.principal, everything=True))
        else:
            yield from iterate_sessions(self.store.seen_by(self.person.principal))


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export has written."""

    path: Path
    file_count: int
    size: int  # bytes


def export_jsonl(request: ExportRequest) -> ExportResult:
    """Write one file in Palaver's own format, which can be imported again."""
    lines = Exporter(request.store, request.attachments).export_lines(request.scope)
    return _write_file(request, lines)


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
    """Write a .zip with everything about one person."""
    if request.person is None:
        raise InvalidInput("A .zip has everything about one person: add --person NAME.", key="person")
    archives = PersonArchives(request.store, request.attachments)
    return _write_file(request, archives.iterate(Principal(request.person.id, request.person.role)))


EXPORT_FORMATS: Final[Mapping[str, Callable[[ExportRequest], ExportResult]]] = MappingProxyType(
    {
        "jsonl": export_jsonl,
        "markdown": lambda request: export_documents(request, DocumentFormat.MARKDOWN),
        "html": lambda request: export_documents(request, DocumentFormat.HTML),
        "zip": export_archive,
    }
)
FORMAT_BY_SUFFIX: Final[Mapping[str, str]] = MappingProxyType(
    {".jsonl": "jsonl", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".zip": "zip"}
)


def _write_file(request: ExportRequest, chunks: Iterable[bytes]) -> ExportResult:
    """Write a file that only its owner can read, which appears complete or not at all."""
    target = Path(os.path.realpath(request.target))
    if target.is_dir():
        raise InvalidInput(f"{request.target} is a folder. Give the name of a file.", path=str(request.target))
    if target.exists() and not request.overwrite:
        raise InvalidInput(f"{request.target} already exists. Use --force to replace it.", path=str(request.target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                for chunk in chunks:
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
                size = stream.tell()
            temporary.replace(target)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
    except OSError as error:
        raise PalaverError(f"Could not write {request.target}: {error.strerror}.", path=str(request.target)) from error
    return ExportResult(request.target, 1, size)

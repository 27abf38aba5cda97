"""Exported conversations as files: reads a conversation through its reader's view, page by page, and writes a format.

Always true: only what the view shows is read, and its access is checked again for every page. A page is the most that
is held in memory; no transaction stays open between two pages. What is added to a conversation after the export has
started is not in it.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from palaver.core.fair_slots import FairSlots
from palaver.sessions.export import (
    EXPORT_FORMAT,
    DocumentEntry,
    DocumentFormat,
    clean_document_text,
    format_title,
    iterate_markdown,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from palaver.media.attachments import Attachments
    from palaver.people.model import Principal
    from palaver.sessions.events import Event
    from palaver.sessions.model import Session
    from palaver.sessions.store import SessionStore
    from palaver.sessions.view import SessionView

PAGE_EVENTS: Final = 20
MAX_CONCURRENT_CHUNKS: Final = 4  # one of each person
CHUNK_CHARS: Final = 64 * 1024
MAX_NAME_CHARS: Final = 50  # a file system takes 255 bytes
_NOT_IN_NAMES = re.compile(r"[^\w-]+")


class Documents:
    def __init__(self, store: SessionStore, files: Attachments | None) -> None:
        self._store = store
        self._files = files
        self._chunks = FairSlots(MAX_CONCURRENT_CHUNKS, per_key=1, min_pause=0)

    async def stream(
        self, principal: Principal, session_id: str, document_format: DocumentFormat, *, everything: bool = False
    ) -> AsyncIterator[bytes]:
        """Return the document of a conversation in chunks, each made on a thread; raises SessionNotFound.

        All documents of a person together take a part of the time, so that others are served in between.
        """
        document = await asyncio.to_thread(self.iterate, principal, session_id, document_format, everything=everything)
        return self._encode_chunks(principal, document)

    async def _encode_chunks(self, principal: Principal, document: Iterator[str]) -> AsyncIterator[bytes]:
        while True:
            async with self._chunks.hold(principal.person_id):
                chunk = await asyncio.to_thread(next, document, None)
            if chunk is None:
                return
            yield chunk.encode()

    def iterate(
        self, principal: Principal, session_id: str, document_format: DocumentFormat, *, everything: bool = False
    ) -> Iterator[str]:
        """Yield the document of a conversation in chunks; raises SessionNotFound before the first one. It blocks."""
        view = self._store.seen_by(principal, everything=everything)
        session = view.get(session_id)
        if document_format is DocumentFormat.JSONL:
            from palaver.transfer.exporter import ExportScope, export_records
            from palaver.transfer.own_format import format_lines, keep_visible_records

            records = export_records(self._store, self._files, ExportScope(session_ids=(session.id,)))
            kept = records if everything else keep_visible_records(records, principal.person_id)
            # JSON may have a DEL as it is, which would make the file look like a binary one.
            return join_chunks(line.decode().replace("\x7f", "\\u007f") for line in format_lines(kept))
        if document_format is DocumentFormat.JSON:
            return join_chunks(iterate_json(view, session))
        return join_chunks(self._iterate_pieces(view, session, document_format))

    def _iterate_pieces(self, view: SessionView, session: Session, document_format: DocumentFormat) -> Iterator[str]:
        entries = iterate_visible_entries(view, session.id)
        if document_format is DocumentFormat.HTML:
            from palaver.transfer.html_export import ConversationImages, iterate_html

            images = None if self._files is None else ConversationImages(self._store.engine, self._files, session.id)
            yield from iterate_html(session, entries, images)
            return
        separator = ""
        for block in iterate_markdown(session, entries):
            yield separator + clean_document_text(block)
            separator = "\n\n"
        yield "\n"


def iterate_json(view: SessionView, session: Session) -> Iterator[str]:
    """Yield a conversation with its complete log, as it is now, as one JSON object with one event a line."""
    last_seq = view.summaries.get(session.id).last_seq
    fields = json.dumps({"format": EXPORT_FORMAT, **session.to_dict()}, ensure_ascii=False, indent=2)
    yield fields.removesuffix("\n}") + ',\n  "events": ['
    separator = "\n    "
    for page, event in _iterate_events(partial(view.transcripts.load_log_page, session.id), last_seq):
        yield separator + json.dumps(event.to_dict(page.person_names), ensure_ascii=False)
        separator = ",\n    "
    yield "\n  ]\n}\n"


def iterate_visible_entries(view: SessionView, session_id: str) -> Iterator[DocumentEntry]:
    """Yield what people see of a conversation as it is now: the events that are not hidden."""
    newest = view.transcripts.load_page(session_id, limit=1).events
    last_seq = newest[-1].seq if newest else 0
    for page, event in _iterate_events(partial(view.transcripts.load_page, session_id), last_seq):
        yield DocumentEntry(event, page.versions.get(event.seq))


def _iterate_events(load_page: Callable[..., Any], last_seq: int) -> Iterator[tuple[Any, Event]]:
    """Yield the events up to a number, each with the page that it is on."""
    after, has_more = 0, True
    while has_more and after < last_seq:
        page = load_page(after=after, limit=PAGE_EVENTS)
        for event in page.events:
            if event.seq > last_seq:
                return
            yield page, event
            after = event.seq
        has_more = page.has_more_after and bool(page.events)


def join_chunks(pieces: Iterator[str]) -> Iterator[str]:
    chunk: list[str] = []
    size = 0
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size >= CHUNK_CHARS:
            yield "".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield "".join(chunk)


def make_file_name(session: Session, suffix: str) -> str:
    """Return a name that is safe on every file system and belongs to one conversation: date, title, end of its id."""
    words = _NOT_IN_NAMES.sub("-", format_title(session)).strip("-_").lower()[:MAX_NAME_CHARS].strip("-_")
    return f"{session.created_at:%Y-%m-%d}-{words or 'conversation'}-{session.id[-8:]}.{suffix}"

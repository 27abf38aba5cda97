"""Everything about one person in one .zip: what they may see, in formats that people and programs can read.

Always true: it contains what the person owns and the conversations that they take part in, as they see them, and no
secret: no password, key or token.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.engines.base import Read
from palaver.core.errors import NotFound, PalaverError
from palaver.jobs import table as jobs
from palaver.media import table as attachments
from palaver.memory.view import MemoryOperations
from palaver.people import people_queries, table as people
from palaver.sessions.document_format import DocumentFormat
from palaver.transfer.document_archive import ArchiveFile, iterate_document_files, iterate_sessions, iterate_zip
from palaver.transfer.documents import Documents
from palaver.transfer.exporter import Exporter, ExportScope
from palaver.transfer.own_format import format_lines
from palaver.transfer.visible_records import keep_visible_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.core.ids import PersonId
    from palaver.media.attachments import Attachments
    from palaver.people.model import Principal
    from palaver.sessions.store import SessionStore
    from palaver.sessions.view import SessionView

_PAGE_ROWS: Final = 100
_FILE_CHUNK_BYTES: Final = 256 * 1024
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


class PersonArchives:
    """Makes archives of people from one store. It blocks: call it on a thread."""

    def __init__(self, store: SessionStore, files: Attachments | None) -> None:
        self._store = store
        self._files = files
        self._documents = Documents(store, files)
        self._exporter = Exporter(store, files)

    def iterate(self, principal: Principal) -> Iterator[bytes]:
        """Yield the .zip of a person, while it is made."""
        return iterate_zip(self._iterate_files(principal))

    def _iterate_files(self, principal: Principal) -> Iterator[ArchiveFile]:
        now, view = self._store.clock.now(), self._store.seen_by(principal)

        def make(name: str, content: str) -> ArchiveFile:
            return ArchiveFile(name, [content.encode()], now)

        yield make("README.txt", _README)
        yield make("account.json", _format_json(self._load_account(principal.person_id)))
        yield make("memories.json", _format_json(list(_iterate_memories(view))))
        yield make("jobs.json", _format_json(self._load_jobs(principal.person_id)))
        yield make("usage.json", _format_json(self._load_usage(view)))
        for document_format in (DocumentFormat.HTML, DocumentFormat.MARKDOWN):
            folder = f"conversations/{document_format}/"
            yield from iterate_document_files(
                self._documents, principal, iterate_sessions(view), document_format, now, folder=folder
            )
        yield from self._iterate_attachments(principal.person_id)
        records = self._exporter.export_records(ExportScope.of_person(principal.person_id))
        yield ArchiveFile("palaver.jsonl", format_lines(keep_visible_records(records, principal.person_id)), now)

    def _load_account(self, person_id: PersonId) -> dict[str, Any]:
        row = self._store.engine.run(Read(lambda tx: people.find_by_id(tx, person_id)))
        if row is None:
            raise NotFound("Person not found.")
        member = self._store.engine.run(Read(lambda tx: people_queries.find_person(tx, person_id)))
        person = row.person
        return {
            "id": person.id,
            "name": person.name,
            "role": person.role,
            "timezone": person.timezone,
            "platforms": list(member.platforms) if member else [],
            "chat_accounts": [asdict(each) for each in member.chat_accounts] if member else [],
            "sign_in_methods": asdict(member.sign_in_methods) if member and member.sign_in_methods else None,
        }

    def _load_jobs(self, person_id: PersonId) -> list[dict[str, Any]]:
        rows = self._store.engine.run(Read(lambda tx: jobs.list_owned(tx, person_id)))
        return [_to_plain(asdict(row.job)) for row in rows]

    def _load_usage(self, view: SessionView) -> dict[str, Any]:
        today = self._store.clock.now().date()
        return _to_plain(asdict(view.usage.report("model", first=today - _USAGE_PERIOD, last=today)))

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
                yield ArchiveFile(f"files/{file.id}-{name}", _read_chunks(path), file.created_at)


def _iterate_memories(view: SessionView) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = view.part(MemoryOperations).list(limit=_PAGE_ROWS, cursor=cursor)
        for entry in page:
            yield {"text": entry.memory.text, "shared": entry.shared, "created_at": entry.memory.created_at}
        cursor = page.cursor
        if cursor is None:
            return


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(_FILE_CHUNK_BYTES):
            yield chunk


def _to_plain(document: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(document, default=str))
    return plain


def _format_json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2, default=str) + "\n"

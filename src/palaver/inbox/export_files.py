"""Makes the file that `/export` sends to a chat, between the command's read and the record of its reply.

Always true: if the file can't be made or is too large for the platform, the reply says how to get it instead. A file
whose reply was not stored, because the process died, belongs to no conversation and is deleted after a day; so is a
file that was sent.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.errors import PalaverError
from palaver.sessions.attachment import MAX_FILE_BYTES, AttachmentTooLarge
from palaver.sessions.document_format import DocumentFormat
from palaver.transfer.documents import Documents, make_file_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.media.attachments import Attachments
    from palaver.sessions.attachment import Attachment
    from palaver.sessions.inbound import ExportRequest, Receipt
    from palaver.sessions.store import SessionStore

MAX_EXPORT_SECONDS: Final = 60.0  # a conversation that takes longer is exported on the page or in the terminal

log = logging.getLogger(__name__)


class ExportTooSlow(PalaverError):
    """This conversation takes too long to export in a chat."""


class ExportFiles:
    """Makes the files of one store."""

    def __init__(self, store: SessionStore, files: Attachments | None) -> None:
        self._store = store
        self._files = files
        self._documents = Documents(store, files)

    async def add_to(self, receipt: Receipt, request: ExportRequest) -> Receipt:
        """Return the receipt with the file that its command has asked for, or with the reply for when there is none."""
        try:
            file = await self._make_file(request)
        except PalaverError as error:
            log.info("export_not_sent", extra={"session": request.session_id, "error": error.code})
            return use_fallback_reply(receipt)
        return replace(receipt, export=None, attachment_ids=(file.id,))

    async def _make_file(self, request: ExportRequest) -> Attachment:
        if self._files is None:
            raise PalaverError("Files can't be stored here.")
        document_format = DocumentFormat(request.format)
        session = await self._store.aio.seen_by(request.principal).get(request.session_id)
        document = await self._documents.stream(request.principal, request.session_id, document_format)
        chunks = _limit_chunks(document, min(request.max_bytes, MAX_FILE_BYTES))
        return await self._files.receive(request.principal, make_file_name(session, document_format.suffix), chunks)


def use_fallback_reply(receipt: Receipt) -> Receipt:
    """Return a receipt without the file that its command has asked for: its reply says how to get it."""
    if receipt.export is None:
        return receipt
    return replace(receipt, export=None, reply=receipt.export.fallback_reply)


async def _limit_chunks(document: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a document; raises if it is too large or takes too long."""
    ends_at = time.monotonic() + MAX_EXPORT_SECONDS
    size = 0
    async for data in document:
        size += len(data)
        if size > max_bytes:
            raise AttachmentTooLarge
        if time.monotonic() > ends_at:
            raise ExportTooSlow
        yield data

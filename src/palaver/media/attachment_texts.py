"""What a model reads of an attached document: its text, or a line that says why it can't be read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from palaver.media.document_types import DOCUMENT_TYPES
from palaver.media.documents.extraction import DocumentText, TextExtractor
from palaver.media.documents.text_cache import FOLDER_NAME, TextCache
from palaver.sessions.context import quote_chat_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from palaver.sessions.attachment import Attachment

MAX_READING_SECONDS: Final = 90.0  # for all documents of a request that were not read before


class DocumentReader:
    """Reads the documents among attachments, each only once. Not for the attachments of others: the caller checks."""

    def __init__(self, folder: Path) -> None:
        self.texts = TextCache(folder / FOLDER_NAME)
        self._extractor: TextExtractor | None = None

    async def read_all(
        self, files: Mapping[str, Attachment], get_path: Callable[[str], Path]
    ) -> dict[str, DocumentText]:
        """Return the texts of those files that are documents, by hash."""
        documents = [file for file in files.values() if file.media_type in DOCUMENT_TYPES]
        texts: dict[str, DocumentText] = {}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + MAX_READING_SECONDS
        for file in documents:
            stored = await asyncio.to_thread(self.texts.load, file.sha256)
            if stored is None and loop.time() > deadline:
                stored = DocumentText(problem="there was no time left to read it; it is read with the next message")
            texts[file.sha256] = stored or await self._read(file, get_path(file.sha256))
        return texts

    async def _read(self, file: Attachment, path: Path) -> DocumentText:
        self._extractor = self._extractor or TextExtractor()
        try:
            stream = await asyncio.to_thread(path.open, "rb")
        except OSError:
            return DocumentText(problem="it was deleted", is_lasting=False)
        with stream:
            result = await self._extractor.read(stream, file.media_type, person=file.person_id)
        if result.is_lasting or result.is_worth_waiting:
            await asyncio.to_thread(self._store, file.sha256, result, path)
        return result

    def _store(self, sha256: str, result: DocumentText, path: Path) -> None:
        """Store a text, unless the file was deleted meanwhile: then nothing of it may stay."""
        self.texts.store(sha256, result)
        if not path.exists():
            self.texts.delete([sha256])


def describe_document(attachment: Attachment, result: DocumentText, max_chars: int) -> str:
    """Return what the model is told of a document."""
    if result.problem is not None:
        return f"(the file {quote_chat_text(attachment.name)}, {attachment.media_type}; no text: {result.problem})"
    is_cut = result.is_cut or len(result.text) > max_chars
    note = "\n(the rest of the file is left out)" if is_cut else ""
    return f"The text of the file {quote_chat_text(attachment.name)}:\n{result.text[:max_chars]}{note}"

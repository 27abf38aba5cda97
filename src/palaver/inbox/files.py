"""Receives the files of a message before it is accepted, and makes the file that `/export` sends to a chat.

The files of a message are downloaded only for people who may talk to the agent, and only for a message that is new. A
file that can't be received is named in the message instead: the message itself is never lost for it. If the process
dies between a download and the message, the platform sends the message again, and the unused file is deleted after a
day.

An export is made between the command's read and the record of its reply. Always true: if the file can't be made or is
too large for the platform, the reply says how to get it instead. A file whose reply was not stored, because the process
died, belongs to no conversation and is deleted after a day; so is a file that was sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from palaver.accounts import access, sender_merge
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import ConnectionLost, InvalidInput, PalaverError, StoreError
from palaver.core.fair_slots import FairSlots
from palaver.inbox.receipts import add_lines, find_duplicate
from palaver.sessions.export import DocumentFormat
from palaver.sessions.speech import (
    MAX_FILE_BYTES,
    MAX_FILES_PER_MESSAGE,
    Attachment,
    AttachmentTooLarge,
    Transcript,
    format_bracketed_name,
)
from palaver.transfer.documents import Documents, make_file_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from palaver.agent.profiles import CurrentSettings
    from palaver.inbox.speech import Speech
    from palaver.media.attachments import Attachments
    from palaver.people.model import Person
    from palaver.sessions.inbound import ExportRequest, Inbound, InboundFile, Receipt
    from palaver.sessions.store import SessionStore


MAX_DOWNLOADS: Final = 8  # messages whose files are downloaded at once: an SDK may hold a whole file in memory
MAX_DOWNLOADS_PER_SENDER: Final = 3
DOWNLOAD_SECONDS: Final = 60.0  # for one file
TOTAL_SECONDS: Final = 150.0  # for all files of a message
_BYTES_PER_MB: Final = 1_000_000
MAX_EXPORT_SECONDS: Final = 60.0  # a conversation that takes longer is exported on the page or in the terminal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReceivedFiles:
    """The files that were stored, and lines of text about voice notes and about files that could not be received."""

    attachment_ids: Sequence[str] = ()
    lines: Sequence[str] = ()
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)

    def add_to(self, inbound: Inbound) -> Inbound:
        content = add_lines(inbound.content, self.lines)
        ids = [*inbound.attachment_ids, *self.attachment_ids]
        return replace(inbound, content=content, attachment_ids=ids, transcripts=self.transcripts)


@dataclass(frozen=True, slots=True)
class FileReceiver:
    store: SessionStore
    settings: CurrentSettings
    attachments: Attachments | None
    speech: Speech | None = None
    _downloads: FairSlots = field(
        default_factory=lambda: FairSlots(MAX_DOWNLOADS, per_key=MAX_DOWNLOADS_PER_SENDER), init=False
    )

    async def receive(self, inbound: Inbound) -> ReceivedFiles:
        """Download and store the files of a message; nothing for a message that is not going to be stored."""
        is_expected, person = await self._find_recipient(inbound)
        if not is_expected:
            return ReceivedFiles()
        crash_point("inbox.before_download")
        sender = person.id if person is not None else f"{inbound.source.platform} {inbound.source.user_id}"
        async with self._downloads.hold(sender):
            received, recordings = await self._download_all(inbound, person)
        crash_point("inbox.files_received")
        if recordings and person is not None and self.speech is not None:
            transcripts = await self.speech.transcribe_voice_notes(person, recordings, str(inbound.source.platform))
            crash_point("speech.transcribed")
            received = replace(received, transcripts=transcripts)
        return received

    async def _download_all(self, inbound: Inbound, person: Person | None) -> tuple[ReceivedFiles, list[Attachment]]:
        """Download the files of a message; also return which of them are voice notes to transcribe."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TOTAL_SECONDS
        ids: list[str] = []
        lines: list[str] = []
        recordings: list[Attachment] = []
        will_transcribe = self.speech is not None and self.speech.transcribes_voice_notes
        for number, file in enumerate(inbound.files):
            if file.is_voice and not will_transcribe:
                lines.append(_describe_voice_note(file))
            try:
                if number >= MAX_FILES_PER_MESSAGE:
                    raise InvalidInput(f"a message can have up to {MAX_FILES_PER_MESSAGE} files")
                async with asyncio.timeout_at(min(loop.time() + DOWNLOAD_SECONDS, deadline)):
                    attachment = await self._receive_file(person, file)
                ids.append(attachment.id)
                if file.is_voice and will_transcribe:
                    recordings.append(attachment)
            except Exception as error:  # noqa: BLE001  (whatever goes wrong with a file, its message is accepted)
                lines.append(_describe_failure(file, error))
                log.warning("file_not_received", extra={"platform": str(inbound.source.platform), "error": repr(error)})
        return ReceivedFiles(ids, lines), recordings

    async def _find_recipient(self, inbound: Inbound) -> tuple[bool, Person | None]:
        """Return whether a message is new and its sender may talk to the agent, and who the sender is."""
        now = self.store.clock.now()

        def find(tx: Transaction) -> tuple[bool, Person | None] | None:
            source = sender_merge.find_merged_source(tx, inbound.source)
            if source is None:
                return None
            if find_duplicate(tx, replace(inbound, source=source)) is not None:
                return False, None
            speaker = access.find_speaker(tx, source, self.settings.rules)
            return None if speaker is None else (speaker.can_speak, speaker.person)

        def find_or_add(tx: Transaction) -> tuple[bool, Person | None]:
            source = sender_merge.merge_source(tx, inbound.source, self.store.config, now)
            speaker = access.identify_speaker(tx, source, self.settings.rules, to_micros(now))
            return speaker.can_speak, speaker.person

        found = await self.store.engine.arun(Read(find))
        return found if found is not None else await self.store.engine.arun(Write(find_or_add))

    async def _receive_file(self, person: Person | None, file: InboundFile) -> Attachment:
        if file.size is not None and file.size > MAX_FILE_BYTES:
            size, limit = -(-file.size // _BYTES_PER_MB), MAX_FILE_BYTES // _BYTES_PER_MB
            raise InvalidInput(f"too large ({size} MB, limit {limit} MB)")
        if self.attachments is None or person is None:
            raise InvalidInput("files can't be stored here")
        name = file.name or ("voice-note.ogg" if file.is_voice else None)
        return await self.attachments.receive(person.principal, name, _download(file))


async def _download(file: InboundFile) -> AsyncIterator[bytes]:
    """Yield the bytes of a file; errors of networks are told from those of our own disk."""
    try:
        async for chunk in file.open():
            yield chunk
    except PalaverError:
        raise
    except Exception as error:  # an SDK raises anything
        raise ConnectionLost("the download failed") from error


def _describe_voice_note(file: InboundFile) -> str:
    seconds = file.duration_seconds
    return "[voice note]" if seconds is None else f"[voice note, {seconds} {'second' if seconds == 1 else 'seconds'}]"


def _describe_failure(file: InboundFile, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        reason = f"the download took longer than {DOWNLOAD_SECONDS:.0f} seconds"
    elif isinstance(error, StoreError):
        reason = "the server can't store files right now"
    elif isinstance(error, PalaverError):
        reason = str(error).rstrip(".")
    else:
        reason = "something went wrong"
    return f"[file {format_bracketed_name(file.name)} could not be received: {reason}]"


class ExportTooSlow(PalaverError):
    """This conversation takes too long to export in a chat."""


class ExportFiles:
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

"""Attachments: receives the files of messages, stores them, and deletes those that no conversation uses.

The database has one row for each attachment. The bytes are stored once, in a folder of their own, under their SHA-256;
no path is ever built from what a client sent. An attachment that no conversation uses is deleted after a day.

Always true: every attachment in the database has its bytes in place, whatever other processes do. The bytes are moved
into place after the row is committed; they are deleted only if no row has their hash after they were moved aside.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
import secrets
import time
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import AttachmentsUnavailable, ConfigError, InvalidInput, StoreFull
from palaver.core.fair_slots import FairSlots
from palaver.core.files import check_room, flush_folder
from palaver.media import table as attachments
from palaver.media.documents.extraction import (
    DOCUMENT_TYPES,
    FOLDER_NAME,
    DocumentText,
    TextCache,
    TextExtractor,
    find_archive_type,
)
from palaver.people.model import Principal, check_can_view_all
from palaver.sessions import table as sessions
from palaver.sessions.context import quote_chat_text
from palaver.sessions.deletions import PIECE_PAUSE_SECONDS
from palaver.sessions.speech import (
    MAX_FILE_BYTES,
    MAX_FILES_PER_MESSAGE,
    PLAIN_TEXT_TYPE,
    SNIFF_BYTES,
    Attachment,
    AttachmentNotFound,
    AttachmentTooLarge,
    FileUsage,
    clean_file_name,
    describe_recording,
    detect_media_type,
    find_attachment_ids,
    is_plain_text,
    new_attachment_id,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from palaver.core.ids import PersonId
    from palaver.sessions.store import SessionStore


MAX_READING_SECONDS: Final = 90.0  # for all documents of a request that were not read before
MAX_UNUSED_AGE: Final = timedelta(days=1)
MAX_MODEL_IMAGE_BYTES: Final = 5_000_000  # a larger image is not sent to a model
MAX_REQUEST_IMAGE_BYTES: Final = 20_000_000  # of all images in one request: the newest are sent
MAX_MODEL_TEXT_CHARS: Final = 100_000  # of a text file; the rest is not sent to a model
RECORDS_PER_PIECE: Final = 300  # of unused files, in one transaction
READ_CHUNK_BYTES: Final = 256 * 1024
MAX_CONCURRENT_UPLOADS: Final = 8  # one of each person
_TRASH_SUFFIX = ".trash"
_UPLOAD_PREFIX = ".upload-"
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
log = logging.getLogger(__name__)


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


class Attachments:
    """The attachments of one store, with their bytes in one folder."""

    def __init__(self, store: SessionStore, folder: Path) -> None:
        self._store = store
        self._engine = store.engine
        self._folder = folder
        self._documents = DocumentReader(folder)
        # For files that have arrived and are now stored: what they wait for is this machine, not the network.
        self.arrived_files = FairSlots(MAX_CONCURRENT_UPLOADS, per_key=1, min_pause=0)

    # -- receiving and serving ------------------------------------------------------------------------------

    async def receive(self, principal: Principal, name: str | None, chunks: AsyncIterator[bytes]) -> Attachment:
        """Store an uploaded file durably. Refuses a file that is too large or of an unsupported type."""
        (await self.get_usage(principal)).check_limit(self.max_bytes_per_person)  # before anything is written
        upload = _Upload(self._folder)
        try:
            with self.translate_errors():
                await asyncio.to_thread(upload.open)
                async for chunk in chunks:
                    await asyncio.to_thread(upload.add, chunk)
                await asyncio.to_thread(upload.flush)
                media_type = await asyncio.to_thread(_detect_type, upload.path)
            attachment = self._describe(upload, media_type, principal.person_id, name)
            await self._engine.arun(Write(lambda tx: self._add(tx, attachment)))
            with self.translate_errors():
                await asyncio.to_thread(_move_into_place, upload.path, self._get_path_of_hash(attachment.sha256))
        finally:
            upload.discard()
        return attachment

    def store_blocking(self, person_id: PersonId, name: str | None, chunks: Iterable[bytes]) -> Attachment:
        """Store a file durably, as `receive` does; for imports, which run on a thread of their own."""
        with self._write_upload(chunks) as upload:
            attachment = self._describe(upload, _detect_type(upload.path), person_id, name)
            self._add_blocking(attachment, upload)
        return attachment

    def restore(self, attachment: Attachment, chunks: Iterable[bytes]) -> None:
        """Store a file of an export under its own id; refuses bytes that are not the file's."""
        with self._write_upload(chunks) as upload:
            if (upload.size, upload.sha256) != (attachment.size, attachment.sha256):
                raise InvalidInput(f"The bytes of the file {attachment.name!r} are incomplete or damaged.")
            media_type = _detect_type(upload.path)
            restored = replace(attachment, media_type=media_type, name=clean_file_name(attachment.name))
            self._add_blocking(restored, upload)

    def _describe(self, upload: _Upload, media_type: str, person_id: PersonId, name: str | None) -> Attachment:
        return Attachment(
            id=new_attachment_id(),
            name=clean_file_name(name),
            media_type=media_type,
            size=upload.size,
            sha256=upload.sha256,
            person_id=person_id,
            created_at=self._store.clock.now(),
        )

    def _add_blocking(self, attachment: Attachment, upload: _Upload) -> None:
        self._engine.run(Write(lambda tx: self._add(tx, attachment)))
        with self.translate_errors():
            _move_into_place(upload.path, self._get_path_of_hash(attachment.sha256))

    @property
    def max_bytes_per_person(self) -> int:
        return self._store.config.max_file_mb_per_person * 1_000_000

    async def get_usage(self, principal: Principal) -> FileUsage:
        return await self._engine.arun(Read(lambda tx: attachments.get_usage(tx, principal.person_id)))

    def _add(self, tx: Transaction, attachment: Attachment) -> None:
        """Record a file, unless its person has no space left."""
        attachments.lock_person(tx, attachment.person_id)
        attachments.add(tx, attachment)
        attachments.get_usage(tx, attachment.person_id).check_limit(self.max_bytes_per_person)

    @contextlib.contextmanager
    def _write_upload(self, chunks: Iterable[bytes]) -> Iterator[_Upload]:
        """Write a file to disk durably, and delete it at the end unless it was moved into place."""
        upload = _Upload(self._folder)
        try:
            with self.translate_errors():
                upload.open()
            for chunk in chunks:
                with self.translate_errors():
                    upload.add(chunk)
            with self.translate_errors():
                upload.flush()
            yield upload
        finally:
            upload.discard()

    async def get(self, principal: Principal, attachment_id: str, *, everything: bool = False) -> Attachment:
        """Load an attachment that this principal may see."""
        if everything:
            check_can_view_all(principal)
        person_id = None if everything else principal.person_id
        return await self._engine.arun(Read(lambda tx: attachments.get_visible(tx, attachment_id, person_id)[1]))

    def get_path(self, attachment: Attachment) -> Path:
        path = self._get_path_of_hash(attachment.sha256)
        with self.translate_errors():
            try:
                path.open("rb").close()  # more than whether it exists: it must be readable
            except FileNotFoundError:
                raise AttachmentNotFound from None
        return path

    async def read(self, attachment: Attachment) -> AsyncIterator[bytes]:
        path = await asyncio.to_thread(self.get_path, attachment)
        with self.translate_errors():
            stream = await asyncio.to_thread(path.open, "rb")
            try:
                while chunk := await asyncio.to_thread(stream.read, READ_CHUNK_BYTES):
                    yield chunk
            finally:
                stream.close()

    # -- in messages ---------------------------------------------------------------------------------------

    async def prepare_for_model(
        self, session_id: str, messages: Sequence[Mapping[str, Any]], *, images: bool = True
    ) -> list[dict[str, Any]]:
        """Replace attachments in the messages of a conversation by what a model can read: images and texts.

        Only files that this conversation uses are opened. A file that a model cannot read is replaced by its name, and
        so is an image if the model takes none or if newer images fill the request.
        """
        ids = {each for message in messages for each in find_attachment_ids(message.get("content"))}
        if not ids:
            return [dict(message) for message in messages]

        def run(tx: Transaction) -> list[Attachment]:
            return attachments.list_used_in_session(tx, sessions.get_no(tx, session_id), ids)

        files = {attachment.id: attachment for attachment in await self._engine.arun(Read(run))}
        image_ids = _choose_newest_images(messages, files) if images else frozenset()
        texts = await self._documents.read_all({file.sha256: file for file in files.values()}, self._get_path_of_hash)

        def prepare(message: Mapping[str, Any]) -> dict[str, Any]:
            content = message.get("content")
            if not find_attachment_ids(content):
                return dict(message)
            parts = [
                self._prepare_part(part, files.get(str(part.get("id"))), image_ids, texts)
                if find_attachment_ids([part])
                else part
                for part in content or ()
            ]
            return dict(message) | {"content": parts}

        return await asyncio.to_thread(lambda: [prepare(message) for message in messages])

    def _prepare_part(
        self,
        part: Mapping[str, Any],
        attachment: Attachment | None,
        image_ids: frozenset[str],
        texts: Mapping[str, DocumentText],
    ) -> dict[str, Any]:
        if (spoken := describe_recording(part)) is not None:
            return _build_text_part(spoken)
        if attachment is None:
            return _build_text_part("(a deleted file)")
        if attachment.sha256 in texts:
            return _build_text_part(describe_document(attachment, texts[attachment.sha256], MAX_MODEL_TEXT_CHARS))
        try:
            return self._load_part(attachment, as_image=attachment.id in image_ids) or _build_text_part(
                f"(the file {quote_chat_text(attachment.name)}, {attachment.media_type})"
            )
        except OSError:
            return _build_text_part(f"(the deleted file {quote_chat_text(attachment.name)})")

    def _load_part(self, attachment: Attachment, *, as_image: bool) -> dict[str, Any] | None:
        path = self._get_path_of_hash(attachment.sha256)
        if as_image:
            data = b64encode(path.read_bytes()).decode()
            return {"type": "image_url", "image_url": {"url": f"data:{attachment.media_type};base64,{data}"}}
        if attachment.media_type == PLAIN_TEXT_TYPE:
            with path.open(encoding="utf-8", newline="") as stream:
                text = stream.read(MAX_MODEL_TEXT_CHARS + 1)
            note = "\n(the rest of the file is left out)" if len(text) > MAX_MODEL_TEXT_CHARS else ""
            return _build_text_part(
                f"The file {quote_chat_text(attachment.name)}:\n{text[:MAX_MODEL_TEXT_CHARS]}{note}"
            )
        return None

    # -- cleaning up ---------------------------------------------------------------------------------------

    async def clean_up(self) -> int:
        """Delete attachments that were unused for a day, and bytes without an attachment.

        Returns the number of deleted attachments.
        """
        before = to_micros(self._store.clock.now() - MAX_UNUSED_AGE)
        count = await self._delete_unused(before)
        before_time = time.time() - MAX_UNUSED_AGE.total_seconds()
        await asyncio.to_thread(self._delete_unused_bytes, before_time)
        await asyncio.to_thread(self._documents.texts.clean_up, self._find_used_hashes, before_time)
        return count

    async def _delete_unused(self, before: int) -> int:
        """Delete the records of files that no session uses, a few in each transaction."""
        count, position = 0, attachments.START
        while True:
            read = partial(attachments.list_unused, before=before, after=position, limit=RECORDS_PER_PIECE)
            unused, next_position = await self._engine.arun(Read(read))
            if unused:
                count += await self._engine.arun(Write(partial(attachments.delete_unused, attachment_nos=unused)))
                await asyncio.sleep(PIECE_PAUSE_SECONDS)
            if next_position is None:
                return count
            position = next_position

    def _delete_unused_bytes(self, before: float) -> None:
        for upload in self._folder.glob(f"{_UPLOAD_PREFIX}*"):
            if _is_older(upload, before):
                upload.unlink(missing_ok=True)
        for subfolder in self._folder.glob("[0-9a-f][0-9a-f]"):
            self._delete_unused_paths([path for path in subfolder.iterdir() if _is_older(path, before)])

    def delete_unused_hashes(self, hashes: Sequence[str]) -> None:
        """Delete the bytes with these hashes now, except those that an attachment uses."""
        paths = [self._get_path_of_hash(digest + suffix) for suffix in ("", _TRASH_SUFFIX) for digest in hashes]
        self._delete_unused_paths([path for path in paths if path.exists()])
        self._documents.texts.delete(sorted(set(hashes) - self._find_used_hashes(hashes)))

    def _delete_unused_paths(self, paths: Sequence[Path]) -> None:
        known = self._find_used_hashes([_get_hash(path) for path in paths])
        for path in paths:
            if _get_hash(path) not in known:
                self._delete_if_unused(path)

    def _delete_if_unused(self, path: Path) -> None:
        """Move a file aside, check again, and only then delete it: a client may be uploading the same bytes now."""
        trash = path if path.suffix == _TRASH_SUFFIX else path.with_suffix(_TRASH_SUFFIX)
        with contextlib.suppress(FileNotFoundError):  # another process cleans up too
            path.rename(trash)
            original = trash.with_suffix("")
            if self._find_used_hashes([original.name]) and not original.exists():
                trash.rename(original)
            else:
                trash.unlink()

    def _find_used_hashes(self, hashes: Sequence[str]) -> set[str]:
        return self._engine.run(Read(lambda tx: attachments.find_known_hashes(tx, hashes)))

    # -- the folder ----------------------------------------------------------------------------------------

    def check_folder(self) -> None:
        """Raise `ConfigError` if files cannot be stored; a server checks this when it starts."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self._folder / f"{_UPLOAD_PREFIX}{secrets.token_hex(8)}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise ConfigError(
                f"Files can't be stored in {self._folder}: {error.strerror}. Make it a writable folder.",
                folder=str(self._folder),
            ) from error

    @contextlib.contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Log errors of the file system for the operator, and raise them as errors of the store."""
        try:
            yield
        except OSError as error:
            log.error("attachments_unavailable", extra={"folder": str(self._folder), "error": str(error)})
            if error.errno in _DISK_FULL:
                raise StoreFull("The server's disk is full, so the file was not stored.") from error
            raise AttachmentsUnavailable from error

    def _get_path_of_hash(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest


class _Upload:
    """A file that is being written, until it is moved into place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / f"{_UPLOAD_PREFIX}{secrets.token_hex(8)}"
        self.size = 0
        self._digest = hashlib.sha256()
        self._stream: IO[bytes] | None = None

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_room(self._folder, "The file was not stored.")
        self._stream = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def add(self, chunk: bytes) -> None:
        assert self._stream is not None  # noqa: S101
        self.size += len(chunk)
        if self.size > MAX_FILE_BYTES:
            raise AttachmentTooLarge(
                f"This file is too large. The limit is {MAX_FILE_BYTES // 1_000_000} MB.", limit_bytes=MAX_FILE_BYTES
            )
        self._digest.update(chunk)
        self._stream.write(chunk)

    def flush(self) -> None:
        """Write everything to disk, durably."""
        assert self._stream is not None  # noqa: S101
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()

    def discard(self) -> None:
        """Delete the file, unless it was moved into place."""
        with contextlib.suppress(OSError):  # a full disk
            if self._stream is not None:
                self._stream.close()
        with contextlib.suppress(OSError):  # the cleanup deletes it later
            self.path.unlink(missing_ok=True)


def find_attachments(
    tx: Transaction, person_id: PersonId | None, content: str | Sequence[Any], attachment_ids: Sequence[str]
) -> list[tuple[int, Attachment]]:
    """Find the files of a message, in its parts and given by id, with their numbers.

    A file that this person may not see raises `AttachmentNotFound`, like one that does not exist.
    """
    ids = list(dict.fromkeys([*find_attachment_ids(content), *attachment_ids]))
    if len(ids) > MAX_FILES_PER_MESSAGE:
        raise InvalidInput.say(
            "media.too_many_files", "attachments: a message can have up to {limit} files.", limit=MAX_FILES_PER_MESSAGE
        )
    if ids and person_id is None:
        raise AttachmentNotFound
    return [attachments.get_visible(tx, attachment_id, person_id) for attachment_id in ids]


def _choose_newest_images(messages: Sequence[Mapping[str, Any]], files: Mapping[str, Attachment]) -> frozenset[str]:
    """Choose the images to send to a model, by id: from the newest back, until they fill the request."""
    chosen: set[str] = set()
    bytes_left = MAX_REQUEST_IMAGE_BYTES
    for message in reversed(messages):
        for attachment_id in reversed(find_attachment_ids(message.get("content"))):
            image = files.get(attachment_id)
            if image is None or not image.can_show_inline or image.size > MAX_MODEL_IMAGE_BYTES or image.id in chosen:
                continue
            bytes_left -= image.size
            if bytes_left < 0:
                return frozenset(chosen)
            chosen.add(image.id)
    return frozenset(chosen)


def _detect_type(path: Path) -> str:
    data = path.read_bytes()
    return find_archive_type(data) or detect_media_type(data[:SNIFF_BYTES], is_text=is_plain_text(data))


def _move_into_place(upload: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, exist_ok=True)
    upload.replace(target)
    flush_folder(target.parent)


def _is_older(path: Path, time_seconds: float) -> bool:
    """Return whether a file was changed before a time; one that an upload or a cleanup has moved meanwhile was not."""
    try:
        return path.stat().st_mtime < time_seconds
    except FileNotFoundError:
        return False


def _get_hash(path: Path) -> str:
    return path.name.removesuffix(_TRASH_SUFFIX)


def _build_text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}

"""Files that people have uploaded to import them: kept on disk for a day, each with what is known about it.

Two files for each upload, under its id: the bytes, and a small JSON file with its owner and state, which is written
last. Always true: no path is built from what a client sent; an upload is visible only to its owner, and only when all
its bytes are on disk. What a process leaves behind when it dies is deleted after a day.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import re
import secrets
import time
from collections import Counter
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.errors import LimitReached, NotFound, StoreFull, StoreUnavailable
from palaver.core.files import check_room, write_file_atomically
from palaver.sessions.speech import clean_file_name
from palaver.transfer.imported import InvalidImport
from palaver.transfer.reader_kit.export_files import ExportFiles, is_sqlite_file, open_export
from palaver.transfer.readers import PALAVER, get_manifests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    from palaver.core.clock import Clock
    from palaver.core.ids import PersonId


UPLOADS_FOLDER: Final = "imports"  # in the home folder
MAX_UPLOAD_AGE: Final = timedelta(days=1)
MAX_UPLOADS_PER_PERSON: Final = 3  # files that wait at the same time; results of imports do not count
MAX_RESULTS_PER_PERSON: Final = 20  # of imports that have ended; the oldest go first
_BYTES_PER_SPACE_CHECK: Final = 32_000_000  # between two looks at the disk while a file arrives
_ID_PATTERN = re.compile(r"imp_[0-9a-f]{16}")
_ID_CHARS: Final = 20
_SUFFIXES: Final = frozenset({".zip", ".json", ".jsonl"})
_PARTIAL_SUFFIX: Final = ".part"
_PEEKED_BYTES: Final = 1_000_000  # less than a chunk
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

log = logging.getLogger(__name__)

# checking ──▶ ready ──▶ importing ──▶ done
#    └───────────┴───────────┴──────▶ failed
ImportState = Literal["checking", "ready", "importing", "done", "failed"]


class ImportNotFound(NotFound):
    """Import not found. It may have been deleted, or you don't have access."""


class ImportTooLarge(InvalidImport):
    """This file is too large to be imported here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    id: str
    person_id: str
    name: str  # as the person calls it
    suffix: str  # one of ours
    size: int
    created_at: str  # ISO 8601, UTC
    state: ImportState = "checking"
    format: str | None = None
    total: int | None = None  # conversations in it, if known
    report: dict[str, Any] | None = None  # of the check, then of the import
    error: dict[str, Any] | None = None  # code, message and facts

    @property
    def has_file(self) -> bool:
        """True as long as the bytes are needed."""
        return self.state in {"checking", "ready", "importing"}


class ImportUploads:
    """The uploads in one folder. All methods but `receive` block."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._receiving: Counter[PersonId] = Counter()  # files that are arriving, in this process

    async def receive(
        self, person_id: PersonId, name: str | None, chunks: AsyncIterator[bytes], max_bytes: int
    ) -> Upload:
        """Write a file to disk as it arrives; refuses one that is too large, or too many."""
        known = await asyncio.to_thread(self.list_for, person_id)
        if sum(each.has_file for each in known) + self._receiving[person_id] >= MAX_UPLOADS_PER_PERSON:
            raise LimitReached(
                f"{MAX_UPLOADS_PER_PERSON} files of yours wait to be imported. Import or delete one first.",
                what="imports",
                limit=MAX_UPLOADS_PER_PERSON,
            )
        self._receiving[person_id] += 1
        try:
            upload = await self._receive_file(person_id, clean_file_name(name), chunks, max_bytes)
        finally:
            self._receiving[person_id] -= 1
            self._receiving += Counter()  # leaves out those who send none
        old = [each for each in known if not each.has_file][MAX_RESULTS_PER_PERSON - 1 :]
        for each in old:
            await asyncio.to_thread(self.delete, each)
        return upload

    async def _receive_file(
        self, person_id: PersonId, clean_name: str, chunks: AsyncIterator[bytes], max_bytes: int
    ) -> Upload:
        suffix = Path(clean_name).suffix.lower()
        upload = Upload(
            id=f"imp_{secrets.token_hex(8)}",
            person_id=person_id,
            name=clean_name,
            suffix=suffix if suffix in _SUFFIXES else "",
            size=0,
            created_at=self._clock.now().astimezone(UTC).isoformat(),
        )
        partial = self._folder / f"{upload.id}{_PARTIAL_SUFFIX}"
        try:
            with translate_errors():
                size = await self._write(partial, chunks, max_bytes)
                upload = replace(upload, size=size)
                await asyncio.to_thread(self._finish, partial, upload)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
        return upload

    async def _write(self, path: Path, chunks: AsyncIterator[bytes], max_bytes: int) -> int:
        size, checked_size = 0, 0
        file = await asyncio.to_thread(self._create, path)
        with file:
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise ImportTooLarge(
                        f"This file is too large. The limit is {max_bytes // 1_000_000} MB.", limit_bytes=max_bytes
                    )
                await asyncio.to_thread(file.write, chunk)
                if size - checked_size >= _BYTES_PER_SPACE_CHECK:
                    checked_size = size
                    await asyncio.to_thread(self.check_space)
            await asyncio.to_thread(file.flush)
            await asyncio.to_thread(os.fsync, file.fileno())
        if not size:
            raise InvalidImport("This file is empty.")
        return size

    def _create(self, path: Path) -> Any:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.check_space()
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def check_space(self) -> None:
        """Raise `StoreFull` if the disk is nearly full: the database needs what is left."""
        check_room(self._folder, "Nothing can be imported.")

    def _finish(self, partial: Path, upload: Upload) -> None:
        partial.replace(self.get_path(upload))
        crash_point("upload.received")
        self.save(upload)
        crash_point("upload.saved")

    def get_path(self, upload: Upload) -> Path:
        return self._folder / f"{upload.id}-file{upload.suffix}"

    def get_extracted_path(self, upload: Upload) -> Path:
        """The path of Palaver's own file from an archive."""
        return self._folder / f"{upload.id}-own.jsonl"

    def get(self, person_id: PersonId, upload_id: str) -> Upload:
        """Return an upload of a person; raises `ImportNotFound`."""
        upload = self._load(upload_id) if _ID_PATTERN.fullmatch(upload_id) else None
        if upload is None or upload.person_id != person_id:
            raise ImportNotFound(
                f"Import {upload_id} not found. It may have been deleted, or you don't have access.",
                import_id=upload_id,
            )
        return upload

    def list_for(self, person_id: PersonId) -> list[Upload]:
        found = [upload for upload in self.list_all() if upload.person_id == person_id]
        return sorted(found, key=lambda upload: (upload.created_at, upload.id), reverse=True)

    def list_all(self) -> Iterator[Upload]:
        for path in sorted(self._folder.glob("imp_*.json")) if self._folder.is_dir() else ():
            if _ID_PATTERN.fullmatch(path.stem) and (upload := self._load(path.stem)) is not None:
                yield upload

    def _load(self, upload_id: str) -> Upload | None:
        try:
            return Upload(**json.loads((self._folder / f"{upload_id}.json").read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            log.warning("import_upload_unreadable", extra={"upload": upload_id, "error": str(error)})
            return None

    def save(self, upload: Upload) -> None:
        """Store the state of an upload; delete its bytes if they are no longer needed."""
        with translate_errors():
            write_file_atomically(self._folder / f"{upload.id}.json", json.dumps(asdict(upload)), overwrite=True)
            if not upload.has_file:
                self._delete_bytes(upload)

    def delete(self, upload: Upload) -> None:
        with translate_errors():
            (self._folder / f"{upload.id}.json").unlink(missing_ok=True)
            self._delete_bytes(upload)

    def _delete_bytes(self, upload: Upload) -> None:
        self.get_path(upload).unlink(missing_ok=True)
        self.get_extracted_path(upload).unlink(missing_ok=True)

    def delete_for(self, person_ids: Collection[str]) -> None:
        for upload in self.list_all():
            if upload.person_id in person_ids:
                self.delete(upload)

    def delete_old(self) -> int:
        """Delete what is older than a day, also what a process that died has left behind; return how many."""
        oldest, count = self._clock.now() - MAX_UPLOAD_AGE, 0
        known = set()
        for upload in self.list_all():
            known.add(upload.id)
            # One that was confirmed is finished first, however long the server was stopped.
            if upload.state != "importing" and datetime.fromisoformat(upload.created_at) < oldest:
                self.delete(upload)
                count += 1
        oldest_seconds = time.time() - MAX_UPLOAD_AGE.total_seconds()
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):
                if path.name[:_ID_CHARS] not in known and path.stat().st_mtime < oldest_seconds:
                    path.unlink()
                    count += 1
        return count


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of the file system into errors of the store."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise StoreFull("The disk is full. Free some space, then upload the file again.") from error
        raise StoreUnavailable(f"The folder for imports can't be used: {error.strerror}.") from error


class UnknownExport(InvalidImport):
    """This is not an export that Palaver can import."""


class DatabaseNotImported(InvalidImport):
    """A database was uploaded. It may have the conversations of several people, so only the operator imports one."""


def recognize_format(path: Path, name: str) -> str:
    """Return the format of an exported file, of which only a part is read. `name` is what the person calls the file.

    Raises `UnknownExport`, and `DatabaseNotImported` whatever the database contains.
    """
    if is_sqlite_file(path):
        raise DatabaseNotImported(
            f"{name} is a database, not an export of your own conversations. In Open WebUI, export your chats as a JSON"
            " file and import that one. The operator can import webui.db with: palaver import open-webui",
            name=name,
        )
    manifests = [each for each in get_manifests().values() if each.pattern is not None]
    manifests.sort(key=lambda each: each.archive_member is None)  # the surest first
    with contextlib.closing(open_export(path, how_to_get=_describe_exports())) as files:
        for manifest in manifests:
            if manifest.archive_member in files.names:
                return manifest.name
        for member in _list_candidates(files):
            head = next(files.read_chunks(member), b"")[:_PEEKED_BYTES]
            for manifest in manifests:
                if manifest.pattern is not None and manifest.pattern.search(head):
                    return manifest.name
    raise UnknownExport(f"{name} is not an export that Palaver knows. {_describe_exports()}", name=name)


def _describe_exports() -> str:
    *labels, last = (each.label for each in get_manifests().values() if each.pattern and each is not PALAVER)
    programs = f"{', '.join(labels)} or {last}" if labels else last
    return (
        f"Drop the .zip or .json file that {programs} gives you when you export your data, or a .jsonl or .zip file"
        " that Palaver has exported."
    )


def extract_member(path: Path, member: str, target: Path, max_bytes: int) -> bool:
    """Copy one file out of an archive that a person has uploaded; False if the file is no archive with it."""
    with contextlib.closing(open_export(path, how_to_get=_describe_exports())) as files:
        if member not in files.names:
            return False
        size = 0
        with target.open("xb") as out:
            for chunk in files.read_chunks(member):
                size += len(chunk)
                if size > max_bytes:
                    raise InvalidImport(f"{member} in this archive is too large.", limit_bytes=max_bytes)
                out.write(chunk)
    return True


def _list_candidates(files: ExportFiles) -> Iterator[str]:
    """Yield the files that may have conversations, the likely ones first, and not too many."""
    names = [name for name in files.names if PurePosixPath(name).suffix.lower() in {".json", ".jsonl", ""}]
    names.sort(key=lambda name: ("conversations" not in name, name.count("/"), name))
    yield from (names if len(files.names) > 1 else files.names)[:5]

"""Reads the text of documents in child processes: a hostile one can only end its own process.

Always true: a child has limits of memory and time, can open no file and no socket where the system can forbid it
(`sandbox.py`), gets no secrets of our environment, and is gone when `read` returns or is cancelled. Nothing is parsed
on the event loop. One person's documents never take all places.

The texts are stored beside the bytes of their files, so that each file is read only once. They are derived data: one
that is missing or damaged is read again from the file. A text is named after the SHA-256 of its file, is deleted with
it, and all of them together are bounded: those that were unused for longest are deleted.

Documents that are ZIP archives are recognized without unpacking anything, by the list of their files, which is at the
end. Nothing of it is trusted further: a file that only looks like a document is refused when its text is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import struct
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import PalaverError
from palaver.core.fair_slots import FairSlots
from palaver.core.files import write_file_atomically
from palaver.core.text import make_storable
from palaver.media.documents.limits import (
    EPUB_TYPE,
    EXCEL_TYPE,
    MAX_TEXT_CHARS,
    MAX_WALL_SECONDS,
    OPEN_SHEET_TYPE,
    OPEN_SLIDES_TYPE,
    OPEN_TEXT_TYPE,
    PDF_TYPE,
    POWERPOINT_TYPE,
    WORD_TYPE,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path


CHILD_COMMAND: Final = (sys.executable, "-P", "-m", "palaver.media.documents.child")
MAX_PROCESSES: Final = 2  # at the same time
MAX_PROCESSES_PER_PERSON: Final = 1
MAX_OUTPUT_BYTES: Final = MAX_TEXT_CHARS * 4 + 10_000
MISSING_EXTRA: Final = "reading such files needs the extra palaver[documents], which is not installed here"
_TIME_SIGNALS: Final = frozenset({-signal.SIGKILL, -signal.SIGXCPU})  # end a process that has computed for too long
_PASSED_VARIABLES: Final = re.compile(
    r"PATH|LANG|LC_\w+|LD_LIBRARY_PATH|PYTHON\w*|VIRTUAL_ENV|SystemRoot", re.IGNORECASE
)

log = logging.getLogger(__name__)
FOLDER_NAME: Final = "texts"
MAX_CACHE_BYTES: Final = 500_000_000
RETRY_SECONDS: Final = 24 * 3600  # until a document that took too long is tried again
_FORMAT: Final = 1  # of the texts; another number than in a file means that the document is read again
_BATCH: Final = 500
MAX_DIRECTORY_BYTES: Final = 2_000_000  # of the list of files in an archive; a library reads it into memory
_OFFICE_PARTS: Final = (
    (b"word/document.xml", WORD_TYPE),
    (b"xl/workbook.xml", EXCEL_TYPE),
    (b"ppt/presentation.xml", POWERPOINT_TYPE),
)
# OpenDocument and EPUB begin with a file that is not compressed and contains the type.
_STORED_TYPE: Final = re.compile(rb"PK\x03\x04.{26}mimetype(?:.{0,64}?)(application/[a-z.+]{4,60})", re.DOTALL)
_LOCAL_HEADER: Final = b"PK\x03\x04"
_END_RECORD: Final = struct.Struct("<4s4H2LH")
_END_SIGNATURE: Final = b"PK\x05\x06"
_LARGE_LOCATOR: Final = b"PK\x06\x07"  # of an archive with more than 65,535 files or 4 GB
_LARGE_LOCATOR_BYTES: Final = 20
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_ENTRY_SIGNATURE: Final = b"PK\x01\x02"
OPEN_DOCUMENT_TYPES: Final = frozenset({OPEN_TEXT_TYPE, OPEN_SHEET_TYPE, OPEN_SLIDES_TYPE})
DOCUMENT_TYPES: Final = frozenset({PDF_TYPE, WORD_TYPE, EXCEL_TYPE, POWERPOINT_TYPE, EPUB_TYPE, *OPEN_DOCUMENT_TYPES})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """The result of reading a document: its text, or the reason why there is none."""

    text: str = ""
    title: str = ""
    is_cut: bool = False  # the document has more text
    problem: str | None = None  # the end of a sentence
    is_lasting: bool = True  # reading it again would give the same
    is_worth_waiting: bool = False  # it may work later, but trying again at once would only cost time


class TextExtractor:
    """Reads documents, a few at a time."""

    def __init__(self, command: Sequence[str] = CHILD_COMMAND, *, max_seconds: float = MAX_WALL_SECONDS) -> None:
        self._command = command
        self._max_seconds = max_seconds
        self._slots = FairSlots(MAX_PROCESSES, per_key=MAX_PROCESSES_PER_PERSON)

    async def read(
        self, source: IO[bytes] | bytes, media_type: str, *, person: str, charset: str = "", url: str = ""
    ) -> DocumentText:
        """Read a document for a person. It never raises for what is in the document."""
        async with self._slots.hold(person):
            try:
                async with asyncio.timeout(self._max_seconds):
                    exit_code, output = await self._run(source, (media_type, charset, url))
            except TimeoutError:
                return DocumentText(problem="reading it took too long", is_lasting=False, is_worth_waiting=True)
            except OSError as error:
                log.error("document_process_failed", extra={"error": str(error)})
                return DocumentText(problem="the server can't read documents at the moment", is_lasting=False)
        result = _parse_output(output)
        if result is None:
            log.warning("document_process_ended", extra={"media_type": media_type, "exit_code": exit_code})
            if exit_code in _TIME_SIGNALS:
                return DocumentText(problem="reading it takes too long")
            return DocumentText(problem="reading it needs too much memory, or it is damaged")
        return result

    async def _run(self, source: IO[bytes] | bytes, arguments: Sequence[str]) -> tuple[int | None, bytes]:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            stdin=asyncio.subprocess.PIPE if isinstance(source, bytes) else source,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if _PASSED_VARIABLES.fullmatch(name)},
            start_new_session=True,
        )
        writing = asyncio.create_task(_write_input(process, source)) if isinstance(source, bytes) else None
        try:
            assert process.stdout is not None  # noqa: S101  (it is a pipe)
            output = bytearray()
            while chunk := await process.stdout.read(64 * 1024):
                output += chunk
                if len(output) > MAX_OUTPUT_BYTES:
                    break
            return (None if len(output) > MAX_OUTPUT_BYTES else await process.wait()), bytes(output)
        finally:
            if writing is not None:
                writing.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())


async def _write_input(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101  (it is a pipe)
    with contextlib.suppress(OSError):  # the process has ended; its output says why
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


def _parse_output(output: bytes) -> DocumentText | None:
    """Return what the child has written; None if it ended before it could."""
    line, separator, text = output.partition(b"\n")
    if not separator or len(output) > MAX_OUTPUT_BYTES:
        return None
    try:
        outcome: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    if "missing" in outcome:
        return DocumentText(problem=MISSING_EXTRA, is_lasting=False)
    if "problem" in outcome:
        return DocumentText(problem=str(outcome["problem"]))
    return DocumentText(
        text=make_storable(text.decode("utf-8", "replace")),
        title=make_storable(str(outcome.get("title", ""))),
        is_cut=bool(outcome.get("is_cut")),
    )


class TextCache:
    """Texts by the hash of their file, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, sha256: str) -> DocumentText | None:
        """Return the stored outcome of reading a file; None if it has to be read."""
        path = self._folder / sha256
        try:
            line, _, text = path.read_text(encoding="utf-8").partition("\n")
            facts: dict[str, Any] = json.loads(line)
            if facts["format"] != _FORMAT or len(text) != facts["chars"]:
                return None
            if not facts["is_lasting"] and time.time() - path.stat().st_mtime > RETRY_SECONDS:
                return None
            if facts["is_lasting"]:
                os.utime(path)  # it is in use
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return DocumentText(
            text=text,
            is_cut=facts["is_cut"] is True,
            problem=facts["problem"],
            is_lasting=facts["is_lasting"] is True,
        )

    def store(self, sha256: str, result: DocumentText) -> None:
        """Store the outcome of reading a file, complete or not at all. A full disk only means that it is read again."""
        facts = {
            "format": _FORMAT,
            "chars": len(result.text),
            "is_cut": result.is_cut,
            "problem": result.problem,
            "is_lasting": result.is_lasting,
        }
        with contextlib.suppress(PalaverError, OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file_atomically(self._folder / sha256, f"{json.dumps(facts)}\n{result.text}", overwrite=True)

    def delete(self, hashes: Sequence[str]) -> None:
        for sha256 in hashes:
            (self._folder / sha256).unlink(missing_ok=True)

    def clean_up(self, find_known: Callable[[Sequence[str]], Collection[str]], before: float) -> None:
        """Delete the texts of files that are gone, what a killed process has left, and the oldest above the limit."""
        entries: list[tuple[float, int, Path]] = []
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):  # another process cleans up too
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        entries.sort(reverse=True)
        kept_bytes = 0
        for start in range(0, len(entries), _BATCH):
            batch = entries[start : start + _BATCH]
            known = find_known([path.name for *_, path in batch])
            for modified, size, path in batch:
                is_being_written = path.name.startswith(".") and modified >= before
                if (path.name in known or is_being_written) and kept_bytes + size <= MAX_CACHE_BYTES:
                    kept_bytes += size
                else:
                    path.unlink(missing_ok=True)


def find_archive_type(data: bytes) -> str | None:
    """Return the type of a document that is a ZIP archive; None for any other file."""
    if not data.startswith(_LOCAL_HEADER):
        return None
    names = _list_archive_names(data)
    if names is None:
        return None
    stored = _STORED_TYPE.match(data)
    if stored is not None:
        media_type = stored[1].decode()
        return media_type if media_type in OPEN_DOCUMENT_TYPES or media_type == EPUB_TYPE else None
    return next((media_type for part, media_type in _OFFICE_PARTS if part in names), None)


def _list_archive_names(data: bytes) -> set[bytes] | None:
    """Return the names of the files in an archive; None if its list of files is damaged or too long."""
    end = data.rfind(_END_SIGNATURE, max(0, len(data) - _END_RECORD.size - 0xFFFF))
    if end < 0 or len(data) - end < _END_RECORD.size:
        return None
    *_, size, offset, _comment = _END_RECORD.unpack_from(data, end)
    has_large_locator = data[max(0, end - _LARGE_LOCATOR_BYTES) : end].startswith(_LARGE_LOCATOR)
    if has_large_locator or size > MAX_DIRECTORY_BYTES or offset + size > end:
        return None
    names: set[bytes] = set()
    position, stop = offset, offset + size
    while position + _ENTRY.size <= stop:
        # The lengths of its name, its extra field and its comment come before the last four fields.
        signature, *_, name_bytes, extra_bytes, comment_bytes, _, _, _, _ = _ENTRY.unpack_from(data, position)
        if signature != _ENTRY_SIGNATURE:
            return None
        names.add(data[position + _ENTRY.size : position + _ENTRY.size + name_bytes])
        position += _ENTRY.size + name_bytes + extra_bytes + comment_bytes
    return names

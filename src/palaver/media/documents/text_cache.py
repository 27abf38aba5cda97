"""The texts of attached documents, stored beside their bytes so that each file is read only once.

They are derived data: one that is missing or damaged is read again from the file. A text is named after the SHA-256 of
its file, is deleted with it, and all of them together are bounded: those that were unused for longest are deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import PalaverError
from palaver.core.files import write_file_atomically
from palaver.media.documents.extraction import DocumentText

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

FOLDER_NAME: Final = "texts"
MAX_CACHE_BYTES: Final = 500_000_000
RETRY_SECONDS: Final = 24 * 3600  # until a document that took too long is tried again
_FORMAT: Final = 1  # of the texts; another number than in a file means that the document is read again
_BATCH: Final = 500


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
        """Delete the texts of these files."""
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

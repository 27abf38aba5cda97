"""What Hermes remembers: `memories/MEMORY.md` and `USER.md`, entries separated by lines with a section sign."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from palaver.transfer.imported import ImportedMemory, ImportProblem
from palaver.transfer.readers.plain_file import open_plain_file
from palaver.transfer.readers.values import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SEPARATOR: Final = "\n§\n"
_FILES: Final = ("MEMORY.md", "USER.md")
_MAX_FILE_CHARS: Final = 4_000_000


def read_memories(folder: Path, make_name: Callable[[Path], str]) -> Iterator[ImportedMemory | ImportProblem]:
    """Read each entry once; its id is made of its words, so that a second import recognizes it."""
    seen = set()
    for file_name in _FILES:
        path = folder / "memories" / file_name
        try:
            with TextIOWrapper(open_plain_file(path), encoding="utf-8-sig", errors="replace") as file:
                content = file.read(_MAX_FILE_CHARS)
            at = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield ImportProblem(where=make_name(path), what=f"The file cannot be read: {error.strerror}.")
            continue
        for entry in content.replace("\r\n", "\n").split(_SEPARATOR):
            text = as_text(entry).strip()
            if text and text not in seen:
                seen.add(text)
                digest = sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
                yield ImportedMemory(origin_id=f"{file_name}:{digest}", text=text, at=at)

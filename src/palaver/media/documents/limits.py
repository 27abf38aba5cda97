"""The types of documents, the limits of reading them, and how a reader says that it can't read one.

This module and the readers beside it run in the child process: they import nothing else of Palaver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

PDF_TYPE: Final = "application/pdf"
WORD_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
POWERPOINT_TYPE: Final = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
EPUB_TYPE: Final = "application/epub+zip"
OPEN_TEXT_TYPE: Final = "application/vnd.oasis.opendocument.text"
OPEN_SHEET_TYPE: Final = "application/vnd.oasis.opendocument.spreadsheet"
OPEN_SLIDES_TYPE: Final = "application/vnd.oasis.opendocument.presentation"
MAX_TEXT_CHARS: Final = 400_000  # of the text of one document
MAX_INPUT_BYTES: Final = 20_000_000
MAX_MEMORY_BYTES: Final = 1_000_000_000  # of the child process
BASE_CPU_SECONDS: Final = 5  # start-up included
INPUT_BYTES_PER_CPU_SECOND: Final = 2_000_000  # a larger document gets more
MAX_WALL_SECONDS: Final = 40.0


def compute_cpu_seconds(size: int) -> int:
    """Return how long the process may compute for a document of this size: what it costs grows with what was sent."""
    return BASE_CPU_SECONDS + size // INPUT_BYTES_PER_CPU_SECOND


class DocumentUnreadable(Exception):
    """A document that can't be read; its text says why, as the end of a sentence."""


def join_up_to_limit(pieces: Iterable[str]) -> tuple[str, bool]:
    """Join pieces of text until the limit is reached; returns the text, and whether some of it is left out."""
    taken: list[str] = []
    chars_left = MAX_TEXT_CHARS
    for piece in pieces:
        taken.append(piece[:chars_left])
        if len(piece) > chars_left:
            return "".join(taken), True
        chars_left -= len(piece)
    return "".join(taken), False

"""Documents: their types, and how those that are ZIP archives are recognized without unpacking anything.

The list of the files in an archive, which is at its end, names the parts of a document. Nothing of it is trusted
further: a file that only looks like a document is refused when its text is read.
"""

from __future__ import annotations

import re
import struct
from typing import Final

PDF_TYPE: Final = "application/pdf"
WORD_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
POWERPOINT_TYPE: Final = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
EPUB_TYPE: Final = "application/epub+zip"
OPEN_DOCUMENT_TYPES: Final = frozenset(
    f"application/vnd.oasis.opendocument.{kind}" for kind in ("text", "spreadsheet", "presentation")
)
DOCUMENT_TYPES: Final = frozenset({PDF_TYPE, WORD_TYPE, EXCEL_TYPE, POWERPOINT_TYPE, EPUB_TYPE, *OPEN_DOCUMENT_TYPES})
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
        entry = _ENTRY.unpack_from(data, position)
        if entry[0] != _ENTRY_SIGNATURE:
            return None
        name_bytes, extra_bytes, comment_bytes = entry[10:13]
        names.add(data[position + _ENTRY.size : position + _ENTRY.size + name_bytes])
        position += _ENTRY.size + name_bytes + extra_bytes + comment_bytes
    return names

"""Finding out which program a file comes from, without reading all of it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from palaver.transfer.imported import InvalidImport
from palaver.transfer.own_format import MAX_LINE_BYTES
from palaver.transfer.readers.archive import open_export
from palaver.transfer.readers.open_webui_database import find_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.transfer.readers.archive import ExportFiles

OWN_FILE_NAME: Final = "palaver.jsonl"  # in the archive that people download of their own data
_PEEKED_BYTES: Final = 1_000_000
_HOW_TO_GET: Final = (
    "Drop the .zip or .json file that ChatGPT, Claude or Open WebUI gives you when you export your data, or a .jsonl or"
    " .zip file that Palaver has exported."
)
# Keys that only one program's conversations have. Inside of a text, the quotation mark would follow a backslash.
_MARKS: Final = (
    ("palaver", re.compile(rb'\A\s*\{[^\n]{0,200}?"format"\s*:\s*"palaver')),
    ("chatgpt", re.compile(rb'(?<!\\)"mapping"\s*:\s*\{')),
    ("claude", re.compile(rb'(?<!\\)"chat_messages"\s*:\s*\[')),
    ("open-webui", re.compile(rb'(?<!\\)"chat"\s*:\s*\{')),
)


class UnknownExport(InvalidImport):
    """This is not an export that Palaver can import."""


class DatabaseNotImported(InvalidImport):
    """A database was uploaded. It may have the conversations of several people, so only the operator imports one."""


def recognize_format(path: Path, name: str) -> str:
    """Return the format of an exported file. `name` is what the person calls the file.

    Raises `UnknownExport`, and `DatabaseNotImported` whatever the database contains.
    """
    if find_database(path) is not None:
        raise DatabaseNotImported(
            f"{name} is a database, not an export of your own conversations. In Open WebUI, export your chats as a JSON"
            " file and import that one. The operator can import webui.db with: palaver import open-webui",
            name=name,
        )
    files = open_export(path, how_to_get=_HOW_TO_GET)
    try:
        if OWN_FILE_NAME in files.names:
            return "palaver"
        for member in _list_candidates(files):
            head = _read_head(files, member)
            for import_format, mark in _MARKS:
                if mark.search(head):
                    return import_format
    finally:
        files.close()
    raise UnknownExport(f"{name} is not an export that Palaver knows. {_HOW_TO_GET}", name=name)


def extract_own_file(path: Path, target: Path, max_bytes: int) -> bool:
    """Copy Palaver's own file out of an archive that a person has downloaded; False if the file is no archive."""
    files = open_export(path, how_to_get=_HOW_TO_GET)
    try:
        if OWN_FILE_NAME not in files.names:
            return False
        size = 0
        with target.open("xb") as out:
            for chunk in files.read_chunks(OWN_FILE_NAME):
                size += len(chunk)
                if size > max_bytes:
                    raise InvalidImport(f"{OWN_FILE_NAME} in this archive is too large.", limit_bytes=max_bytes)
                out.write(chunk)
    finally:
        files.close()
    return True


def _list_candidates(files: ExportFiles) -> Iterator[str]:
    """Yield the files that may have conversations, the likely ones first, and not too many."""
    names = [name for name in files.names if PurePosixPath(name).suffix.lower() in {".json", ".jsonl", ""}]
    names.sort(key=lambda name: ("conversations" not in name, name.count("/"), name))
    yield from (names if len(files.names) > 1 else files.names)[:5]


def _read_head(files: ExportFiles, name: str) -> bytes:
    head = b""
    for chunk in files.read_chunks(name):
        head += chunk
        if len(head) >= min(_PEEKED_BYTES, MAX_LINE_BYTES):
            break
    return head[:_PEEKED_BYTES]

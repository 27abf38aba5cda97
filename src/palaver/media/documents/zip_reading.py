"""Reads single files out of a ZIP archive, such as a Word document, within limits: what is unpacked is counted."""

from __future__ import annotations

import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Final
from xml.parsers import expat

from palaver.media.documents.limits import DocumentUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_UNPACKED_BYTES: Final = 200_000_000  # of all files that are read from one archive
MAX_XML_DEPTH: Final = 200
CHUNK_BYTES: Final = 64 * 1024
_ENCRYPTED_BIT: Final = 0x1


class TooMuchText(Exception):
    """The reader has all the text that it may return."""


class Archive:
    """An archive of which at most `MAX_UNPACKED_BYTES` are unpacked."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
            raise DocumentUnreadable("it is damaged") from None
        self._bytes_left = MAX_UNPACKED_BYTES

    def has(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read_chunks(self, name: str, use: Callable[[bytes], object]) -> None:
        """Unpack a file and pass it on in chunks."""
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise DocumentUnreadable("it is damaged: a part of it is missing") from None
        if info.flag_bits & _ENCRYPTED_BIT:
            raise DocumentUnreadable("it is protected with a password")
        try:
            with self._zip.open(info) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    self._bytes_left -= len(chunk)
                    if self._bytes_left < 0:
                        raise DocumentUnreadable("it is too large when unpacked")
                    use(chunk)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError, ValueError):
            raise DocumentUnreadable("it is damaged") from None

    def read(self, name: str, max_bytes: int) -> bytes:
        """Unpack a small file. Raises DocumentUnreadable if it is larger than `max_bytes`."""
        content = bytearray()

        def add(chunk: bytes) -> None:
            content.extend(chunk)
            if len(content) > max_bytes:
                raise DocumentUnreadable("a part of it is too large")

        self.read_chunks(name, add)
        return bytes(content)


class XmlHandler:
    """Receives the elements of an XML file; names are without their namespace prefix."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, name: str) -> None:
        """Handle the end of an element."""

    def text(self, data: str) -> None:
        """Handle text."""


def parse_xml(archive: Archive, name: str, handler: XmlHandler) -> None:
    """Pass the elements of an XML file in an archive to a handler, without building a tree.

    No document type is accepted, so there are no entities that could grow, and nesting is limited.
    """
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_XML_DEPTH:
            raise DocumentUnreadable("its parts are nested too deeply")
        handler.start(tag.rpartition(":")[2], attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(tag.rpartition(":")[2])

    def refuse(*_: object) -> None:
        raise DocumentUnreadable("it contains a document type, which documents of this kind don't have")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = refuse
    try:
        archive.read_chunks(name, lambda chunk: parser.Parse(chunk, False))
        parser.Parse(b"", True)
    except expat.ExpatError:
        raise DocumentUnreadable("it is damaged") from None

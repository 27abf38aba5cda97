"""The text of Word and PowerPoint documents, of OpenDocument texts and presentations, and of EPUB books.

They are archives of XML files, which are read as a stream: paragraphs, headings, lists and the rows of tables.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import unquote
from xml.parsers import expat

from palaver.media.documents.html_text import decode_page, read_html
from palaver.media.documents.limits import MAX_TEXT_CHARS, DocumentUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


MAX_UNPACKED_BYTES: Final = 200_000_000  # of all files that are read from one archive
MAX_XML_DEPTH: Final = 200
CHUNK_BYTES: Final = 64 * 1024
_ENCRYPTED_BIT: Final = 0x1
MAX_SLIDES: Final = 1000
MAX_CHAPTERS: Final = 1000
MAX_CHAPTER_BYTES: Final = 10_000_000
_PRESENTATION: Final = "ppt/presentation.xml"
_PRESENTATION_PARTS: Final = "ppt/_rels/presentation.xml.rels"
# Of the page with a slide's notes: what the program itself writes there.
_NOT_NOTES: Final = frozenset({"sldImg", "sldNum", "hdr", "ftr", "dt"})
_HEADING_STYLE: Final = re.compile(r"(?:heading|berschrift|titre)\s?([1-6])", re.IGNORECASE)


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


class _Paragraphs(XmlHandler):
    """Collects paragraphs as lines; the cells of a table are on one line."""

    _chars = 0
    _prefix = ""
    _cell_depth = 0

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._pieces: list[str] = []
        self._row: list[str] = []
        self._cells: list[str] = []

    def _add(self, text: str) -> None:
        self._chars += len(text)
        self._pieces.append(text)
        if self._chars > MAX_TEXT_CHARS:
            self._end_paragraph()
            raise TooMuchText

    def _end_paragraph(self) -> None:
        text = "".join(self._pieces).strip()
        self._pieces = []
        if self._cell_depth:
            self._cells.append(text)
        elif text:
            self.lines.append(self._prefix + text)
        self._prefix = ""

    def _start_cell(self) -> None:
        self._cell_depth += 1
        if self._cell_depth == 1:
            self._cells = []

    def _end_cell(self) -> None:
        self._cell_depth = max(self._cell_depth - 1, 0)
        if not self._cell_depth:
            self._row.append(" ".join(cell for cell in self._cells if cell))
            self._cells = []

    def _end_row(self) -> None:
        if not self._cell_depth:
            if any(self._row):
                self.lines.append(" | ".join(self._row))
            self._row = []


class _WordHandler(_Paragraphs):
    _is_text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "t":
            self._is_text = True
        elif name in {"tab", "br", "cr"}:
            self._add("\t" if name == "tab" else "\n")
        elif name == "pStyle":
            if match := _HEADING_STYLE.search(_get_attribute(attributes, "val")):
                self._prefix = f"{'#' * int(match[1])} "
        elif name == "numPr":
            self._prefix = self._prefix or "- "
        elif name == "tc":
            self._start_cell()

    def end(self, name: str) -> None:
        if name == "t":
            self._is_text = False
        elif name == "p":
            self._end_paragraph()
        elif name == "tc":
            self._end_cell()
        elif name == "tr":
            self._end_row()

    def text(self, data: str) -> None:
        if self._is_text:
            self._add(data)


class _OpenDocumentHandler(_Paragraphs):
    _depth = 0  # of paragraphs and headings: a note is inside of one
    _list_depth = 0
    _slide_count = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in {"p", "h"}:
            self._depth += 1
            if name == "h":
                level = _get_attribute(attributes, "outline-level")
                self._prefix = f"{'#' * (int(level) if level in {*'123456'} else 1)} "
            elif self._list_depth:
                self._prefix = "- "
        elif name == "list":
            self._list_depth += 1
        elif name in {"tab", "line-break", "s"} and self._depth:
            self._add({"tab": "\t", "line-break": "\n"}.get(name, " "))
        elif name == "table-cell":
            self._start_cell()
        elif name == "page":  # of a presentation; they are in their order
            self._slide_count += 1
            self.lines.append(f"\n## Slide {self._slide_count}")

    def end(self, name: str) -> None:
        if name in {"p", "h"}:
            self._depth -= 1
            self._end_paragraph()
        elif name == "list":
            self._list_depth -= 1
        elif name == "table-cell":
            self._end_cell()
        elif name == "table-row":
            self._end_row()

    def text(self, data: str) -> None:
        if self._depth > 0:
            self._add(data)


def read_word(file: IO[bytes]) -> Iterator[str]:
    archive, handler = Archive(file), _WordHandler()
    yield from _read_lines(archive, "word/document.xml", handler)
    for name in ("word/footnotes.xml", "word/endnotes.xml"):
        if archive.has(name):
            yield from _read_lines(archive, name, _WordHandler())


class _Elements(XmlHandler):
    """Collects the attributes of the elements with some names, in order."""

    def __init__(self, *names: str) -> None:
        self.found: dict[str, list[Mapping[str, str]]] = {name: [] for name in names}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in self.found:
            self.found[name].append(attributes)


def _read_elements(archive: Archive, path: str, *names: str) -> dict[str, list[Mapping[str, str]]]:
    handler = _Elements(*names)
    parse_xml(archive, path, handler)
    return handler.found


class _NotesHandler(_WordHandler):
    """Reads the speaker's notes, without the number of the slide, the date, header and footer."""

    _is_note = True

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sp":
            self._is_note = True
        elif name == "ph":
            self._is_note = attributes.get("type") not in _NOT_NOTES
        elif self._is_note:
            super().start(name, attributes)

    def text(self, data: str) -> None:
        if self._is_note:
            super().text(data)


def read_powerpoint(file: IO[bytes]) -> Iterator[str]:
    """Yield the text of the slides in the order in which they are shown, each with the speaker's notes.

    Names of their files say nothing about the order.
    """
    archive = Archive(file)
    parts = _read_elements(archive, _PRESENTATION_PARTS, "Relationship")["Relationship"]
    paths = {part.get("Id", ""): part.get("Target", "") for part in parts}
    slides = _read_elements(archive, _PRESENTATION, "sldId")["sldId"]
    # A slide has two ids; the one of the relationship has a prefix.
    ids = [value for slide in slides for key, value in slide.items() if key.endswith(":id")]
    for number, slide_id in enumerate(ids[:MAX_SLIDES], 1):
        yield f"\n## Slide {number}\n"
        path = _resolve_path("ppt", paths.get(slide_id, ""))
        yield from _read_lines(archive, path, _WordHandler())  # it has the same names: p, t, tc, tr
        yield from _read_notes(archive, path)


def _read_notes(archive: Archive, slide_path: str) -> Iterator[str]:
    """Yield the speaker's notes of a slide, if it has some."""
    folder, name = posixpath.split(slide_path)
    parts = f"{folder}/_rels/{name}.rels"
    found = _read_elements(archive, parts, "Relationship")["Relationship"] if archive.has(parts) else []
    targets = [each.get("Target", "") for each in found if each.get("Type", "").endswith("/notesSlide")]
    path = _resolve_path(folder, targets[-1]) if targets else ""
    if not archive.has(path):
        return
    lines = list(_read_lines(archive, path, _NotesHandler()))
    if lines:
        yield "\nNotes:\n"
        yield from lines


def read_open_document(file: IO[bytes]) -> Iterator[str]:
    yield from _read_lines(Archive(file), "content.xml", _OpenDocumentHandler())


def _read_lines(archive: Archive, name: str, handler: _Paragraphs) -> Iterator[str]:
    rest = ""
    try:
        parse_xml(archive, name, handler)
    except TooMuchText:
        rest = " " * MAX_TEXT_CHARS  # so that the end counts as left out
    yield from (f"{line}\n" for line in handler.lines)
    if rest:
        yield rest


def read_epub(file: IO[bytes]) -> Iterator[str]:
    archive = Archive(file)
    root_files = _read_elements(archive, "META-INF/container.xml", "rootfile")["rootfile"]
    package = next((path for each in root_files if (path := each.get("full-path", ""))), "")
    elements = _read_elements(archive, package, "item", "itemref")
    paths = {item.get("id", ""): item.get("href", "") for item in elements["item"]}
    folder = posixpath.dirname(package)
    for chapter in elements["itemref"][:MAX_CHAPTERS]:
        path = _resolve_path(folder, paths.get(chapter.get("idref", ""), ""))
        if archive.has(path):
            _, text = read_html(decode_page(archive.read(path, MAX_CHAPTER_BYTES)))
            yield f"{text}\n\n"
    if not elements["itemref"]:
        raise DocumentUnreadable("it is damaged: it has no chapters")


def _resolve_path(folder: str, target: str) -> str:
    """Return the path in an archive that a reference from a file in `folder` leads to."""
    return posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")


def _get_attribute(attributes: Mapping[str, str], name: str) -> str:
    """Return an attribute, whatever its namespace prefix is."""
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), "")

"""Reading the files of an export, from a zip file, from a folder, or a single file; and large JSON lists in them.

Nothing is extracted to a path: names inside a zip file are only looked up. What is read from a zip file is bounded by
the size that the file itself declares, and by limits here, so that a crafted one cannot fill memory or disk.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, cast

from palaver.core.dataclass import dataclass
from palaver.core.files import get_room
from palaver.transfer.imported import InvalidImport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


CHUNK_BYTES: Final = 1_048_576
MAX_FILES: Final = 500_000
MAX_JSON_BYTES: Final = 16_000_000_000  # of one JSON file
MAX_COMPRESSION_RATIO: Final = 300  # JSON rarely reaches 50; a bomb has 1,000
MIN_SUSPICIOUS_BYTES: Final = 200_000_000  # smaller files may be as compressible as they like
_MAX_SPOOLED_BYTES: Final = 8_000_000  # smaller files are kept in memory instead of on disk
_CHUNKS_PER_SPACE_CHECK: Final = 64

_SQLITE_HEADER: Final = b"SQLite format 3\x00"
_ZIP_ERRORS: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)

MAX_ITEM_BYTES: Final = 64_000_000
BUFFER_BYTES: Final = 4_194_304  # in which items are parsed while they are looked for
_MAX_UNPARSED_ITEMS: Final = 10_000  # that are found by their brackets before the parser is tried again
_MAX_GAP_BYTES: Final = 80  # how much of an unexpected text between two items is kept
# Everything up to the next bracket that is not in a string, or to the beginning of a string that ends in a later chunk.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}])', re.DOTALL)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_GAP = re.compile(r"[ \t\r\n]*+(,?)[ \t\r\n]*+(?=[\[{])")
_BOM: Final = b"\xef\xbb\xbf"
_WHITE_SPACE: Final = b" \t\r\n"


class DamagedFile(InvalidImport):
    """A file of the export cannot be read; the message says why."""


class Closable(Protocol):
    def close(self) -> None: ...


@contextmanager
def close_on_error(opened: Closable) -> Iterator[None]:
    """Close what was opened if what is done with it fails."""
    try:
        yield
    except BaseException:
        opened.close()
        raise


def open_export(path: Path, *, how_to_get: str) -> ExportFiles:
    """Open an export; raise InvalidImport, with `how_to_get` (a sentence), if it is none."""
    try:
        if not path.is_dir() and not path.is_file():
            raise InvalidImport(f"There is no file or folder {path}. {how_to_get}", path=str(path))
        return ExportFiles(path, how_to_get)
    except OSError as error:
        raise InvalidImport(f"{path} cannot be read: {error.strerror or error}.", path=str(path)) from error


class ExportFiles:
    """The files of an export, by their names inside it (`/` separates folders).

    An export is a zip file, a single file, or a folder; zip files directly in a folder are read as if they were
    unpacked there: some exports come as several.
    """

    def __init__(self, path: Path, how_to_get: str) -> None:
        self._how_to_get = how_to_get
        self._zips: list[zipfile.ZipFile] = []
        self._files: dict[str, Path | tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        with close_on_error(self):
            if path.is_dir():
                self._add_folder(path)
            elif zipfile.is_zipfile(path):
                self._add_zip(path, "")
            else:
                with path.open("rb") as file:
                    if file.read(2) == b"PK":
                        problem = "is a damaged zip file: it was not downloaded completely. Download it again."
                        raise InvalidImport(f"{path.name} {problem}", path=str(path))
                self._files[path.name] = path
        self.names = list(self._files)

    def _add_folder(self, path: Path) -> None:
        for folder, subfolders, file_names in os.walk(path):
            subfolders.sort()
            for file in (Path(folder, name) for name in sorted(file_names)):
                if file.is_symlink() or not file.is_file():  # a link may lead out of the folder
                    continue
                if file.parent == path and file.suffix.lower() == ".zip" and zipfile.is_zipfile(file):
                    self._add_zip(file, f"{file.name}/")
                else:
                    self._files[file.relative_to(path).as_posix()] = file
            _check_count(len(self._files), str(path), path)

    def _add_zip(self, path: Path, prefix: str) -> None:
        try:
            archive = zipfile.ZipFile(path)
        except _ZIP_ERRORS as error:
            raise InvalidImport(
                f"{path.name} is a damaged zip file ({error}). Download it again. {self._how_to_get}", path=str(path)
            ) from error
        self._zips.append(archive)
        _check_count(len(archive.filelist), path.name, path)
        self._files |= {prefix + info.filename: (archive, info) for info in archive.filelist if not info.is_dir()}

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Read a file; raise DamagedFile if that is impossible."""
        file = self._files[name]
        return read_path(file) if isinstance(file, Path) else _read_member(*file)

    def open_file(self, name: str) -> BinaryIO:
        """Open a file in which any place can be read; raise DamagedFile if that is impossible.

        Of one in a zip file, that is a copy in a temporary file.
        """
        source = self._files[name]
        if isinstance(source, Path):
            return _open_path(source)
        size = source[1].file_size
        _check_size(size)
        file = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_MAX_SPOOLED_BYTES))  # noqa: SIM115
        with close_on_error(file):
            for number, chunk in enumerate(_read_member(*source), 1):
                file.write(chunk)
                if number % _CHUNKS_PER_SPACE_CHECK == 0:  # others may write there, too
                    _check_size(size - file.tell())
        return file

    def close(self) -> None:
        for archive in self._zips:
            archive.close()


def _check_count(count: int, name: str, path: Path) -> None:
    if count > MAX_FILES:
        raise InvalidImport(f"{name} has more than {MAX_FILES:,} files: this is no export.", path=str(path))


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    if info.flag_bits & 1:
        raise DamagedFile("It is encrypted with a password. Make an export without one.")
    ratio = info.file_size / max(info.compress_size, 1)
    if info.file_size > MIN_SUSPICIOUS_BYTES and ratio > MAX_COMPRESSION_RATIO:
        raise DamagedFile(f"It claims to grow to {ratio:,.0f} times its size, as no real export does.")
    try:
        with archive.open(info) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except _ZIP_ERRORS as error:
        raise DamagedFile(f"It is damaged in the zip file: {error}.") from error


def read_small_file(files: ExportFiles, name: str, max_bytes: int) -> bytes:
    """Read a file as a whole; raise DamagedFile if it is larger than `max_bytes` or cannot be read."""
    data = bytearray()
    for chunk in files.read_chunks(name):
        data += chunk
        if len(data) > max_bytes:
            raise DamagedFile(f"It is larger than {max_bytes // 1_000_000} MB.")
    return bytes(data)


def is_sqlite_file(path: Path) -> bool:
    """Return whether a file is a database. One that cannot be read is none: the caller says what is wrong."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER
    except OSError:
        return False


def get_base_name(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]


def _check_size(size: int) -> None:
    if size > MAX_JSON_BYTES:
        raise DamagedFile(f"It has {size // 1_000_000} MB; at most {MAX_JSON_BYTES // 1_000_000} MB can be imported.")
    if size > _MAX_SPOOLED_BYTES and get_room(Path(tempfile.gettempdir())) < size:
        raise DamagedFile(
            f"Unpacked it has {size // 1_000_000} MB, and the disk with {tempfile.gettempdir()} has no room for it."
            " Free some, or set TMPDIR to a folder on another disk."
        )


def read_path(path: Path) -> Iterator[bytes]:
    """Read a file in chunks; raise DamagedFile if that is impossible."""
    with _open_path(path) as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
        except OSError as error:
            raise DamagedFile(f"It cannot be read: {error.strerror or error}.") from error


def _open_path(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DamagedFile(f"It cannot be read: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class ItemSpan:
    number: int  # the first item has number 1
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListProblem:
    """Something in a list that is no item."""

    start: int
    what: str


class UnreadableItem(ValueError):
    """This item cannot be read; the message says why."""


class ItemFinder:
    """Finds the objects and lists in a JSON list; the chunks start right after its bracket, or after an item."""

    def __init__(self, number: int = 0) -> None:
        self._number = number  # of the last item
        self._gap = b""  # the text between two items
        self._in_string = False
        self._is_escaped = False  # the next character of the string is escaped

    def find(self, chunks: Iterable[bytes]) -> Iterator[ItemSpan | ListProblem]:
        depth, start, offset = 1, 0, 0  # depth 1: inside the list, between its items
        for chunk in chunks:
            gap_start = 0
            for place, opens in self._find_brackets(chunk):
                if depth == 1:
                    self._add_gap(chunk[gap_start:place])
                    yield from self._check_gap(offset + place, is_last=not opens)
                depth += 1 if opens else -1
                if depth == 2 and opens:
                    start = offset + place
                elif depth == 1:
                    gap_start = place + 1
                    if not opens:
                        self._number += 1
                        yield ItemSpan(self._number, start, offset + place + 1)
                elif depth < 0:
                    yield ListProblem(offset + place, "There is text after the end of the list.")
                    depth = 0
            if depth == 1:
                self._add_gap(chunk[gap_start:])
            offset += len(chunk)
        if depth:
            what = "The file ends in the middle of an item." if depth > 1 else "The file ends too early."
            yield ListProblem(start if depth > 1 else offset, what)

    def _find_brackets(self, chunk: bytes) -> Iterator[tuple[int, bool]]:
        """Yield the places of the brackets that are in no string, with whether they open."""
        position = self._skip_string(chunk) if self._in_string else 0
        while found := _UP_TO_BRACKET.match(chunk, position):
            position = found.end()
            if found[1] == b'"':
                self._in_string, self._is_escaped = True, _ends_with_escape(chunk, position)
                return
            yield position - 1, found[1] in {b"[", b"{"}

    def _skip_string(self, chunk: bytes) -> int:
        """Return where the string that began in an earlier chunk ends; the end of the chunk if it goes on."""
        start = 1 if self._is_escaped else 0
        rest = _REST_OF_STRING.match(chunk, start)
        if rest is None:
            self._is_escaped = _ends_with_escape(chunk, start)
            return len(chunk)
        self._in_string = self._is_escaped = False
        return rest.end()

    def _add_gap(self, text: bytes) -> None:
        self._gap = (self._gap + text.strip(_WHITE_SPACE)[:_MAX_GAP_BYTES])[:_MAX_GAP_BYTES]

    def _check_gap(self, at: int, *, is_last: bool = False) -> Iterator[ListProblem]:
        gap, self._gap = self._gap, b""
        expected = {b"", b","} if is_last else {b","} if self._number else {b""}
        if gap.strip(_WHITE_SPACE) not in expected:
            yield ListProblem(at, f"Unexpected text between two items: {gap.decode(errors='replace')!r}")


def _ends_with_escape(chunk: bytes, start: int) -> bool:
    """Return whether a string that goes on in the next chunk ends with a backslash that escapes what follows."""
    string = chunk[start:]
    return (len(string) - len(string.rstrip(b"\\"))) % 2 == 1


class ItemFile:
    """The items of one JSON file, which can be read again by their place.

    The file holds a list; or an object, which is one item, or has the list under one of `list_keys`. The list is never
    in memory: its items are found in one pass, in time that grows with the size of the file, and an item is parsed when
    it is needed. Memory is bounded by the largest item. Where the parser of JSON can follow, it finds the end of an
    item; an item that is damaged, or does not fit into the buffer, ends where its brackets do.
    """

    def __init__(self, name: str, file: BinaryIO, *, list_keys: Sequence[str] = ()) -> None:
        self.name = name
        self._file = file
        self._offset = 0  # where the list starts: after a byte order mark and white space
        self._has_list = True
        self._parsed: tuple[ItemSpan, Any] | None = None  # the item that was found last
        self._open(list_keys)

    def close(self) -> None:
        self._file.close()

    def find_spans(self) -> Iterator[ItemSpan | ListProblem]:
        if not self._has_list:
            self._file.seek(0, os.SEEK_END)
            yield ItemSpan(1, self._offset, self._file.tell())
            return
        position, number, unparsed_count = self._offset + 1, 0, 1
        while True:
            first_number = number
            for span, value in self._parse_ahead(position, number):
                self._parsed = span, value
                yield span
                position, number = span.end, span.number
            self._parsed = None
            unparsed_count = 1 if number > first_number else min(unparsed_count * 2, _MAX_UNPARSED_ITEMS)
            last = None
            for found in self._find_by_brackets(position, number, unparsed_count):
                yield found
                if isinstance(found, ItemSpan):
                    last = found
            if last is None or last.number < number + unparsed_count:
                return  # the end of the file
            position, number = last.end, last.number

    def _parse_ahead(self, position: int, number: int) -> Iterator[tuple[ItemSpan, Any]]:
        """Parse items until one does not fit into the buffer, or is damaged; `position` is where the last one ended."""
        self._file.seek(position)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(self._file.read(BUFFER_BYTES))
        except UnicodeDecodeError:
            return
        is_ascii, index, decoder = text.isascii(), 0, json.JSONDecoder()
        while (gap := _GAP.match(text, index)) and bool(gap[1]) == (number > 0):
            try:
                value, end = decoder.raw_decode(text, gap.end())
            except (ValueError, RecursionError):
                return
            number += 1
            start = position + gap.end() - index
            position = start + (end - gap.end() if is_ascii else len(text[gap.end() : end].encode()))
            index = end
            yield ItemSpan(number, start, position), value

    def _find_by_brackets(self, position: int, number: int, count: int) -> Iterator[ItemSpan | ListProblem]:
        """Find up to `count` items, and everything that is wrong between them."""
        for found in ItemFinder(number).find(self._read_chunks(position)):
            if not isinstance(found, ItemSpan):
                yield ListProblem(found.start + position, found.what)
                continue
            yield ItemSpan(found.number, found.start + position, found.end + position)
            if found.number == number + count:
                return

    def read_bytes(self, span: ItemSpan) -> bytes:
        size = span.end - span.start
        if size > MAX_ITEM_BYTES:
            raise UnreadableItem(
                f"It has {size // 1_000_000} MB; at most {MAX_ITEM_BYTES // 1_000_000} MB can be imported."
            )
        self._file.seek(span.start)
        return self._file.read(size)

    def read_item(self, span: ItemSpan) -> Any:
        """Parse an item; raise UnreadableItem, with words for people, if that is impossible."""
        if self._parsed is not None and self._parsed[0] is span:
            return self._parsed[1]
        return parse_json(self.read_bytes(span))

    def _read_chunks(self, position: int) -> Iterator[bytes]:
        while True:
            self._file.seek(position)  # items are read in between
            if not (chunk := self._file.read(CHUNK_BYTES)):
                return
            position += len(chunk)
            yield chunk

    def _open(self, list_keys: Sequence[str]) -> None:
        self._file.seek(0)
        beginning = self._file.read(CHUNK_BYTES)
        without_bom = beginning.removeprefix(_BOM)
        text = without_bom.lstrip(_WHITE_SPACE)
        self._offset = len(beginning) - len(text)
        if text[:1] == b"{":
            self._has_list = False
            self._unwrap(list_keys)
        elif text[:1] != b"[":
            raise InvalidImport(f"{self.name} is not a JSON file with a list of conversations.", file=self.name)

    def _unwrap(self, list_keys: Sequence[str]) -> None:
        """If the file holds an object with the list in it, go on with the list."""
        span = next(iter(self.find_spans()))
        try:
            content = self.read_item(cast("ItemSpan", span))
        except UnreadableItem as error:
            raise InvalidImport(
                f"{self.name} cannot be read: it is one JSON object instead of a list, and {error}", file=self.name
            ) from error
        for key in list_keys:
            if isinstance(items := content.get(key), list):
                file = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=8 * CHUNK_BYTES))  # noqa: SIM115
                file.write(json.dumps(items).encode())
                self._file.close()
                self._file, self._offset, self._has_list = file, 0, True
                return


def parse_json(data: bytes | str | None) -> Any:
    """Parse JSON; raise UnreadableItem, with words for people, if that is impossible. None: it is too long."""
    if data is None:
        raise UnreadableItem(f"It has more than {MAX_ITEM_BYTES // 1_000_000} MB.")
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except RecursionError:
        raise UnreadableItem("It is nested too deeply.") from None
    except ValueError as error:
        raise UnreadableItem(f"It is not valid JSON: {error}.") from None

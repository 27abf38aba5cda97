"""Reading the files of an export: from a zip file, from a folder, or a single file.

Nothing is extracted to a path: names inside a zip file are only looked up. What is read from a zip file is bounded by
the size that the file itself declares, and by limits here, so that a crafted one cannot fill memory or disk.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, cast

from palaver.core.files import get_room
from palaver.transfer.imported import InvalidImport

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES: Final = 1_048_576
MAX_FILES: Final = 500_000
MAX_JSON_BYTES: Final = 16_000_000_000  # of one JSON file
MAX_COMPRESSION_RATIO: Final = 300  # JSON rarely reaches 50; a bomb has 1,000
MIN_SUSPICIOUS_BYTES: Final = 200_000_000  # smaller files may be as compressible as they like
_MAX_SPOOLED_BYTES: Final = 8_000_000  # smaller files are kept in memory instead of on disk
_CHUNKS_PER_SPACE_CHECK: Final = 64

_SQLITE_HEADER: Final = b"SQLite format 3\x00"
_ZIP_ERRORS: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)


class DamagedFile(InvalidImport):
    """A file of the export cannot be read; the message says why."""


class Closable(Protocol):
    def close(self) -> None: ...


class ExportFiles(Closable, Protocol):
    """The files of an export, by their names inside it (`/` separates folders)."""

    names: list[str]

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Read a file; raise DamagedFile if that is impossible."""
        ...

    def open_file(self, name: str) -> BinaryIO:
        """Open a file in which any place can be read; raise DamagedFile if that is impossible."""
        ...


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
        if path.is_dir():
            return _Folder(path, how_to_get)
        if not path.is_file():
            raise InvalidImport(f"There is no file or folder {path}. {how_to_get}", path=str(path))
        if zipfile.is_zipfile(path):
            return _ZipFile(path, how_to_get)
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                raise InvalidImport(
                    f"{path.name} is a damaged zip file: it was not downloaded completely. Download it again.",
                    path=str(path),
                )
        return _SingleFile(path)
    except OSError as error:
        raise InvalidImport(f"{path} cannot be read: {error.strerror or error}.", path=str(path)) from error


class _SingleFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = [path.name]

    def read_chunks(self, name: str) -> Iterator[bytes]:
        return read_path(self._path)

    def open_file(self, name: str) -> BinaryIO:
        return _open_path(self._path)

    def close(self) -> None:
        pass


class _ZipFile:
    def __init__(self, path: Path, how_to_get: str) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except _ZIP_ERRORS as error:
            raise InvalidImport(
                f"{path.name} is a damaged zip file ({error}). Download it again. {how_to_get}", path=str(path)
            ) from error
        if len(self._zip.filelist) > MAX_FILES:
            self._zip.close()
            raise InvalidImport(f"{path.name} has more than {MAX_FILES:,} files: this is no export.", path=str(path))
        self._members = {info.filename: info for info in self._zip.filelist if not info.is_dir()}
        self.names = list(self._members)

    def read_chunks(self, name: str) -> Iterator[bytes]:
        info = self._members[name]
        if info.flag_bits & 1:
            raise DamagedFile("It is encrypted with a password. Make an export without one.")
        ratio = info.file_size / max(info.compress_size, 1)
        if info.file_size > MIN_SUSPICIOUS_BYTES and ratio > MAX_COMPRESSION_RATIO:
            raise DamagedFile(f"It claims to grow to {ratio:,.0f} times its size, as no real export does.")
        try:
            with self._zip.open(info) as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
        except _ZIP_ERRORS as error:
            raise DamagedFile(f"It is damaged in the zip file: {error}.") from error

    def open_file(self, name: str) -> BinaryIO:
        """Copy a file to a temporary one, because only that can be read at any place."""
        size = self._members[name].file_size
        _check_size(size)
        file = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_MAX_SPOOLED_BYTES))  # noqa: SIM115
        with close_on_error(file):
            for number, chunk in enumerate(self.read_chunks(name), 1):
                file.write(chunk)
                if number % _CHUNKS_PER_SPACE_CHECK == 0:  # others may write there, too
                    _check_size(size - file.tell())
        return file

    def close(self) -> None:
        self._zip.close()


class _Folder:
    """A folder, and the zip files directly in it: some exports come as several."""

    def __init__(self, path: Path, how_to_get: str) -> None:
        self._path = path
        self._zips: dict[str, _ZipFile] = {}
        self._files: dict[str, Path] = {}
        self.names: list[str] = []
        for folder, subfolders, file_names in os.walk(path):
            subfolders.sort()
            for file_name in sorted(file_names):
                file = Path(folder, file_name)
                if not file.is_symlink() and file.is_file():  # a link may lead out of the folder
                    self._add_file(file, how_to_get)
            if len(self.names) > MAX_FILES:
                self.close()
                raise InvalidImport(f"{path} has more than {MAX_FILES:,} files: this is no export.", path=str(path))

    def _add_file(self, file: Path, how_to_get: str) -> None:
        name = file.relative_to(self._path).as_posix()
        if "/" not in name and file.suffix.lower() == ".zip" and zipfile.is_zipfile(file):
            archive = _ZipFile(file, how_to_get)
            self._zips[name] = archive
            self.names += (f"{name}/{member}" for member in archive.names)
        else:
            self._files[name] = file
            self.names.append(name)

    def read_chunks(self, name: str) -> Iterator[bytes]:
        if path := self._files.get(name):
            return read_path(path)
        zip_name, _, member = name.partition("/")
        return self._zips[zip_name].read_chunks(member)

    def open_file(self, name: str) -> BinaryIO:
        if path := self._files.get(name):
            return _open_path(path)
        zip_name, _, member = name.partition("/")
        return self._zips[zip_name].open_file(member)

    def close(self) -> None:
        for archive in self._zips.values():
            archive.close()


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
    """Return the last part of a name inside an export."""
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

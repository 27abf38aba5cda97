"""A .zip file that is written while it is read: nothing but the current piece is in memory.

No name in it comes from people's text as it is, so none leads out of the folder where it is unpacked.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHUNK_BYTES: Final = 64 * 1024
_FILE_MODE: Final = 0o600 << 16
_EARLIEST: Final = datetime(1980, 1, 1, tzinfo=UTC)  # that a .zip file can name


class _Buffer:
    """What the zip file has written and was not taken yet. It can't be rewound, so the zip file does not try."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return data


class ZipStream:
    """Makes one .zip file; `add` and `finish` yield its bytes as they come."""

    def __init__(self) -> None:
        self._buffer = _Buffer()
        self._zip = ZipFile(self._buffer, "w", ZIP_DEFLATED, allowZip64=True)  # type: ignore[call-overload]

    def add(self, name: str, chunks: Iterable[bytes], at: datetime) -> Iterator[bytes]:
        """Add a file; what it contains is read only as fast as the result is."""
        info = ZipInfo(name, max(at.astimezone(UTC), _EARLIEST).timetuple()[:6])
        info.compress_type = ZIP_DEFLATED
        info.external_attr = _FILE_MODE
        with self._zip.open(info, "w", force_zip64=True) as entry:
            for chunk in chunks:
                entry.write(chunk)
                if self._buffer.size >= _CHUNK_BYTES:
                    yield self._buffer.take()
        yield self._buffer.take()

    def finish(self) -> Iterator[bytes]:
        """Write the directory of the file. Without it, programs say that the file is damaged."""
        self._zip.close()
        yield self._buffer.take()

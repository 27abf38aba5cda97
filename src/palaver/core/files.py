"""Files that survive a power cut and appear complete or not at all; free space on disks; the install secret.

Files of people, imports and backups leave the database room to write. The install secret, the file `secret` in the home
folder, has random bytes that only this installation knows, with which it hides ids.

Always true: no file is replaced by accident. The install secret is created once, is readable only by its owner, and is
either complete or absent, however many processes ask for it first.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from palaver.core.errors import ConfigError, InvalidInput, PalaverError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def write_file_atomically(path: Path, text: str, *, overwrite: bool) -> None:
    """Write the text to a file that only its owner can read; replace an existing file only with `overwrite`."""
    write_pieces_atomically(path, [text], overwrite=overwrite)


def write_pieces_atomically(path: Path, pieces: Iterable[str | bytes], *, overwrite: bool) -> None:
    """Write what is made piece by piece, in the same way. If making it fails, there is no file."""
    target = Path(os.path.realpath(path))  # the file behind a link is replaced, not the link
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{path} is not a file.", path=str(path))
    if target.exists() and not overwrite:
        raise _make_file_exists_error(path)
    try:
        with _write_temporary_file(target, pieces) as temporary:
            if overwrite:
                temporary.replace(target)
            else:
                _link_new_file(temporary, target)
    except FileExistsError:
        raise _make_file_exists_error(path) from None
    except OSError as error:
        raise PalaverError(f"Could not write {path}: {error.strerror}.", path=str(path)) from error


@contextmanager
def _write_temporary_file(target: Path, pieces: Iterable[str | bytes]) -> Iterator[Path]:
    """Write a file beside the target that only its owner can read; the block gives it its final name."""
    import tempfile  # to read a file needs none

    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            for piece in pieces:
                stream.write(piece if isinstance(piece, bytes) else piece.encode("utf-8", "backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _link_new_file(temporary: Path, target: Path) -> None:
    """Give the temporary file its final name, unless another process has created that file meanwhile."""
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError from None
        temporary.replace(target)


def _make_file_exists_error(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} already exists. Use --force to replace it.", path=str(path))


def iterate_lines(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines of a file with the places where they begin; None for one with more than `max_bytes`."""
    while True:
        start = stream.tell()
        line = stream.readline(max_bytes)
        if not line:
            return
        rest = line
        while len(rest) == max_bytes and not rest.endswith(b"\n"):
            rest = stream.readline(max_bytes)
        yield start, line if rest is line else None


def make_private_folder(folder: Path) -> None:
    """Create a folder and the one that it is in, if needed, for their owner only."""
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file that never changes a second name, or copy it to another disk; complete or not at all."""
    if target.exists():
        return
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or a file system without links
        copy_file(source, target)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, readable by its owner only; the copy appears complete or not at all."""
    with source.open("rb") as reader:
        pieces = iter(partial(reader.read, 1024 * 1024), b"")
        with _write_temporary_file(target, pieces) as temporary:
            temporary.replace(target)


def flush_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


MIN_FREE_BYTES: Final = 500_000_000  # that stay free on a disk
_SHARE_OF_SMALL_DISK: Final = 20  # of a small disk, this part stays free instead


def get_free_bytes(folder: Path) -> int:
    """Return how many bytes are free on the disk of a folder, which need not exist yet."""
    import shutil  # with four modules that decompress

    return shutil.disk_usage(_find_existing(folder)).free


def get_room(folder: Path) -> int:
    """Return how many bytes files may still take on the disk of a folder; negative if too few are free."""
    import shutil

    usage = shutil.disk_usage(_find_existing(folder))
    return usage.free - min(MIN_FREE_BYTES, usage.total // _SHARE_OF_SMALL_DISK)


def check_room(folder: Path, consequence: str) -> None:
    """Raise `StoreFull` if files may take no more space on the disk of a folder."""
    if get_room(folder) <= 0:
        free = get_free_bytes(folder)
        raise StoreFull(
            f"The server's disk is nearly full: {free // 1_000_000} MB are free. {consequence} Ask the operator of this"
            " server to free some space.",
            free_bytes=free,
        )


def _find_existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


SECRET_BYTES: Final = 32


def load_install_secret(home: Path) -> bytes:
    """Return the install secret from `<home>/secret`; create the file on first use.

    Two processes that do this at the same time get the same secret.
    """
    path = home / "secret"
    try:
        if not path.exists():
            create_secret_file(path, secrets.token_bytes(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: can't read or create the install secret ({error.strerror})", file=str(path)
        ) from error
    if len(secret) < SECRET_BYTES:
        raise ConfigError(
            f"{path}: the install secret has {len(secret)} bytes, but it needs {SECRET_BYTES}. Restore the file, or "
            "delete it to create a new one, which changes every hidden id.",
            file=str(path),
        )
    return secret


def create_secret_file(path: Path, secret: bytes) -> None:
    """Create the file, complete or not at all, unless another process was faster."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), _write_temporary_file(path, [secret]) as temporary:
        path.hardlink_to(temporary)

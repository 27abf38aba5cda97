"""Writing a file so that it appears complete or not at all, and never replaces another file by accident."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput, PalaverError

if TYPE_CHECKING:
    from collections.abc import Iterable


def write_file_atomically(path: Path, text: str, *, overwrite: bool) -> None:
    """Write the text to a file that only its owner can read; replace an existing file only with `overwrite`."""
    write_pieces_atomically(path, [text], overwrite=overwrite)


def write_pieces_atomically(path: Path, pieces: Iterable[str], *, overwrite: bool) -> None:
    """Write a text that is made piece by piece, in the same way. If making it fails, there is no file."""
    target = Path(os.path.realpath(path))  # the file behind a link is replaced, not the link
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{path} is not a file.", path=str(path))
    if target.exists() and not overwrite:
        raise _make_file_exists_error(path)
    try:
        _write_via_temporary_file(target, pieces, overwrite=overwrite)
    except FileExistsError:
        raise _make_file_exists_error(path) from None
    except OSError as error:
        raise PalaverError(f"Could not write {path}: {error.strerror}.", path=str(path)) from error


def _write_via_temporary_file(target: Path, pieces: Iterable[str], *, overwrite: bool) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if overwrite:
            temporary.replace(target)
        else:
            _link_new_file(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


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

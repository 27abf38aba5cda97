"""Writing a file that appears whole or not at all, and never by accident over another one."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from palaver.domain.errors import InvalidInput, PalaverError


def write_whole(path: Path, text: str, *, force: bool) -> None:
    """Put the text into a file that its owner alone can read; over an existing one only by `force`."""
    target = Path(os.path.realpath(path))  # the file behind a link is replaced, not the link
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{path} is not a file", path=str(path))
    if target.exists() and not force:
        raise _exists(path)
    try:
        _write(target, text, force=force)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise PalaverError(f"{path} cannot be written: {error.strerror}", path=str(path)) from error


def _write(target: Path, text: str, *, force: bool) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if force:
            draft.replace(target)
        else:
            _place(draft, target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _place(draft: Path, target: Path) -> None:
    """Give the draft its name unless somebody else has taken it meanwhile."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError from None
        draft.replace(target)


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists already; --force replaces it", path=str(path))

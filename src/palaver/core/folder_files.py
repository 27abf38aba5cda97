"""Small steps with files that survive a power cut: links or copies of files, folders that are flushed."""

from __future__ import annotations

import os
import secrets
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with (
            source.open("rb") as reader,
            os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writer,
        ):
            shutil.copyfileobj(reader, writer, 1024 * 1024)
            writer.flush()
            os.fsync(writer.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

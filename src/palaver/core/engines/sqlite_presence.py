"""Notices that a SQLite file in use was removed, renamed or replaced, and that its disk is full.

A process keeps a file that it has opened, whatever happens to its name. What is written to it then is lost when the
process ends, and SQLite does not report that. So the files behind the names are compared with those that were opened.

Always true: looking for the files opens none of them, because closing one would drop every lock that SQLite holds on
it in this process.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import secrets
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

from palaver.core.engines.base import ReadinessProblem
from palaver.core.engines.sqlite_watch import NameChanges
from palaver.core.errors import StoreFileLost, StoreFull

if TYPE_CHECKING:
    from collections.abc import Callable


RESERVE_BYTES = 40 * 1024 * 1024  # a log whose checkpoint is late (twice CHECKPOINT_PAGES), and some deletions
FULL_DISK_BYTES = 2 * 1024 * 1024  # a message with its answer may not fit
NEARLY_FULL_DISK_BYTES = 200_000_000
_PAGES_PER_STEP: Final = 4096

log = logging.getLogger(__name__)


class FilePresence:
    """Whether the database, its log (`-wal`) and its index (`-shm`) are those that this process has opened.

    All three stay the same for as long as any connection is open. When one is lost, everything is copied to a file in
    the same folder (`copy_content` does that); the copy is deleted when the lost file is back. If only the log was
    removed, it is written back into the database instead (`write_back` does that, and says whether all of it was), and
    if only the index was, nothing needs to be saved.
    """

    def __init__(self, path: Path, copy_content: Callable[[Path], None], write_back: Callable[[], bool]) -> None:
        """Remember the files, which must exist."""
        self._path = path
        self._copy_content = copy_content
        self._write_back = write_back
        self._is_written_back = False
        real_path = path.resolve()  # SQLite's other files are beside the one that a link leads to
        names = (str(path), f"{real_path}-wal", f"{real_path}-shm")
        self._folders = {path.parent, real_path.parent}
        self._name_changes: NameChanges | None = None
        self._identities = tuple((name, identity) for name in names if (identity := _identify(name)) is not None)
        self.is_lost = False
        self._copy: Path | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `StoreFileLost` while a file is not in its place."""
        for name, identity in self._identities:
            if _identify(name) != identity:
                self._handle_loss(name)
                raise _make_error(name, self._copy, is_written_back=self._is_written_back)
        if self.is_lost:
            self._handle_return()

    def check_quickly(self) -> None:
        """The same for every commit: the files are looked at only if a name in their folder has changed.

        Asking the system for the state of a log that is being written makes the next write to it much slower.
        """
        if self._name_changes is None:
            self._name_changes = NameChanges(self._folders)
            self.check()
        elif self.is_lost or self._name_changes.has_any():
            self.check()

    def close(self) -> None:
        if self._name_changes is not None:
            self._name_changes.close()

    def notice(self) -> None:
        """Check without raising an error: the next caller gets it."""
        with contextlib.suppress(StoreFileLost):
            self.check()

    def save_before_close(self) -> None:
        """Make sure that there is a copy, if a file is lost: what has no name disappears with the last connection."""
        self.notice()
        if not self.is_lost:
            return
        if self._thread is not None:
            self._thread.join()
        if self._copy is None and not self._is_written_back:  # it failed, or was impossible at the time
            self._save()

    def _handle_loss(self, name: str) -> None:
        with self._lock:
            if self.is_lost:
                return
            self.is_lost = True
            # A thread of its own: the caller may be the writer, for which the copy waits.
            self._thread = threading.Thread(target=self._save, name="palaver-rescue", daemon=True)
            self._thread.start()
        log.error("store_file_lost", extra={"file": name})

    def _handle_return(self) -> None:
        """Go on: these are the files that were opened. No start has used their names meanwhile (`refuse_lost_file`)."""
        with self._lock:
            if not self.is_lost:
                return
            self.is_lost = self._is_written_back = False
            copy, self._copy = self._copy, None
        if copy is not None:
            copy.unlink(missing_ok=True)
        log.warning("store_file_back", extra={"file": str(self._path)})

    def _save(self) -> None:
        path = self._path
        (name, identity), (log_name, log_identity), *_ = self._identities
        has_file, found_log = _identify(name) == identity, _identify(log_name)
        try:
            # With the database and its log in place, SQLite makes the index again from them. A log that is gone is
            # written back; another one in its place belongs to another process.
            if has_file and (found_log == log_identity or (found_log is None and self._write_back())):
                self._is_written_back = True
                log.warning("store_needs_restart", extra={"file": str(path)})
                return
        except apsw.Error as error:
            log.warning("store_log_not_written_back", extra={"file": str(path), "error": str(error)})
        target = path.with_name(f"{path.stem}-rescued-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}.db")
        incomplete = target.with_name(f".{target.name}")
        try:
            os.close(os.open(incomplete, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            self._copy_content(incomplete)
            incomplete.rename(target)
        except (OSError, apsw.Error, StoreFull) as error:
            incomplete.unlink(missing_ok=True)
            log.error("store_file_not_saved", extra={"file": str(path), "error": str(error)})
            return
        with self._lock:
            if self.is_lost:
                self._copy = target
                log.warning("store_file_saved", extra={"file": str(path), "saved_as": str(target)})
                return
        target.unlink(missing_ok=True)  # the file was put back meanwhile


def _identify(name: str) -> tuple[int, int] | None:
    try:
        stat = Path(name).stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _make_error(lost: str, copy: Path | None, *, is_written_back: bool) -> StoreFileLost:
    """Build the error for a file that is gone; without its folder, because every visitor may read it."""
    name = os.path.basename(lost)  # noqa: PTH119
    is_gone = not os.path.lexists(lost)
    what = "was removed or renamed" if is_gone else "was replaced by another file"
    text = f"The server's database file {name} {what} while in use, so nothing can be stored or read. "
    if is_written_back:
        text += "Everything was saved in the database itself. Its operator has to start the server again."
    elif copy is None:
        text += "Its operator has to put it back without stopping the server, or restore a backup."
    else:
        text += f"Its operator can put it back, or stop the server and use the complete copy {copy.name} instead."
    return StoreFileLost(text, file=name, is_gone=is_gone, saved_as=None if copy is None else copy.name)


def copy_content(db: apsw.Connection, target: Path) -> None:
    """Copy everything that an open connection can read into an existing, empty file."""
    import shutil

    size = int(db.execute("PRAGMA page_count").get) * int(db.execute("PRAGMA page_size").get)
    if shutil.disk_usage(target.parent).free < size:
        raise StoreFull("There is no space for a copy of the database.", bytes=size)
    with contextlib.closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")
        with copy.backup("main", db, "main") as backup:
            while not backup.step(_PAGES_PER_STEP):
                pass


def list_rescued(path: Path) -> list[Path]:
    """Return the copies that were made of a lost database, the newest last."""
    return sorted(path.parent.glob(f"{glob.escape(path.stem)}-rescued-*.db"))


class DiskReserve:
    """Space on the disk that is kept for deleting: SQLite must write before it can delete. Several processes share it.

    A server keeps a file of a fixed size beside its database. When the disk is full, the first work that frees space
    gives the file back. The log can then be written back into the database and begins again, in space that it already
    has. From then on, what is left of that space is for work that frees more, until the disk has room for a new one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-reserve")
        self.is_freed = False  # and not made again since

    def keep(self) -> None:
        """Make sure that there is a reserve, if the disk has much more than that left."""
        if self._path.exists() or self._get_free_bytes() < 4 * RESERVE_BYTES:
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:  # another process is making it, or the folder can't be written
            return
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            self._path.unlink(missing_ok=True)
        else:
            self.is_freed = False
        finally:
            os.close(descriptor)

    def free(self) -> None:
        self._path.unlink(missing_ok=True)
        self.is_freed = True

    def refuse_if_needed(self) -> None:
        """Raise `StoreFull` if the reserve was given back and what is left of it is for deleting."""
        if not self.is_freed:
            return
        free = self._get_free_bytes()
        if free < RESERVE_BYTES // 2:
            raise StoreFull(free_bytes=free)
        if free > 4 * RESERVE_BYTES:
            self.is_freed = False  # the next `keep` makes a new one

    def find_problem(self) -> ReadinessProblem | None:
        """Say whether the disk is full or nearly full."""
        free = self._get_free_bytes()
        if free < FULL_DISK_BYTES or (self.is_freed and free < RESERVE_BYTES // 2):
            text = "The server's disk is full: messages can't be stored. Free some space."
            return ReadinessProblem("disk_full", text, is_blocking=True)
        if free < NEARLY_FULL_DISK_BYTES:
            text = f"The server's disk is nearly full: {free / 1e6:.0f} MB are free."
            return ReadinessProblem("disk_nearly_full", text, is_blocking=False)
        return None

    def _get_free_bytes(self) -> int:
        import shutil  # a command measures no disk

        return shutil.disk_usage(self._path.parent).free

"""Puts a backup in the place of a database that no process uses.

    prepare   a copy of the backup, upgraded, in a folder of its own beside the database
    link      the attachments of the backup, beside those that are there
    keep      the present database as `palaver.db.before-restore-…`
    swap      one rename

Always true: the database is the old one until the rename, and the new one after it. Only the log of a damaged database
cannot be folded into its file and has to go first: meanwhile a marker makes every process refuse the database, and the
same command finishes the work.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from palaver.core.clock import SystemClock, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Write
from palaver.core.engines.open import open_engine
from palaver.core.engines.sqlite_backup import check_copy, fold_log
from palaver.core.engines.sqlite_file import DATABASE_NAME, FolderLock, get_restore_marker, is_file_in_use
from palaver.core.errors import StoreBusy
from palaver.core.files import copy_file, flush_folder, link_or_copy, make_private_folder
from palaver.operation.backups import ATTACHMENTS_NAME, Backup, sort_attachments, verify_backup
from palaver.operation.invariants import close_open_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


PREPARED_FOLDER: Final = ".palaver-restore"  # beside the database
_LOG_SUFFIXES: Final = ("-wal", "-shm")
_KEPT_INFIX: Final = ".before-restore-"


@dataclass(frozen=True, slots=True)
class RestoreResult:
    kept: Path | None  # the database as it was before; None if there was none
    attachment_count: int
    left_out_attachments: tuple[Path, ...]  # their bytes are not what their name says, or they are no files
    added_secret_files: tuple[str, ...]
    left_secret_files: tuple[str, ...]  # that the backup has too, and the home folder already had


@contextmanager
def lock_database(database: Path) -> Iterator[None]:
    """Let no other process use the database inside the block; raise `StoreBusy` if one does."""
    database = database.resolve()
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FolderLock.take(database.parent)
    if lock is None or is_file_in_use(database):
        if lock is not None:
            lock.close()
        raise StoreBusy(
            f"Another process uses the database {database}. Stop every server and chat on it, then try again.",
            path=str(database),
        )
    with lock:
        yield


def restore_backup(backup: Backup, database: Path, home: Path) -> RestoreResult:
    """Verify a backup and put it in the place of a database, or of what a link to it leads to.

    The caller has locked the database.
    """
    database = database.resolve()
    verify_backup(backup)
    prepared = _prepare(backup, database)
    crash_point("restore.copied")
    sound, damaged = sort_attachments(backup)
    _link_attachments(sound, home / ATTACHMENTS_NAME)
    added, left = _add_secret_files(backup, home)
    crash_point("restore.files_linked")
    kept = _keep_and_swap(prepared, database)
    shutil.rmtree(prepared.parent, ignore_errors=True)
    return RestoreResult(kept, len(sound), tuple(damaged), tuple(added), tuple(left))


def _prepare(backup: Backup, database: Path) -> Path:
    """Make the database that will be used: the backup's, upgraded, without work that is open."""
    folder = database.parent / PREPARED_FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # of a restore that was interrupted
    folder.mkdir(mode=0o700)
    prepared = folder / DATABASE_NAME
    copy_file(backup.database, prepared)
    engine = open_engine(str(prepared))
    try:
        now = to_micros(SystemClock().now())
        engine.run(Write(lambda tx: close_open_work(tx, now)))
    finally:
        engine.close()
    check_copy(prepared, is_complete=False)
    return prepared


def _link_attachments(paths: Sequence[Path], target: Path) -> None:
    for path in paths:
        folder = target / path.parent.name
        make_private_folder(folder)
        link_or_copy(path, folder / path.name)
    if paths:
        for folder in (*target.glob("??"), target):
            flush_folder(folder)


def _add_secret_files(backup: Backup, home: Path) -> tuple[list[str], list[str]]:
    """Put the settings and keys of a backup where there are none; a file that exists stays as it is."""
    added, left = [], []
    for name in backup.manifest.secret_files:
        if (home / name).exists():
            left.append(name)
        elif (backup.path / name).is_file() and not (backup.path / name).is_symlink():
            copy_file(backup.path / name, home / name)
            added.append(name)
    return added, left


def _keep_and_swap(prepared: Path, database: Path) -> Path | None:
    marker, kept = get_restore_marker(database), None
    if not database.exists():
        _rename_log(database)
    else:
        is_folded = not marker.exists() and fold_log(database)
        kept = _keep(database, with_log=not is_folded)
        crash_point("restore.old_kept")
        if not is_folded:
            marker.touch(mode=0o600)
            flush_folder(database.parent)
            crash_point("restore.marked")
            _remove_log(database)
            crash_point("restore.log_removed")
    crash_point("restore.before_swap")
    prepared.replace(database)
    flush_folder(database.parent)
    crash_point("restore.swapped")
    marker.unlink(missing_ok=True)
    flush_folder(database.parent)
    return kept


def _keep(database: Path, *, with_log: bool) -> Path:
    """Give the present database another name as well, with its log if that holds anything."""
    kept = _choose_kept_name(database)
    prefix = f"{database.name}{_KEPT_INFIX}"
    for path in database.parent.glob(f"{prefix}*"):
        if not path.name.endswith(_LOG_SUFFIXES) and path.samefile(database):
            return path  # a restore that was interrupted has done it
    if with_log and (log := database.with_name(f"{database.name}-wal")).exists():
        link_or_copy(log, kept.with_name(f"{kept.name}-wal"))
    link_or_copy(database, kept)
    flush_folder(database.parent)
    return kept


def _choose_kept_name(database: Path) -> Path:
    return database.with_name(f"{database.name}{_KEPT_INFIX}{datetime.now(UTC):%Y%m%d-%H%M%S}")


def _rename_log(database: Path) -> None:
    """Keep the log of a database that is missing; its index of pages is worth nothing without it."""
    log = database.with_name(f"{database.name}-wal")
    if log.exists():
        log.rename(database.with_name(f"{_choose_kept_name(database).name}-wal"))
    _remove_log(database)


def _remove_log(database: Path) -> None:
    for suffix in _LOG_SUFFIXES:
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
    flush_folder(database.parent)

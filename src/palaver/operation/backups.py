"""Backups of a store in a SQLite file: made while it is in use, checked, listed, and deleted when there are enough.

A backup is a folder: `palaver.db`, the attachments that its conversations use, and `backup.json`, which says what is in
it. Attachments never change, so on the same disk they are links and take no space. Settings and keys are secrets: they
are left out unless they are asked for.

Always true: a backup with its final name is complete, on the disk, and was opened and checked. A process that dies
leaves a folder that begins with a dot, which the next backup deletes.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import logging
import os
import shutil
import stat
import threading
import time
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver import __version__, config
from palaver.config import settings_key
from palaver.core.background import NamedLease
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.sqlite_backup import (
    CopyFacts,
    check_copy,
    compute_sha256,
    copy_database,
    iterate_file_hashes,
    measure_database,
)
from palaver.core.engines.sqlite_file import (
    DATABASE_NAME,
    MANIFEST_NAME,
    format_backup_name,
    get_backup_folder,
    list_backup_paths,
    make_damage_error,
)
from palaver.core.errors import BackupDamaged, BackupError, BackupStopped, PalaverError, StoreFull
from palaver.core.files import copy_file, flush_folder, get_free_bytes, get_room, link_or_copy, make_private_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from palaver.config.agent_rules import BackupRules
    from palaver.sessions.store import SessionStore


FORMAT: Final = "palaver.backup/1"
ATTACHMENTS_NAME: Final = "attachments"
SECRET_FILES: Final = (config.FILE_NAME, settings_key.FILE_NAME, "secret")  # in the home folder; those that exist
UPLOAD_WAIT_SECONDS: Final = 2.0  # for the bytes of a file whose upload is just ending
MAX_MANIFEST_BYTES: Final = 1_000_000
_PART_SUFFIX: Final = ".part"
LEASE_TIME: Final = timedelta(minutes=15)
FIRST_WAIT_SECONDS: Final = 600.0
MAX_WAIT_SECONDS: Final = 600.0  # between two looks at the clock; shorter than the lease

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """The contents of a backup, as `backup.json` lists them."""

    created_at: str
    palaver_version: str
    database_bytes: int
    database_sha256: str
    migrations: list[str]
    row_counts: dict[str, int]
    attachment_count: int
    attachment_bytes: int
    missing_attachments: list[str]  # hashes of files that conversations use and that were not there
    secret_files: list[str]  # names of the files with settings and keys that are in it


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    manifest: BackupManifest

    @property
    def database(self) -> Path:
        return self.path / DATABASE_NAME

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.manifest.created_at)

    @property
    def size(self) -> int:
        """The bytes of everything in it, whether linked or copied."""
        return self.manifest.database_bytes + self.manifest.attachment_bytes

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), **asdict(self.manifest)}


@dataclass(frozen=True, slots=True)
class BackupRequest:
    database: Path
    home: Path
    _: KW_ONLY
    target: Path | None = None
    with_secrets: bool = False
    should_stop: Callable[[], bool] = lambda: False
    on_progress: Callable[[int, int], None] = lambda _copied, _total: None

    def run(self) -> Backup:
        if not self.database.is_file():
            raise BackupError(f"There is no database at {self.database} yet.", path=str(self.database))
        moment = datetime.now(UTC)
        try:
            target = self.target or _choose_name(get_backup_folder(self.database), moment)
            if os.path.lexists(target):
                raise BackupError(f"{target} already exists. Choose another name.", path=str(target))
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _delete_leftovers(target.parent)
            _check_space(self.database, target.parent)
            with _open_part(target) as part:
                return self._fill(part, target, moment)
        except OSError as error:
            kind = StoreFull if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} else BackupError
            raise kind(f"The backup could not be written: {error.strerror} ({error.filename}).") from error

    def _fill(self, part: Path, target: Path, moment: datetime) -> Backup:
        copy = part / DATABASE_NAME
        crash_point("backup.before_copy")
        copy_database(self.database, copy, should_stop=self.should_stop, on_progress=self.on_progress)
        crash_point("backup.copied")
        facts = self._check(copy)
        count, size, missing = _link_attachments(copy, self.home / ATTACHMENTS_NAME, part / ATTACHMENTS_NAME)
        crash_point("backup.files_linked")
        manifest = BackupManifest(
            created_at=moment.isoformat(timespec="seconds"),
            palaver_version=__version__,
            database_bytes=copy.stat().st_size,
            database_sha256=compute_sha256(copy, self.should_stop),
            migrations=list(facts.migrations),
            row_counts=facts.row_counts,
            attachment_count=count,
            attachment_bytes=size,
            missing_attachments=missing,
            secret_files=self._copy_secrets(part),
        )
        _write_manifest(part / MANIFEST_NAME, manifest)
        flush_folder(part)
        crash_point("backup.before_name")
        part.rename(target)
        flush_folder(target.parent)
        crash_point("backup.named")
        return Backup(target, manifest)

    def _check(self, copy: Path) -> CopyFacts:
        """Check the copy; what is wrong with it is wrong with the database."""
        try:
            return check_copy(copy, is_complete=False, should_stop=self.should_stop)
        except BackupDamaged as error:
            problem = str(error).replace(str(copy), "it")
            raise make_damage_error(self.database, f"{problem} No backup was made.") from error

    def _copy_secrets(self, part: Path) -> list[str]:
        names = [name for name in SECRET_FILES if self.with_secrets and (self.home / name).is_file()]
        for name in names:
            copy_file(self.home / name, part / name)
        return names


def list_backups(database: Path) -> list[Backup]:
    """Return the backups in the folder beside a database, the newest first; unreadable ones are left out."""
    backups = []
    for path in list_backup_paths(get_backup_folder(database)):
        try:
            backups.append(load_backup(path))
        except BackupDamaged:
            continue
    return backups


def load_backup(path: Path) -> Backup:
    """Read what a backup contains; `path` is its folder, or the database in it. Its content is not checked."""
    folder = path.parent if path.name == DATABASE_NAME else path
    manifest = folder / MANIFEST_NAME
    try:
        with manifest.open(encoding="utf-8") as stream:
            document = json.loads(stream.read(MAX_MANIFEST_BYTES))
        if document.pop("format") != FORMAT:
            raise BackupDamaged(f"{folder} was made by a newer version of Palaver. Upgrade Palaver to restore it.")
        loaded = BackupManifest(**document)
        if not set(loaded.secret_files) <= set(SECRET_FILES):  # their names are used as paths
            raise BackupDamaged(f"{manifest} names files that no backup contains.", path=str(path))
        return Backup(folder, loaded)
    except FileNotFoundError:
        raise BackupDamaged(
            f"{path} is not a backup: it has no {MANIFEST_NAME}. Give the folder that a backup was made in.",
            path=str(path),
        ) from None
    except OSError as error:
        raise BackupDamaged(f"{manifest} can't be read: {error.strerror}.", path=str(path)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BackupDamaged(f"{manifest} is damaged.", path=str(path)) from error


def verify_backup(backup: Backup) -> None:
    """Check every byte and every row of the database of a backup; raise `BackupDamaged` if it is not as it was made."""
    try:
        size = backup.database.stat().st_size
        if size != backup.manifest.database_bytes or compute_sha256(backup.database) != backup.manifest.database_sha256:
            raise BackupDamaged(
                f"{backup.database} has changed since the backup was made. Restore another backup.",
                path=str(backup.path),
            )
    except OSError as error:
        raise BackupDamaged(f"{backup.database} can't be read: {error.strerror}.", path=str(backup.path)) from error
    facts = check_copy(backup.database, is_complete=True)
    if facts.row_counts != backup.manifest.row_counts:
        raise BackupDamaged(f"{backup.database} does not contain what {MANIFEST_NAME} says.", path=str(backup.path))


def sort_attachments(backup: Backup) -> tuple[list[Path], list[Path]]:
    """Read every attachment of a backup; return the paths of those that are as they were made, and of the others.

    An attachment is named by its hash. Anything else under its folder, such as a link to another file, is not one.
    """
    folder = backup.path / ATTACHMENTS_NAME
    sound: list[Path] = []
    others: list[Path] = []
    for path in sorted(folder.glob("*/*")) if not folder.is_symlink() else [folder]:
        (sound if _is_sound_attachment(path) else others).append(path)
    return sound, others


def _is_sound_attachment(path: Path) -> bool:
    if path.parent.is_symlink() or path.parent.name != path.name[:2] or not stat.S_ISREG(path.lstat().st_mode):
        return False
    try:
        return compute_sha256(path) == path.name
    except OSError:
        return False


def delete_old_backups(database: Path, keep: int) -> list[Path]:
    """Delete all backups in the folder beside a database but the newest `keep`; return the paths of those deleted."""
    old = list_backup_paths(get_backup_folder(database))[max(keep, 1) :]
    for path in old:
        trash = path.with_name(f".{path.name}{_PART_SUFFIX}")  # so that one that is half deleted is no backup
        path.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)
    return old


def _choose_name(folder: Path, moment: datetime) -> Path:
    name = format_backup_name(moment)
    names = (name, *(f"{name}-{number}" for number in range(2, 100)))
    return next(path for each in names if not os.path.lexists(path := folder / each))


def _check_space(database: Path, folder: Path) -> None:
    needed = measure_database(database)
    if get_room(folder) < needed:
        free = get_free_bytes(folder)
        raise StoreFull(
            f"A backup in {folder} needs {needed // 1_000_000} MB and leaves some free for the database, but only"
            f" {free // 1_000_000} MB are free.",
            needed_bytes=needed,
            free_bytes=free,
        )


@contextmanager
def _open_part(target: Path) -> Iterator[Path]:
    """Make the folder in which a backup is made, and lock it; delete it if the backup fails."""
    part = target.with_name(f".{target.name}{_PART_SUFFIX}")
    try:
        part.mkdir(mode=0o700)
    except FileExistsError:
        raise BackupError(f"Another process is making the backup {target} now.", path=str(target)) from None
    descriptor = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield part
    finally:
        if part.exists():
            shutil.rmtree(part, ignore_errors=True)
        os.close(descriptor)


def _delete_leftovers(folder: Path) -> None:
    """Delete what processes have left behind that died while they made or deleted a backup."""
    for part in folder.glob(f".palaver-*{_PART_SUFFIX}"):
        descriptor = os.open(part, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(part, ignore_errors=True)
        except BlockingIOError:  # its process lives
            continue
        finally:
            os.close(descriptor)


def _link_attachments(copy: Path, source: Path, target: Path) -> tuple[int, int, list[str]]:
    """Link or copy the files that a copied database knows; return their number, their bytes, and the missing ones."""
    count, size, late = 0, 0, []
    for sha256, is_used in iterate_file_hashes(copy):
        linked = _link_attachment(source, target, sha256)
        if linked is not None:
            count, size = count + 1, size + linked
        elif is_used:
            late.append(sha256)
    deadline = time.monotonic() + UPLOAD_WAIT_SECONDS
    missing = []
    for sha256 in late:
        while (linked := _link_attachment(source, target, sha256)) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if linked is None:
            missing.append(sha256)
        else:
            count, size = count + 1, size + linked
    if target.exists():
        for folder in (*target.iterdir(), target):
            flush_folder(folder)
    return count, size, missing


def _link_attachment(source: Path, target: Path, sha256: str) -> int | None:
    """Link one file and return its size; None if it does not exist."""
    path = source / sha256[:2] / sha256
    try:
        size = path.stat().st_size
        make_private_folder(target / sha256[:2])
        link_or_copy(path, target / sha256[:2] / sha256)
    except FileNotFoundError:
        return None
    return size


def _write_manifest(path: Path, manifest: BackupManifest) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({"format": FORMAT, **asdict(manifest)}, stream, indent=2)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())


class BackupScheduler:
    """Makes backups of a SQLite store while a server runs, as often as the settings say, and deletes old ones.

    One process does it, by a lease. The newest backup in the folder says when the next one is due, whichever process
    or person has made it. The work runs on a thread, in small steps: nothing waits for it. A new server waits a while
    before its first backup, so that its start is quick, and one that is started for a moment makes none.
    """

    def __init__(self, store: SessionStore, database: Path, home: Path, rules: BackupRules) -> None:
        self._store = store
        self._database = database
        self._home = home
        self._rules = rules
        self._lease = NamedLease(store.engine, store.clock, "backup", LEASE_TIME)
        self._stop = threading.Event()

    async def run(self, first_wait: float = FIRST_WAIT_SECONDS) -> None:
        """Make backups until canceled; a backup that is being made then is given up, and nothing is left of it."""
        if self._rules.every_hours == 0:
            return
        wait = first_wait
        try:
            while True:
                await asyncio.sleep(wait)
                wait = await self.run_once()
        finally:
            self._stop.set()

    async def run_once(self) -> float:
        """Make a backup if one is due and this process is the one to do it; return the seconds until the next look."""
        try:
            due_in = await asyncio.to_thread(self._compute_wait)
            if due_in > 0:
                return min(due_in, MAX_WAIT_SECONDS)
            if await self._lease.take():
                await asyncio.to_thread(self._make_backup)
                await self._lease.release()
        except BackupStopped:
            pass
        except (PalaverError, OSError) as error:
            log.error("backup_failed", extra={"error": str(error)})
        return MAX_WAIT_SECONDS

    def _compute_wait(self) -> float:
        """Return the seconds until the next backup is due; less than one if it is due now."""
        backups = list_backups(self._database)
        if not backups:
            return 0.0
        age = self._store.clock.now() - backups[0].created_at
        return (timedelta(hours=self._rules.every_hours) - age).total_seconds()

    def _make_backup(self) -> None:
        if self._compute_wait() > 0:  # another process was faster
            return
        backup = BackupRequest(self._database, self._home, should_stop=self._stop.is_set).run()
        deleted = delete_old_backups(self._database, self._rules.keep)
        log.info(
            "backup_made",
            extra={"path": str(backup.path), "bytes": backup.manifest.database_bytes, "deleted": len(deleted)},
        )
        if backup.manifest.missing_attachments:
            log.warning("backup_incomplete", extra={"missing_files": len(backup.manifest.missing_attachments)})

"""The home folder and what is in it: owner, permissions, free space, attached files, backups."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.engines.backup_folder import list_backup_paths
from palaver.core.engines.base import Read
from palaver.operation import invariants
from palaver.operation.doctor.finding import make_ok, make_problem, make_warning
from palaver.operation.doctor.finding_texts import FindingCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.operation.doctor.finding import Finding
    from palaver.operation.doctor.fix_commands import FixCommands
    from palaver.sessions.store import SessionStore

MIN_FREE_BYTES: Final = 200_000_000
MAX_BACKUP_AGE: Final = timedelta(days=7)
MAX_CHECKED_FILES: Final = 2000
_PRIVATE_FILES: Final = ("config.yaml", "install.secret", "*.db", "*.db-wal", "*.key", "*.secret")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def check_home(home: Path) -> Iterator[Finding]:
    """Check that the folder belongs to this user, can be written, and is closed to others."""
    path = shlex.quote(str(home))
    if not home.exists():
        yield make_ok(FindingCode.HOME_MISSING, folder=home)
        return
    if not home.is_dir():
        yield make_problem(FindingCode.HOME_NOT_FOLDER, folder=home, command=f"mv {path} {path}.old")
        return
    info = home.stat()
    if info.st_uid != os.geteuid():
        yield make_problem(FindingCode.HOME_OF_OTHER_USER, folder=home, command=f"sudo chown -R $(id -un) {path}")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield make_problem(FindingCode.HOME_NOT_WRITABLE, folder=home, command=f"chmod u+rwx {path}")
        return
    open_paths = [home] if info.st_mode & _OTHERS else []
    open_paths += [each for each in _list_private_files(home) if each.stat().st_mode & _OTHERS]
    if not open_paths:
        yield make_ok(FindingCode.HOME_PRIVATE, folder=home)
        return
    fixes = [f"chmod {'700' if each.is_dir() else '600'} {shlex.quote(str(each))}" for each in open_paths]
    names = ", ".join(each.name if each != home else str(home) for each in open_paths)
    yield make_warning(FindingCode.HOME_READABLE, files=names, command=" && ".join(fixes))


def _list_private_files(home: Path) -> list[Path]:
    found = {path for pattern in _PRIVATE_FILES for path in home.glob(pattern) if path.is_file()}
    return sorted(found)


def check_disk(home: Path, database: Path | None) -> Iterator[Finding]:
    """Compare the free space with the size of the database, of which a backup or an upgrade needs as much again."""
    folder = home
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    size = 0 if database is None or not database.is_file() else database.stat().st_size
    facts = {"free": _format_bytes(free), "size": _format_bytes(size), "folder": folder}
    if free < MIN_FREE_BYTES:
        yield make_problem(FindingCode.DISK_FULL, **facts)
    elif free < 2 * size:
        yield make_warning(FindingCode.DISK_SMALL, **facts)
    else:
        yield make_ok(FindingCode.DISK, **facts)


def check_backups(database: Path, now: datetime, commands: FixCommands) -> Iterator[Finding]:
    """Check how old the newest backup of a SQLite file is."""
    if not database.is_file():
        return
    command = commands.format("backup")
    newest = next(iter(list_backup_paths(database.parent / "backups")), None)
    if newest is None:
        yield make_warning(FindingCode.BACKUP_MISSING, command=command)
        return
    made_at = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    facts = {"date": made_at.date(), "name": newest.name}
    if now - made_at > MAX_BACKUP_AGE:
        yield make_warning(FindingCode.BACKUP_OLD, command=command, **facts)
    else:
        yield make_ok(FindingCode.BACKUP, **facts)


def check_attachments(store: SessionStore, folder: Path, commands: FixCommands) -> Iterator[Finding]:
    """Check whether the oldest attached files are in place. The complete check of the database looks at all of them."""
    files = store.engine.run(Read(lambda tx: invariants.list_files(tx, 0, MAX_CHECKED_FILES)))
    missing = [file for file in files if not (folder / file.sha256[:2] / file.sha256).is_file()]
    checked = f"{len(files)}+" if len(files) == MAX_CHECKED_FILES else str(len(files))
    if missing:
        yield make_problem(
            FindingCode.FILES_MISSING,
            count=len(missing),
            checked=checked,
            folder=folder,
            example=missing[0].id,
            command=commands.format("restore BACKUP"),
        )
    else:
        yield make_ok(FindingCode.FILES, checked=checked)


def _format_bytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"

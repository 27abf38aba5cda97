"""The folder with the backups of a database: `backups`, beside the database file, one folder for each backup.

A backup is complete or absent: it is made in a folder that begins with a dot, which then gets its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

FOLDER_NAME: Final = "backups"
DATABASE_NAME: Final = "palaver.db"  # inside of a backup, whatever the database is called
MANIFEST_NAME: Final = "backup.json"
_NAME = re.compile(r"palaver-\d{8}-\d{6}(?:-\d+)?")


def format_backup_name(moment: datetime) -> str:
    """Return the name of a backup made at this moment; `moment` is in UTC. Names sort by time."""
    return f"palaver-{moment:%Y%m%d-%H%M%S}"


def get_backup_folder(database: Path) -> Path:
    return database.resolve().parent / FOLDER_NAME  # also for a link: one folder for one database


def list_backup_paths(folder: Path) -> list[Path]:
    """Return the paths of complete backups with a name that `palaver backup` chose, the newest first."""
    try:
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and (path / MANIFEST_NAME).is_file()]
    except OSError:  # there is none
        return []
    return sorted(found, key=lambda path: path.name, reverse=True)


def find_newest_backup(database: Path) -> Path | None:
    return next(iter(list_backup_paths(get_backup_folder(database))), None)

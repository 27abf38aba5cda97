"""What Palaver says about a damaged SQLite file: what is wrong, where the newest backup is, and what to do next."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from palaver.core.engines.backup_folder import find_newest_backup, get_backup_folder
from palaver.core.errors import StoreDamaged
from palaver.core.invocation import format_command


def make_damage_error(database: Path, problem: str) -> StoreDamaged:
    """Build the error for a damaged file. `problem` is a sentence such as "its table event is missing."."""
    backup = find_newest_backup(database)
    lines = [f"The database {database} is damaged: {problem}", "Palaver has not changed the file and does not use it."]
    if backup is not None:
        command = _format_home_command(database, f"restore {shlex.quote(str(backup))}")
        lines.append(f"Newest backup: {backup}. To go back to it, run: {command}")
        lines.append("The restore keeps the damaged file, too.")
    else:
        lines.append(
            f"There is no backup in {get_backup_folder(database)}. If you have one elsewhere, run:"
            f" {_format_home_command(database, 'restore BACKUP')}"
        )
    return StoreDamaged(
        "\n".join(lines), path=str(database), problem=problem, newest_backup=None if backup is None else str(backup)
    )


def _format_home_command(database: Path, arguments: str) -> str:
    """Return a command line that works on this database, also if its home folder is not the default one."""
    default = Path(os.environ.get("PALAVER_HOME") or "~/.palaver").expanduser().absolute()
    option = "" if database.parent == default else f"--home {shlex.quote(str(database.parent))} "
    return format_command(option + arguments)

"""The database: whether it can be opened, its schema, and on request everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import PalaverError, SchemaTooNew, StoreDamaged
from palaver.services.doctor.finding import make_ok, make_problem, make_warning
from palaver.services.integrity_check import check_integrity
from palaver.storage.engines.schema_state import get_sqlite_path, load_schema_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.services.doctor.finding import Finding
    from palaver.services.doctor.fix_commands import FixCommands
    from palaver.services.store import SessionStore


def check_database(url: str, commands: FixCommands) -> tuple[bool, list[Finding]]:
    """Return whether a database can be opened without changing it, and what was found."""
    path = get_sqlite_path(url)
    if path is not None and not path.exists():
        return False, [make_ok("Database", f"{path} doesn't exist yet. It is made at the first start.")]
    try:
        state = load_schema_state(url)
    except ModuleNotFoundError:
        return False, [
            make_problem("Database", "The driver for PostgreSQL is missing.", "pip install 'palaver[postgres]'")
        ]
    except PalaverError as error:
        return False, [_describe_error(error, commands)]
    name = "PostgreSQL" if path is None else str(path)
    if state.pending:
        text = f"{name} has an older schema; the next start upgrades it ({', '.join(state.pending)})."
        return False, [
            make_warning("Database", text, f"{commands.format('backup')}, and then {commands.format('serve')}")
        ]
    server = f" ({state.server})" if state.server else ""
    return True, [make_ok("Database", f"{name}{server} opens, and its schema is up to date.")]


def _describe_error(error: PalaverError, commands: FixCommands) -> Finding:
    text, *advice = str(error).splitlines()
    fix = " ".join(advice)
    if not fix:
        match error:
            case SchemaTooNew():
                fix = "pip install --upgrade palaver"
            case StoreDamaged():
                fix = commands.format("restore BACKUP")
            case _:
                fix = "Check `database_url` in config.yaml, and that the file or server can be reached."
    return make_problem("Database", text, fix)


def check_everything(store: SessionStore, attachments: Path, commands: FixCommands) -> Iterator[Finding]:
    """Read the whole database, and compare what it says with itself and with the attached files."""
    for result in check_integrity(store, attachments).results:
        if result.is_ok:
            yield make_ok(result.title, "No errors.")
        else:
            text = f"{result.problem_count} errors: {'; '.join(result.problems[:3])}."
            yield make_problem(result.title, text, f"Go back to a backup: {commands.format('restore BACKUP')}")

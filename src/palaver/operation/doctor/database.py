"""The database: whether it can be opened, its schema, and on request everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.engines.schema_state import get_sqlite_path, load_schema_state
from palaver.core.engines.sqlite_file import refuse_lost_file
from palaver.core.errors import PalaverError, SchemaTooNew, StoreDamaged
from palaver.operation.doctor.finding import make_ok, make_problem, make_warning
from palaver.operation.doctor.finding_texts import FindingCode
from palaver.operation.integrity_check import check_integrity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.operation.doctor.finding import Finding
    from palaver.operation.doctor.fix_commands import FixCommands
    from palaver.sessions.store import SessionStore

_CHECK_ADDRESS: Final = "Check `database_url` in config.yaml, and that the file or server can be reached."


def check_database(url: str, commands: FixCommands) -> tuple[bool, list[Finding]]:
    """Return whether a database can be opened without changing it, and what was found."""
    path = get_sqlite_path(url)
    try:
        if path is not None:
            refuse_lost_file(path)
        if path is not None and not path.exists():
            return False, [make_ok(FindingCode.DATABASE_MISSING, path=path)]
        state = load_schema_state(url)
    except ModuleNotFoundError:
        return False, [make_problem(FindingCode.DATABASE_DRIVER_MISSING)]
    except PalaverError as error:
        return False, [_describe_error(error, commands)]
    name = "PostgreSQL" if path is None else str(path)
    if state.pending:
        return False, [
            make_warning(
                FindingCode.DATABASE_OLD,
                name=name,
                migrations=", ".join(state.pending),
                backup=commands.format("backup"),
                serve=commands.format("serve"),
            )
        ]
    server = f" ({state.server})" if state.server else ""
    return True, [make_ok(FindingCode.DATABASE, name=name, server=server)]


def _describe_error(error: PalaverError, commands: FixCommands) -> Finding:
    text, *advice = str(error).splitlines()
    if not advice and isinstance(error, SchemaTooNew):
        return make_problem(FindingCode.DATABASE_TOO_NEW, problem=text)
    if not advice and isinstance(error, StoreDamaged):
        return make_problem(FindingCode.DATABASE_DAMAGED, problem=text, command=commands.format("restore BACKUP"))
    return make_problem(FindingCode.DATABASE_ERROR, problem=text, advice=" ".join(advice) or _CHECK_ADDRESS)


def check_everything(store: SessionStore, attachments: Path, commands: FixCommands) -> Iterator[Finding]:
    """Read the whole database, and compare what it says with itself and with the attached files."""
    for result in check_integrity(store, attachments).results:
        if result.is_ok:
            yield make_ok(FindingCode.INTEGRITY_OK, subject=result.title)
        else:
            yield make_problem(
                FindingCode.INTEGRITY_REPAIRABLE if result.is_repairable else FindingCode.INTEGRITY_PROBLEM,
                subject=result.title,
                count=result.problem_count,
                problems="; ".join(result.problems[:3]),
                command=commands.format("doctor --repair" if result.is_repairable else "restore BACKUP"),
            )

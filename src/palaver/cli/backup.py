"""`palaver backup`, `palaver backups` and `palaver restore`: copies of everything, for a store in a SQLite file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from palaver.cli.options import confirm_or_exit, json_option, load_cli_settings, yes_option
from palaver.cli.output import (
    Column,
    clean_line,
    format_count,
    print_hint,
    print_json,
    print_table,
    wants_json,
)
from palaver.core.errors import BackupError, StoreBusy
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.config import Settings
    from palaver.operation.backups import Backup
    from palaver.operation.restores import RestoreResult

MAX_LISTED_FILES: Final = 5


@click.command()
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Make the backup in this new folder. [default: palaver-DATE-TIME in the folder backups, beside the database]",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 10_000),
    metavar="COUNT",
    help="Then delete all but the newest COUNT backups in the folder backups.",
)
@click.option(
    "--with-secrets",
    is_flag=True,
    help="Also copy config.yaml and the keys of this installation, which are secret.",
)
@json_option
def backup(target: Path | None, keep: int | None, with_secrets: bool) -> None:
    """Back up the database and all attached files, also while a server is running.

    The backup is checked before it gets its name: a folder that exists is a backup that works.
    """
    from palaver.operation.backups import BackupRequest, delete_old_backups

    settings = load_cli_settings()
    database = _get_database(settings)
    is_hidden = sys.stderr is None or not sys.stderr.isatty()
    with click.progressbar(length=1000, label="Copying", file=sys.stderr, hidden=is_hidden) as bar:
        made = BackupRequest(
            database,
            settings.home,
            target=None if target is None else target.expanduser().absolute(),
            with_secrets=with_secrets,
            on_progress=lambda copied, total: bar.update(1000 * copied // max(total, 1) - bar.pos),
        ).run()
        bar.update(1000 - bar.pos)
    deleted = [] if keep is None else delete_old_backups(database, keep)
    if wants_json():
        print_json(made.to_json() | {"deleted": [str(path) for path in deleted]})
        return
    click.echo(f"Backup made: {clean_line(str(made.path))} ({_describe(made)})")
    if made.manifest.missing_attachments:
        print_hint(
            f"{format_count(len(made.manifest.missing_attachments), 'attached file')} could not be found and"
            f" {'is' if len(made.manifest.missing_attachments) == 1 else 'are'} not in it."
            f" Run `{format_command('doctor')}` to see which."
        )
    if not made.manifest.secret_files:
        print_hint(
            "Settings and keys are not in it. Keep config.yaml and settings.key separately, or use --with-secrets."
        )
    else:
        print_hint(
            f"It contains secrets ({', '.join(made.manifest.secret_files)}). Keep it where only you can read it."
        )
    if deleted:
        print_hint(f"Deleted {format_count(len(deleted), 'old backup')}.")
    print_hint(f"Restore it with: {format_command('restore ' + shlex.quote(clean_line(str(made.path))))}")


@click.command()
@json_option
def backups() -> None:
    """List the backups in the folder backups, beside the database."""
    from palaver.operation.backups import list_backups

    database = _get_database(load_cli_settings())
    found = list_backups(database)
    if wants_json():
        print_json([each.to_json() for each in found])
        return
    if not found:
        print_hint(f"No backups of {database}. Make one with `{format_command('backup')}`.")
        return
    columns: list[Column[Backup]] = [
        Column("MADE", lambda each: each.created_at),
        Column("CONTENT", lambda each: format_count(each.manifest.row_counts.get("session", 0), "conversation")),
        Column("SIZE", lambda each: _format_size(each.size), align="right"),
        Column("PATH", lambda each: str(each.path)),
    ]
    print_table(columns, found)


@click.command()
@click.argument("backup_path", metavar="BACKUP", type=click.Path(path_type=Path, exists=True))
@click.option("--dry-run", is_flag=True, help="Check the backup and show what would happen, without changing anything.")
@yes_option
@json_option
def restore(backup_path: Path, dry_run: bool, yes: bool) -> None:
    """Replace the database with a backup.

    Stop the server first. The backup is checked completely, and the present database is kept beside the new one.
    """
    from palaver.cli.running_servers import find_running_server
    from palaver.operation.backups import load_backup, sort_attachments, verify_backup
    from palaver.operation.restores import lock_database, restore_backup

    settings = load_cli_settings()
    database = _get_database(settings)
    chosen = load_backup(backup_path.expanduser().absolute())
    server = find_running_server(settings.home, None)
    if server is not None:
        raise StoreBusy(f"Palaver is running at {server.url}. Stop it before you restore a backup.", url=server.url)
    with lock_database(database):
        if dry_run:
            verify_backup(chosen)
            _, left_out = sort_attachments(chosen)
            _print_plan(chosen, database, left_out)
            return
        confirm_or_exit(
            f"Replace {database} with the backup of {chosen.created_at:%Y-%m-%d %H:%M} UTC ({_describe(chosen)})?"
            " Everything written since will be in the kept copy only.",
            skip=yes,
            canceled="Canceled. Nothing was changed.",
        )
        result = restore_backup(chosen, database, settings.home)
    _print_result(chosen, database, result)


def _print_plan(chosen: Backup, database: Path, left_out: Sequence[Path]) -> None:
    if wants_json():
        plan = {"backup": chosen.to_json(), "database": str(database), "dry_run": True}
        print_json(plan | {"left_out_attachments": [str(path) for path in left_out]})
        return
    subject = "The database of the backup" if left_out else "The backup"
    click.echo(f"{subject} {chosen.path} is complete and undamaged ({_describe(chosen)}).")
    _print_left_out(left_out, "would not be")
    if database.exists():
        click.echo(f"{database} would be kept as {database.name}.before-restore-DATE-TIME and replaced.")
    else:
        click.echo(f"{database} would be created.")
    click.echo("Nothing was changed.")


def _print_left_out(paths: Sequence[Path], verb: str) -> None:
    if paths:
        names = ", ".join(clean_line(str(path)) for path in paths[:MAX_LISTED_FILES])
        more = " …" if len(paths) > MAX_LISTED_FILES else ""
        click.echo(f"Damaged, or no attachments of Palaver, and {verb} restored: {names}{more}")


def _print_result(chosen: Backup, database: Path, result: RestoreResult) -> None:
    if wants_json():
        print_json(
            {
                "backup": chosen.to_json(),
                "database": str(database),
                "kept": None if result.kept is None else str(result.kept),
                "attachment_count": result.attachment_count,
                "left_out_attachments": [str(path) for path in result.left_out_attachments],
                "added_files": list(result.added_secret_files),
                "unchanged_files": list(result.left_secret_files),
            }
        )
        return
    click.echo(f"Restored {database} from {chosen.path} ({_describe(chosen)}).")
    if result.kept is not None:
        click.echo(f"The database as it was before: {result.kept}")
    _print_left_out(result.left_out_attachments, "not")
    if result.added_secret_files:
        click.echo(f"Also restored: {', '.join(result.added_secret_files)}")
    if result.left_secret_files:
        click.echo(f"Left as they are: {', '.join(result.left_secret_files)}")
    click.echo("Messages that were being answered or sent when the backup was made are marked; they are not repeated.")


def _get_database(settings: Settings) -> Path:
    """Return the path of the SQLite file; for PostgreSQL, raise an error that says what to run instead."""
    from palaver.core.engines.schema_state import get_sqlite_path

    database = get_sqlite_path(settings.database_url)
    if database is not None:
        return database
    from palaver.operation.store_migration import format_dump_advice

    raise BackupError(format_dump_advice(settings.database_url, settings.home))


def _describe(made: Backup) -> str:
    counts = made.manifest.row_counts
    return (
        f"{format_count(counts.get('session', 0), 'conversation')}, "
        f"{format_count(made.manifest.attachment_count, 'attached file')}, {_format_size(made.size)}"
    )


def _format_size(size: int) -> str:
    for unit, unit_bytes in (("GB", 1_000_000_000), ("MB", 1_000_000)):
        if size >= unit_bytes:
            return f"{size / unit_bytes:.1f} {unit}"
    return f"{max(1, round(size / 1000))} kB"

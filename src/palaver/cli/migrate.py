"""`palaver migrate`: moves a store from SQLite to PostgreSQL, or back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from palaver.cli.options import json_option, load_cli_settings
from palaver.cli.output import Column, clean_line, format_count, print_hint, print_json, print_table
from palaver.core.errors import StoreBusy

if TYPE_CHECKING:
    from palaver.operation.store_migration import TableReport


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--dry-run", is_flag=True, help="Count what would be copied and check TO, without changing anything.")
@click.option("--start-over", is_flag=True, help="Delete what an interrupted migration has copied, and begin again.")
@json_option
@click.pass_context
def migrate(ctx: click.Context, source: str, target: str, dry_run: bool, start_over: bool, as_json: bool) -> None:
    """Copy a whole store into an empty database of the other kind.

    FROM and TO are sqlite:///PATH, postgresql://USER@HOST/NAME or the path of a SQLite file. Stop every server on FROM
    first. Interrupted, the same command goes on where it was. At the end every table is compared.
    """
    from palaver.cli.running_servers import find_running_server
    from palaver.operation.postgres_commands import remove_password
    from palaver.operation.store_migration import StoreMigration

    settings = load_cli_settings(ctx)
    source, target = _resolve(source), _resolve(target)
    server = find_running_server(settings.home, None)
    if server is not None and settings.database_url == source:
        raise StoreBusy(f"Palaver is running at {server.url} on this database. Stop it first.", url=server.url)
    progress = _ProgressLine()
    migration = StoreMigration(source, target, start_over=start_over, on_progress=progress.show)
    reports = migration.plan() if dry_run else migration.run()
    progress.clear()
    if as_json:
        print_json({"dry_run": dry_run, "tables": [report.to_json() for report in reports]})
        return
    _print_reports(reports, dry_run=dry_run)
    total = format_count(sum(report.row_count for report in reports), "row")
    if dry_run:
        click.echo(f"{total} would be copied. Nothing was changed.")
        return
    click.echo(f"{total} copied and compared.")
    print_hint(
        "Next: set database_url in config.yaml (or PALAVER_DATABASE_URL) to"
        f" {clean_line(remove_password(target))}, with its password if it has one, and start Palaver."
        " The old database is unchanged; the search index is rebuilt in the background."
    )


def _resolve(url: str) -> str:
    """Return a URL; the path of a file becomes an absolute one."""
    if url.startswith(("postgresql://", "postgres://")):
        return url
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url.removeprefix("sqlite:")
    if "://" in path or not path:
        return url  # the store refuses it, and says what is possible
    return f"sqlite:///{Path(path).expanduser().absolute()}"


def _print_reports(reports: list[TableReport], *, dry_run: bool) -> None:
    rows = [(report.name, f"{report.row_count:,}", report.checksum) for report in reports if report.row_count]
    columns = [Column("TABLE"), Column("ROWS", align="right"), Column("CHECKSUM")]
    if not rows:
        click.echo("The source is empty.")
    elif dry_run:
        print_table(columns[:2], [row[:2] for row in rows])
    else:
        print_table(columns, rows)


class _ProgressLine:
    """One line at a terminal that says which table is being copied."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()

    def show(self, table: str, rows: int) -> None:
        if self._is_shown:
            count = f" {rows:,}" if rows else ""
            click.echo(f"\r\x1b[K{table}{count}", nl=False, err=True)

    def clear(self) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)

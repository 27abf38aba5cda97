"""`palaver status`, `upgrade`, `migrate` and `doctor`: what an installation has, and how to move and check it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from palaver import __version__
from palaver.cli.options import (
    confirm_or_exit,
    confirm_upgrade,
    is_interactive,
    json_option,
    load_cli_settings,
    open_store,
    yes_option,
)
from palaver.cli.output import Column, clean_line, format_count, print_hint, print_json, print_table, wants_json
from palaver.core.errors import StoreBusy
from palaver.delivery.model import STATE_LABELS

if TYPE_CHECKING:
    from palaver.config import Settings
    from palaver.operation.doctor.finding import Finding
    from palaver.operation.store_migration import TableReport


MAX_SESSIONS_COUNTED = 50  # beyond that, the output says "50+"
MAX_LISTED = 20  # problems that are printed one by one
_MARKS = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "problem": ("PROBLEM", "red")}


@click.command()
def status() -> None:
    """Show the database, config file, recent conversations, agent and chat platforms."""
    from palaver.app import choose_agent_for, load_stored_settings
    from palaver.delivery.health import load_health

    settings = load_cli_settings()
    with open_store(settings) as store:
        loaded = load_stored_settings(store, settings)
        agent = choose_agent_for(loaded, settings).description
        page = store.seen_by(store.get_owner().principal, everything=True).list(limit=MAX_SESSIONS_COUNTED + 1)
        accounts = load_health(store, loaded.settings.gateway.chat_accounts)
    count = f"{MAX_SESSIONS_COUNTED}+" if len(page) > MAX_SESSIONS_COUNTED else str(len(page))
    config_file = settings.home / "config.yaml"
    missing = "" if config_file.exists() else " (not found, using defaults)"
    click.echo(f"Palaver {__version__}\n")
    click.echo(f"Database       {clean_line(describe_database(settings))}")
    click.echo(f"Config file    {clean_line(str(config_file))}{missing}")
    click.echo(f"Conversations  {f'{count} recent' if page else 'none yet'}")
    click.echo(f"Retention      {loaded.settings.turns.retention.describe()}")
    click.echo(f"Agent          {clean_line(agent)}")
    for account in accounts:
        click.echo(f"{'Platforms' if account is accounts[0] else '':14} {account.label}: {STATE_LABELS[account.state]}")


def describe_database(settings: Settings) -> str:
    """Return the path of the SQLite file, or the server and database name without user and password."""
    from palaver.core.engines.schema_state import get_sqlite_path

    database = get_sqlite_path(settings.database_url)
    if database is not None:
        return str(database)
    parts = urlsplit(settings.database_url)
    return f"PostgreSQL, database {parts.path.strip('/') or '(default)'} on {parts.hostname or 'this machine'}"


@click.command()
@yes_option
def upgrade(yes: bool) -> None:
    """Upgrade the database of an older version of Palaver.

    Stop every older server first, and make a backup. `palaver serve` upgrades the database, too; other commands ask
    before they do.
    """
    from palaver.app import open_store
    from palaver.core.engines.base import Upgrade
    from palaver.core.errors import UpgradeRequired

    settings = load_cli_settings()
    try:
        open_store(settings).close()
    except UpgradeRequired as error:
        confirm_upgrade(error, skip=yes)
        open_store(settings, upgrade=Upgrade.ALONE).close()
        click.echo("The database was upgraded.")
    else:
        click.echo("The database is up to date.")


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--dry-run", is_flag=True, help="Count what would be copied and check TO, without changing anything.")
@click.option("--start-over", is_flag=True, help="Delete what an interrupted migration has copied, and begin again.")
@json_option
def migrate(source: str, target: str, dry_run: bool, start_over: bool) -> None:
    """Copy a whole store into an empty database of the other kind.

    FROM and TO are sqlite:///PATH, postgresql://USER@HOST/NAME or the path of a SQLite file. Stop every server on FROM
    first. Interrupted, the same command goes on where it was. At the end every table is compared.
    """
    from palaver.cli.running_servers import find_running_server
    from palaver.operation.store_migration import StoreMigration, remove_password

    settings = load_cli_settings()
    source, target = _resolve(source), _resolve(target)
    server = find_running_server(settings.home, None)
    if server is not None and settings.database_url == source:
        raise StoreBusy(f"Palaver is running at {server.url} on this database. Stop it first.", url=server.url)

    def show_progress(table: str, rows: int) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{table}{f' {rows:,}' if rows else ''}", nl=False, err=True)

    migration = StoreMigration(source, target, start_over=start_over, on_progress=show_progress)
    reports = migration.plan() if dry_run else migration.run()
    show_progress("", 0)
    if wants_json():
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
    is_invalid = "://" in path or not path  # the store refuses it, and says what is possible
    return url if is_invalid else f"sqlite:///{Path(path).expanduser().absolute()}"


def _print_reports(reports: list[TableReport], *, dry_run: bool) -> None:
    columns: list[Column[TableReport]] = [
        Column("TABLE", lambda each: each.name),
        Column("ROWS", lambda each: f"{each.row_count:,}", align="right"),
    ]
    if not dry_run:
        columns.append(Column("CHECKSUM", lambda each: each.checksum))
    filled = [report for report in reports if report.row_count]
    if filled:
        print_table(columns, filled)
    else:
        click.echo("The source is empty.")


@click.command()
@click.option("--full", is_flag=True, help="Read the whole database and compare it with the attached files.")
@click.option("--online", is_flag=True, help="Sign in with the chat accounts that no server runs.")
@click.option("--offline", is_flag=True, help="Don't ask the model a question.")
@click.option("--repair", is_flag=True, help="Only repair counters, previews, marks and the search index.")
@yes_option
@json_option
def doctor(full: bool, online: bool, offline: bool, repair: bool, yes: bool) -> None:
    """Check the installation and say how to fix what is wrong.

    Checks versions, configuration, permissions, disk, database, backups, chat platforms, the server and, with one short
    question, the model. Without --repair, nothing is changed. The exit code is 1 if there are problems.
    """
    if repair:
        click.get_current_context().exit(_repair(skips_question=yes))
    from palaver.app import make_doctor_environment
    from palaver.cli.running_servers import describe_port_user, find_running_server
    from palaver.operation.doctor.diagnosis import DoctorOptions, run_doctor

    home: Path | None = click.get_current_context().find_root().obj

    def find_server_url(folder: Path) -> str | None:
        server = find_running_server(folder, None)
        return None if server is None else server.url

    environment = make_doctor_environment(os.environ, home, find_server_url, describe_port_user)
    diagnosis = run_doctor(environment, DoctorOptions(is_full=full, is_online=online, is_offline=offline))
    if wants_json():
        print_json(diagnosis.to_json())
    else:
        for finding in diagnosis.findings:
            _print_finding(finding)
        click.echo("\n" + _summarize(diagnosis.findings))
    click.get_current_context().exit(1 if diagnosis.has_problems else 0)


def _repair(*, skips_question: bool) -> int:
    """Repair the store after a question, also beside a running server; return the exit code."""
    from palaver.operation.integrity_check import list_problems, repair_store

    with open_store(load_cli_settings()) as store:
        repairable, left = list_problems(store)
        if not skips_question and is_interactive():
            for problem in repairable[:MAX_LISTED]:
                click.echo(f"{clean_line(problem)}.", err=True)
        changes = []
        if repairable:
            question = f"Repair {format_count(len(repairable), 'problem')}? No message is changed."
            confirm_or_exit(question, skip=skips_question, canceled="Canceled. Nothing was changed.")
            for change in repair_store(store):
                changes.append(change)
                if not wants_json():
                    click.echo(f"Repaired: {clean_line(change)}.")
    if wants_json():
        print_json({"ok": not left, "repaired": changes, "left": left})
    else:
        for problem in left[:MAX_LISTED]:
            click.echo(f"Can't be repaired: {clean_line(problem)}. Only a backup has what is missing.", err=True)
        if not repairable and not left:
            click.echo("Nothing to repair.")
    return 1 if left else 0


def _print_finding(finding: Finding) -> None:
    word, color = _MARKS[finding.severity]
    click.echo(f"{click.style(f'{word:8}', fg=color)} {finding.subject + ':':16} {clean_line(finding.text)}")
    if finding.fix:
        click.echo(f"{'':25} → {clean_line(finding.fix)}")


def _summarize(findings: tuple[Finding, ...]) -> str:
    problems = sum(finding.severity == "problem" for finding in findings)
    warnings = sum(finding.severity == "warning" for finding in findings)
    if not problems and not warnings:
        return "Everything looks good."
    return f"Problems: {problems}. Warnings: {warnings}."

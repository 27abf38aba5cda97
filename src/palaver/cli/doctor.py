"""`palaver doctor`: checks an installation and says how to fix what is wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from palaver.cli.options import confirm_or_exit, is_interactive, json_option, load_cli_settings, open_store, yes_option
from palaver.cli.output import clean_line, format_count, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.operation.doctor.finding import Finding

MAX_LISTED = 20  # problems that are printed one by one
_MARKS = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "problem": ("PROBLEM", "red")}


@click.command()
@click.option("--full", is_flag=True, help="Read the whole database and compare it with the attached files.")
@click.option("--online", is_flag=True, help="Sign in with the chat accounts that no server runs.")
@click.option("--offline", is_flag=True, help="Don't ask the model a question.")
@click.option("--repair", is_flag=True, help="Only repair counters, previews, marks and the search index.")
@yes_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, full: bool, online: bool, offline: bool, repair: bool, yes: bool, as_json: bool) -> None:
    """Check the installation and say how to fix what is wrong.

    Checks versions, configuration, permissions, disk, database, backups, chat platforms, the server and, with one short
    question, the model. Without --repair, nothing is changed. The exit code is 1 if there are problems.
    """
    if repair:
        ctx.exit(_repair(ctx, skips_question=yes, as_json=as_json))
    from palaver.app import make_doctor_environment
    from palaver.cli.running_servers import describe_port_user, find_running_server
    from palaver.operation.doctor.diagnosis import DoctorOptions, run_doctor

    home: Path | None = ctx.find_root().obj

    def find_server_url(folder: Path) -> str | None:
        server = find_running_server(folder, None)
        return None if server is None else server.url

    environment = make_doctor_environment(os.environ, home, find_server_url, describe_port_user)
    diagnosis = run_doctor(environment, DoctorOptions(is_full=full, is_online=online, is_offline=offline))
    if as_json:
        print_json(diagnosis.to_json())
    else:
        for finding in diagnosis.findings:
            _print_finding(finding)
        click.echo("\n" + _summarize(diagnosis.findings))
    ctx.exit(1 if diagnosis.has_problems else 0)


def _repair(ctx: click.Context, *, skips_question: bool, as_json: bool) -> int:
    """Repair the store after a question, also beside a running server; return the exit code."""
    from palaver.operation.integrity_check import list_problems, repair_store

    with open_store(load_cli_settings(ctx)) as store:
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
                if not as_json:
                    click.echo(f"Repaired: {clean_line(change)}.")
    if as_json:
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

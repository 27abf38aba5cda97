"""`palaver doctor`: checks an installation and says how to fix what is wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from palaver.cli.options import json_option
from palaver.cli.output import clean_line, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.services.doctor.finding import Finding

_MARKS = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "problem": ("PROBLEM", "red")}


@click.command()
@click.option("--full", is_flag=True, help="Read the whole database and compare it with the attached files.")
@click.option("--online", is_flag=True, help="Sign in with the chat accounts that no server runs.")
@click.option("--offline", is_flag=True, help="Don't ask the model a question.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, full: bool, online: bool, offline: bool, as_json: bool) -> None:
    """Check the installation and say how to fix what is wrong.

    Checks versions, configuration, permissions, disk, database, backups, chat platforms, the server and, with one short
    question, the model. Nothing is changed. The exit code is 1 if there are problems.
    """
    from palaver.app import make_doctor_environment
    from palaver.cli.port_user import describe_port_user
    from palaver.cli.running_servers import find_running_server
    from palaver.services.doctor.diagnosis import DoctorOptions, run_doctor

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

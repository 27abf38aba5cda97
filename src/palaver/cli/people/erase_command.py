"""`palaver people erase`: removes a person everywhere, after showing what would go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.accounts.erasure_model import check_typed_name
from palaver.cli import lookup, output
from palaver.cli.options import is_interactive, json_option, load_cli_settings, open_store, yes_option
from palaver.cli.people.people_access import load_members
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from palaver.accounts.erasure_model import ErasureReport
    from palaver.accounts.people import People
    from palaver.operation.erasure import ErasurePreview, Erasures
    from palaver.sessions.store import SessionStore


@click.command("erase")
@click.argument("person")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option(
    "--rewrite-file",
    is_flag=True,
    help="SQLite: rewrite the database file afterwards, so that it has no bytes of what was erased. Takes a while.",
)
@yes_option
@json_option
@click.pass_context
def erase(ctx: click.Context, person: str, dry_run: bool, rewrite_file: bool, yes: bool, as_json: bool) -> None:
    """Erase a person everywhere. This can't be undone.

    Deletes their conversations, files, memories, jobs, accounts and sign-ins. In conversations with others, their
    messages and the answers to them become "Message erased". Usage stays as anonymous totals. If it is interrupted,
    run it again, or start the server: it goes on where it was.
    """
    import asyncio

    from palaver.accounts.accounts import Accounts
    from palaver.media.attachments import Attachments
    from palaver.operation.erasure import Erasures
    from palaver.operation.retention import rewrite_database_file

    settings = load_cli_settings(ctx)
    with open_store(settings) as store:
        owner = store.get_owner().principal
        erasures = Erasures(store, Attachments(store, settings.home / "attachments"), settings.home / "outputs")
        person_id = asyncio.run(_find_person(Accounts(store).open_people(owner), erasures, store, person))
        preview = asyncio.run(erasures.preview(owner, person_id))
        if dry_run:
            _print_report(preview, preview.report, "Would erase", as_json=as_json, is_done=False)
            return
        if not yes:
            _confirm(preview)
        report = asyncio.run(erasures.erase(owner, person_id))
        if rewrite_file and rewrite_database_file(store) is None:
            output.print_hint("PostgreSQL: run VACUUM FULL in the database to remove what deleted rows leave behind.")
    _print_report(preview, report, "Erased", as_json=as_json, is_done=True)


async def _find_person(all_people: People, erasures: Erasures, store: SessionStore, text: str) -> str:
    """Return the id of a person by name or id: one who is listed, or whose erasure has begun and was interrupted."""
    try:
        return lookup.find_person(await load_members(all_people), text).person.id
    except NotFound:
        begun = await erasures.find_begun(store.get_owner().principal, text)
        if begun is None:
            raise
        return begun


def _confirm(preview: ErasurePreview) -> None:
    """Show what would go, and ask for the person's name; a wrong one ends the command."""
    if not is_interactive():
        raise click.UsageError("This needs a confirmation, but stdin is not a terminal. Use --yes to skip it.")
    for line in preview.report.to_lines():
        click.echo(f"  {line}", err=True)
    name = output.clean_line(preview.name) or preview.person_id
    typed: str = click.prompt(f"This erases {lookup.quote(name)} for good. Type the name to confirm", err=True)
    try:
        check_typed_name(typed, name)
    except InvalidInput:
        click.echo("Canceled. Nothing was erased.", err=True)
        click.get_current_context().exit(1)


def _print_report(preview: ErasurePreview, report: ErasureReport, verb: str, *, as_json: bool, is_done: bool) -> None:
    if as_json:
        output.print_json({"person_id": preview.person_id, "is_erased": is_done, "counts": report.to_dict()})
        return
    name = lookup.quote(preview.name)
    lines = report.to_lines()
    click.echo(f"{verb} {name}:" if lines else f"{verb} {name}.")
    for line in lines:
        click.echo(f"  {line}")
    if not is_done:
        output.print_hint(f"Nothing was changed. Erase with `{format_command('people erase')}`.")

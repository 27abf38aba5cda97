"""The commands of `palaver people` that change what a person may do: role, time zone, accounts, requests, removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import is_interactive, json_option, load_cli_settings, open_store, yes_option
from palaver.cli.people.list_commands import describe_role, load_members, print_person, run_with_accounts
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.invocation import format_command
from palaver.core.wire import build_json
from palaver.people.erasures_table import check_typed_name
from palaver.people.model import Role
from palaver.people.pairing_table import Grant
from palaver.people.wire import PairingRequestJson

if TYPE_CHECKING:
    from palaver.accounts.accounts import Accounts
    from palaver.accounts.people import People
    from palaver.operation.erasure import ErasurePreview, Erasures
    from palaver.people.erasures_table import ErasureReport
    from palaver.people.model import Member
    from palaver.people.pairing_table import PairingRequest
    from palaver.sessions.store import SessionStore


@click.command("role")
@click.argument("person")
@click.argument("role", metavar="ROLE", type=click.Choice([role.value for role in Role]))
@json_option
def change_role(person: str, role: str) -> None:
    """Change a person's role.

    A member talks to the agent everywhere and sees only their own conversations; an owner can view all and manage
    people. A person who becomes a guest is signed out and has to ask for access again.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await load_members(all_people), person)
        return await all_people.update(member.person.id, role=Role(role))

    changed = run_with_accounts(run)
    print_person(changed, f"{lookup.quote(changed.person.name)} is now {describe_role(changed)}.")


@click.command("timezone")
@click.argument("person")
@click.argument("zone", metavar="ZONE")
@json_option
def set_timezone(person: str, zone: str) -> None:
    """Set a person's time zone.

    ZONE is an IANA name such as Europe/Berlin, or `default` for the gateway's. New jobs of the person use it.
    """

    async def run(accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await load_members(all_people), person)
        await accounts.set_timezone(member.person.id, None if zone.lower() == "default" else zone)
        return await all_people.get(member.person.id)

    changed = run_with_accounts(run)
    used = changed.person.timezone or "the gateway's"
    print_person(changed, f"The time zone of {lookup.quote(changed.person.name)} is now {used}.")


@click.command("remove")
@click.argument("person")
@json_option
def remove_person(person: str) -> None:
    """Remove a person's access.

    The person is signed out everywhere and can't talk to the agent any more. Their conversations stay.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await load_members(all_people), person)
        await all_people.remove(member.person.id)
        return member

    removed = run_with_accounts(run)
    print_person(removed, f"Removed {lookup.quote(removed.person.name)}.")


@click.command("unlink")
@click.argument("person")
@click.argument("account")
@json_option
def unlink_account(person: str, account: str) -> None:
    """Take a chat account out of a person.

    ACCOUNT is a platform, or platform:id if the person has several accounts there. It gets back what it had before it
    was linked. What was new since then stays with the person.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await load_members(all_people), person)
        return await all_people.unlink(member.person.id, account)

    changed = run_with_accounts(run)
    name = lookup.quote(changed.person.name)
    text = f"It has back what it had before the link; what was new since then stays with {name}."
    print_person(changed, f"Unlinked {account} from {name}. {text}")


@click.command("approve")
@click.argument("code")
@click.option(
    "--as",
    "grant",
    type=click.Choice([grant.value for grant in Grant]),
    default=Grant.MEMBER.value,
    help=(
        "A member talks to the agent everywhere, a guest only in those direct messages; `me` links the account to you."
        " [default: member]"
    ),
)
@json_option
def approve_request(code: str, grant: str) -> None:
    """Give a stranger access.

    CODE is the code that the stranger got, or the id of the request. The stranger is told.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        return await all_people.approve(code, Grant(grant))

    member = run_with_accounts(run)
    name = lookup.quote(member.person.name)
    text = f"{name} is now {describe_role(member)}."
    if grant == Grant.ME:
        text = (
            f"The account is linked to {name}: it sees and can change everything that {name} has, as"
            f" {describe_role(member)}. To undo this, use `palaver people unlink`."
        )
    print_person(member, text)


@click.command("deny")
@click.argument("code")
@json_option
def deny_request(code: str) -> None:
    """Deny a stranger access.

    CODE is the code that the stranger got, or the id of the request. The stranger is told.
    """

    async def run(_accounts: Accounts, all_people: People) -> PairingRequest:
        return await all_people.deny(code)

    request = run_with_accounts(run)
    output.print_result(
        {"request": build_json(PairingRequestJson, request)}, f"Denied {lookup.quote(request.name or request.account)}."
    )


# `palaver people erase`: removes a person everywhere, after showing what would go.


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
def erase(person: str, dry_run: bool, rewrite_file: bool, yes: bool) -> None:
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

    settings = load_cli_settings()
    with open_store(settings) as store:
        owner = store.get_owner().principal
        erasures = Erasures(store, Attachments(store, settings.home / "attachments"), settings.home / "outputs")
        person_id = asyncio.run(_find_person(Accounts(store).open_people(owner), erasures, store, person))
        preview = asyncio.run(erasures.preview(owner, person_id))
        if dry_run:
            _print_report(preview, preview.report, "Would erase", is_done=False)
            return
        if not yes:
            _confirm(preview)
        report = asyncio.run(erasures.erase(owner, person_id))
        if rewrite_file and rewrite_database_file(store) is None:
            output.print_hint("PostgreSQL: run VACUUM FULL in the database to remove what deleted rows leave behind.")
    _print_report(preview, report, "Erased", is_done=True)


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


def _print_report(preview: ErasurePreview, report: ErasureReport, verb: str, *, is_done: bool) -> None:
    if output.wants_json():
        output.print_json({"person_id": preview.person_id, "is_erased": is_done, "counts": report.to_dict()})
        return
    name = lookup.quote(preview.name)
    lines = report.to_lines()
    click.echo(f"{verb} {name}:" if lines else f"{verb} {name}.")
    for line in lines:
        click.echo(f"  {line}")
    if not is_done:
        output.print_hint(f"Nothing was changed. Erase with `{format_command('people erase')}`.")

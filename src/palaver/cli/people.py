"""`palaver people`: who uses this gateway and how they sign in.

The person at the terminal runs the gateway, so they may invite people, set anyone's password, and erase people.

Always true: a password is typed at a hidden prompt and never appears on a command line.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import (
    NounGroup,
    check_can_confirm,
    is_interactive,
    load_cli_settings,
    load_current_settings,
    open_store,
    run_async,
    yes_option,
)
from palaver.cli.output import Column
from palaver.core.errors import ConfigError, InvalidInput, NotFound
from palaver.core.invocation import format_command
from palaver.core.operation import BlockingRunner, iterate_pages
from palaver.core.wire import build_json
from palaver.people.erasures_table import ErasureReport, check_typed_name
from palaver.people.model import Invitation, Member, Person, Principal, Role, is_loopback
from palaver.people.pairing_table import Grant, PairingRequest
from palaver.people.wire import PairingRequestJson, member_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.accounts.people import People
    from palaver.operation.erasure import ErasurePreview, Erasures
    from palaver.sessions.store import SessionStore


def _describe_sign_in(member: Member) -> str:
    methods = member.sign_in_methods
    if methods is None:
        return ""
    names = ["password"] if methods.has_password else []
    if methods.passkey_count:
        names.append(output.format_count(methods.passkey_count, "passkey"))
    return ", ".join(names) or "link"


_COLUMNS: tuple[Column[Member], ...] = (
    Column("ID", lambda each: each.person.id, style="dim"),
    Column("ROLE", lambda each: each.person.role.value),
    Column("SIGN-IN", _describe_sign_in),
    Column("LAST SEEN", lambda each: each.last_seen_at),
    Column("TIME ZONE", lambda each: each.person.timezone, min_terminal_width=110),
    Column("ACCOUNTS", lambda each: ", ".join(f"{at.platform}:{at.account}" for at in each.chat_accounts)),
    Column("NAME", lambda each: each.person.name, fills_width=True),
)
_REQUEST_COLUMNS: tuple[Column[PairingRequest], ...] = (
    Column("ID", lambda each: each.id, style="dim"),
    Column("PLATFORM", lambda each: each.platform),
    Column("ACCOUNT", lambda each: each.account),
    Column("ASKED", lambda each: each.created_at),
    Column("NAME", lambda each: each.name, fills_width=True),
)


_ROLES = {Role.OWNER: "an owner", Role.MEMBER: "a member", Role.GUEST: "a guest"}


@click.group(cls=NounGroup)
def people() -> None:
    """Manage the people who use this gateway.

    PERSON is a name or an id.
    """


def _load_people(store: SessionStore) -> People[BlockingRunner]:
    from palaver.accounts.people import People

    return People(BlockingRunner(store.engine), store, store.get_owner().principal)


@contextmanager
def _open_people() -> Iterator[People[BlockingRunner]]:
    with open_store(load_cli_settings()) as store:
        yield _load_people(store)


def _find_member(everybody: People[BlockingRunner], text: str) -> Member:
    return lookup.find_person(list(iterate_pages(everybody.list)), text)


def find_person(store: SessionStore, name: str | None) -> Person:
    """Find a person by name or id; None is the owner."""
    return store.get_owner() if name is None else _find_member(_load_people(store), name).person


def _print_person(member: Member, text: str) -> None:
    output.print_result({"person": member_to_json(member)}, text)


@people.command("list")
def list_people() -> None:
    """List everybody, newest first."""
    with _open_people() as everybody:
        members = list(iterate_pages(everybody.list))
    output.print_list({"people": [member_to_json(member) for member in members]}, _COLUMNS, members, empty="")


@people.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["member", "owner"]),
    default="member",
    help="Members see only their own conversations; owners can view all and invite people. [default: member]",
)
def invite(name: str, role: str) -> None:
    """Invite a person to the web page.

    Prints a sign-in link to send them. It works once, within three days.
    """
    page_url = _find_page_url()
    with _open_people() as everybody:
        _print_invitation(everybody.add(name, Role(role)), page_url)


@people.command("link")
@click.argument("person")
def create_link(person: str) -> None:
    """Create a new sign-in link for a person.

    It works once, within three days. The person's earlier links no longer work.
    """
    page_url = _find_page_url()
    with _open_people() as everybody:
        _print_invitation(everybody.create_link(_find_member(everybody, person).person.id), page_url)


def _find_page_url() -> str:
    from palaver.cli.running_servers import find_page_url

    url = find_page_url(load_current_settings())
    if url is None:
        raise ConfigError(
            "Palaver is not running, so a link would lead nowhere. Start it in another terminal with"
            f" `{format_command('serve')}`, then try again. If it runs on another machine, set web.public_url."
        )
    return url


def _print_invitation(invitation: Invitation, page_url: str) -> None:
    url = f"{page_url}/sign-in#{invitation.secret}"
    is_local_only = is_loopback(urlsplit(page_url).hostname or "")
    if output.wants_json():
        link = {"url": url, "expires_at": invitation.expires_at.isoformat(), "is_local_only": is_local_only}
        output.print_json({"person": member_to_json(invitation.member), "link": link})
        return
    name = lookup.quote(invitation.member.person.name)
    expiry = invitation.expires_at.astimezone().strftime("%Y-%m-%d %H:%M")
    click.echo(f"Send this link to {name}. It works once, until {expiry}:\n\n  {url}\n")
    if is_local_only:
        click.echo(
            "The link works on this machine only, because Palaver listens here only. To let others in, start it with"
            f" `{format_command('serve --host 0.0.0.0')}`, or put it behind a reverse proxy and set web.public_url."
        )


@people.command("role")
@click.argument("person")
@click.argument("role", metavar="ROLE", type=click.Choice([role.value for role in Role]))
def change_role(person: str, role: str) -> None:
    """Change a person's role.

    A member talks to the agent everywhere and sees only their own conversations; an owner can view all and manage
    people. A person who becomes a guest is signed out and has to ask for access again.
    """
    with _open_people() as everybody:
        changed = everybody.update(_find_member(everybody, person).person.id, role=Role(role))
    _print_person(changed, f"{lookup.quote(changed.person.name)} is now {_ROLES[changed.person.role]}.")


@people.command("timezone")
@click.argument("person")
@click.argument("zone", metavar="ZONE")
def set_timezone(person: str, zone: str) -> None:
    """Set a person's time zone.

    ZONE is an IANA name such as Europe/Berlin, or `default` for the gateway's. New jobs of the person use it.
    """
    with _open_people() as everybody:
        person_id = _find_member(everybody, person).person.id
        changed = everybody.set_timezone(person_id, None if zone.lower() == "default" else zone)
    used = changed.person.timezone or "the gateway's"
    _print_person(changed, f"The time zone of {lookup.quote(changed.person.name)} is now {used}.")


@people.command("remove")
@click.argument("person")
def remove_person(person: str) -> None:
    """Remove a person's access.

    The person is signed out everywhere and can't talk to the agent any more. Their conversations stay.
    """
    with _open_people() as everybody:
        removed = _find_member(everybody, person)
        everybody.remove(removed.person.id)
    _print_person(removed, f"Removed {lookup.quote(removed.person.name)}.")


@people.command("unlink")
@click.argument("person")
@click.argument("account")
def unlink_account(person: str, account: str) -> None:
    """Take a chat account out of a person.

    ACCOUNT is a platform, or platform:id if the person has several accounts there. It gets back what it had before it
    was linked. What was new since then stays with the person.
    """
    with _open_people() as everybody:
        changed = everybody.unlink(_find_member(everybody, person).person.id, account)
    name = lookup.quote(changed.person.name)
    text = f"It has back what it had before the link; what was new since then stays with {name}."
    _print_person(changed, f"Unlinked {account} from {name}. {text}")


@people.command("requests")
def list_requests() -> None:
    """List the strangers who ask for access.

    Each of them got a code in their chat. Ask for it, and approve it with `people approve`.
    """
    with _open_people() as everybody:
        requests = everybody.list_requests()
    document = {"requests": [build_json(PairingRequestJson, request) for request in requests]}
    output.print_list(document, _REQUEST_COLUMNS, requests, "There are no requests for access.")


@people.command("approve")
@click.argument("code")
@click.option(
    "--as",
    "grant",
    type=click.Choice([grant.value for grant in Grant]),
    default=Grant.MEMBER.value,
    help=(
        "A member talks to the agent everywhere, a guest only in those direct messages; `me` links the account to you."
        " A channel can only be a guest. [default: member]"
    ),
)
def approve_request(code: str, grant: str) -> None:
    """Give a stranger access.

    CODE is the code that the stranger got, or the id of the request. The stranger is told.
    """
    with _open_people() as everybody:
        member = everybody.approve(code, Grant(grant))
    name = lookup.quote(member.person.name)
    role = _ROLES[member.person.role]
    text = f"{name} is now {role}."
    if grant == Grant.ME:
        text = (
            f"The account is linked to {name}: it sees and can change everything that {name} has, as {role}."
            " To undo this, use `palaver people unlink`."
        )
    _print_person(member, text)


@people.command("deny")
@click.argument("code")
def deny_request(code: str) -> None:
    """Deny a stranger access.

    CODE is the code that the stranger got, or the id of the request. The stranger is told.
    """
    with _open_people() as everybody:
        request = everybody.deny(code)
    output.print_result(
        {"request": build_json(PairingRequestJson, request)}, f"Denied {lookup.quote(request.name or request.account)}."
    )


@people.command()
@click.argument("person", required=False)
def password(person: str | None) -> None:
    """Set a person's password.

    Without PERSON, sets your own. Prompts for the new password. The person is signed out on all devices, and
    earlier sign-in links no longer work.
    """
    if not is_interactive():
        raise click.UsageError("This command prompts for a password. Run it in a terminal.")
    from palaver.accounts.accounts import Accounts

    with open_store(load_cli_settings()) as store:
        everybody, accounts = _load_people(store), Accounts(store)
        person_id = find_person(store, person).id
        new = _prompt_for_password(everybody.get(person_id))
        run_async(lambda: accounts.set_password(person_id, new))
        changed = everybody.get(person_id)
    name = lookup.quote(changed.person.name)
    _print_person(changed, f"Password set. {name} can now sign in with this name and password.")


def _prompt_for_password(member: Member) -> str:
    prompt = f"New password for {lookup.quote(member.person.name)}"
    try:
        new: str = click.prompt(prompt, hide_input=True, confirmation_prompt="Repeat the password", err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    return new


@people.command("erase")
@click.argument("person")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option(
    "--rewrite-file",
    is_flag=True,
    help="SQLite: rewrite the database file afterwards, so that it has no bytes of what was erased. Takes a while.",
)
@yes_option
def erase(person: str, dry_run: bool, rewrite_file: bool, yes: bool) -> None:
    """Erase a person everywhere. This can't be undone.

    Deletes their conversations, files, memories, jobs, accounts and sign-ins. In conversations with others, their
    messages and the answers to them become "Message erased". Usage stays as anonymous totals. If it is interrupted,
    run it again, or start the server: it goes on where it was.
    """
    import asyncio

    from palaver.app import make_attachments
    from palaver.operation.erasure import Erasures
    from palaver.operation.retention import rewrite_database_file

    settings = load_cli_settings()
    with open_store(settings) as store:
        owner = store.get_owner().principal
        erasures = Erasures(store, make_attachments(store, settings), settings.home / "outputs")
        person_id = _find_person_to_erase(store, erasures, owner, person)
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


def _find_person_to_erase(store: SessionStore, erasures: Erasures, owner: Principal, text: str) -> str:
    """Return the id of a person by name or id: one who is listed, or whose erasure has begun and was interrupted."""
    try:
        return find_person(store, text).id
    except NotFound:
        begun = run_async(lambda: erasures.find_begun(owner, text))
        if begun is None:
            raise
        return begun


def _confirm(preview: ErasurePreview) -> None:
    """Show what would go, and ask for the person's name; a wrong one ends the command."""
    check_can_confirm()
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
    lines = report.to_lines()
    heading = f"{verb} {lookup.quote(preview.name)}{':' if lines else '.'}"
    document = {"person_id": preview.person_id, "is_erased": is_done, "counts": report.to_dict()}
    output.print_result(document, "\n  ".join([heading, *lines]))
    if not is_done and not output.wants_json():
        output.print_hint(f"Nothing was changed. Erase with `{format_command('people erase')}`.")

"""`palaver people`: who uses this gateway and how they sign in.

The person at the terminal runs the gateway, so they may invite people and set a password for anybody. Always true: a
password is typed at a hidden prompt and never appears on a command line.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import click

from palaver.cli import json_output, lookup, output
from palaver.cli.options import is_interactive, json_option, load_cli_settings
from palaver.cli.output import Column
from palaver.domain.account import is_loopback
from palaver.domain.errors import ConfigError
from palaver.domain.pairing import Grant
from palaver.domain.person import Role
from palaver.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from palaver.domain.account import Invitation, Member
    from palaver.domain.pairing import PairingRequest
    from palaver.services.accounts.accounts import Accounts
    from palaver.services.accounts.people import People

T = TypeVar("T")

PAGE_SIZE = 500
_COLUMNS = (
    Column("ID", style="dim"),
    Column("ROLE"),
    Column("SIGN-IN"),
    Column("LAST SEEN"),
    Column("TIME ZONE", min_terminal_width=110),
    Column("ACCOUNTS"),
    Column("NAME", fills_width=True),
)
_REQUEST_COLUMNS = (
    Column("ID", style="dim"),
    Column("PLATFORM"),
    Column("ACCOUNT"),
    Column("ASKED"),
    Column("NAME", fills_width=True),
)


@click.group()
def people() -> None:
    """Manage the people who use this gateway.

    PERSON is a name or an id.
    """


@people.command("list")
@json_option
@click.pass_context
def list_people(ctx: click.Context, as_json: bool) -> None:
    """List everybody, newest first."""

    async def run(_accounts: Accounts, all_people: People) -> list[Member]:
        return await _load_members(all_people)

    members = _run_with_accounts(ctx, run)
    now = datetime.now(UTC)
    if as_json:
        output.print_json({"people": [json_output.person_to_json(member) for member in members]})
    else:
        output.print_table(_COLUMNS, [_make_row(member, now) for member in members])


@people.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["member", "owner"]),
    default="member",
    help="Members see only their own conversations; owners can view all and invite people. [default: member]",
)
@json_option
@click.pass_context
def invite(ctx: click.Context, name: str, role: str, as_json: bool) -> None:
    """Invite a person to the web page.

    Prints a sign-in link to send them. It works once, within three days.
    """
    page_url = _find_page_url(ctx)

    async def run(_accounts: Accounts, all_people: People) -> Invitation:
        return await all_people.add(name, Role(role))

    _print_invitation(_run_with_accounts(ctx, run), page_url, as_json=as_json)


@people.command("link")
@click.argument("person")
@json_option
@click.pass_context
def create_link(ctx: click.Context, person: str, as_json: bool) -> None:
    """Create a new sign-in link for a person.

    It works once, within three days. The person's earlier links no longer work.
    """
    page_url = _find_page_url(ctx)

    async def run(_accounts: Accounts, all_people: People) -> Invitation:
        member = lookup.find_person(await _load_members(all_people), person)
        return await all_people.create_link(member.person.id)

    _print_invitation(_run_with_accounts(ctx, run), page_url, as_json=as_json)


@people.command("role")
@click.argument("person")
@click.argument("role", metavar="ROLE", type=click.Choice([role.value for role in Role]))
@json_option
@click.pass_context
def change_role(ctx: click.Context, person: str, role: str, as_json: bool) -> None:
    """Change a person's role.

    A member talks to the agent everywhere and sees only their own conversations; an owner can view all and manage
    people. A person who becomes a guest is signed out and has to ask for access again.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await _load_members(all_people), person)
        return await all_people.update(member.person.id, role=Role(role))

    changed = _run_with_accounts(ctx, run)
    _print_person(changed, f"{lookup.quote(changed.person.name)} is now {_describe_role(changed)}.", as_json=as_json)


@people.command("timezone")
@click.argument("person")
@click.argument("zone", metavar="ZONE")
@json_option
@click.pass_context
def set_timezone(ctx: click.Context, person: str, zone: str, as_json: bool) -> None:
    """Set a person's time zone.

    ZONE is an IANA name such as Europe/Berlin, or `default` for the gateway's. New jobs of the person use it.
    """

    async def run(accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await _load_members(all_people), person)
        await accounts.set_timezone(member.person.id, None if zone.lower() == "default" else zone)
        return await all_people.get(member.person.id)

    changed = _run_with_accounts(ctx, run)
    used = changed.person.timezone or "the gateway's"
    _print_person(changed, f"The time zone of {lookup.quote(changed.person.name)} is now {used}.", as_json=as_json)


@people.command("remove")
@click.argument("person")
@json_option
@click.pass_context
def remove_person(ctx: click.Context, person: str, as_json: bool) -> None:
    """Remove a person's access.

    The person is signed out everywhere and can't talk to the agent any more. Their conversations stay.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await _load_members(all_people), person)
        await all_people.remove(member.person.id)
        return member

    removed = _run_with_accounts(ctx, run)
    _print_person(removed, f"Removed {lookup.quote(removed.person.name)}.", as_json=as_json)


@people.command("unlink")
@click.argument("person")
@click.argument("account")
@json_option
@click.pass_context
def unlink_account(ctx: click.Context, person: str, account: str, as_json: bool) -> None:
    """Take a chat account out of a person.

    ACCOUNT is a platform, or platform:id if the person has several accounts there. What was said there stays with the
    person. The account is a stranger's again.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        member = lookup.find_person(await _load_members(all_people), person)
        return await all_people.unlink(member.person.id, account)

    changed = _run_with_accounts(ctx, run)
    _print_person(changed, f"Unlinked {account} from {lookup.quote(changed.person.name)}.", as_json=as_json)


@people.command("requests")
@json_option
@click.pass_context
def list_requests(ctx: click.Context, as_json: bool) -> None:
    """List the strangers who ask for access.

    Each of them got a code in their chat. Ask for it, and approve it with `people approve`.
    """

    async def run(_accounts: Accounts, all_people: People) -> Sequence[PairingRequest]:
        return await all_people.list_requests()

    requests = _run_with_accounts(ctx, run)
    now = datetime.now(UTC)
    if as_json:
        output.print_json({"requests": [json_output.request_to_json(request) for request in requests]})
    elif requests:
        output.print_table(_REQUEST_COLUMNS, [_make_request_row(request, now) for request in requests])
    else:
        click.echo("Nobody is asking for access.")


@people.command("approve")
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
@click.pass_context
def approve_request(ctx: click.Context, code: str, grant: str, as_json: bool) -> None:
    """Give a stranger access.

    CODE is the code that the stranger got, or the id of the request. The stranger is told.
    """

    async def run(_accounts: Accounts, all_people: People) -> Member:
        return await all_people.approve(code, Grant(grant))

    member = _run_with_accounts(ctx, run)
    name = lookup.quote(member.person.name)
    text = f"The account is linked to {name}." if grant == Grant.ME else f"{name} is now {_describe_role(member)}."
    _print_person(member, text, as_json=as_json)


@people.command("deny")
@click.argument("code")
@json_option
@click.pass_context
def deny_request(ctx: click.Context, code: str, as_json: bool) -> None:
    """Deny a stranger access.

    CODE is the code that the stranger got, or the id of the request. The stranger is told.
    """

    async def run(_accounts: Accounts, all_people: People) -> PairingRequest:
        return await all_people.deny(code)

    request = _run_with_accounts(ctx, run)
    if as_json:
        output.print_json({"request": json_output.request_to_json(request)})
    else:
        click.echo(f"Denied {lookup.quote(request.name or request.account)}.")


def _print_person(member: Member, text: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"person": json_output.person_to_json(member)})
    else:
        click.echo(text)


def _describe_role(member: Member) -> str:
    return {Role.OWNER: "an owner", Role.MEMBER: "a member", Role.GUEST: "a guest"}[member.person.role]


def _make_request_row(request: PairingRequest, now: datetime) -> tuple[str, ...]:
    return (
        request.id,
        str(request.platform),
        output.clean_line(request.account),
        output.format_relative_time(request.created_at, now),
        output.clean_line(request.name),
    )


def _find_page_url(ctx: click.Context) -> str:
    """Return the URL of the page; raise an error if there is none."""
    from palaver.cli.running_servers import find_page_url

    url = find_page_url(load_cli_settings(ctx))
    if url is None:
        raise ConfigError(
            "Palaver is not running, so a link would lead nowhere. Start it in another terminal with"
            f" `{format_command('serve')}`, then try again. If it runs on another machine, set web.public_url."
        )
    return url


def _print_invitation(invitation: Invitation, page_url: str, *, as_json: bool) -> None:
    url = f"{page_url}/sign-in#{invitation.secret}"
    is_local_only = is_loopback(urlsplit(page_url).hostname or "")
    if as_json:
        link = {"url": url, "expires_at": invitation.expires_at.isoformat(), "is_local_only": is_local_only}
        output.print_json({"person": json_output.person_to_json(invitation.member), "link": link})
        return
    name = lookup.quote(invitation.member.person.name)
    expiry = invitation.expires_at.astimezone().strftime("%Y-%m-%d %H:%M")
    click.echo(f"Send this link to {name}. It works once, until {expiry}:\n\n  {url}\n")
    if is_local_only:
        click.echo(
            "The link works on this machine only, because Palaver listens here only. To let others in, start it with"
            f" `{format_command('serve --host 0.0.0.0')}`, or put it behind a reverse proxy and set web.public_url."
        )


@people.command()
@click.argument("person", required=False)
@json_option
@click.pass_context
def password(ctx: click.Context, person: str | None, as_json: bool) -> None:
    """Set a person's password.

    Without PERSON, sets your own. Prompts for the new password. The person is signed out on all devices, and
    earlier sign-in links no longer work.
    """
    if not is_interactive():
        raise click.UsageError("This command prompts for a password. Run it in a terminal.")

    async def run(accounts: Accounts, all_people: People) -> Member:
        members = await _load_members(all_people)
        member = (
            next(member for member in members if member.uses_terminal)
            if person is None
            else lookup.find_person(members, person)
        )
        await accounts.set_password(member.person.id, _prompt_for_password(member))
        return await all_people.get(member.person.id)

    changed = _run_with_accounts(ctx, run)
    if as_json:
        output.print_json({"person": json_output.person_to_json(changed)})
    else:
        click.echo(f"Password set. {lookup.quote(changed.person.name)} can now sign in with this name and password.")


def _prompt_for_password(member: Member) -> str:
    """Prompt twice for the new password; the account service checks whether it is good enough."""
    prompt = f"New password for {lookup.quote(member.person.name)}"
    try:
        new: str = click.prompt(prompt, hide_input=True, confirmation_prompt="Repeat the password", err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    return new


def _run_with_accounts(ctx: click.Context, run: Callable[[Accounts, People], Coroutine[None, None, T]]) -> T:
    """Open the store and run a coroutine with all accounts, as the owner of this gateway."""
    import asyncio

    from palaver.app import open_store
    from palaver.services.accounts.accounts import Accounts

    with open_store(load_cli_settings(ctx)) as store:
        owner = store.get_owner()
        accounts = Accounts(store)
        return asyncio.run(run(accounts, accounts.open_people(owner.principal)))


async def _load_members(all_people: People) -> list[Member]:
    page = await all_people.list(limit=PAGE_SIZE)
    members = list(page)
    while page.cursor is not None:
        page = await all_people.list(limit=PAGE_SIZE, cursor=page.cursor)
        members += page
    return members


def _make_row(member: Member, now: datetime) -> tuple[str, ...]:
    person = member.person
    last_seen = output.format_relative_time(member.last_seen_at, now) if member.last_seen_at else ""
    accounts = ", ".join(f"{each.platform}:{output.clean_line(each.account)}" for each in member.chat_accounts)
    return (
        person.id,
        person.role.value,
        _describe_sign_in(member),
        last_seen,
        person.timezone or "",
        accounts,
        output.clean_line(person.name),
    )


def _describe_sign_in(member: Member) -> str:
    methods = member.sign_in_methods
    if methods is None:
        return ""
    names = ["password"] if methods.has_password else []
    if methods.passkey_count:
        names.append(output.format_count(methods.passkey_count, "passkey"))
    return ", ".join(names) or "link"

"""The commands of `palaver people` that let a person sign in: invite, link, password.

Always true: a password is typed at a hidden prompt and never appears on a command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import is_interactive, json_option, load_current_settings
from palaver.cli.people.list_commands import load_members, run_with_accounts
from palaver.core.errors import ConfigError
from palaver.core.invocation import format_command
from palaver.people.model import Role, is_loopback
from palaver.people.wire import member_to_json

if TYPE_CHECKING:
    from palaver.accounts.accounts import Accounts
    from palaver.accounts.people import People
    from palaver.people.model import Invitation, Member


@click.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["member", "owner"]),
    default="member",
    help="Members see only their own conversations; owners can view all and invite people. [default: member]",
)
@json_option
def invite(name: str, role: str) -> None:
    """Invite a person to the web page.

    Prints a sign-in link to send them. It works once, within three days.
    """
    page_url = _find_page_url()

    async def run(_accounts: Accounts, all_people: People) -> Invitation:
        return await all_people.add(name, Role(role))

    _print_invitation(run_with_accounts(run), page_url)


@click.command("link")
@click.argument("person")
@json_option
def create_link(person: str) -> None:
    """Create a new sign-in link for a person.

    It works once, within three days. The person's earlier links no longer work.
    """
    page_url = _find_page_url()

    async def run(_accounts: Accounts, all_people: People) -> Invitation:
        member = lookup.find_person(await load_members(all_people), person)
        return await all_people.create_link(member.person.id)

    _print_invitation(run_with_accounts(run), page_url)


def _find_page_url() -> str:
    """Return the URL of the page; raise an error if there is none."""
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


@click.command()
@click.argument("person", required=False)
@json_option
def password(person: str | None) -> None:
    """Set a person's password.

    Without PERSON, sets your own. Prompts for the new password. The person is signed out on all devices, and
    earlier sign-in links no longer work.
    """
    if not is_interactive():
        raise click.UsageError("This command prompts for a password. Run it in a terminal.")

    async def run(accounts: Accounts, all_people: People) -> Member:
        members = await load_members(all_people)
        member = (
            next(member for member in members if member.uses_terminal)
            if person is None
            else lookup.find_person(members, person)
        )
        await accounts.set_password(member.person.id, _prompt_for_password(member))
        return await all_people.get(member.person.id)

    changed = run_with_accounts(run)
    output.print_result(
        {"person": member_to_json(changed)},
        f"Password set. {lookup.quote(changed.person.name)} can now sign in with this name and password.",
    )


def _prompt_for_password(member: Member) -> str:
    """Prompt twice for the new password; the account service checks whether it is good enough."""
    prompt = f"New password for {lookup.quote(member.person.name)}"
    try:
        new: str = click.prompt(prompt, hide_input=True, confirmation_prompt="Repeat the password", err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    return new

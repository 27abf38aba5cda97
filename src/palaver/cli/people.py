"""`palaver people`: who this gateway knows and how they sign in, from the terminal.

Whoever sits at the terminal runs the gateway, so they may give anybody a password. Always true: a password is typed
where nobody sees it, and never stands on a command line.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from palaver.cli import json_output, lookup, output
from palaver.cli.options import as_json_option, can_ask, settings_of
from palaver.cli.output import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from palaver.domain.account import Member
    from palaver.services.accounts.accounts import Accounts
    from palaver.services.accounts.people import People

T = TypeVar("T")

PAGE = 500
_COLUMNS = (
    Column("ID", style="dim"),
    Column("ROLE"),
    Column("SIGNS IN BY"),
    Column("SEEN"),
    Column("NAME", rest=True),
)


@click.group()
def people() -> None:
    """People: who this gateway knows, and how they sign in.

    PERSON is a name or an id.
    """


@people.command("list")
@as_json_option
@click.pass_context
def list_people(ctx: click.Context, as_json: bool) -> None:
    """List everybody, those who came last first."""

    async def run(_accounts: Accounts, everybody: People) -> list[Member]:
        return await _all(everybody)

    found = _with_accounts(ctx, run)
    now = datetime.now(UTC)
    if as_json:
        output.say_json({"people": [json_output.person_json(each) for each in found]})
    else:
        output.say_table(_COLUMNS, [_row(each, now) for each in found])


@people.command()
@click.argument("person", required=False)
@as_json_option
@click.pass_context
def password(ctx: click.Context, person: str | None, as_json: bool) -> None:
    """Give somebody a password to sign in with.

    Without PERSON it is you, the owner. You are asked for it. They are signed out everywhere, and no sign-in link that
    was made before works any more.
    """
    if not can_ask():
        raise click.UsageError("a password is asked for, and nobody can be asked here; run this at a terminal")

    async def run(accounts: Accounts, everybody: People) -> Member:
        members = await _all(everybody)
        meant = (
            next(each for each in members if each.at_terminal)
            if person is None
            else lookup.find_person(members, person)
        )
        new = _asked_for(meant)
        await accounts.give_password(meant.person.id, new)
        return await everybody.get(meant.person.id)

    found = _with_accounts(ctx, run)
    if as_json:
        output.say_json({"person": json_output.person_json(found)})
    else:
        click.echo(f"{lookup.quoted(found.person.name)} signs in with this name and the new password from now on")


def _asked_for(member: Member) -> str:
    """The new password, typed twice; what it is made of is judged by whoever keeps it."""
    asked = f"New password for {lookup.quoted(member.person.name)}"
    try:
        new: str = click.prompt(asked, hide_input=True, confirmation_prompt="Once more", err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    return new


def _with_accounts(ctx: click.Context, run: Callable[[Accounts, People], Coroutine[None, None, T]]) -> T:
    """Do something with everybody's accounts, as the owner of this gateway."""
    import asyncio

    from palaver.app import open_store
    from palaver.services.accounts.accounts import Accounts

    with open_store(settings_of(ctx)) as store:
        owner = store.owner()
        accounts = Accounts(store)
        return asyncio.run(run(accounts, accounts.people_seen_by(owner.principal)))


async def _all(everybody: People) -> list[Member]:
    page = await everybody.list(limit=PAGE)
    found = list(page)
    while page.cursor is not None:
        page = await everybody.list(limit=PAGE, cursor=page.cursor)
        found += page
    return found


def _row(member: Member, now: datetime) -> tuple[str, ...]:
    person = member.person
    seen = output.ago(member.seen_at, now) if member.seen_at else ""
    return (person.id, person.role.value, _ways(member), seen, output.line(person.name))


def _ways(member: Member) -> str:
    if member.ways is None:
        return ""
    passkeys = output.plural(member.ways.passkeys, "passkey") if member.ways.passkeys else ""
    return ", ".join(filter(None, ("password" if member.ways.password else "", passkeys))) or "a link"

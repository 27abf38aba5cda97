"""What the commands of `palaver people` share: opening the people of this gateway, and printing a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from palaver.cli import json_output, output
from palaver.cli.options import load_cli_settings, open_store
from palaver.people.model import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from palaver.accounts.accounts import Accounts
    from palaver.accounts.people import People
    from palaver.people.account import Member

T = TypeVar("T")

PAGE_SIZE = 500


def run_with_accounts(ctx: click.Context, run: Callable[[Accounts, People], Coroutine[None, None, T]]) -> T:
    """Open the store and run a coroutine with all accounts, as the owner of this gateway."""
    import asyncio

    from palaver.accounts.accounts import Accounts

    with open_store(load_cli_settings(ctx)) as store:
        owner = store.get_owner()
        accounts = Accounts(store)
        return asyncio.run(run(accounts, accounts.open_people(owner.principal)))


async def load_members(all_people: People) -> list[Member]:
    page = await all_people.list(limit=PAGE_SIZE)
    members = list(page)
    while page.cursor is not None:
        page = await all_people.list(limit=PAGE_SIZE, cursor=page.cursor)
        members += page
    return members


def print_person(member: Member, text: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"person": json_output.person_to_json(member)})
    else:
        click.echo(text)


def describe_role(member: Member) -> str:
    return {Role.OWNER: "an owner", Role.MEMBER: "a member", Role.GUEST: "a guest"}[member.person.role]

"""The commands of `palaver people` that list: everybody, and the strangers who ask for access."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from palaver.cli import output
from palaver.cli.options import json_option, load_cli_settings, open_store
from palaver.cli.output import Column
from palaver.core.wire import build_json
from palaver.people.model import Role
from palaver.people.wire import PairingRequestJson, member_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from palaver.accounts.accounts import Accounts
    from palaver.accounts.people import People
    from palaver.people.model import Member
    from palaver.people.pairing_table import PairingRequest


T = TypeVar("T")

PAGE_SIZE = 500


def run_with_accounts(run: Callable[[Accounts, People], Coroutine[None, None, T]]) -> T:
    """Open the store and run a coroutine with all accounts, as the owner of this gateway."""
    import asyncio

    from palaver.accounts.accounts import Accounts

    with open_store(load_cli_settings()) as store:
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


def print_person(member: Member, text: str) -> None:
    output.print_result({"person": member_to_json(member)}, text)


def describe_role(member: Member) -> str:
    return {Role.OWNER: "an owner", Role.MEMBER: "a member", Role.GUEST: "a guest"}[member.person.role]


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


@click.command("list")
@json_option
def list_people() -> None:
    """List everybody, newest first."""

    async def run(_accounts: Accounts, all_people: People) -> list[Member]:
        return await load_members(all_people)

    members = run_with_accounts(run)
    now = datetime.now(UTC)
    document = {"people": [member_to_json(member) for member in members]}
    output.print_list(document, _COLUMNS, [_make_row(member, now) for member in members], empty="")


@click.command("requests")
@json_option
def list_requests() -> None:
    """List the strangers who ask for access.

    Each of them got a code in their chat. Ask for it, and approve it with `people approve`.
    """

    async def run(_accounts: Accounts, all_people: People) -> Sequence[PairingRequest]:
        return await all_people.list_requests()

    requests = run_with_accounts(run)
    now = datetime.now(UTC)
    document = {"requests": [build_json(PairingRequestJson, request) for request in requests]}
    rows = [_make_request_row(request, now) for request in requests]
    output.print_list(document, _REQUEST_COLUMNS, rows, "There are no requests for access.")


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


def _make_request_row(request: PairingRequest, now: datetime) -> tuple[str, ...]:
    return (
        request.id,
        str(request.platform),
        output.clean_line(request.account),
        output.format_relative_time(request.created_at, now),
        output.clean_line(request.name),
    )

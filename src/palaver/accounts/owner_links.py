"""Linking chat accounts to the owner, as the operator says at the terminal: for an import, without a code.

Always true: an account that belongs to a person who can sign in, or who has other accounts that were not named, is
refused before anything is changed, so that a wrong number never takes over what a known person has here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.accounts import linking, merge_table as person_merge
from palaver.accounts.link_requests import format_counts
from palaver.core.dataclass import dataclass
from palaver.core.errors import NotAllowed
from palaver.people import table as people

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource
    from palaver.people.table import PersonRow
    from palaver.sessions.gateway_config import GatewayConfig


@dataclass(frozen=True, slots=True)
class OwnerLink:
    """An account that was linked, and what its person had here; empty if it was not known."""

    account: str
    belongings: str


def is_account_of(tx: Transaction, source: SessionSource, person_id: PersonId) -> bool:
    row = people.find_by_source(tx, source)
    return row is not None and row.person.id == person_id


def link_to_owner(
    tx: Transaction, owner_id: PersonId, sources: Sequence[SessionSource], config: GatewayConfig, now: datetime
) -> list[OwnerLink]:
    """Let accounts belong to the owner, with everything that their people have here; return those that did not yet.

    Raises `NotAllowed` if one must not be linked. What is linked, `linking.unlink_account` can undo.
    """
    owner = people.find_by_id(tx, owner_id)
    if owner is None:
        raise NotAllowed("The owner of this gateway is not there any more.")
    named = {account for source in sources if (account := people.find_account(source)) is not None}
    found = [(source, people.find_by_source(tx, source)) for source in sources]
    for source, row in found:
        if row is not None and row.person.id != owner_id:
            _check_can_link(tx, owner, row, source, named)
    links = []
    for source, row in found:
        if row is not None and row.person.id == owner_id:
            continue
        belongings = person_merge.count_belongings(tx, None if row is None else row.person.id)
        linking.link_account(tx, source, owner, config, now)
        links.append(OwnerLink(format_account(source), format_counts(belongings) if any(belongings.values()) else ""))
    return links


def _check_can_link(
    tx: Transaction, owner: PersonRow, row: PersonRow, source: SessionSource, named: set[tuple[str, str]]
) -> None:
    account, name = format_account(source), row.person.name
    if linking.can_both_sign_in(tx, owner, row):
        raise NotAllowed(
            f"{account} belongs to {name!r} here, who can sign in to this gateway, so it can't become yours. If it is"
            " yours, unlink it from them first: palaver people unlink."
        )
    others = [
        f"{each.platform}:{each.account}"
        for each in people.list_identities(tx, row.person.id)
        if (str(each.platform), each.account) not in named
    ]
    if others:
        raise NotAllowed(
            f"{account} belongs to {name!r} here, who also has {', '.join(others)}. If all of them are yours, name all"
            " of them; otherwise unlink it from them first: palaver people unlink."
        )


def format_account(source: SessionSource) -> str:
    """Name the account as people type it, with the name that it has there: `telegram:42 (Ada)`."""
    account = people.find_account(source)
    name = f" ({source.user_name[:80]})" if source.user_name else ""
    return f"{':'.join(account or (str(source.platform), '?'))}{name}"

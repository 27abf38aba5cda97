"""Linking: proof by code makes accounts on several platforms one person.

A person asks for a code where they are known and sends it from the other account: that proves both. A code gives the
account that sends it everything its person has, so it never works upward: a member's code makes a guest's account the
member's, but a guest's code does nothing for a member.

Always true: linking changes no role, except that an account takes that of the code it sends; a code works once; each
operation runs inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from palaver.domain.account import hash_secret
from palaver.domain.errors import AmbiguousMatch, NotAllowed, NotFound
from palaver.domain.inbound import PLATFORMS_WITHOUT_DELIVERY
from palaver.domain.keys import DmScope, build_session_key
from palaver.domain.pairing import LINK_CODE_LIFETIME, generate_code
from palaver.domain.person import Role
from palaver.domain.source import ChatType, SessionSource
from palaver.services.commands.reply_text import escape_markdown
from palaver.services.notices import send_notice
from palaver.storage import chat_access, home_channels, pairing_requests, people, person_merge, sender_ids, turn_access
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.delivery import Address
    from palaver.domain.gateway_config import GatewayConfig
    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person
    from palaver.storage.engines.base import Transaction
    from palaver.storage.pairing_requests import LinkCode
    from palaver.storage.people import Identity, PersonRow

ROLE_RANKS = {Role.GUEST: 0, Role.MEMBER: 1, Role.OWNER: 2}

BOTH_SIGN_IN = (
    "Both accounts belong to people who can sign in, so they can't become one."
    " Ask an owner to remove one of them first."
)
LOWER_RANK = (
    "That code is from a {theirs}'s account, and you're {yours}. Use /link here instead, and send the new code from the"
    " other account."
)


@dataclass(frozen=True, slots=True)
class LinkResult:
    """What came of a code: whether accounts were linked, and what to tell the person who sent it."""

    text: str
    person: Person | None = None  # who both accounts belong to now; None: nothing was linked
    retry_after: int = 0  # seconds; more than 0: there were too many attempts, and this one was not made


def create_link_code(
    tx: Transaction, person_id: PersonId, source: SessionSource, now: datetime, *, issued_by: str | None = None
) -> str:
    """Create a person's code. The one before no longer works.

    `issued_by` is the device of a person who asks on the page: when it is signed out, the code stops working.
    """
    code = generate_code()
    expires_at = to_micros(now + LINK_CODE_LIFETIME)
    pairing_requests.save_link_code(tx, hash_secret(code), person_id, source, expires_at, issued_by)
    return code


def use_link_code(
    tx: Transaction, code: LinkCode, source: SessionSource, config: GatewayConfig, now: datetime
) -> LinkResult:
    """Link the account that sends a code to the person who asked for it."""
    issuer = people.find_by_id(tx, code.person_id)
    sender = people.find_by_source(tx, source)
    assert issuer is not None  # noqa: S101  (the code is deleted with its person)
    if sender is not None and sender.person.id == issuer.person.id:
        return LinkResult("These accounts are already linked. Send the code from your other account.")
    if sender is not None and ROLE_RANKS[issuer.person.role] < ROLE_RANKS[sender.person.role]:
        yours = f"{'an' if sender.person.role is Role.OWNER else 'a'} {sender.person.role}"
        return LinkResult(LOWER_RANK.format(theirs=issuer.person.role, yours=yours))
    if sender is not None and can_both_sign_in(tx, issuer, sender):
        return LinkResult(BOTH_SIGN_IN)
    pairing_requests.delete_link_code(tx, issuer.person.id)
    person = link_account(tx, source, issuer, config, now)
    name = describe_account(source)
    send_notice(tx, code.source, f"{name} is now linked to you. If that wasn't you, use /unlink.", to_micros(now))
    return LinkResult(
        f"Linked: this account now belongs to **{escape_markdown(person.name)}**, {describe_role(person.role)}."
        " Your conversations are the same everywhere. Use /unlink to undo this.",
        person,
    )


def link_account(
    tx: Transaction, source: SessionSource, row: PersonRow, config: GatewayConfig, now: datetime
) -> Person:
    """Let the account of a source belong to a person, with everything of the person whom it belonged to before.

    Of two people the one who can sign in stays; if neither can, `row`. The role is that of `row`. Raises `NotAllowed`
    if both can sign in.
    """
    micros = to_micros(now)
    account = people.find_account(source)
    if account is None:
        raise NotAllowed("This chat doesn't say who you are, so it can't be linked.")
    sender = people.find_by_account(tx, *account)
    if sender is None:
        people.add_identity(tx, account, row.person.id, micros)
        sender_ids.save(tx, source, account[1], micros)
    elif sender.person.id == row.person.id:
        return row.person
    elif can_both_sign_in(tx, row, sender):
        raise NotAllowed(BOTH_SIGN_IN)
    survivor = row
    if sender is not None:
        survivor, other = (sender, row) if person_merge.has_account(tx, sender.person.id) else (row, sender)
        merge_people(tx, survivor, other, config, micros)
        people.set_role(tx, survivor.person.id, row.person.role)
    if source.chat_type is ChatType.DM and source.platform not in PLATFORMS_WITHOUT_DELIVERY:
        people.remember_dm_source(tx, source, None)
    return replace(survivor.person, role=row.person.role)


def can_both_sign_in(tx: Transaction, first: PersonRow, second: PersonRow) -> bool:
    return person_merge.has_account(tx, first.person.id) and person_merge.has_account(tx, second.person.id)


def merge_people(tx: Transaction, survivor: PersonRow, other: PersonRow, config: GatewayConfig, now: int) -> None:
    """Give everything of one person to another, also their lane everywhere."""
    person_merge.merge_people(tx, survivor, other, now)
    if config.dm_scope is DmScope.PERSON:
        from_key, to_key = (
            build_session_key(
                SessionSource.local_cli(), dm_scope=DmScope.PERSON, agent=config.agent, person=row.person.id
            )
            for row in (other, survivor)
        )
        person_merge.move_person_lane(tx, from_key, to_key, other)


# ---- taking an account out -------------------------------------------------------------------------------


def find_linked_account(tx: Transaction, person_id: PersonId, text: str) -> Identity:
    """Return one of a person's chat accounts: `telegram`, or `telegram:12345` if they have several there."""
    platform, _, account = text.strip().partition(":")
    matches = [
        identity
        for identity in list_chat_accounts(tx, person_id)
        if identity.platform == platform.lower() and account in {"", identity.account}
    ]
    if not matches:
        raise NotFound(f"There is no linked account {text.strip()!r}. Use /whoami to list them.")
    if len(matches) > 1:
        names = ", ".join(f"{identity.platform}:{identity.account}" for identity in matches)
        raise AmbiguousMatch(f"There are several accounts on {matches[0].platform.label}. Name one: {names}.")
    return matches[0]


def list_chat_accounts(tx: Transaction, person_id: PersonId) -> list[Identity]:
    """List the accounts of a person that can be linked and unlinked: all but those they sign in with."""
    return [
        identity
        for identity in people.list_identities(tx, person_id)
        if identity.platform not in PLATFORMS_WITHOUT_DELIVERY
    ]


def unlink_account(
    tx: Transaction, person: Person, identity: Identity, config: GatewayConfig, now: datetime, *, is_told: bool = True
) -> None:
    """Take an account out of a person. What was said stays with the person; the account is a stranger's again.

    Raises `NotAllowed` for the only account of a person who can't sign in. With `is_told`, the account is told.
    """
    if len(people.list_identities(tx, person.id)) == 1:
        raise NotAllowed("This is the only account. Without it, these conversations would no longer be reachable.")
    if not people.remove_identity(tx, person.id, identity):
        raise NotFound(f"There is no linked account {identity.platform}:{identity.account}.")
    agent_keys = build_session_key(SessionSource.local_cli(), agent=config.agent).partition(":local:")[0]
    person_merge.detach_lanes(tx, person.id, identity, f"{agent_keys}:{identity.platform}")
    pairing_requests.delete_link_code(tx, person.id)
    _end_turns_of_account(tx, person.id, identity, to_micros(now))
    source = identity.dm_source
    if source is None:
        return
    chat_access.revoke(tx, source)
    home = home_channels.load_chosen(tx).get(identity.platform)
    if home is not None and home.chat_type is ChatType.DM and home.chat_id == source.chat_id:
        home_channels.remove(tx, identity.platform)
    if is_told:
        name = escape_markdown(person.name)
        text = f"This account is no longer linked to {name}. What you said here before stays with {name}."
        send_notice(tx, source, text, to_micros(now))


def _end_turns_of_account(tx: Transaction, person_id: PersonId, identity: Identity, now: int) -> None:
    """Let no message be answered that an account sent for the person whom it no longer belongs to.

    Those are messages in its direct messages and, if the person has no other account there, everywhere on the platform.
    """
    has_other = any(each.platform == identity.platform for each in people.list_identities(tx, person_id))
    chat = None if identity.dm_source is None else (identity.dm_source.account, identity.dm_source.chat_id)

    def is_concerned(address: Address | None) -> bool:
        if address is None or address.platform != identity.platform:
            return False
        return not has_other or (address.account, address.chat_id) == chat

    turn_access.end_open_turns(tx, person_id, person_id, now, is_concerned=is_concerned)


def describe_account(source: SessionSource) -> str:
    """Name the account of a source for people: `Ada (Telegram, 12345)`."""
    account = people.find_account(source)
    return format_account(source.platform.label, account[1] if account else "", source.user_name)


def format_account(label: str, account: str, name: str | None) -> str:
    """Name an account for people; what its owner chose is escaped."""
    place = f"{label}, {escape_markdown(account, 80)}"
    return f"{escape_markdown(name, 60)} ({place})" if name and name != account else place


def describe_role(role: Role) -> str:
    return {Role.OWNER: "an owner", Role.MEMBER: "a member", Role.GUEST: "a guest"}[role]

"""Linking and unlinking: accounts on several platforms are one person, or become people of their own again.

Who links proves both accounts with a code, and both sides confirm (`link_requests.py`). A code gives the account that
sends it everything its person has, so it never works upward: a member's code makes a guest's account the member's, but
a guest's code does nothing for a member.

Always true: the person at the terminal is never linked to another, so their role and belongings stay theirs; an account
that is unlinked has what it had before, and no more than it and its person have together at that moment; each operation
runs inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.accounts import merge_table as person_merge
from palaver.commands.reply_text import escape_markdown, quote_command
from palaver.core.clock import to_micros
from palaver.core.errors import AmbiguousMatch, NotAllowed, NotFound
from palaver.core.source import PLATFORMS_WITHOUT_DELIVERY, ChatType, SessionSource
from palaver.core.texts import join_texts, say
from palaver.delivery.notices import send_notice
from palaver.jobs import runs_table as job_runs
from palaver.people import access_table as chat_access, linked_rows, pairing_table as pairing_requests, table as people
from palaver.people.model import Person, Role
from palaver.sessions import home_channels, turn_leases as turn_access, turns_table as turns
from palaver.sessions.delivery import Address
from palaver.sessions.keys import DmScope, build_session_key
from palaver.sessions.turn import StopRequest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, SessionKey
    from palaver.people.model import Identity
    from palaver.people.table import PersonRow
    from palaver.sessions.gateway_config import GatewayConfig

BOTH_SIGN_IN = say(
    "link.both_sign_in",
    "Both accounts belong to people who can sign in, so they can't become one. Ask an owner to remove one"
    " of them first.",
)
ONLY_ACCOUNT = say(
    "link.only_account", "This is the only account. Without it, these conversations would no longer be reachable."
)


def link_account(
    tx: Transaction, source: SessionSource, row: PersonRow, config: GatewayConfig, now: datetime
) -> Person:
    """Let the account of a source belong to a person, with everything of the person whom it belonged to before.

    Of two people the one who can sign in stays; if neither can, `row`. The role is that of `row`. Raises `NotAllowed`
    if both can sign in.
    """
    micros = to_micros(now)
    sender = people.find_or_add_by_source(tx, source, micros)
    if sender is None:
        raise NotAllowed.say("link.no_identity", "This chat doesn't say who you are, so it can't be linked.")
    if sender.person.id == row.person.id:
        return row.person
    if can_both_sign_in(tx, row, sender):
        raise NotAllowed(BOTH_SIGN_IN)
    survivor, other = (sender, row) if person_merge.can_sign_in(tx, sender.person.id) else (row, sender)
    merge_people(tx, survivor, other, config, micros)
    person_merge.raise_role(tx, survivor.person.id, row.person.role)
    if source.chat_type is ChatType.DM and source.platform not in PLATFORMS_WITHOUT_DELIVERY:
        people.remember_dm_source(tx, source, None)
    return replace(survivor.person, role=row.person.role)


def can_both_sign_in(tx: Transaction, first: PersonRow, second: PersonRow) -> bool:
    return person_merge.can_sign_in(tx, first.person.id) and person_merge.can_sign_in(tx, second.person.id)


def merge_people(tx: Transaction, survivor: PersonRow, other: PersonRow, config: GatewayConfig, now: int) -> None:
    """Give everything of one person to another, also their lane everywhere."""
    person_merge.merge_people(tx, survivor, other, now)
    if config.dm_scope is DmScope.PERSON:
        from_key, to_key = (_build_person_key(row.person.id, config) for row in (other, survivor))
        person_merge.move_person_lane(tx, from_key, to_key, survivor, other)


def _build_person_key(person_id: PersonId, config: GatewayConfig) -> SessionKey:
    return build_session_key(SessionSource.local_cli(), dm_scope=DmScope.PERSON, agent=config.agent, person=person_id)


def tell_about_link(
    tx: Transaction, person: Person, source: SessionSource, now: datetime, *, except_source: SessionSource
) -> None:
    """Tell every chat account of a person that the account of a source is linked to them now."""
    text = say(
        "link.linked",
        "{account} is now linked to you. If that wasn't you, use `/unlink {platform}`.",
        account=describe_account(source),
        platform=source.platform,
    )
    for identity in people.list_chat_accounts(tx, person.id):
        if identity.dm_source is not None and find_chat(identity.dm_source) != find_chat(except_source):
            send_notice(tx, identity.dm_source, text, to_micros(now))


def find_chat(source: SessionSource) -> tuple[str, str, str | None]:
    return str(source.platform), source.account, source.chat_id


def find_linked_account(tx: Transaction, person_id: PersonId, text: str) -> Identity:
    """Return one of a person's chat accounts: `telegram`, or `telegram:12345` if they have several there."""
    platform, _, account = text.strip().partition(":")
    matches = [
        identity
        for identity in people.list_chat_accounts(tx, person_id)
        if identity.platform == platform.lower() and account in {"", identity.account}
    ]
    if not matches:
        raise NotFound.say(
            "unlink.not_found",
            "There is no linked account {account}. Use /whoami to list them.",
            account=repr(text.strip()),
        )
    if len(matches) > 1:
        names = ", ".join(f"{identity.platform}:{identity.account}" for identity in matches)
        raise AmbiguousMatch.say(
            "unlink.which",
            "There are several accounts on {platform}. Name one: {names}.",
            platform=matches[0].platform.label,
            names=names,
        )
    return matches[0]


def find_only_linked_account(tx: Transaction, person_id: PersonId) -> Identity | None:
    """Return an account of the only person who was linked to this one; None if there are none or several."""
    linked = {
        origin: identity
        for identity in people.list_chat_accounts(tx, person_id)
        if (origin := linked_rows.find_origin(tx, identity.platform, identity.account)) is not None
    }
    return next(iter(linked.values())) if len(linked) == 1 else None


def unlink_account(
    tx: Transaction, person: Person, identity: Identity, config: GatewayConfig, now: datetime, *, is_told: bool = True
) -> Person | None:
    """Take an account out of a person, and give it back what it had when it was linked.

    Returns the person whom it belongs to now; None if it has none, because it was linked before that was recorded: then
    it is a stranger's. Raises `NotAllowed` for the account that others were linked to, and for the only account of a
    person who can't sign in. With `is_told`, the account is told.
    """
    survivor = people.find_by_id(tx, person.id)
    if survivor is None:
        raise NotFound(f"There is no linked account {identity.platform}:{identity.account}.")
    origin = linked_rows.find_origin(tx, identity.platform, identity.account)
    other = None if origin is None else people.find_by_id(tx, origin)
    _check_stays_reachable(tx, person, identity, other)
    if other is None:
        if not people.remove_identity(tx, person.id, identity):
            raise NotFound(f"There is no linked account {identity.platform}:{identity.account}.")
        returned = [identity]
        pairing_requests.delete_links_of_person(tx, person.id)
        if identity.dm_source is not None:
            chat_access.revoke(tx, identity.dm_source)
    else:
        person_merge.unmerge(tx, survivor, other, to_micros(now))
        returned = people.list_identities(tx, other.person.id)
        for session_no in job_runs.list_running_sessions(tx, other.person.id):  # with what only both together may know
            turns.request_stop(tx, session_no, StopRequest.STOP)
            turns.cancel_queued(tx, session_no, to_micros(now), "The account of this job was unlinked.")
        if config.dm_scope is DmScope.PERSON:
            from_key, to_key = (_build_person_key(row.person.id, config) for row in (survivor, other))
            person_merge.return_person_lane(tx, from_key, to_key, other)
    _leave_chats(tx, person.id, returned, config, to_micros(now))
    row = None if other is None else people.find_by_id(tx, other.person.id)
    if is_told and identity.dm_source is not None:
        send_notice(tx, identity.dm_source, _describe_unlinked(person, row), to_micros(now))
    return None if row is None else row.person


def _check_stays_reachable(tx: Transaction, person: Person, identity: Identity, other: PersonRow | None) -> None:
    """Raise `NotAllowed` if the person would have no account of their own left."""
    group = [] if other is None else linked_rows.list_group(tx, other.person.id)
    origins = {
        (each.platform, each.account): linked_rows.find_origin(tx, each.platform, each.account)
        for each in people.list_identities(tx, person.id)
    }
    origins.pop((identity.platform, identity.account), None)
    if not [origin for origin in origins.values() if origin is None or origin not in group]:
        raise NotAllowed(ONLY_ACCOUNT)
    if other is None and None not in origins.values():
        names = join_texts(
            ", ", [quote_command(f"unlink {platform}") for platform in sorted({platform for platform, _ in origins})]
        )
        raise NotAllowed.say(
            "unlink.others",
            "Your other accounts were linked to this one. Name the one to separate: {names}.",
            names=names,
        )


def _leave_chats(
    tx: Transaction, person_id: PersonId, left: Iterable[Identity], config: GatewayConfig, now: int
) -> None:
    """Let nothing of a person go on in the chats of accounts that they no longer have."""
    agent_keys = build_session_key(SessionSource.local_cli(), agent=config.agent).partition(":local:")[0]
    for identity in left:
        account = (str(identity.platform), identity.account)
        person_merge.detach_lanes(tx, person_id, [account], f"{agent_keys}:{identity.platform}")
        _end_turns_of_account(tx, person_id, identity, now)
        source = identity.dm_source
        if source is None:
            continue
        turns.withhold_answers(tx, person_id, str(Address.from_source(source)))
        home = home_channels.load_chosen(tx).get(identity.platform)
        if home is not None and home.chat_type is ChatType.DM and home.chat_id == source.chat_id:
            home_channels.remove(tx, identity.platform, person_id)


def _describe_unlinked(person: Person, own: PersonRow | None) -> str:
    name = escape_markdown(person.name)
    if own is None:
        return say(
            "unlink.told",
            "This account is no longer linked to {name}. What you said here before stays with {name}.",
            name=name,
        )
    return say(
        "unlink.told_returned",
        "This account is no longer linked to {name}. It has back what it had before the link, as {role}. What"
        " was new since then stays with {name}.",
        name=name,
        role=describe_role(own.person.role),
    )


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
    return {
        Role.OWNER: say("role.owner", "an owner"),
        Role.MEMBER: say("role.member", "a member"),
        Role.GUEST: say("role.guest", "a guest"),
    }[role]

"""Access: who sends a message, and whether the agent may answer them.

| who | may talk to the agent |
|---|---|
| owner, member | everywhere |
| on a platform with `access: everyone` | everybody there |
| program that signs requests to a webhook | in the conversations of that webhook |
| account in `allowed_users` of a platform | on that platform |
| guest whose request was approved | in those direct messages, or in that channel |
| everyone in a group that an owner allowed | in that group |

Everybody else is a stranger: a direct message of a stranger is a request for access (`pairing.py`), and in groups
strangers are ignored. Always true: a stranger who only writes is not stored as a person.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.source import PLATFORMS_WITHOUT_DELIVERY, ChatType, Platform, SessionSource
from palaver.core.texts import say
from palaver.people import access_table as chat_access, table as people
from palaver.people.model import Person, Role
from palaver.people.sender_ids import FOLDED_PLATFORMS, list_sender_ids, parse_sender_ids
from palaver.sessions import turn_leases as turn_access
from palaver.sessions.delivery import Address
from palaver.sessions.inbound import Outcome, Receipt

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.commands.command import CommandCall, MessageCall
    from palaver.config.agent_rules import TurnRules
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId

_UNLIMITED_COMMANDS = frozenset({"stop"})  # who sends too much must be able to stop it


@dataclass(frozen=True, slots=True)
class Speaker:
    """The sender of a message, and whether the agent may answer them."""

    person: Person | None  # None where the platform does not tell people apart, and for most strangers
    can_speak: bool = True
    language: str | None = None  # that they read on this platform, as far as it is known


def identify_speaker(
    tx: Transaction, source: SessionSource, rules: TurnRules, now: int, *, language: str | None = None
) -> Speaker:
    """Find out who speaks from a source, and store a person who speaks for the first time as a guest.

    `language` is that of their app, as the platform says.
    """
    row = people.find_by_source(tx, source)
    person = row.person if row else None
    if not _can_speak(tx, source, person, rules):
        return Speaker(person, can_speak=False, language=language or (row.language if row else None))
    if row is None:
        row = people.find_or_add_by_source(tx, source, now)
    if row is None:
        return Speaker(None, language=language)
    if source.chat_type is ChatType.DM and source.platform not in PLATFORMS_WITHOUT_DELIVERY:
        people.remember_dm_source(tx, source, row.dm_source)
    people.remember_language(tx, source, language, row.account_language)
    return Speaker(row.person, language=row.person.language or language or row.account_language)


def find_speaker(tx: Transaction, source: SessionSource, rules: TurnRules) -> Speaker | None:
    """Find out who speaks from a source without storing anything; None if a person has to be stored first."""
    row = people.find_by_source(tx, source)
    if row is None and people.find_account(source) is not None:
        return None
    person = row.person if row else None
    language = row.language if row else None
    return Speaker(person, can_speak=_can_speak(tx, source, person, rules), language=language)


def can_speak(tx: Transaction, source: SessionSource, rules: TurnRules) -> bool:
    """Return whether the agent may answer a source, also one whose person is not stored yet."""
    row = people.find_by_source(tx, source)
    return _can_speak(tx, source, row.person if row else None, rules)


def can_guest_be_answered(tx: Transaction, person_id: PersonId, address: str | None, rules: TurnRules) -> bool:
    """Return whether the agent may still answer a guest at this address: they may have lost access since they wrote.

    Without an address the answer would be read on the page or in a program, where guests can't sign in.
    """
    if address is None:
        return False
    to = Address.from_text(address)
    if _is_open(to.platform, rules):
        return True
    chat = SessionSource(to.platform, to.chat_id, account=to.account)
    if chat_access.is_granted(tx, chat, person_id):
        return True
    allowed = rules.allowed_users.get(to.platform)
    accounts = people.list_identities(tx, person_id) if allowed else []
    return any(
        _is_allowed_user(tx, replace(chat, user_id=each.account), allowed)
        for each in accounts
        if each.platform == to.platform
    )


def end_turns_in_chat(tx: Transaction, source: SessionSource, ended_by: PersonId, rules: TurnRules, now: int) -> None:
    """End the open turns of guests in a chat who may not talk to the agent there any more."""
    chat = source.platform, source.account, source.chat_id
    for person_id in turn_access.list_guests_with_open_turns(tx):

        def is_concerned(address: Address | None, guest_id: PersonId = person_id) -> bool:
            if address is None or (address.platform, address.account, address.chat_id) != chat:
                return False
            return not can_guest_be_answered(tx, guest_id, str(address), rules)

        turn_access.end_open_turns(tx, person_id, ended_by, now, is_concerned=is_concerned)


def _can_speak(tx: Transaction, source: SessionSource, person: Person | None, rules: TurnRules) -> bool:
    if person is not None and person.role is not Role.GUEST:
        return True
    if source.platform in PLATFORMS_WITHOUT_DELIVERY or _is_open(source.platform, rules):
        return True
    if _is_allowed_user(tx, source, rules.allowed_users.get(source.platform)):
        return True
    return chat_access.is_granted(tx, source, person.id if person else None)


def _is_open(platform: Platform, rules: TurnRules) -> bool:
    """Return whether everybody may talk to the agent there, such as programs that know the secret of a webhook."""
    return platform in rules.open_platforms or platform == Platform.WEBHOOK


def _is_allowed_user(tx: Transaction, source: SessionSource, allowed: frozenset[str] | None) -> bool:
    """Return whether the operator has allowed the account of the person who writes, under any of its ids."""
    account = people.find_account(source) if allowed else None
    if account is None or allowed is None:
        return False
    if source.platform not in FOLDED_PLATFORMS:
        return account[1] in allowed
    own_ids = {each.id for each in list_sender_ids(source)}
    own_ids.update(chat_access.list_ids(tx, source.platform, account[1]))
    return not own_ids.isdisjoint(each.id for each in parse_sender_ids(source.platform, allowed))


def count_message(
    tx: Transaction, person: Person | None, call: CommandCall | MessageCall | None, rules: TurnRules, now: datetime
) -> Receipt | None:
    """Count a person's message; return the receipt that refuses it, if it is too many."""
    limit = _find_limit(person, rules)
    if person is None or limit is None or is_unlimited(call):
        return None
    return _make_refusal(person, limit, chat_access.count_message(tx, person.id, limit, to_micros(now)))


def is_unlimited(call: CommandCall | MessageCall | None) -> bool:
    return call is not None and call.command in _UNLIMITED_COMMANDS


def check_message_rate(tx: Transaction, person: Person, rules: TurnRules, now: datetime) -> Receipt | None:
    """Return the receipt that refuses a person's next message, if it would be too many; count nothing."""
    limit = _find_limit(person, rules)
    if limit is None:
        return None
    return _make_refusal(person, limit, chat_access.compute_wait(tx, person.id, limit, to_micros(now)))


def count_read(tx: Transaction, source: SessionSource, rules: TurnRules, now: datetime) -> None:
    """Count a command that only read, after it was answered."""
    row = people.find_by_source(tx, source) if rules.messages_per_minute else None
    limit = _find_limit(row.person, rules) if row else None
    if row is not None and limit is not None:
        chat_access.count_message(tx, row.person.id, limit, to_micros(now))


def _find_limit(person: Person | None, rules: TurnRules) -> int | None:
    return None if person is None else rules.messages_per_minute.get(person.role)


def _make_refusal(person: Person, limit: int, wait: float) -> Receipt | None:
    if not wait:
        return None
    seconds = int(wait) + 1
    reply = say(
        "rate.reached",
        "You're sending messages too fast: {role}s can send {limit} a minute. This one wasn't saved. Try again in"
        " {seconds} s.",
        role=person.role.value,
        limit=limit,
        seconds=seconds,
    )
    facts = {"error": "too_many_messages", "limit": limit, "retry_after": seconds}
    return Receipt(outcome=Outcome.REJECTED, reply=reply, facts=facts)

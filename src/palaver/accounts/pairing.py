"""Pairing: a stranger's direct message is a request for access, which an owner approves or denies.

    stranger writes ──▶ pending, with a code ──▶ approved as member or guest, or linked to the owner
                              │                  denied: the stranger gets no other code until it has expired
                              └──▶ expired after an hour

A channel asks with `/pair` in a post: all who can post there write as the account of the channel, which can only be a
guest. Other posts in it get no reply.

Always true: what a stranger writes is not stored; only the digest of a code is; an approval gives what it says and
nothing else; the stranger is told the outcome in the same transaction. In groups strangers get no reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.accounts import link_requests, linking, sender_merge
from palaver.commands.command import CommandCall, MessageCall
from palaver.commands.reply_text import escape_markdown
from palaver.core.clock import to_micros
from palaver.core.errors import NotAllowed, NotFound
from palaver.core.source import ChatType, SessionSource
from palaver.core.text import is_storable
from palaver.core.texts import Text, say
from palaver.delivery.notices import send_notice
from palaver.people import (
    access_table as chat_access,
    pairing_table as pairing_requests,
    sign_in_table as sign_in_attempts,
    table as people,
)
from palaver.people.model import Person, Role, hash_secret
from palaver.people.pairing_table import (
    CODE_ATTEMPTS_OF_STRANGERS,
    CODE_ATTEMPTS_PER_ACCOUNT,
    MAX_PENDING_REQUESTS,
    NEW_CODE_INTERVAL,
    PAIRING_CODE_LIFETIME,
    REPLIES_PER_STRANGER,
    Grant,
    PairingRequest,
    generate_code,
    parse_code,
)
from palaver.sessions.inbound import SECRET_FACT, Inbound, Outcome, Receipt

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.sessions.gateway_config import GatewayConfig

TOO_MANY_TEXT = say("pair.too_many", "I can't take new requests for access right now. Try again in an hour.")
# The same for every wrong code, so that no guess says whether a code of the other kind exists.
INVALID_PAIRING_CODE_TEXT = say(
    "pair.wrong_code",
    "That code isn't valid here. It may have expired, or it was used already. A code from /link is sent from the other"
    " account, with `/link ABCD-EFGH`.",
)
INVALID_LINK_CODE_TEXT = say(
    "link.wrong_code",
    "That code isn't valid here. It may have expired, or it was used already. A code that an account without access got"
    " is used by an owner, with `/pair ABCD-EFGH`.",
)
ME_WITH_PAST_TEXT = say(
    "pair.me_with_past",
    "This account belongs to a person with a past of their own, so both sides have to confirm. Use /link, and send the"
    " code from that account.",
)
CHANNEL_IS_GUEST_TEXT = say(
    "pair.channel_is_guest",
    "A channel can only be a guest, because everyone who can post there writes as the channel. Approve it as a guest.",
)
DENIED_TEXT = say("pair.denied", "The owner of this gateway has denied your request for access.")
_NOT_FOUND_TEXT = say("pair.not_found", "Request not found. It may have expired, or it was answered already.")


def answer_stranger(tx: Transaction, source: SessionSource, now: datetime) -> str | None:
    """Store a stranger's request for access, if it is new, and return the reply; None for no reply."""
    account = people.find_account(source)
    if not (source.chat_type is ChatType.DM or source.is_written_by_chat) or account is None or not source.chat_id:
        return None  # replying to every stranger in a group would be spam
    micros = to_micros(now)
    pairing_requests.delete_expired(tx, micros)
    request = pairing_requests.find_by_account(tx, *account, micros)
    if request is not None and request.is_denied:
        return None
    limits = {f"stranger {':'.join(account)}": REPLIES_PER_STRANGER}
    if sign_in_attempts.count_attempt(tx, limits, micros):
        return None  # also ends an exchange with another program that answers everything
    if request is not None and now - request.created_at < NEW_CODE_INTERVAL:
        wait = request.created_at + NEW_CODE_INTERVAL - now
        return say(
            "pair.code_sent",
            "I've already sent you a code. Give it to the owner of this gateway. If you have lost it, write again in"
            " {minutes} min, and you get a new one.",
            minutes=int(wait.total_seconds() // 60) + 1,
        )
    if request is None and pairing_requests.count_pending(tx) >= MAX_PENDING_REQUESTS:
        return TOO_MANY_TEXT
    code = generate_code()
    pairing_requests.save(tx, source, hash_secret(code), micros, to_micros(now + PAIRING_CODE_LIFETIME))
    return _offer_code(source, code)


def _offer_code(source: SessionSource, code: str) -> str:
    if source.is_written_by_chat:
        return say(
            "pair.channel_code",
            "To open this channel, an owner of this gateway sends me `/pair {code} guest` in a direct message, or"
            " approves it on the page, within one hour. Then I answer posts here that mention me.",
            code=code,
        )
    return say(
        "pair.new_code",
        "I don't know you yet. To get access, give this code to the owner of this gateway: **{code}**\n\nIt is valid"
        " for one hour. Then send your message again: what you write before is not saved. If you already talk to me"
        " elsewhere, use /link there, and send the code here.",
        code=code,
    )


def receive_stranger(
    tx: Transaction,
    inbound: Inbound,
    call: CommandCall | MessageCall | None,
    config: GatewayConfig,
    now: datetime,
) -> Receipt:
    """Answer a message of a person without access. Programs and groups get no reply."""
    source = inbound.source
    is_channel_asking = source.is_written_by_chat and isinstance(call, CommandCall) and call.command == "pair"
    if inbound.is_from_bot or (source.chat_type is not ChatType.DM and not is_channel_asking):
        return Receipt(outcome=Outcome.REJECTED)
    if isinstance(call, CommandCall) and call.command == "link" and "code" in call.arguments:
        result = use_code(tx, str(call.arguments["code"]), source, None, config, now)
        has_effect = result.person is not None or result.pending is not None
        return Receipt(outcome=Outcome.COMMAND if has_effect else Outcome.REJECTED, reply=result.text)
    return Receipt(outcome=Outcome.REJECTED, reply=answer_stranger(tx, source, now), facts={SECRET_FACT: True})


def use_code(
    tx: Transaction,
    text: str,
    source: SessionSource,
    person: Person | None,
    config: GatewayConfig,
    now: datetime,
    *,
    asked: str | None = None,
) -> link_requests.LinkResult:
    """Use what a person sends with /link: the code of their other account, or `confirm` or `cancel`.

    `person` is None for a stranger. A wrong code is no error, so that the attempt stays counted.
    """
    seconds = count_code_attempt(tx, source, now, is_stranger=person is None)
    if seconds:
        return link_requests.LinkResult(describe_wait(seconds), problem="too_many", retry_after=seconds)
    verb = text.strip().lower()
    if verb in {link_requests.CONFIRM, link_requests.CANCEL}:
        return link_requests.answer(tx, verb, source, person, config, now, asked=asked)
    code = parse_code(text)
    found = None if code is None else pairing_requests.find_link_code(tx, hash_secret(code), to_micros(now))
    result = None if found is None else link_requests.claim_code(tx, found, source, now)
    return link_requests.LinkResult(INVALID_LINK_CODE_TEXT, problem="wrong_code") if result is None else result


def describe_wait(seconds: int) -> Text:
    return say("pair.wait", "Too many attempts. Try again in {seconds} seconds.", seconds=str(seconds))


def count_code_attempt(tx: Transaction, source: SessionSource, now: datetime, *, is_stranger: bool) -> int:
    """Count an attempt to use a code; return 0 or, if there were too many, the seconds to wait."""
    limits = {f"code {':'.join(people.find_account(source) or ())}": CODE_ATTEMPTS_PER_ACCOUNT}
    if is_stranger:
        limits["codes of strangers"] = CODE_ATTEMPTS_OF_STRANGERS
    wait = sign_in_attempts.count_attempt(tx, limits, to_micros(now))
    return int(wait) + 1 if wait else 0


def find_request_by_code(tx: Transaction, text: str, now: datetime) -> PairingRequest | None:
    code = parse_code(text)
    return None if code is None else pairing_requests.find_pending(tx, to_micros(now), digest=hash_secret(code))


def get_request(tx: Transaction, request_id: str, now: datetime) -> PairingRequest:
    request = find_request_by_code(tx, request_id, now)
    if request is None and is_storable(request_id):
        request = pairing_requests.find_pending(tx, to_micros(now), request_id=request_id)
    if request is None:
        raise NotFound(_NOT_FOUND_TEXT)
    return request


def approve_request(
    tx: Transaction, request: PairingRequest, grant: Grant, approver: Person, config: GatewayConfig, now: datetime
) -> Person:
    """Give a stranger the access that `grant` says, and tell them; returns the person who has it."""
    if request.is_channel and grant is not Grant.GUEST:
        raise NotAllowed(CHANNEL_IS_GUEST_TEXT)
    micros = to_micros(now)
    source = sender_merge.merge_source(tx, request.source, config, now)  # who it is may be known by now
    if not pairing_requests.delete(tx, request):
        raise NotFound(_NOT_FOUND_TEXT)
    if grant is Grant.ME:
        own_row = people.find_by_id(tx, approver.id)
        assert own_row is not None  # noqa: S101  (the caller has just been identified)
        if people.find_by_source(tx, source) is not None:
            raise NotAllowed(ME_WITH_PAST_TEXT)
        person = linking.link_account(tx, source, own_row, config, now)
        text = say(
            "pair.linked",
            "This account is now linked to **{name}**. Send your message again.",
            name=escape_markdown(person.name),
        )
    else:
        row = people.find_or_add_by_source(tx, source, micros)
        assert row is not None  # noqa: S101  (a request has an account)
        person = row.person
        if grant is Grant.MEMBER and person.role is Role.GUEST:
            people.set_role(tx, person.id, Role.MEMBER)
        if grant is Grant.GUEST and person.role is Role.GUEST:
            chat_access.grant(tx, source, person.id, approver.id, micros)
        person = people.get_person(tx, person.id)
        if request.is_channel:
            text = say(
                "pair.channel_opened",
                "Everyone who can post in this channel can talk to me here now. Mention me in a post.",
            )
        else:
            people.remember_dm_source(tx, source, row.dm_source)
            text = say(
                "pair.approved",
                "You now have access as {role}. Send your message again. Use /help for commands.",
                role=linking.describe_role(person.role),
            )
    send_notice(tx, source, text, micros)
    return person


def deny_request(tx: Transaction, request: PairingRequest, now: datetime) -> None:
    pairing_requests.deny(tx, request, to_micros(now))
    send_notice(tx, request.source, DENIED_TEXT, to_micros(now))

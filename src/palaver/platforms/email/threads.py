"""Finds the conversation of a mail, and makes the ids of our own mails. Pure.

A conversation is a thread among the same people. The chat is their addresses, and the thread is a short name for its
first mail. Each of our mails carries that name in its Message-ID, so a reply to it finds its thread, even if the mail
program of a person keeps nothing but the id of the mail that it replies to.

    Message-ID of ours:  <palaver.{key of the message}.{thread}@{our domain}>

Always true: the same message has the same Message-ID in every attempt, and nothing but its address and key decides it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.platforms.common.receiving import RecentEntries
from palaver.platforms.email.headers import find_ids, find_message_id, get_domain, normalize_address
from palaver.sessions.delivery import parse_part_key

if TYPE_CHECKING:
    from palaver.platforms.email.headers import MailHeader
    from palaver.sessions.delivery import Address

MAX_CHAT_PEOPLE = 20  # that a mail of ours is sent to
ADDRESS_SEPARATOR = ","

_OWN_ID = re.compile(r"palaver\.([A-Za-z0-9_.-]{1,60})\.([0-9a-f]{16})@(.{1,200})")
_SAFE_KEY = re.compile(r"[A-Za-z0-9_.-]{1,60}")

MAX_ENTRIES = 2000


@dataclass(frozen=True, slots=True)
class OwnId:
    """What the Message-ID of a mail of ours says."""

    key: str
    thread_id: str


def shorten_id(message_id: str) -> str:
    """Return the short name of the thread that begins with a mail."""
    return hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()[:16]


def make_own_id(key: str, address: Address, own_address: str) -> str:
    """Return the Message-ID of a message of ours, without angle brackets."""
    safe_key = key if _SAFE_KEY.fullmatch(key) else shorten_id(key)
    return f"palaver.{safe_key}.{find_thread_of(key, address)}@{get_domain(own_address)}"


def find_thread_of(key: str, address: Address) -> str:
    """Return the thread that a message of ours belongs to; it begins one if its address names none.

    All parts of one delivery belong to the same thread.
    """
    if address.thread_id is not None:
        return address.thread_id if re.fullmatch(r"[0-9a-f]{16}", address.thread_id) else shorten_id(address.thread_id)
    part = parse_part_key(key)
    return shorten_id(part[0] if part else key)


def make_first_part_id(key: str, address: Address, own_address: str) -> str | None:
    """Return the Message-ID of the first part of the same delivery; None if this is the first."""
    part = parse_part_key(key)
    if part is None or part[1] <= 1:
        return None
    return make_own_id(f"{part[0]}.1", address, own_address)


def parse_own_id(message_id: str, own_address: str) -> OwnId | None:
    """Return what a Message-ID of ours says; None if it is not one of ours."""
    match = _OWN_ID.fullmatch(message_id)
    return OwnId(match[1], match[2]) if match and match[3] == get_domain(own_address) else None


def list_references(header: MailHeader) -> list[str]:
    """Return the ids of the mails before this one in its thread, oldest first, without doubles."""
    return list(dict.fromkeys([*find_ids(header.get("references")), *find_ids(header.get("in-reply-to"))]))


def find_thread(header: MailHeader, message_id: str, own_address: str) -> str:
    """Return the thread of a mail that was received."""
    references = list_references(header)
    for reference in reversed(references):
        if (own := parse_own_id(reference, own_address)) is not None:
            return own.thread_id
    return shorten_id(references[0] if references else message_id)


def get_mail_id(header: MailHeader, raw_header: bytes) -> str:
    """Return the id of a mail; one without a valid Message-ID gets one from its header, the same each time."""
    return find_message_id(header) or f"{hashlib.sha256(raw_header).hexdigest()[:32]}@no-message-id.invalid"


def join_addresses(addresses: frozenset[str]) -> str:
    """Return the chat of these people."""
    return ADDRESS_SEPARATOR.join(sorted(addresses))


def split_addresses(chat_id: str) -> list[str] | None:
    """Return the addresses of the people in a chat; None if they are not addresses, or too many."""
    addresses = [normalize_address(each.strip()) for each in chat_id.split(ADDRESS_SEPARATOR)]
    if not 1 <= len(addresses) <= MAX_CHAT_PEOPLE or None in addresses:
        return None
    return [address for address in dict.fromkeys(addresses) if address]


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What an answer needs of the last mail in a thread."""

    message_id: str  # of that mail
    subject: str
    references: tuple[str, ...] = ()  # the mails before it


class ThreadCache:
    """The last mail of each thread, and mails by their ids."""

    def __init__(self) -> None:
        self._states: RecentEntries[tuple[str, ...], ThreadState] = RecentEntries(MAX_ENTRIES)

    def remember(self, chat_id: str, thread_id: str, state: ThreadState) -> None:
        for key in ((chat_id, thread_id), (chat_id, "", state.message_id)):
            self._states.remember(key, state)

    def find(self, chat_id: str, thread_id: str, message_id: str | None = None) -> ThreadState | None:
        """Return a mail of a chat or, without an id, the last one of its thread."""
        return self._states.get((chat_id, "", message_id) if message_id else (chat_id, thread_id))

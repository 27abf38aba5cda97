"""Lists the people whom this gateway knows, with their platforms and how they sign in.

A removed person is unknown again: one who has an account on a chat platform stays listed as a guest, one who only used
the web is not listed any more. Their messages stay where they were written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput
from palaver.core.page import Page
from palaver.core.source import PLATFORMS_WITHOUT_DELIVERY, Platform
from palaver.core.timestamps import from_micros_or_none
from palaver.people.account import ChatAccount, Member, SignInMethods
from palaver.people.table import PERSON_COLUMN_COUNT, PERSON_COLUMNS, list_identities, person_from_row

if TYPE_CHECKING:
    from palaver.core.engines.base import Row, Transaction
    from palaver.people.model import Role

MAX_PAGE_SIZE = 500
_CURSOR = re.compile(r"([0-9]{1,18})\.(p_[0-9a-f]{1,32})")
_SIGN_IN_PLATFORMS = f"'{Platform.WEB}', '{Platform.API}'"  # identities that come with an account
_SELECT = f"""SELECT {PERSON_COLUMNS}, a.person_id, a.password_hash,
    (SELECT COUNT(*) FROM passkey k WHERE k.person_id = p.id),
    (SELECT MAX(s.last_seen_at) FROM sign_in s WHERE s.person_id = p.id)
    FROM person p LEFT JOIN account a ON a.person_id = p.id"""
_IS_KNOWN = f"""(a.person_id IS NOT NULL OR EXISTS
    (SELECT 1 FROM identity i WHERE i.person_id = p.id AND i.platform NOT IN ({_SIGN_IN_PLATFORMS})))"""


def list_people(tx: Transaction, role: Role | None, limit: int, cursor: str | None) -> Page[Member]:
    """Return a page of people, the newest first; with a role, only those who have it."""
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise InvalidInput(f"limit: {limit} is not allowed (1 to {MAX_PAGE_SIZE})")
    created_at, person_id = _parse_cursor(cursor)
    rows = tx.fetch_all(
        f"{_SELECT} WHERE {_IS_KNOWN} AND (p.created_at, p.id) < ($1, $2) AND ($3 = '' OR p.role = $3)"
        " ORDER BY p.created_at DESC, p.id DESC LIMIT $4",
        created_at,
        person_id,
        role.value if role else "",
        limit,
    )
    next_cursor = f"{rows[-1][3]}.{rows[-1][0]}" if len(rows) == limit else None
    return Page([_make_member(tx, row) for row in rows], next_cursor)


def find_person(tx: Transaction, person_id: str) -> Member | None:
    row = tx.fetch_one(f"{_SELECT} WHERE {_IS_KNOWN} AND p.id = $1", person_id)
    return _make_member(tx, row) if row else None


def _parse_cursor(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 2**62, ""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")
    return int(match[1]), match[2]


def _make_member(tx: Transaction, row: Row) -> Member:
    person = person_from_row(row)
    account, password_hash, passkey_count, last_seen_at = row[PERSON_COLUMN_COUNT:]
    identities = list_identities(tx, person.id)
    platforms = tuple(dict.fromkeys(identity.platform for identity in identities))
    methods = SignInMethods(has_password=password_hash is not None, passkey_count=passkey_count) if account else None
    return Member(
        person=person,
        platforms=platforms,
        chat_accounts=tuple(
            ChatAccount(identity.platform, identity.account)
            for identity in identities
            if identity.platform not in PLATFORMS_WITHOUT_DELIVERY
        ),
        sign_in_methods=methods,
        last_seen_at=from_micros_or_none(last_seen_at),
        uses_terminal=Platform.LOCAL in platforms,
    )

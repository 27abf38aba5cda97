"""The directory: everybody this gateway knows, with where they are known and how they sign in.

Somebody who was removed is a stranger again: one who is known from a chat platform stays here as a guest, one who came
by the web alone is not listed any more. What they said stays where it was said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from palaver.domain.account import Member, Ways
from palaver.domain.errors import InvalidInput
from palaver.domain.session import Page
from palaver.domain.source import Platform
from palaver.storage.people import PERSON, person_from_row, platforms_of
from palaver.storage.timestamps import from_micros_or_none

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.domain.person import Role
    from palaver.storage.engines.base import Row, Transaction

LONGEST_PAGE = 500
_CURSOR = re.compile(r"([0-9]{1,18})\.(p_[0-9a-f]{1,32})")
_OURS = f"'{Platform.WEB}', '{Platform.API}'"  # where people are known because they can sign in
_SELECT = f"""SELECT {PERSON}, a.person_id, a.password,
    (SELECT COUNT(*) FROM passkey k WHERE k.person_id = p.id),
    (SELECT MAX(s.seen_at) FROM sign_in s WHERE s.person_id = p.id)
    FROM person p LEFT JOIN account a ON a.person_id = p.id"""
_KNOWN = f"""(a.person_id IS NOT NULL OR EXISTS
    (SELECT 1 FROM identity i WHERE i.person_id = p.id AND i.platform NOT IN ({_OURS})))"""


def listed(tx: Transaction, role: Role | None, limit: int, cursor: str | None) -> Page[Member]:
    """A page of people, those who came last first; with a role, those who have it."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput(f"limit: {limit} is not allowed (1 to {LONGEST_PAGE})")
    at, identity = _place(cursor)
    rows = tx.all(
        f"{_SELECT} WHERE {_KNOWN} AND (p.created_at, p.id) < ($1, $2) AND ($3 = '' OR p.role = $3)"
        " ORDER BY p.created_at DESC, p.id DESC LIMIT $4",
        at,
        identity,
        role.value if role else "",
        limit,
    )
    return Page([_member(tx, row) for row in rows], f"{rows[-1][3]}.{rows[-1][0]}" if len(rows) == limit else None)


def get(tx: Transaction, person_id: str) -> Member | None:
    """Somebody who is known here."""
    row = tx.one(f"{_SELECT} WHERE {_KNOWN} AND p.id = $1", person_id)
    return _member(tx, row) if row else None


def set_role(tx: Transaction, person_id: PersonId, role: Role) -> None:
    """Make somebody something else to this gateway."""
    tx.run("UPDATE person SET role = $2 WHERE id = $1", person_id, role.value)


def _place(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 2**62, ""
    given = _CURSOR.fullmatch(cursor)
    if given is None:
        raise InvalidInput("cursor: this is not a cursor that a list has given")
    return int(given[1]), given[2]


def _member(tx: Transaction, row: Row) -> Member:
    person = person_from_row(row)
    account, password, keys, seen_at = row[4:]
    platforms = platforms_of(tx, person.id)
    return Member(
        person=person,
        platforms=platforms,
        ways=Ways(password=password is not None, passkeys=keys) if account else None,
        seen_at=from_micros_or_none(seen_at),
        at_terminal=Platform.LOCAL in platforms,
    )

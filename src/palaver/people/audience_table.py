"""The people in audiences: who takes part in the conversations that a person sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.ids import PersonId
from palaver.core.statements import build_placeholders
from palaver.people.account import normalize_name
from palaver.people.model import Author, NamedPerson

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.core.engines.base import Row, Transaction

MAX_NAMES_COMPARED: Final = 5000
_AUDIENCES_PER_STATEMENT: Final = 100


def list_members(tx: Transaction, audiences: Sequence[int] | None, limit: int) -> list[NamedPerson]:
    """List the members of audiences (None: everybody), by name; at most `limit`."""
    found = _load_members(tx, audiences, MAX_NAMES_COMPARED)
    return sorted(found, key=lambda person: (normalize_name(person.name), person.id))[:limit]


def find_members(tx: Transaction, audiences: Sequence[int] | None, text: str) -> list[NamedPerson]:
    """Return the members of audiences (None: everybody) who have an id or a name; several can have one name."""
    by_id = _load_members(tx, audiences, 1, text)
    if by_id:
        return by_id
    name = normalize_name(text)
    return [each for each in _load_members(tx, audiences, MAX_NAMES_COMPARED) if normalize_name(each.name) == name]


def list_authors(tx: Transaction, person_ids: Sequence[PersonId]) -> list[Author]:
    """Return these people and those who were linked to them: old messages still name them."""
    some = build_placeholders(len(person_ids))
    rows = [
        row
        for column in ("id", "merged_into")
        for row in tx.fetch_all(f"SELECT id, audience_no FROM person WHERE {column} IN ({some})", *person_ids)
    ]
    return [Author(person_id, audience_no) for person_id, audience_no in rows]


def _load_members(
    tx: Transaction, audiences: Sequence[int] | None, limit: int, person_id: str | None = None
) -> list[NamedPerson]:
    found: dict[str, NamedPerson] = {}
    for row in _iterate_rows(tx, audiences, limit, person_id or ""):
        found[row[0]] = NamedPerson(PersonId(row[0]), row[1])
        if len(found) == limit:
            break
    return list(found.values())


def _iterate_rows(tx: Transaction, audiences: Sequence[int] | None, limit: int, person_id: str) -> Iterator[Row]:
    if audiences is None:
        yield from tx.fetch_all(
            "SELECT p.id, p.name FROM person p WHERE p.merged_into IS NULL AND ($1 = '' OR p.id = $1) LIMIT $2",
            person_id,
            limit,
        )
        return
    for start in range(0, len(audiences), _AUDIENCES_PER_STATEMENT):
        some = audiences[start : start + _AUDIENCES_PER_STATEMENT]
        yield from tx.fetch_all(
            "SELECT DISTINCT p.id, p.name FROM audience_member m JOIN person p ON p.id = m.person_id"
            f" WHERE m.audience_no IN ({build_placeholders(len(some), first=3)}) AND ($1 = '' OR p.id = $1) LIMIT $2",
            person_id,
            limit,
            *some,
        )

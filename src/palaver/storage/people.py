"""People, their accounts, and audiences: who may see what.

Every session belongs to one audience. A person's own sessions go to their own audience; a lane that several
people share has an audience that grows as they speak. A person sees exactly the sessions of the audiences
they are a member of, so a list costs the same however many sessions there are, and linking two accounts of
one person moves a few member rows and no session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.ids import PersonId, new_person_id
from palaver.domain.keys import canonical
from palaver.domain.person import Person, Role
from palaver.domain.source import ChatType, Platform
from palaver.domain.text import storable
from palaver.storage.engines.base import Conflict
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from palaver.domain.source import SessionSource
    from palaver.storage.engines.base import Row, Transaction


@dataclass(frozen=True, slots=True)
class Resident:
    """A person and where their own sessions go."""

    person: Person
    audience_no: int


PERSON = "p.id, p.name, p.role, p.created_at"  # the columns of a person
_RESIDENT = f"SELECT {PERSON}, p.audience_no FROM person p"


def account_of(source: SessionSource) -> tuple[str, str] | None:
    """The platform account that speaks, or None where nobody can be told apart. The terminal is the owner's."""
    if source.platform == Platform.LOCAL:
        return (Platform.LOCAL, "owner")
    known = canonical(source)
    account = known.participant or (known.chat_id if source.chat_type is ChatType.DM else None)
    return (source.platform, account) if account else None


def find(tx: Transaction, source: SessionSource) -> Resident | None:
    """The person who speaks, when they are known already."""
    account = account_of(source)
    if account is None:
        return None
    row = tx.one(
        f"{_RESIDENT} JOIN identity i ON i.person_id = p.id WHERE i.platform = $1 AND i.account = $2", *account
    )
    return _resident(row) if row else None


def find_or_add(tx: Transaction, source: SessionSource, now: int) -> Resident | None:
    """The person who speaks; a stranger becomes a guest. None where nobody can be told apart."""
    account = account_of(source)
    if account is None:
        return None
    known = find(tx, source)
    if known is not None:
        return known
    if source.platform == Platform.LOCAL:
        resident = add(tx, "owner", Role.OWNER, now)
    else:
        resident = add(tx, storable(source.user_name or source.chat_name or ""), Role.GUEST, now)
    added = tx.run(
        "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT DO NOTHING",
        *account,
        resident.person.id,
        now,
    )
    if not added:  # another process was quicker
        raise Conflict
    return resident


def add(tx: Transaction, name: str, role: Role, now: int) -> Resident:
    """A new person with an audience of their own."""
    audience_no = new_audience(tx, now)
    person = Person(id=new_person_id(), name=name, role=role, created_at=from_micros(now))
    tx.run(
        "INSERT INTO person (id, name, role, audience_no, created_at) VALUES ($1, $2, $3, $4, $5)",
        person.id,
        name,
        role.value,
        audience_no,
        now,
    )
    join(tx, audience_no, person.id, now)
    return Resident(person, audience_no)


def get(tx: Transaction, person_id: PersonId) -> Resident | None:
    """A person by id."""
    row = tx.one(f"{_RESIDENT} WHERE p.id = $1", person_id)
    return _resident(row) if row else None


def new_audience(tx: Transaction, now: int) -> int:
    """An audience without members yet."""
    row = tx.one("INSERT INTO audience (created_at) VALUES ($1) RETURNING no", now)
    assert row is not None  # noqa: S101
    return int(row[0])


def join(tx: Transaction, audience_no: int, person_id: PersonId, now: int) -> None:
    """Let a person see the sessions of an audience."""
    tx.run(
        "INSERT INTO audience_member (person_id, audience_no, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        person_id,
        audience_no,
        now,
    )


def audiences_of(tx: Transaction, person_id: PersonId) -> list[int]:
    """Every audience this person is a member of."""
    return [
        no for (no,) in tx.all("SELECT audience_no FROM audience_member WHERE person_id = $1 ORDER BY 1", person_id)
    ]


def platforms_of(tx: Transaction, person_id: PersonId) -> tuple[Platform, ...]:
    """The platforms on which this person is known, by name."""
    rows = tx.all("SELECT DISTINCT platform FROM identity WHERE person_id = $1 ORDER BY platform", person_id)
    return tuple(Platform(name) for (name,) in rows)


def titles_among(tx: Transaction, audience_no: int, *, shared: bool) -> list[int]:
    """The audiences within which a title is unique: all of its owner's, or those who share the session."""
    if shared:
        return [audience_no]
    rows = tx.all(
        "SELECT DISTINCT theirs.audience_no FROM audience_member m JOIN audience_member theirs"
        " ON theirs.person_id = m.person_id WHERE m.audience_no = $1",
        audience_no,
    )
    return sorted({audience_no, *(no for (no,) in rows)})


def person_from_row(row: Row) -> Person:
    """A person, from a row that begins with their columns."""
    identity, name, role, created_at = row[:4]
    return Person(id=PersonId(identity), name=name, role=Role(role), created_at=from_micros(created_at))


def _resident(row: Row) -> Resident:
    return Resident(person_from_row(row), row[4])

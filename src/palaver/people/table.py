"""People, their platform accounts, and audiences: which person may see which session.

Every session belongs to one audience. A person's own sessions belong to their own audience; a lane that several people
share has an audience that grows as they write. A person sees exactly the sessions of the audiences they are a member
of. So a list costs the same however many sessions there are, and linking two accounts of one person moves a few member
rows and no session (`accounts/merge_table.py`). The row of a person who was merged into another only keeps a name and
an audience.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros, from_micros_or_none, to_micros
from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Conflict, Row, Transaction, build_placeholders, fetch_number, fetch_value
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.ids import PersonId, new_person_id
from palaver.core.operation import Page
from palaver.core.source import (
    PLATFORMS_WITHOUT_DELIVERY,
    ChatType,
    Platform,
    SessionSource,
    decode_source,
    encode_source,
)
from palaver.core.text import make_storable
from palaver.people import access_table as sender_ids, linked_rows
from palaver.people.model import Identity, Member, Person, Role, SignInMethods
from palaver.people.person_data import (
    EraseAt,
    ErasureStep,
    ExportedTable,
    FieldKind,
    Moved,
    PersonColumn,
    Stays,
    make_fields,
)
from palaver.people.sender_ids import fold_id_aliases

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person, and the audience that their own new sessions belong to."""

    person: Person
    audience_no: int
    dm_source: str | None = None  # JSON: where the account that was looked up last wrote a direct message from


_PERSON: Final = Columns(Person)
_IDENTITY: Final = Columns(Identity, types=[SessionSource])
PERSON_COLUMNS: Final = _PERSON.format_select("p")
_SELECT = f"SELECT {PERSON_COLUMNS}, p.audience_no, NULL FROM person p"
_SELECT_BY_ACCOUNT = f"""SELECT {PERSON_COLUMNS}, p.audience_no, i.dm_source FROM person p
    JOIN identity i ON i.person_id = p.id WHERE i.platform = $1 AND i.account = $2"""
# The name of the person whose own audience it is, to be used with an alias `s` that has an audience_no.
AUDIENCE_OWNER_NAME = """(SELECT COALESCE(now.name, p.name) FROM person p LEFT JOIN person now ON now.id = p.merged_into
    WHERE p.audience_no = s.audience_no LIMIT 1)"""


def find_account(source: SessionSource) -> tuple[str, str] | None:
    """Return (platform, account) of the person who writes, or None if the source does not say who it is.

    The terminal always belongs to the owner.
    """
    if source.platform == Platform.LOCAL:
        return (Platform.LOCAL, "owner")
    folded = fold_id_aliases(source)
    account = folded.participant or (folded.chat_id if source.chat_type is ChatType.DM else None)
    return (source.platform, account) if account else None


def find_by_source(tx: Transaction, source: SessionSource) -> PersonRow | None:
    """Find the person who writes; None if they are unknown, or the source does not say who it is."""
    account = find_account(source)
    return None if account is None else find_by_account(tx, *account)


def find_by_account(tx: Transaction, platform: str, account: str) -> PersonRow | None:
    row = tx.fetch_one(_SELECT_BY_ACCOUNT, platform, account)
    return _make_person_row(row) if row else None


def find_or_add_by_source(tx: Transaction, source: SessionSource, now: int) -> PersonRow | None:
    """Find the person who writes, and add an unknown one as a guest; None if the source does not say who it is."""
    account = find_account(source)
    if account is None:
        return None
    existing = find_by_source(tx, source)
    if existing is not None:
        return existing
    person_row = add_person(tx, *choose_name_and_role(source), now)
    add_identity(tx, account, person_row.person.id, now)
    sender_ids.save(tx, source, account[1], now)
    return person_row


def choose_name_and_role(source: SessionSource) -> tuple[str, Role]:
    """Return what an unknown person who writes is added as."""
    if source.platform == Platform.LOCAL:
        return "owner", Role.OWNER
    return make_storable(source.sender_name), Role.GUEST


def add_identity(tx: Transaction, account: tuple[str, str], person_id: PersonId, now: int) -> None:
    """Let an account, (platform, account), belong to a person; raises Conflict if it already belongs to one."""
    sql = (
        "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
    )
    added = tx.execute(sql, *account, person_id, now)
    if not added:  # another process was faster
        raise Conflict


def remember_dm_source(tx: Transaction, source: SessionSource, known: str | None) -> None:
    """Store where a person writes a direct message from, unless it is `known` already."""
    encoded = encode_source(source)
    account = find_account(source)
    if encoded != known and account is not None:
        tx.execute("UPDATE identity SET dm_source = $3 WHERE platform = $1 AND account = $2", *account, encoded)


def change_account(tx: Transaction, platform: str, old_id: str, new_id: str) -> None:
    """Store a person's account under another id, which no person has."""
    sql = "SELECT dm_source FROM identity WHERE platform = $1 AND account = $2"
    dm_source: str | None = fetch_value(tx, sql, platform, old_id)
    if dm_source is not None:
        dm_source = encode_source(replace_user(decode_source(dm_source), old_id, new_id))
    sql = "UPDATE identity SET account = $3, dm_source = $4 WHERE platform = $1 AND account = $2"
    tx.execute(sql, platform, old_id, new_id, dm_source)
    linked_rows.rename_account(tx, platform, old_id, new_id)


def replace_user(source: SessionSource, old_id: str, new_id: str) -> SessionSource:
    """Return a source with another id of its user, also as the chat of their direct messages."""
    chat_id = new_id if source.chat_type is ChatType.DM and source.chat_id == old_id else source.chat_id
    user_id = new_id if old_id in {source.user_id, source.user_id_alt} else source.user_id
    return replace(source, chat_id=chat_id, user_id=user_id, user_id_alt=None)


def list_identities(tx: Transaction, person_id: PersonId) -> list[Identity]:
    sql = f"SELECT {_IDENTITY.format_select()} FROM identity WHERE person_id = $1 ORDER BY platform, account"
    return [_IDENTITY.decode(row) for row in tx.fetch_all(sql, person_id)]


def list_chat_accounts(tx: Transaction, person_id: PersonId) -> list[Identity]:
    """List the accounts of a person that can be linked and unlinked: all but those they sign in with."""
    return [each for each in list_identities(tx, person_id) if each.platform not in PLATFORMS_WITHOUT_DELIVERY]


def remove_identity(tx: Transaction, person_id: PersonId, identity: Identity) -> bool:
    """Take an account away from a person; False if it is not theirs."""
    linked_rows.remove_account(tx, str(identity.platform), identity.account)
    sql = "DELETE FROM identity WHERE platform = $1 AND account = $2 AND person_id = $3"
    return bool(tx.execute(sql, str(identity.platform), identity.account, person_id))


def add_person(tx: Transaction, name: str, role: Role, now: int) -> PersonRow:
    """Add a person with an audience of their own."""
    audience_no = create_audience(tx, now)
    person = Person(id=new_person_id(), name=name, role=role, created_at=from_micros(now))
    sql = "INSERT INTO person (id, name, role, audience_no, created_at) VALUES ($1, $2, $3, $4, $5)"
    tx.execute(sql, person.id, name, role.value, audience_no, now)
    join_audience(tx, audience_no, person.id, now)
    return PersonRow(person, audience_no)


def find_by_id(tx: Transaction, person_id: PersonId) -> PersonRow | None:
    row = tx.fetch_one(f"{_SELECT} WHERE p.id = $1", person_id)
    return _make_person_row(row) if row else None


def get_person(tx: Transaction, person_id: PersonId) -> Person:
    row = find_by_id(tx, person_id)
    if row is None:
        raise NotFound.say("account.closed", "This account is closed.")
    return row.person


def find_survivor(tx: Transaction, person_id: PersonId) -> PersonId | None:
    """Return the person whom this one was linked to; None if they were not."""
    survivor: PersonId | None = fetch_value(tx, "SELECT merged_into FROM person WHERE id = $1", person_id)
    return survivor


def has_other_owner(tx: Transaction, person_id: PersonId) -> bool:
    return tx.fetch_one("SELECT 1 FROM person WHERE role = 'owner' AND id <> $1 LIMIT 1", person_id) is not None


def load_names(tx: Transaction, person_ids: Iterable[PersonId]) -> dict[PersonId, str]:
    """Return the names of these people by id; people who do not exist are left out."""
    ids = sorted(set(person_ids))
    if not ids:
        return {}
    sql = f"""SELECT p.id, COALESCE(now.name, p.name) FROM person p LEFT JOIN person now ON now.id = p.merged_into
        WHERE p.id IN ({build_placeholders(len(ids))})"""
    rows = tx.fetch_all(sql, *ids)
    return {PersonId(person_id): name for person_id, name in rows}


def set_role(tx: Transaction, person_id: PersonId, role: Role) -> None:
    """Give a person a role of their own, and end a link that is not confirmed yet: it named another role."""
    tx.execute("UPDATE person SET role = $2, unlinked_role = NULL WHERE id = $1", person_id, role.value)
    tx.execute("DELETE FROM link_code WHERE person_id = $1 OR claim_person_id = $1", person_id)


def hold(tx: Transaction, person_id: PersonId) -> bool:
    """Keep a person from being erased until this transaction ends; False if there is no such person."""
    return tx.fetch_one(f"SELECT 1 FROM person WHERE id = $1 {tx.for_key_share}", person_id) is not None


def set_timezone(tx: Transaction, person_id: PersonId, timezone: str | None) -> None:
    tx.execute("UPDATE person SET timezone = $2 WHERE id = $1", person_id, timezone)


def create_audience(tx: Transaction, now: int) -> int:
    return fetch_number(tx, "INSERT INTO audience (created_at) VALUES ($1) RETURNING no", now)


def join_audience(tx: Transaction, audience_no: int, person_id: PersonId, now: int) -> None:
    """Let a person see the sessions of an audience."""
    sql = "INSERT INTO audience_member (person_id, audience_no, joined_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
    tx.execute(sql, person_id, audience_no, now)


def list_audiences(tx: Transaction, person_id: PersonId) -> list[int]:
    rows = tx.fetch_all("SELECT audience_no FROM audience_member WHERE person_id = $1 ORDER BY 1", person_id)
    return [no for (no,) in rows]


def list_platforms(tx: Transaction, person_id: PersonId) -> tuple[Platform, ...]:
    return tuple(dict.fromkeys(identity.platform for identity in list_identities(tx, person_id)))


def list_title_audiences(tx: Transaction, audience_no: int, *, shared: bool) -> list[int]:
    """List the audiences within which a title is unique: all of the owner's, or only the one of a shared session."""
    if shared:
        return [audience_no]
    sql = """SELECT DISTINCT theirs.audience_no FROM audience_member m JOIN audience_member theirs
        ON theirs.person_id = m.person_id WHERE m.audience_no = $1"""
    rows = tx.fetch_all(sql, audience_no)
    return sorted({audience_no, *(no for (no,) in rows)})


def read_person(row: Row) -> tuple[Person, Row]:
    """Read a person from a row that begins with `PERSON_COLUMNS`; also return the columns that follow."""
    return _PERSON.decode(row), tuple(row[len(_PERSON) :])


def _make_person_row(row: Row) -> PersonRow:
    return PersonRow(_PERSON.decode(row), *row[len(_PERSON) :])


# ---- the list of people ------------------------------------------------------------------------------------

# A removed person is unknown again: one who has an account on a chat platform stays listed as a guest, one who only
# used the web is not listed any more. Their messages stay where they were written.
MAX_PAGE_SIZE = 500
_CURSOR = re.compile(r"([0-9]{1,18})\.(p_[0-9a-f]{1,32})")
_SIGN_IN_PLATFORMS = f"'{Platform.WEB}', '{Platform.API}'"  # identities that come with an account
_SELECT_MEMBER = f"""SELECT {PERSON_COLUMNS}, a.person_id, a.password_hash,
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
    sql = (
        f"{_SELECT_MEMBER} WHERE {_IS_KNOWN} AND (p.created_at, p.id) < ($1, $2) AND ($3 = '' OR p.role = $3)"
        " ORDER BY p.created_at DESC, p.id DESC LIMIT $4"
    )
    rows = tx.fetch_all(sql, created_at, person_id, role.value if role else "", limit)
    members = [_make_member(tx, row) for row in rows]
    last = members[-1].person if len(rows) == limit else None
    return Page(members, None if last is None else f"{to_micros(last.created_at)}.{last.id}")


def find_person(tx: Transaction, person_id: str) -> Member | None:
    row = tx.fetch_one(f"{_SELECT_MEMBER} WHERE {_IS_KNOWN} AND p.id = $1", person_id)
    return _make_member(tx, row) if row else None


def _parse_cursor(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 2**62, ""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")
    return int(match[1]), match[2]


def _make_member(tx: Transaction, row: Row) -> Member:
    person, (account, password_hash, passkey_count, last_seen_at) = read_person(row)
    identities = list_identities(tx, person.id)
    platforms = tuple(dict.fromkeys(each.platform for each in identities))
    methods = SignInMethods(has_password=password_hash is not None, passkey_count=passkey_count) if account else None
    return Member(
        person=person,
        platforms=platforms,
        chat_accounts=tuple(each for each in identities if each.platform not in PLATFORMS_WITHOUT_DELIVERY),
        sign_in_methods=methods,
        last_seen_at=from_micros_or_none(last_seen_at),
        uses_terminal=Platform.LOCAL in platforms,
    )


PERSON_DATA: Final = (
    PersonColumn("person", "merged_into", merge=Moved(), erase=ErasureStep.PERSON),
    PersonColumn("identity", merge=Moved(linked_rows.IDENTITY_KEY), erase=EraseAt.START, count="accounts"),
    PersonColumn(
        "audience_member",
        merge=Stays("a person can be a member for two reasons: see `move_memberships`"),
        erase=EraseAt.START,
    ),
    PersonColumn("linked_row", merge=Stays("says whom a row came from"), erase=EraseAt.CASCADE),
    PersonColumn("erasure", merge=Stays("an erased person is not linked"), erase=ErasureStep.PERSON),
)
AUDIENCE_FIELDS: Final = make_fields("created_at!", FieldKind.TIME)
MEMBER_EXPORT: Final = ExportedTable(
    table="audience_member",
    fields=make_fields("joined_at!", FieldKind.TIME),
    references={"person": "t.person_id"},
    order=("person_id",),
)
PERSON_EXPORT: Final = ExportedTable(
    table="person",
    fields=(
        *make_fields("id! name!"),
        *make_fields("role!", choices=Role),
        *make_fields("timezone"),
        *make_fields("created_at!", FieldKind.TIME),
    ),
    references={"audience": "t.audience_no", "merged_into": "t.merged_into"},
    order=("id",),
    report_kind="people",
)
IDENTITY_EXPORT: Final = ExportedTable(
    table="identity",
    fields=(
        *make_fields("platform! account!"),
        *make_fields("dm_source", FieldKind.JSON),
        *make_fields("created_at!", FieldKind.TIME),
    ),
    order=("platform", "account"),
)

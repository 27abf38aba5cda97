"""Chats in which people without access of their own may talk to the agent: groups, and direct messages of guests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value
from palaver.core.ids import PersonId
from palaver.people.model import Author, NamedPerson, normalize_name
from palaver.people.person_data import EraseAt, ExportedTable, FieldKind, Moved, PersonColumn, Stays, make_fields
from palaver.people.sender_ids import SenderId, list_sender_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from palaver.core.source import SessionSource


def is_granted(tx: Transaction, source: SessionSource, person_id: PersonId | None) -> bool:
    """Return whether everybody in the chat of this source may talk to the agent, or this guest may."""
    sql = """SELECT 1 FROM chat_access WHERE platform = $1 AND account = $2 AND chat_id = $3
        AND (person_id IS NULL OR person_id = $4)"""
    row = tx.fetch_one(sql, *_get_key(source), person_id or "")
    return row is not None


def grant(tx: Transaction, source: SessionSource, person_id: PersonId | None, granted_by: PersonId, now: int) -> bool:
    """Let one guest, or everybody, talk to the agent in the chat of this source; False if it was so before."""
    if is_granted(tx, source, person_id):
        return False
    sql = (
        "INSERT INTO chat_access (platform, account, chat_id, person_id, granted_by, granted_at)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (platform, account, chat_id) DO UPDATE SET"
        " person_id = excluded.person_id, granted_by = excluded.granted_by, granted_at = excluded.granted_at"
    )
    tx.execute(sql, *_get_key(source), person_id, granted_by, now)
    return True


def revoke(tx: Transaction, source: SessionSource) -> bool:
    """End the access to the chat of this source; False if there was none."""
    return bool(
        tx.execute("DELETE FROM chat_access WHERE platform = $1 AND account = $2 AND chat_id = $3", *_get_key(source))
    )


def revoke_from_person(tx: Transaction, person_id: PersonId) -> None:
    tx.execute("DELETE FROM chat_access WHERE person_id = $1", person_id)


def _get_key(source: SessionSource) -> tuple[str, str, str]:
    return str(source.platform), source.account, source.chat_id


# ---- how often people write ------------------------------------------------------------------------------

# One moment per person, as for sign-in attempts (`sign_in_table.py`). One statement per message, on one row: people
# don't wait for each other, and all processes count together.

MICROS_PER_MINUTE = 60_000_000
# From when the next message counts. A moment too far ahead is from before the clock was set back.
_START = """CASE WHEN message_rate.busy_until > CAST($2 AS BIGINT)
    AND message_rate.busy_until <= CAST($2 AS BIGINT) + CAST($4 AS BIGINT)
    THEN message_rate.busy_until ELSE CAST($2 AS BIGINT) END"""


def count_message(tx: Transaction, person_id: PersonId, per_minute: int, now: int) -> float:
    """Count a message and return 0; if it is too many, count nothing and return the seconds to wait."""
    interval = MICROS_PER_MINUTE // per_minute
    sql = (
        "INSERT INTO message_rate (person_id, busy_until) VALUES ($1, CAST($2 AS BIGINT) + CAST($3 AS BIGINT))"
        f" ON CONFLICT (person_id) DO UPDATE SET busy_until = {_START} + CAST($3 AS BIGINT)"
        f" WHERE {_START} + CAST($3 AS BIGINT) <= CAST($2 AS BIGINT) + CAST($4 AS BIGINT)"
    )
    counted = tx.execute(sql, person_id, now, interval, per_minute * interval)
    return 0.0 if counted else compute_wait(tx, person_id, per_minute, now)


def compute_wait(tx: Transaction, person_id: PersonId, per_minute: int, now: int) -> float:
    """Return in how many seconds a person may send the next message; 0 if they may now."""
    interval = MICROS_PER_MINUTE // per_minute
    busy_until = int(fetch_value(tx, "SELECT busy_until FROM message_rate WHERE person_id = $1", person_id) or 0)
    if busy_until > now + per_minute * interval:
        return 0.0
    return max(0, busy_until + interval - now - per_minute * interval) / 1_000_000


# ---- who takes part in conversations ---------------------------------------------------------------------

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
    for member_id, name in _iterate_rows(tx, audiences, limit, person_id or ""):
        found[member_id] = NamedPerson(PersonId(member_id), name)
        if len(found) == limit:
            break
    return list(found.values())


def _iterate_rows(tx: Transaction, audiences: Sequence[int] | None, limit: int, person_id: str) -> Iterator[Row]:
    if audiences is None:
        sql = "SELECT p.id, p.name FROM person p WHERE p.merged_into IS NULL AND ($1 = '' OR p.id = $1) LIMIT $2"
        yield from tx.fetch_all(sql, person_id, limit)
        return
    for start in range(0, len(audiences), _AUDIENCES_PER_STATEMENT):
        some = audiences[start : start + _AUDIENCES_PER_STATEMENT]
        sql = f"""SELECT DISTINCT p.id, p.name FROM audience_member m JOIN person p ON p.id = m.person_id
            WHERE m.audience_no IN ({build_placeholders(len(some), first=3)}) AND ($1 = '' OR p.id = $1) LIMIT $2"""
        yield from tx.fetch_all(sql, person_id, limit, *some)


# ---- the ids of one person -------------------------------------------------------------------------------

# On a platform where a message may carry any of them, such as a phone number or a LID.
#
# Always true: an id belongs to one person at a time, and every id here was named by the platform itself. The rows of a
# person follow the row of `identity` that has their main id, and go with it. `accounts/sender_merge.py` decides
# which ids belong together.


def find_main_ids(tx: Transaction, platform: str, ids: Sequence[SenderId]) -> dict[str, str]:
    """Return the id that each of these people is stored under, by the ids that are known."""
    texts = [each.id for each in ids]
    if not texts:
        return {}
    some = build_placeholders(len(texts), first=2)
    sql = f"""SELECT 0, account, account FROM identity WHERE platform = $1 AND account IN ({some})
        UNION ALL SELECT 1, id, main_id FROM sender_id WHERE platform = $1 AND id IN ({some})"""
    rows = tx.fetch_all(sql, platform, *texts)
    return {text: main_id for _, text, main_id in sorted(rows)}


def list_ids(tx: Transaction, platform: str, main_id: str) -> list[str]:
    """List all ids of a person, the main one first."""
    rows = tx.fetch_all("SELECT id FROM sender_id WHERE platform = $1 AND main_id = $2 ORDER BY id", platform, main_id)
    return [main_id, *(text for (text,) in rows if text != main_id)]


def find_lasting_id(tx: Transaction, platform: str, main_id: str, *, other_than: Iterable[str] = ()) -> str | None:
    """Return a present id of a person that no other person ever gets."""
    sql = "SELECT id FROM sender_id WHERE platform = $1 AND main_id = $2 AND is_lasting = 1 ORDER BY id"
    rows = tx.fetch_all(sql, platform, main_id)
    ignored = set(other_than)
    return next((text for (text,) in rows if text not in ignored), None)


def find_replaced(tx: Transaction, platform: str, text: str) -> str | None:
    """Return the main id of the person who had this lasting id before they got another one."""
    sql = "SELECT main_id FROM sender_id WHERE platform = $1 AND id = $2 AND is_lasting = 0"
    main_id: str | None = fetch_value(tx, sql, platform, text)
    return main_id


def save(tx: Transaction, source: SessionSource, main_id: str, now: int) -> None:
    """Store that the ids of a source belong to one person. A single id needs no row."""
    ids = list_sender_ids(source)
    if len(ids) > 1 or any(each.id != main_id for each in ids):
        save_ids(tx, source.platform, ids, main_id, now)


def save_ids(tx: Transaction, platform: str, ids: Iterable[SenderId], main_id: str, now: int) -> None:
    """Store that these are ids of one person, and that they are the present ones."""
    for each in ids:
        sql = (
            "INSERT INTO sender_id (platform, id, main_id, is_lasting, seen_at) VALUES ($1, $2, $3, $4, $5)"
            " ON CONFLICT (platform, id) DO UPDATE SET main_id = excluded.main_id, is_lasting = excluded.is_lasting,"
            " seen_at = excluded.seen_at"
        )
        tx.execute(sql, str(platform), each.id, main_id, int(each.is_lasting), now)


def remove(tx: Transaction, platform: str, text: str) -> None:
    """Forget an id: it belongs to no person until the platform names its person again."""
    tx.execute("DELETE FROM sender_id WHERE platform = $1 AND id = $2", platform, text)


def mark_replaced(tx: Transaction, platform: str, main_id: str) -> None:
    """Let all ids of a person be old ones: they have others now."""
    tx.execute("UPDATE sender_id SET is_lasting = 0 WHERE platform = $1 AND main_id = $2", platform, main_id)


def change_main_id(tx: Transaction, platform: str, old_id: str, new_id: str) -> None:
    """Give all ids of a person to the one who is stored under another id."""
    tx.execute("UPDATE sender_id SET main_id = $3 WHERE platform = $1 AND main_id = $2", platform, old_id, new_id)


PERSON_DATA: Final = (
    PersonColumn(
        "chat_access",
        merge=Moved("platform || ':' || account || ':' || chat_id || ':' || granted_at"),
        erase=EraseAt.START,
    ),
    PersonColumn(
        "chat_access",
        "granted_by",
        merge=Stays("says who granted it, under the id of that time"),
        erase=EraseAt.START_CLEARED,
    ),
    PersonColumn("message_rate", merge=Stays("is deleted"), erase=EraseAt.START),
)
SENDER_ID_EXPORT: Final = ExportedTable(
    table="sender_id",
    fields=(
        *make_fields("id!"),
        *make_fields("is_lasting!", FieldKind.FLAG),
        *make_fields("seen_at!", FieldKind.TIME),
    ),
    order=("id",),
)

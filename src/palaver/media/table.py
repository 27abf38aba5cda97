"""Records of the files that people have sent, and the sessions that use them.

A file is visible to the person who sent it, and to everybody who may see a session that uses it. The bytes are stored
by `media/attachments.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.columns import Columns, insert_row
from palaver.core.engines.base import Row, Transaction, build_placeholders
from palaver.people.person_data import ErasureStep, ExportedTable, FieldKind, Moved, PersonColumn, make_fields
from palaver.sessions.speech import Attachment, AttachmentNotFound, FileUsage, parse_attachment_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.core.ids import PersonId


_COLUMNS: Final = Columns(Attachment)
_SELECT = f"SELECT {_COLUMNS.format_select('a')}, a.no FROM attachment a"
# LIMIT keeps PostgreSQL from reading all uses for the few files that are asked for.
_IS_USED = "(SELECT 1 FROM attachment_use u WHERE u.attachment_no = a.no LIMIT 1) IS NOT NULL"
_IS_VISIBLE = """(a.person_id = $2 OR EXISTS (SELECT 1 FROM attachment_use u JOIN session s ON s.no = u.session_no
    JOIN audience_member m ON m.audience_no = s.audience_no WHERE u.attachment_no = a.no AND m.person_id = $2))"""


def add(tx: Transaction, attachment: Attachment) -> None:
    insert_row(tx, "attachment", _COLUMNS.encode({name: getattr(attachment, name) for name in Attachment.__slots__}))


def get_visible(tx: Transaction, attachment_id: str, person_id: PersonId | None) -> tuple[int, Attachment]:
    """Return a file's number and the file, if this person may see it (None: the asker may see everything)."""
    valid_id = parse_attachment_id(attachment_id)
    if person_id is None:
        row = tx.fetch_one(f"{_SELECT} WHERE a.id = $1", valid_id)
    else:
        row = tx.fetch_one(f"{_SELECT} WHERE a.id = $1 AND {_IS_VISIBLE}", valid_id, person_id)
    if row is None:
        raise AttachmentNotFound
    return _numbered_attachment_from_row(row)


def list_used_in_session(tx: Transaction, session_no: int, attachment_ids: Iterable[str]) -> list[Attachment]:
    """Return those of the given files that a session uses."""
    select = f"{_SELECT} JOIN attachment_use u ON u.attachment_no = a.no WHERE u.session_no = $1 AND a.id = $2"
    rows = (tx.fetch_one(select, session_no, attachment_id) for attachment_id in attachment_ids)
    return [_numbered_attachment_from_row(row)[1] for row in rows if row is not None]


def list_by_id(tx: Transaction, attachment_ids: Iterable[str]) -> list[tuple[int, Attachment]]:
    """Return the number of each file, and the file, without checking who may see it; deleted ones are left out."""
    rows = (tx.fetch_one(f"{_SELECT} WHERE a.id = $1", each) for each in attachment_ids)
    return [_numbered_attachment_from_row(row) for row in rows if row is not None]


def find_by_no(tx: Transaction, no: int) -> Attachment | None:
    """Return a file by its number, without checking who may see it."""
    row = tx.fetch_one(f"{_SELECT} WHERE a.no = $1", no)
    return _numbered_attachment_from_row(row)[1] if row else None


def list_of_person(tx: Transaction, person_id: PersonId, after: int, limit: int) -> list[tuple[int, Attachment]]:
    """Return a page of the files that a person has sent, oldest first, each with its number."""
    rows = tx.fetch_all(
        f"{_SELECT} WHERE a.person_id = $1 AND a.no > $2 ORDER BY a.no LIMIT $3", person_id, after, limit
    )
    return [_numbered_attachment_from_row(row) for row in rows]


def use_in_session(tx: Transaction, session_no: int, attachment_nos: Iterable[int]) -> None:
    rows = [(session_no, no) for no in attachment_nos]
    if rows:  # most messages have no files, and even an empty batch costs PostgreSQL a round trip
        tx.execute_many(
            "INSERT INTO attachment_use (session_no, attachment_no) VALUES ($1, $2) ON CONFLICT DO NOTHING", rows
        )


def get_usage(tx: Transaction, person_id: PersonId) -> FileUsage:
    """Return how much space the files of a person take; reads one index, and a person has a limited number of files."""
    sql = """SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT), CAST(COALESCE(SUM(copies), 0) AS BIGINT) FROM
        (SELECT size, COUNT(*) AS copies FROM attachment WHERE person_id = $1 GROUP BY sha256, size) AS files"""
    [(size, copies)] = tx.fetch_all(sql, person_id)
    return FileUsage(int(size), int(copies))


def lock_person(tx: Transaction, person_id: PersonId) -> None:
    """Let other processes that store a file of this person wait until this transaction has ended."""
    tx.fetch_one(f"SELECT 1 FROM person WHERE id = $1 {tx.for_update}", person_id)


class Position(NamedTuple):
    created_at: int
    no: int


START: Final = Position(-(2**62), 0)


def list_unused(tx: Transaction, before: int, after: Position, limit: int) -> tuple[list[int], Position | None]:
    """Return the numbers of the next files that were sent before a moment and that no session uses.

    Also returns where to go on; None at the end. It reads `limit` rows of the index, however many of them are used.
    """
    sql = f"""SELECT a.created_at, a.no, CASE WHEN {_IS_USED} THEN 1 ELSE 0 END FROM attachment a
        WHERE a.created_at < $1 AND a.created_at >= $2 AND (a.created_at > $2 OR a.no > $3)
        ORDER BY a.created_at, a.no LIMIT $4"""
    rows = tx.fetch_all(sql, before, *after, limit)
    unused = [no for _, no, is_used in rows if not is_used]
    if len(rows) < limit:
        return unused, None
    created_at, no, _ = rows[-1]
    return unused, Position(created_at, no)


def delete_unused(tx: Transaction, attachment_nos: Sequence[int]) -> int:
    """Delete those of the given files that no session uses, also not since they were listed; return how many."""
    some = build_placeholders(len(attachment_nos))
    return tx.execute(f"DELETE FROM attachment AS a WHERE a.no IN ({some}) AND NOT ({_IS_USED})", *attachment_nos)


def find_known_hashes(tx: Transaction, hashes: Sequence[str]) -> set[str]:
    """Return those of the given hashes that belong to a file."""
    select = "SELECT 1 FROM attachment WHERE sha256 = $1 LIMIT 1"
    return {sha256 for sha256 in hashes if tx.fetch_one(select, sha256) is not None}


def _numbered_attachment_from_row(row: Row) -> tuple[int, Attachment]:
    *_, no = row
    return no, _COLUMNS.decode(row)


PERSON_DATA: Final = (PersonColumn("attachment", merge=Moved(), erase=ErasureStep.ATTACHMENTS, belonging="files"),)
EXPORT: Final = ExportedTable(
    table="attachment",
    fields=(
        *make_fields("id! name! media_type!"),
        *make_fields("size!", FieldKind.NUMBER),
        *make_fields("sha256!"),
        *make_fields("created_at!", FieldKind.TIME),
    ),
    references={"person": "t.person_id"},
    report_kind="files",
)

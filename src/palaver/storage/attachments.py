"""What is known of the files that people have sent, and in which conversations each is used.

A file is visible to whoever sent it, and to whoever may see a conversation in which it is used. The bytes are kept by
`services/attachments.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.attachment import Attachment, NoSuchAttachment, known_attachment_id
from palaver.domain.ids import PersonId
from palaver.storage.timestamps import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.storage.engines.base import Row, Transaction

_COLUMNS = "a.id, a.name, a.type, a.size, a.sha256, a.person_id, a.created_at, a.no"
_USED = "EXISTS (SELECT 1 FROM attachment_use u WHERE u.attachment_no = a.no)"
_VISIBLE = """(a.person_id = $2 OR EXISTS (SELECT 1 FROM attachment_use u JOIN session s ON s.no = u.session_no
    JOIN audience_member m ON m.audience_no = s.audience_no WHERE u.attachment_no = a.no AND m.person_id = $2))"""


def add(tx: Transaction, attachment: Attachment) -> None:
    """Know a file."""
    tx.run(
        "INSERT INTO attachment (id, name, type, size, sha256, person_id, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        attachment.id,
        attachment.name,
        attachment.type,
        attachment.size,
        attachment.sha256,
        attachment.person_id,
        to_micros(attachment.created_at),
    )


def seen(tx: Transaction, attachment_id: str, person_id: PersonId | None) -> tuple[int, Attachment]:
    """A file and its number, if this person may see it (None: whoever may see everything)."""
    known = known_attachment_id(attachment_id)
    if person_id is None:
        row = tx.one(f"SELECT {_COLUMNS} FROM attachment a WHERE a.id = $1", known)
    else:
        row = tx.one(f"SELECT {_COLUMNS} FROM attachment a WHERE a.id = $1 AND {_VISIBLE}", known, person_id)
    if row is None:
        raise NoSuchAttachment
    return row[7], _attachment(row)


def used_in(tx: Transaction, session_no: int, attachment_ids: Iterable[str]) -> list[Attachment]:
    """Those of some files that a conversation uses."""
    select = (
        f"SELECT {_COLUMNS} FROM attachment a JOIN attachment_use u ON u.attachment_no = a.no"
        " WHERE u.session_no = $1 AND a.id = $2"
    )
    rows = (tx.one(select, session_no, attachment_id) for attachment_id in attachment_ids)
    return [_attachment(row) for row in rows if row is not None]


def use(tx: Transaction, session_no: int, numbers: Iterable[int]) -> None:
    """From now on these files are used in a conversation."""
    tx.many(
        "INSERT INTO attachment_use (session_no, attachment_no) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        [(session_no, no) for no in numbers],
    )


def size_of(tx: Transaction, person_id: PersonId) -> int:
    """How many bytes a person has sent."""
    row = tx.one("SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM attachment WHERE person_id = $1", person_id)
    return int(row[0]) if row else 0


def forget_unused(tx: Transaction, before: int) -> int:
    """Forget the files that no conversation uses and that were sent before a moment; how many they were."""
    return tx.run(f"DELETE FROM attachment AS a WHERE a.created_at < $1 AND NOT {_USED}", before)


def known_bytes(tx: Transaction, hashes: Sequence[str]) -> set[str]:
    """Those among these hashes under which some file is known."""
    rows = (tx.one("SELECT sha256 FROM attachment WHERE sha256 = $1 LIMIT 1", each) for each in hashes)
    return {row[0] for row in rows if row is not None}


def _attachment(row: Row) -> Attachment:
    return Attachment(
        id=row[0],
        name=row[1],
        type=row[2],
        size=row[3],
        sha256=row[4],
        person_id=PersonId(row[5]),
        created_at=from_micros(row[6]),
    )

"""Shares: read-only copies of sessions for people without an account. A copy never changes; when it expires may."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import format_time, from_micros
from palaver.core.columns import Columns
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.errors import InvalidInput
from palaver.core.old_rows import declare_old_rows
from palaver.core.operation import Page
from palaver.people.person_data import EraseAt, Moved, PersonColumn
from palaver.sessions.share import (
    MAX_EXPIRED_AGE,
    MAX_SHARES_PER_PERSON,
    Share,
    ShareExpired,
    ShareNotFound,
    new_share_id,
    parse_share_id,
    parse_share_secret,
)

if TYPE_CHECKING:
    from palaver.core.ids import PersonId

MAX_SHARES_PER_PAGE = MAX_SHARES_PER_PERSON
_END_OF_LIST = 2**62


_COLUMNS = Columns(Share, session_id="s.id", person_name="p.name")
_SELECT = f"""SELECT {_COLUMNS.format_select("h")} FROM share h
    JOIN session s ON s.no = h.session_no JOIN person p ON p.id = h.person_id"""


def add(
    tx: Transaction,
    person_id: PersonId,
    session_no: int,
    secret: str,
    body: dict[str, Any],
    now: int,
    expires_at: int | None = None,
) -> Share:
    share_id = new_share_id()
    tx.execute(
        "INSERT INTO share (id, secret, person_id, session_no, title, body, message_count, created_at, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        share_id,
        secret,
        person_id,
        session_no,
        body["title"],
        json.dumps(body, separators=(",", ":")),
        len(body["messages"]),
        now,
        expires_at,
    )
    return get(tx, share_id, person_id)


def count_shares(tx: Transaction, person_id: PersonId) -> int:
    return fetch_value(tx, "SELECT COUNT(*) FROM share WHERE person_id = $1", person_id) or 0


def has_content_of_others(tx: Transaction, session_no: int) -> bool:
    """Return whether a session has messages of a shared session: its own, or copied from one, however often."""
    row = tx.fetch_one("SELECT shared, has_shared_content FROM session WHERE no = $1", session_no)
    return row is not None and any(row)


def get(tx: Transaction, share_id: str, person_id: PersonId | None) -> Share:
    """Return one of a person's shares (None: any person's)."""
    valid_id = parse_share_id(share_id)
    row = tx.fetch_one(f"{_SELECT} WHERE h.id = $1 AND ($2 = '' OR h.person_id = $2)", valid_id, person_id or "")
    if row is None:
        raise ShareNotFound
    return _COLUMNS.decode(row)


def list_shares(tx: Transaction, person_id: PersonId | None, limit: int, cursor: str | None = None) -> Page[Share]:
    """List a person's shares (None: everybody's), newest first."""
    before = _END_OF_LIST if cursor is None else _find_cursor(tx, cursor, person_id)
    if person_id is None:
        rows = tx.fetch_all(f"{_SELECT} WHERE h.no < $1 ORDER BY h.no DESC LIMIT $2", before, limit)
    else:
        rows = tx.fetch_all(
            f"{_SELECT} WHERE h.person_id = $3 AND h.no < $1 ORDER BY h.no DESC LIMIT $2", before, limit, person_id
        )
    shares = list(map(_COLUMNS.decode, rows))
    return Page(shares, shares[-1].id if len(shares) == limit else None)


def open_share(tx: Transaction, secret: str, now: int) -> dict[str, Any]:
    """Return the copy that a secret opens, with the time it was made; raises ShareExpired from its expiry on."""
    row = tx.fetch_one("SELECT body, created_at, expires_at FROM share WHERE secret = $1", parse_share_secret(secret))
    if row is None:
        raise ShareNotFound
    body, created_at, expires_at = row
    if expires_at is not None and expires_at <= now:
        raise ShareExpired
    return {**json.loads(body), "shared_at": format_time(from_micros(created_at))}


def revoke(tx: Transaction, share_id: str, person_id: PersonId | None) -> None:
    """Delete one of a person's shares (None: any person's)."""
    valid_id = parse_share_id(share_id)
    deleted = tx.execute("DELETE FROM share WHERE id = $1 AND ($2 = '' OR person_id = $2)", valid_id, person_id or "")
    if not deleted:
        raise ShareNotFound


def set_expiry(tx: Transaction, share_id: str, person_id: PersonId | None, expires_at: int | None) -> Share:
    """Change when one of a person's shares (None: any person's) expires; None: never."""
    sql = "UPDATE share SET expires_at = $3 WHERE id = $1 AND ($2 = '' OR person_id = $2)"
    tx.execute(sql, parse_share_id(share_id), person_id or "", expires_at)
    return get(tx, share_id, person_id)


def _find_cursor(tx: Transaction, cursor: str, person_id: PersonId | None) -> int:
    """Return the number of the share that a cursor names: the last one of the page before."""
    no: int | None = None
    with suppress(ShareNotFound):
        sql = "SELECT no FROM share WHERE id = $1 AND ($2 = '' OR person_id = $2)"
        no = fetch_value(tx, sql, parse_share_id(cursor), person_id or "")
    if no is None:
        raise InvalidInput("cursor: this share no longer exists. List the shares from the beginning.", key="cursor")
    return no


OLD_ROWS: Final = {"expired_shares": declare_old_rows("share", "expires_at", MAX_EXPIRED_AGE)}
PERSON_DATA: Final = (
    PersonColumn("share", merge=Moved(follows_session=True), erase=EraseAt.START, count="shares", belonging="shares"),
)

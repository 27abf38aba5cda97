"""Browsers that show notifications while the page is closed, and the notifications on their way to them."""

from __future__ import annotations

from dataclasses import asdict, field
from hmac import compare_digest
from typing import TYPE_CHECKING

from palaver.core.columns import Columns, insert_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value
from palaver.core.errors import NotSignedIn
from palaver.people import account_table as accounts
from palaver.push.model import MAX_SUBSCRIPTIONS_PER_PERSON, PushSubscription

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.ids import PersonId, SessionId

# One transaction at a time: how many browsers a person has, and whose an endpoint is, holds until it is stored.
_LOCK_NAME = "palaver push subscriptions"
_SUBSCRIPTION_COLUMNS = Columns(PushSubscription)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuePush:
    """A notification that this process sends now."""

    no: int
    attempts: int  # with this one
    seq: int
    session_no: int
    session_id: SessionId
    person_id: PersonId  # whose browser it is
    is_needed: bool  # False: the person has read it, or is signed out
    subscription: PushSubscription


@dataclass(frozen=True, slots=True)
class WaitingPush:
    """A notification that is due."""

    no: int
    person_id: str
    endpoint: str = field(repr=False)


_DUE_COLUMNS = Columns(
    DuePush,
    without=("is_needed", "subscription"),
    session_no="x.no",
    session_id="x.id",
    person_id="i.person_id",
)


# -- browsers ------------------------------------------------------------------------------------------------


def save_subscription(tx: Transaction, sign_in_id: str, subscription: PushSubscription, now: int) -> bool:
    """Store the subscription of a signed-in browser, instead of the one that it or its endpoint had before.

    Return False if the endpoint belongs to another person and the keys are not those of its browser. If the person has
    too many browsers then, the oldest are forgotten. Raises NotSignedIn if the sign-in has ended.
    """
    tx.lock_name(_LOCK_NAME)
    row = tx.fetch_one("SELECT person_id FROM sign_in WHERE id = $1", sign_in_id)
    if row is None:
        raise NotSignedIn
    (person_id,) = row
    if not _can_use_endpoint(tx, person_id, subscription):
        return False
    tx.execute(
        "DELETE FROM push_subscription WHERE sign_in_id = $1 OR endpoint = $2", sign_in_id, subscription.endpoint
    )
    sql = """SELECT s.id FROM sign_in i JOIN push_subscription s ON s.sign_in_id = i.id WHERE i.person_id = $1
        ORDER BY s.created_at DESC, s.id"""
    others = tx.fetch_all(sql, person_id)
    for (subscription_id,) in others[MAX_SUBSCRIPTIONS_PER_PERSON - 1 :]:
        delete_subscription(tx, subscription_id)
    insert_row(tx, "push_subscription", {**asdict(subscription), "sign_in_id": sign_in_id, "created_at": now})
    return True


def _can_use_endpoint(tx: Transaction, person_id: str, subscription: PushSubscription) -> bool:
    """Return whether the endpoint is free, the person's own, or that of the same browser: only it knows the keys."""
    sql = """SELECT i.person_id, s.public_key, s.auth_secret FROM push_subscription s
        JOIN sign_in i ON i.id = s.sign_in_id WHERE s.endpoint = $1"""
    row = tx.fetch_one(sql, subscription.endpoint)
    if row is None:
        return True
    owner_id, public_key, auth_secret = row
    if owner_id == person_id:
        return True
    keys = f"{public_key} {auth_secret}", f"{subscription.public_key} {subscription.auth_secret}"
    return compare_digest(*(each.replace("=", "").encode() for each in keys))


def find_subscription(tx: Transaction, sign_in_id: str) -> PushSubscription | None:
    columns = _SUBSCRIPTION_COLUMNS.format_select()
    row = tx.fetch_one(f"SELECT {columns} FROM push_subscription WHERE sign_in_id = $1", sign_in_id)
    return None if row is None else _SUBSCRIPTION_COLUMNS.decode(row)


def delete_subscription(tx: Transaction, subscription_id: str) -> None:
    tx.execute("DELETE FROM push_subscription WHERE id = $1", subscription_id)


def delete_subscription_of_sign_in(tx: Transaction, sign_in_id: str) -> None:
    tx.execute("DELETE FROM push_subscription WHERE sign_in_id = $1", sign_in_id)


# -- notifications -------------------------------------------------------------------------------------------


def enqueue(tx: Transaction, session_no: int, person_id: PersonId, due_at: int, now: int) -> None:
    """Queue a notification about the end of a conversation to every browser of a person; most people have none."""
    sql = """INSERT INTO push_message (subscription_id, session_no, seq, attempts, due_at, created_at)
        SELECT s.id, x.no, x.last_seq, 0, CAST($3 AS BIGINT), CAST($4 AS BIGINT)
        FROM sign_in i JOIN push_subscription s ON s.sign_in_id = i.id JOIN session x ON x.no = $2
        WHERE i.person_id = $1
        ON CONFLICT (subscription_id, session_no) DO UPDATE SET
        seq = excluded.seq, attempts = 0, due_at = excluded.due_at, created_at = excluded.created_at"""
    tx.execute(sql, person_id, session_no, due_at, now)


def list_due(
    tx: Transaction,
    server_key: str,
    now: int,
    limit: int,
    *,
    except_people: Sequence[str],
    except_origins: Sequence[str],
) -> list[WaitingPush]:
    """List notifications that are due, to browsers that have subscribed to our key; people take turns.

    Left out are those of some people, and those to some push services (by the beginning of their endpoints).
    """
    people = build_placeholders(len(except_people), first=4)
    first = 4 + len(except_people)
    origins = [f"${number}" for number in range(first, first + len(except_origins))]
    conditions = ["m.due_at <= $1", "s.server_key = $2"]
    conditions += [f"i.person_id NOT IN ({people})"] if except_people else []
    conditions += [f"substr(s.endpoint, 1, length(CAST({each} AS TEXT))) <> CAST({each} AS TEXT)" for each in origins]
    rows = tx.fetch_all(
        "SELECT no, person_id, endpoint FROM (SELECT m.no AS no, m.due_at AS due_at, i.person_id AS person_id,"
        " s.endpoint AS endpoint, row_number() OVER (PARTITION BY i.person_id ORDER BY m.due_at, m.no) AS place"
        " FROM push_message m JOIN push_subscription s ON s.id = m.subscription_id"
        f" JOIN sign_in i ON i.id = s.sign_in_id WHERE {' AND '.join(conditions)}"
        ") AS wanted ORDER BY place, due_at LIMIT $3",
        *(now, server_key, limit, *except_people, *except_origins),
    )
    return [WaitingPush(int(no), str(person_id), str(endpoint)) for no, person_id, endpoint in rows]


def claim(tx: Transaction, numbers: Sequence[int], now: int, taken_until: int) -> list[DuePush]:
    """Claim notifications until a time; those that another process has claimed meanwhile are left out."""
    if not numbers:
        return []
    skip_locked = "FOR UPDATE SKIP LOCKED" if tx.for_update else ""
    sql = f"""SELECT no FROM push_message WHERE no IN ({build_placeholders(len(numbers), first=2)}) AND due_at <= $1
        ORDER BY no {skip_locked}"""
    free = tx.fetch_all(sql, *(now, *numbers))
    claimed = []
    for (no,) in free:
        tx.execute("UPDATE push_message SET attempts = attempts + 1, due_at = $2 WHERE no = $1", no, taken_until)
        sql = f"""SELECT {_DUE_COLUMNS.format_select("m")}, {_SUBSCRIPTION_COLUMNS.format_select("s")},
            COALESCE(r.read_seq, 0) < m.seq, i.created_at, i.last_seen_at FROM push_message m
            JOIN push_subscription s ON s.id = m.subscription_id JOIN sign_in i ON i.id = s.sign_in_id
            JOIN session x ON x.no = m.session_no
            LEFT JOIN read_mark r ON r.session_no = m.session_no AND r.person_id = i.person_id WHERE m.no = $1"""
        row = tx.fetch_one(sql, no)
        if row is not None:
            claimed.append(_push_from_row(row, now))
    return claimed


def _push_from_row(row: Row, now: int) -> DuePush:
    *_, is_unread, signed_in_at, seen_at = row
    is_needed = bool(is_unread) and accounts.is_sign_in_open(signed_in_at, seen_at, now)
    subscription = _SUBSCRIPTION_COLUMNS.decode(row[len(_DUE_COLUMNS) :])
    return _DUE_COLUMNS.decode(row, is_needed=is_needed, subscription=subscription)


def find_next_due(tx: Transaction, server_key: str) -> int | None:
    """Return when the next notification is due that this process can send."""
    sql = """SELECT m.due_at FROM push_message m JOIN push_subscription s ON s.id = m.subscription_id
        WHERE s.server_key = $1 ORDER BY m.due_at LIMIT 1"""
    due_at: int | None = fetch_value(tx, sql, server_key)
    return due_at


def delete_message(tx: Transaction, no: int, seq: int) -> None:
    """Forget a notification that was sent or is not needed, unless a newer answer has replaced it meanwhile."""
    tx.execute("DELETE FROM push_message WHERE no = $1 AND seq = $2", no, seq)


def retry_message(tx: Transaction, no: int, seq: int, due_at: int) -> None:
    tx.execute("UPDATE push_message SET due_at = $3 WHERE no = $1 AND seq = $2", no, seq, due_at)


def delete_created_before(tx: Transaction, before: int) -> int:
    """Forget notifications that are too old to be of use, also those that no process here can send."""
    return tx.execute("DELETE FROM push_message WHERE created_at < $1", before)


def has_messages(tx: Transaction) -> bool:
    return tx.fetch_one("SELECT 1 FROM push_message LIMIT 1") is not None

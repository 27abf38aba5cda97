"""Previews: the growing message of an answer that is being written in a chat.

Always true: the row of a preview exists before its message is sent, and until the delivery of its turn has taken the
message over (`delivery_part.edits_id`) or the message was deleted on its platform. So no message is left behind,
whatever dies in between.

Only the owner of a preview edits its message, and no other process becomes the owner before that process has ended or
released it. So an edit of a process that was paused cannot replace the answer, because the answer was not put there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.ids import SessionId, TurnId
from palaver.core.text import make_storable
from palaver.people.person_data import EraseAt, PersonColumn, Stays
from palaver.sessions.delivery import Address
from palaver.sessions.turn import TurnState

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.sessions.delivery import AccountKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTurn:
    no: int
    id: TurnId
    session_id: SessionId
    address: Address
    reply_to: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    no: int
    key: str
    address: Address
    message_id: str | None  # None: it is unknown whether it has arrived
    created_at: int
    owner: str | None  # the process that sends and edits it; None: none does
    has_delivery: bool = False  # the answer itself was sent to this address, as another message

    def can_be_claimed(self, owner: str, is_owner_dead: Callable[[str], bool]) -> bool:
        """Return whether no process other than `owner` can be editing the message. Without a known id, none can."""
        return self.message_id is None or self.owner in {None, owner} or is_owner_dead(self.owner)


_TURN: Final = Columns(RunningTurn, types={Address}, session_id="s.id")
_PREVIEW: Final = Columns(Preview, types={Address}, without=("has_delivery",))
_SELECTED: Final = _PREVIEW.format_select("p")
_HAS_UNKNOWN_ID: Final = "platform = $1 AND account = $2 AND key = $3 AND message_id IS NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTurn:
    """The turn that a delivery answers."""

    id: TurnId
    state: TurnState
    preview: Preview | None


def format_preview_key(turn_id: str) -> str:
    """Return the key with which the preview of a turn is sent in every attempt."""
    return f"{turn_id}.p"


def list_running_turns(tx: Transaction) -> list[RunningTurn]:
    """Return the turns that run now and whose answer goes to a chat; there are as many as workers."""
    sql = f"""SELECT {_TURN.format_select("t")} FROM turn t JOIN session s ON s.no = t.session_no
        WHERE t.state = 'running' AND t.address IS NOT NULL AND t.kind = 'answer'"""
    rows = tx.fetch_all(sql)
    return list(map(_TURN.decode, rows))


def load_answered_turn(tx: Transaction, turn_no: int) -> AnsweredTurn | None:
    """Return the turn that a delivery answers, with its preview; None if it was deleted."""
    row = tx.fetch_one("SELECT id, state FROM turn WHERE no = $1", turn_no)
    if row is None:
        return None
    turn_id, state = row
    return AnsweredTurn(id=TurnId(turn_id), state=TurnState(state), preview=find_preview(tx, turn_no))


def find_preview(tx: Transaction, turn_no: int, lock: str = "") -> Preview | None:
    row = tx.fetch_one(f"SELECT {_SELECTED} FROM preview p WHERE p.turn_no = $1 {lock}", turn_no)
    return _PREVIEW.decode(row) if row else None


def add_preview(
    tx: Transaction, turn: RunningTurn, owner: str, now: int, is_owner_dead: Callable[[str], bool]
) -> Preview | None:
    """Store that a preview is about to be sent; return it, or None if its turn does not run any more.

    If the turn has a preview already, that one is claimed.
    """
    if tx.fetch_one(f"SELECT 1 FROM turn WHERE no = $1 AND state = 'running' {tx.for_update}", turn.no) is None:
        return None
    _insert(tx, turn.no, format_preview_key(turn.id), turn.address, None, now)
    return claim_preview(tx, turn.no, owner, is_owner_dead)


def claim_preview(tx: Transaction, turn_no: int, owner: str, is_owner_dead: Callable[[str], bool]) -> Preview | None:
    """Let a process edit the preview of a turn; None if there is none, or another process may still be editing it."""
    preview = find_preview(tx, turn_no, tx.for_update)
    if preview is None or not preview.can_be_claimed(owner, is_owner_dead):
        return None
    tx.execute("UPDATE preview SET owner = $2 WHERE no = $1", preview.no, owner)
    return replace(preview, owner=owner)


def release_previews(tx: Transaction, owner: str) -> int:
    """Let other processes edit the previews of a process that no longer edits them."""
    return tx.execute("UPDATE preview SET owner = NULL WHERE owner = $1", owner)


def has_owner(tx: Transaction, owner: str) -> bool:
    return tx.fetch_one("SELECT 1 FROM preview WHERE owner = $1 LIMIT 1", owner) is not None


def restore_preview(tx: Transaction, turn_no: int, address: Address, message_id: str, now: int) -> None:
    """Store that a message is a preview again: the platform has refused to replace it by the answer."""
    turn_id: str | None = fetch_value(tx, "SELECT id FROM turn WHERE no = $1", turn_no)
    if turn_id is not None:
        _insert(tx, turn_no, format_preview_key(turn_id), address, message_id, now)


def _insert(tx: Transaction, turn_no: int | None, key: str, address: Address, message_id: str | None, now: int) -> None:
    sql = """INSERT INTO preview (turn_no, key, platform, account, address, message_id, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"""
    tx.execute(
        sql,
        turn_no,
        key,
        *map(str, address.account_key),
        str(address),
        None if message_id is None else make_storable(message_id),
        now,
    )


def save_message_id(tx: Transaction, key: str, account: AccountKey, message_id: str) -> None:
    """Store the platform's id of a preview that has arrived."""
    update = f"UPDATE preview SET message_id = $4 WHERE {_HAS_UNKNOWN_ID}"
    tx.execute(update, *map(str, account), key, make_storable(message_id))


def save_sent(tx: Transaction, turn: RunningTurn, message_id: str, now: int) -> Preview | None:
    """Store the platform's id of a preview that was just sent; return the preview, or None if it has ended meanwhile.

    If it has ended without this message, because the process was paused before it sent it, the message is stored as
    one to be deleted.
    """
    key = format_preview_key(turn.id)
    save_message_id(tx, key, turn.address.account_key, message_id)
    if _is_stray(tx, turn.no, key, message_id):
        _insert(tx, None, key, turn.address, message_id, now)
    return find_preview(tx, turn.no)


def _is_stray(tx: Transaction, turn_no: int, key: str, message_id: str) -> bool:
    """Whether a message is neither a stored preview nor, as the platform recognized its key, a part of the answer."""
    sql = """SELECT 1 FROM turn t WHERE t.no = $1 AND NOT EXISTS (SELECT 1 FROM preview v WHERE v.key = $2)
        AND NOT EXISTS (SELECT 1 FROM delivery d JOIN delivery_part p ON p.delivery_no = d.no
        WHERE d.turn_no = t.no AND (p.edits_id = $3 OR p.sent_message_id = $3))"""
    row = tx.fetch_one(sql, turn_no, key, make_storable(message_id))
    return row is not None


def has_unknown_id(tx: Transaction, key: str, account: AccountKey) -> bool:
    """Return whether there is a preview with this key of which it is unknown whether it has arrived."""
    select = f"SELECT 1 FROM preview WHERE {_HAS_UNKNOWN_ID}"
    return tx.fetch_one(select, *map(str, account), key) is not None


def delete_preview(tx: Transaction, no: int) -> None:
    """Forget a preview: its message was taken over or deleted."""
    tx.execute("DELETE FROM preview WHERE no = $1", no)


def delete_unsent(tx: Transaction, no: int, owner: str) -> None:
    """Forget a preview that its owner could not send, unless another process has claimed it meanwhile."""
    tx.execute("DELETE FROM preview WHERE no = $1 AND owner = $2", no, owner)


def list_leftovers(tx: Transaction, account: AccountKey) -> list[Preview]:
    """Return the previews of an account whose turn has ended, and that no delivery will take over."""
    sql = f"""SELECT {_SELECTED}, d.no FROM preview p LEFT JOIN turn t ON t.no = p.turn_no
        LEFT JOIN delivery d ON d.turn_no = p.turn_no AND d.address = p.address
        WHERE p.platform = $1 AND p.account = $2 AND (t.no IS NULL OR t.state NOT IN ('queued', 'running'))
        AND (d.no IS NULL OR d.state NOT IN ('pending', 'sending'))"""
    rows = tx.fetch_all(sql, *map(str, account))
    return [_PREVIEW.decode(row, has_delivery=delivery_no is not None) for *row, delivery_no in rows]


PERSON_DATA: Final = (PersonColumn("preview", "address", merge=Stays("belongs to an address"), erase=EraseAt.START),)

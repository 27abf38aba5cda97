"""Drafts: the answer of a running turn so far, stored so that a crash does not lose what the person has seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from palaver.sessions.draft import Draft, Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.sessions.turn_leases import TurnLease


def append_pieces(tx: Transaction, lease: TurnLease, pieces: Sequence[Piece]) -> None:
    """Store the pieces that were added since the last call. The caller has checked the lease in this transaction."""
    tx.execute(
        "INSERT INTO draft (turn_no, session_no, attempt, body) VALUES ($1, $2, $3, $4)",
        lease.turn_no,
        lease.session_no,
        lease.attempt,
        json.dumps([piece.to_dict() for piece in pieces], separators=(",", ":")),
    )


def list_pieces_after(tx: Transaction, turn_no: int, attempt: int, after: int) -> tuple[list[Piece], int]:
    """Return the pieces of an attempt that were stored after row `after`, and the number of the last row."""
    rows = tx.fetch_all(
        "SELECT no, body FROM draft WHERE turn_no = $1 AND no > $2 AND attempt = $3 ORDER BY no",
        turn_no,
        after,
        attempt,
    )
    pieces = [Piece.from_dict(piece) for _, body in rows for piece in json.loads(body)]
    return pieces, rows[-1][0] if rows else after


def find_first_row(tx: Transaction, turn_no: int, attempt: int) -> int:
    """Return the number of the first row of an attempt, or 0 if there is none.

    It differs from before if the turn was released and started again, which does not count as another attempt.
    """
    row = tx.fetch_one("SELECT MIN(no) FROM draft WHERE turn_no = $1 AND attempt = $2", turn_no, attempt)
    return int(row[0] or 0) if row else 0


def load(tx: Transaction, lease: TurnLease) -> Draft:
    """Return the whole draft of a lease's attempt."""
    draft = Draft()
    draft.extend(list_pieces_after(tx, lease.turn_no, lease.attempt, 0)[0])
    return draft


def delete(tx: Transaction, turn_no: int) -> None:
    """Delete the draft of a turn that has ended or starts again."""
    tx.execute("DELETE FROM draft WHERE turn_no = $1", turn_no)

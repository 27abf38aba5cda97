"""Growing answers, kept while their turn runs, so that a crash keeps what the person saw."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from palaver.domain.draft import Draft, Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.storage.engines.base import Transaction
    from palaver.storage.leases import Lease


def grow(tx: Transaction, lease: Lease, pieces: Sequence[Piece]) -> None:
    """Keep what was said since the last time. The caller has checked the lease in this transaction."""
    tx.run(
        "INSERT INTO draft (turn_no, session_no, attempt, body) VALUES ($1, $2, $3, $4)",
        lease.turn_no,
        lease.session_no,
        lease.attempt,
        json.dumps([piece.to_dict() for piece in pieces], separators=(",", ":")),
    )


def since(tx: Transaction, turn_no: int, attempt: int, after: int) -> tuple[list[Piece], int]:
    """What was kept of an attempt after a row, and the last row there is."""
    rows = tx.all(
        "SELECT no, body FROM draft WHERE turn_no = $1 AND no > $2 AND attempt = $3 ORDER BY no",
        turn_no,
        after,
        attempt,
    )
    pieces = [Piece.from_dict(piece) for _, body in rows for piece in json.loads(body)]
    return pieces, rows[-1][0] if rows else after


def begins(tx: Transaction, turn_no: int, attempt: int) -> int:
    """The first row of an attempt: another one when it was given back and begun again; 0 when nothing was kept."""
    row = tx.one("SELECT MIN(no) FROM draft WHERE turn_no = $1 AND attempt = $2", turn_no, attempt)
    return int(row[0] or 0) if row else 0


def whole(tx: Transaction, lease: Lease) -> Draft:
    """Everything that was kept of a lease's attempt."""
    draft = Draft()
    draft.extend(since(tx, lease.turn_no, lease.attempt, 0)[0])
    return draft


def drop(tx: Transaction, turn_no: int) -> None:
    """The turn has ended, or begins again."""
    tx.run("DELETE FROM draft WHERE turn_no = $1", turn_no)

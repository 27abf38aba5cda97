"""Finds what has disappeared and still has rows: sessions, jobs and projects with many; deletes them in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.storage import job_deletion, projects, session_deletion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.storage.engines.base import Transaction

_DELETE_PIECE: Final[Mapping[str, Callable[[Transaction, int], None]]] = {
    "session": session_deletion.delete_piece,
    "job": job_deletion.delete_piece,
    "project": projects.delete_piece,
}
_FIRST_HIDDEN: Final = ", ".join(f"(SELECT MIN(no) FROM {table} WHERE is_deleted = 1)" for table in _DELETE_PIECE)


class HiddenRow(NamedTuple):
    """A session, job or project that has disappeared."""

    table: str
    no: int


def find_hidden(tx: Transaction) -> HiddenRow | None:
    """Return the next one that still has rows; None if there is none."""
    numbers = tx.fetch_one(f"SELECT {_FIRST_HIDDEN}") or ()
    rows = (HiddenRow(table, no) for table, no in zip(_DELETE_PIECE, numbers, strict=False) if no is not None)
    return next(rows, None)


def delete_piece(tx: Transaction, hidden: HiddenRow) -> None:
    """Delete a bounded number of its rows; with the last, its own."""
    _DELETE_PIECE[hidden.table](tx, hidden.no)

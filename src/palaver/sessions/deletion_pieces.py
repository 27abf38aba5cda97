"""Finds what has disappeared and still has rows: sessions, jobs and projects with many; deletes them in pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.sessions import deletion_table as session_deletion, projects_table as projects

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

Pieces = Mapping[
    str, Callable[["Transaction", int], None]
]  # by table: what deletes a piece of a row that has disappeared

SESSION_PIECES: Final[Pieces] = {"session": session_deletion.delete_piece, "project": projects.delete_piece}


class HiddenRow(NamedTuple):
    """A session, job or project that has disappeared."""

    table: str
    no: int


def find_hidden(tx: Transaction, pieces: Pieces) -> HiddenRow | None:
    """Return the next one that still has rows; None if there is none."""
    first = ", ".join(f"(SELECT MIN(no) FROM {table} WHERE is_deleted = 1)" for table in pieces)
    numbers = tx.fetch_one(f"SELECT {first}") or ()
    rows = (HiddenRow(table, no) for table, no in zip(pieces, numbers, strict=False) if no is not None)
    return next(rows, None)


def delete_piece(tx: Transaction, hidden: HiddenRow, pieces: Pieces) -> None:
    """Delete a bounded number of its rows; with the last, its own."""
    pieces[hidden.table](tx, hidden.no)

"""Deletes in pieces, each in a transaction of its own, so that other people's messages never wait.

A long conversation, a job with many runs or a project with many conversations first disappears, in one short
transaction (`sessions/deletions.py`). A process that dies between two of the pieces that follow leaves the rest
to the cleanup of any server, which looks for it every few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Engine, Read, Transaction, Write
from palaver.core.operation import WriteThenWork
from palaver.sessions import (
    deletion_table as session_deletion,
    projects_table as projects,
    search_table as search_merge,
)

Pieces = Mapping[
    str, Callable[["Transaction", int], None]
]  # by table: what deletes a piece of a row that has disappeared

SESSION_PIECES: Final[Pieces] = {"session": session_deletion.delete_piece, "project": projects.delete_piece}
T = TypeVar("T")
PIECE_PAUSE_SECONDS: Final = 0.002  # after each transaction, so that those of others come in between


class HiddenRow(NamedTuple):
    """A session, job or project that has disappeared."""

    table: str
    no: int


def build_deletion(delete: Callable[[Transaction], T], pieces: Pieces = SESSION_PIECES) -> WriteThenWork[HiddenRow, T]:
    """Build work that deletes something with `delete`, and then all pieces of what has disappeared."""
    return WriteThenWork(
        Write(delete, frees_space=True),
        find_hidden(pieces),
        lambda hidden: delete_piece(hidden, pieces),
        PIECE_PAUSE_SECONDS,
    )


async def finish_deletions(engine: Engine, pieces: Pieces) -> int:
    """Delete what is left of all that has disappeared; return how many pieces there were."""
    import asyncio  # a blocking program does not need it

    count = 0
    while (hidden := await engine.arun(find_hidden(pieces))) is not None:
        await engine.arun(delete_piece(hidden, pieces))
        await asyncio.sleep(PIECE_PAUSE_SECONDS)
        count += 1
    return count


async def clean_search_index(engine: Engine) -> int:
    """Let the words of deleted messages leave SQLite's search index; return how many transactions it took.

    Only where much was deleted: the other parts of the index are merged as new messages come in.
    """
    import asyncio

    count = 0
    merge_piece = Write(search_merge.merge_piece, frees_space=True)
    while count < search_merge.MAX_MERGE_STEPS and await engine.arun(merge_piece):
        await asyncio.sleep(PIECE_PAUSE_SECONDS)
        count += 1
    return count


def find_hidden(pieces: Pieces) -> Read[HiddenRow | None]:
    """Find the next one that still has rows."""
    first = ", ".join(f"(SELECT MIN(no) FROM {table} WHERE is_deleted = 1)" for table in pieces)

    def run(tx: Transaction) -> HiddenRow | None:
        numbers = tx.fetch_one(f"SELECT {first}") or ()
        rows = (HiddenRow(table, no) for table, no in zip(pieces, numbers, strict=False) if no is not None)
        return next(rows, None)

    return Read(run, is_quick=True)


def delete_piece(hidden: HiddenRow, pieces: Pieces) -> Write[None]:
    """Delete a bounded number of its rows; with the last, its own."""
    crash_point("deletion.before_piece")
    return Write(lambda tx: pieces[hidden.table](tx, hidden.no), frees_space=True)

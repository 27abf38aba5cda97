"""Deletes long conversations in pieces, each in a transaction of its own, so that other people's messages never wait.

The first transaction lets the conversation disappear (`storage/session_deletion.py`). A process that dies between two
of the pieces that follow leaves the rest to the cleanup of any server, which looks for it every few seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.domain.crash_points import crash_point
from palaver.services.operation import WriteThenWork
from palaver.storage import erasure_batches, session_deletion
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.storage.engines.base import Engine, Transaction

PIECE_PAUSE_SECONDS: Final = 0.002  # after each transaction, so that those of others come in between


def build_deletion(delete: Callable[[Transaction], object]) -> WriteThenWork[int, None]:
    """Build work that deletes a session with `delete`, and then all pieces of those that have disappeared."""

    def run(tx: Transaction) -> None:
        delete(tx)

    return WriteThenWork(Write(run), _FIND_HIDDEN, _delete_piece, PIECE_PAUSE_SECONDS)


async def finish_deletions(engine: Engine) -> int:
    """Delete what is left of sessions that have disappeared; return how many pieces there were."""
    import asyncio  # a blocking program does not need it

    count = 0
    while (session_no := await engine.arun(_FIND_HIDDEN)) is not None:
        await engine.arun(_delete_piece(session_no))
        await asyncio.sleep(PIECE_PAUSE_SECONDS)
        count += 1
    return count


_FIND_HIDDEN: Final = Read(session_deletion.find_hidden, is_quick=True)


def _delete_piece(session_no: int) -> Write[None]:
    crash_point("deletion.before_piece")

    def run(tx: Transaction) -> None:
        with erasure_batches.overwrite_deleted(tx):
            session_deletion.delete_piece(tx, session_no)

    return Write(run)

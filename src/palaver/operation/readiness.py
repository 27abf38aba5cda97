"""Whether a server can serve requests now, and what limits it: for `/readyz`, monitoring and `palaver doctor`.

Always true: the answer comes within `MAX_WAIT_SECONDS`, whatever the database does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Read
from palaver.core.readiness import ReadinessProblem
from palaver.core.timestamps import to_micros
from palaver.sessions import turn_leases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.store import SessionStore

MAX_WAIT_SECONDS: Final = 3.0
MAX_TURN_WAIT_SECONDS: Final = 120


async def find_problems(store: SessionStore) -> Sequence[ReadinessProblem]:
    """Return what keeps the database and the agent from working; raise `StoreError` if nothing can be read."""
    now = to_micros(store.clock.now())
    try:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            problems = list(await asyncio.to_thread(store.engine.find_problems))
            wait = await store.engine.arun(Read(lambda tx: turn_leases.find_longest_wait(tx, now)))
    except TimeoutError:
        text = f"The database did not answer within {MAX_WAIT_SECONDS:.0f} seconds."
        return [ReadinessProblem("database_slow", text, is_blocking=True)]
    if wait > MAX_TURN_WAIT_SECONDS * 1_000_000:
        problems.append(make_waiting_problem(wait))
    return problems


def make_waiting_problem(wait_micros: int) -> ReadinessProblem:
    text = (
        f"A message has been waiting for the agent for {wait_micros // 60_000_000} minutes: no server takes it,"
        " or all are busy."
    )
    return ReadinessProblem("turns_waiting", text, is_blocking=False)

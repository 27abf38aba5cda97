"""Repairs a store where its logs know the truth: one conversation at a time, each in a transaction of its own.

The store may be in use, and the repair may be killed: what is repaired stays so, and the next repair goes on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from palaver.core.engines.base import Write
from palaver.operation import repairs
from palaver.operation.integrity_check import iterate_wrong_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.core.engines.base import Transaction
    from palaver.sessions.store import SessionStore


def list_problems(store: SessionStore) -> tuple[list[str], list[str]]:
    """Return what a repair would solve, and what it would leave, as sentences without a period."""
    wrong = list(iterate_wrong_sessions(store.engine))
    return [each.problem for each in wrong if each.is_repairable], [
        each.problem for each in wrong if not each.is_repairable
    ]


def repair_store(store: SessionStore) -> Iterator[str]:
    """Repair what can be repaired; yield what was changed, as sentences without a period."""
    seen: set[int] = set()
    for wrong in iterate_wrong_sessions(store.engine):
        if wrong.is_repairable and wrong.no not in seen:
            seen.add(wrong.no)
            yield from store.engine.run(Write(partial(_repair, wrong.no)))


def _repair(session_no: int, tx: Transaction) -> list[str]:
    return repairs.repair_session(tx, session_no)

"""Collects the steps of an import and runs many of them in one transaction.

Transactions stay small, so that people who write meanwhile hardly wait, and there are few of them, because each has to
reach the disk. A step may run again (after a conflict with another process): what it finds out belongs to the batch,
and counts only once the batch is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Write

if TYPE_CHECKING:
    from palaver.core.engines.base import Engine, Transaction

MAX_BATCH_ROWS: Final = 250  # in one transaction: messages of others are stored in between
MAX_BATCH_CHARS: Final = 500_000  # of the texts in one transaction


class Batch:
    """What the steps of one transaction have found out."""

    def __init__(self, known: dict[tuple[str, object], Any]) -> None:
        self._known = known
        self.found: dict[tuple[str, object], Any] = {}
        self.outcomes: list[Any] = []

    def get(self, kind: str, key: object) -> Any:
        """Return what a step of this batch or of an earlier one has found; None if none has."""
        found = self.found.get((kind, key))
        return self._known.get((kind, key)) if found is None else found

    def set(self, kind: str, key: object, value: Any) -> None:
        self.found[kind, key] = value

    def add_outcome(self, outcome: Any) -> None:
        """Add something to the report."""
        self.outcomes.append(outcome)


Step = Callable[["Transaction", Batch], None]


class WriteQueue:
    """Runs steps in order, many in each transaction."""

    def __init__(
        self,
        engine: Engine,
        on_outcome: Callable[[Any], None],
        *,
        remembered: frozenset[str] = frozenset(),
        check: Callable[[Transaction], None] = lambda _tx: None,
    ) -> None:
        self._engine = engine
        self._on_outcome = on_outcome
        self._remembered = remembered  # kinds of findings that later batches need
        self._check = check  # at the beginning of each transaction: raises if nothing may be written any more
        self._known: dict[tuple[str, object], Any] = {}
        self._steps: list[Step] = []
        self._rows = 0
        self._chars = 0

    def find(self, kind: str, key: object) -> Any:
        """Return what a stored batch has found; None if none has."""
        return self._known.get((kind, key))

    def add(self, step: Step, *, rows: int = 1, chars: int = 0) -> None:
        """Add a step that writes about so many rows and characters."""
        self._steps.append(step)
        self._rows += rows
        self._chars += chars
        if self._rows >= MAX_BATCH_ROWS or self._chars >= MAX_BATCH_CHARS:
            self.flush()

    def flush(self) -> None:
        """Store everything that was added, durably."""
        steps = self._steps
        if not steps:
            return

        def run(tx: Transaction) -> Batch:
            self._check(tx)
            batch = Batch(self._known)
            for step in steps:
                step(tx, batch)
            return batch

        crash_point("import.before_batch")
        batch = self._engine.run(Write(run, is_long=True))
        crash_point("import.batch_stored")
        self._steps, self._rows, self._chars = [], 0, 0
        self._known |= {key: value for key, value in batch.found.items() if key[0] in self._remembered}
        for outcome in batch.outcomes:
            self._on_outcome(outcome)

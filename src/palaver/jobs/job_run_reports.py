"""What a run of a job reports while it runs: that it has failed, and tools that it wanted and was not granted.

Always true: only the worker that holds the lease of the run's turn writes here, and writing the same twice changes
nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from palaver.core.text import make_storable
from palaver.sessions import turn_leases

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.turn_leases import TurnLease

MAX_REFUSED_TOOLS: Final = 20  # that are recorded for one run
MAX_TOOL_NAME_CHARS: Final = 80


def set_reported_failure(tx: Transaction, lease: TurnLease, reason: str) -> None:
    """Store what the agent reported as the reason of its failure. Raises LeaseLost."""
    turn_leases.check_lease(tx, lease)
    tx.execute(
        "UPDATE job_run SET reported_failure = $2 WHERE turn_no = $1 AND state = 'running'",
        lease.turn_no,
        make_storable(reason),
    )


def add_refused_tool(tx: Transaction, lease: TurnLease, tool_name: str) -> None:
    """Record a tool that the run wanted to use and was not granted. Raises LeaseLost."""
    turn_leases.check_lease(tx, lease)
    row = tx.fetch_one(
        f"SELECT no, refused_tools FROM job_run WHERE turn_no = $1 AND state = 'running' {tx.for_update}",
        lease.turn_no,
    )
    if row is None:
        return
    names = list(json.loads(row[1])) if row[1] else []
    name = make_storable(tool_name)[:MAX_TOOL_NAME_CHARS]
    if name in names or len(names) >= MAX_REFUSED_TOOLS:
        return
    tx.execute("UPDATE job_run SET refused_tools = $2 WHERE no = $1", row[0], json.dumps([*names, name]))

"""What the agent reports while it works on a run of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Write
from palaver.core.operation import AsyncRunner, Operations, operation
from palaver.jobs import job_run_reports

if TYPE_CHECKING:
    from palaver.core.engines.base import Engine, Work
    from palaver.sessions.turn_leases import TurnLease


class RunReports(Operations[AsyncRunner]):
    """Stores what one run of a job reports, durably and as often as it is repeated."""

    def __init__(self, engine: Engine, lease: TurnLease) -> None:
        super().__init__(AsyncRunner(engine))
        self._lease = lease

    @operation
    def report_failure(self, reason: str) -> Work[None]:
        """Store why the run has failed, as the agent says it."""
        return Write(lambda tx: job_run_reports.set_reported_failure(tx, self._lease, reason))

    @operation
    def add_refused_tool(self, tool_name: str) -> Work[None]:
        """Record a tool that the agent wanted to use and was not granted."""
        return Write(lambda tx: job_run_reports.add_refused_tool(tx, self._lease, tool_name))

"""The tool that only a run of a job has: `report_failure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from palaver.agent.base import Tool
from palaver.agent.tools.arguments import Arguments, build_schema, translate_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

MAX_REASON_CHARS: Final = 500
_RECORDED = "Recorded: this run counts as failed. Stop here: call no more tools, and answer with one short sentence."


class FailureReports(Protocol):
    """Where one run of a job reports that it has failed."""

    def report_failure(self, reason: str) -> Awaitable[None]:
        """Store durably why the run has failed; a later report replaces an earlier one."""
        ...


def make_run_tools(reports: FailureReports) -> tuple[Tool, ...]:
    """Make the tools of one run of a job."""

    async def report_failure(values: Mapping[str, Any]) -> str:
        reason = Arguments(values, "reason").get_text("reason")[:MAX_REASON_CHARS]
        with translate_errors():
            await reports.report_failure(reason)
        return _RECORDED

    return (
        Tool(
            name="report_failure",
            description=(
                "Report that this run could not do its work, for example because a tool is missing or a service did"
                " not answer. The run then counts as failed, and its person is told. Don't use it when there is"
                " simply nothing to report."
            ),
            parameters=build_schema(
                ["reason"],
                reason={
                    "type": "string",
                    "maxLength": MAX_REASON_CHARS,
                    "description": "what went wrong, in one sentence for the person",
                },
            ),
            run=report_failure,
        ),
    )

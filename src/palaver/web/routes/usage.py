"""Usage reports: tokens and cost."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Query
from pydantic import Field

from palaver.sessions.usage import UsageGrouping, UsageReport, UsageRow
from palaver.web.api_route import make_router
from palaver.web.auth import CallerView
from palaver.web.errors import error_responses
from palaver.web.state import ResponseModel, UsageCounts

router = make_router("usage", "/api", responses=error_responses(401))


class UsageRowOut(UsageCounts):
    """The usage of one group."""

    group: str | None = Field(
        description="A day, a model, a platform, or the id of a person or conversation; null for usage without one."
    )
    label: str
    turns: int


class UsageReportOut(ResponseModel):
    """Usage by group, and in total."""

    rows: list[UsageRowOut]
    total: UsageRowOut


@router.get("/usage")
async def get_usage_report(
    view: CallerView,
    group_by: UsageGrouping = UsageGrouping.DAY,
    first: Annotated[date | None, Query(alias="from", description="The first day, in UTC.")] = None,
    last: Annotated[date | None, Query(alias="to", description="The last day, in UTC.")] = None,
) -> UsageReportOut:
    """Get tokens and cost by day, model, platform, person or conversation; by default of the last thirty days."""
    return _to_report_out(await view.usage.report(group_by, first=first, last=last))


def _to_report_out(report: UsageReport) -> UsageReportOut:
    return UsageReportOut(rows=[_to_usage_row_out(row) for row in report.rows], total=_to_usage_row_out(report.total))


def _to_usage_row_out(row: UsageRow) -> UsageRowOut:
    return UsageRowOut(group=row.group, label=row.label, turns=row.turns, **row.to_dict())

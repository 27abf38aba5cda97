"""Usage reports: tokens and cost."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Query

from palaver.core.wire import Doc, TypedDict, build_json
from palaver.sessions.usage import UsageGrouping, UsageRow
from palaver.web.api_route import make_router
from palaver.web.auth import CallerView
from palaver.web.errors import error_responses
from palaver.web.wire import UsageCountsJson

router = make_router("usage", "/api", responses=error_responses(401))


class UsageRowJson(UsageCountsJson):
    """The usage of one group."""

    group: Annotated[
        str | None,
        Doc("A day, a model, a platform, or the id of a person or conversation; null for usage without one."),
    ]
    label: str
    turns: int


class UsageReportJson(TypedDict):
    """Usage by group, and in total."""

    rows: list[UsageRowJson]
    total: UsageRowJson


@router.get("/usage")
async def get_usage_report(
    view: CallerView,
    group_by: UsageGrouping = UsageGrouping.DAY,
    first: Annotated[date | None, Query(alias="from", description="The first day, in UTC.")] = None,
    last: Annotated[date | None, Query(alias="to", description="The last day, in UTC.")] = None,
) -> UsageReportJson:
    """Get tokens and cost by day, model, platform, person or conversation; by default of the last thirty days."""
    report = await view.usage.report(group_by, first=first, last=last)
    return {"rows": [_row_to_json(row) for row in report.rows], "total": _row_to_json(report.total)}


def _row_to_json(row: UsageRow) -> UsageRowJson:
    return build_json(UsageRowJson, row, **row.to_dict())

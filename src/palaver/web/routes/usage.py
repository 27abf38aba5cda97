"""What was used, and what it cost."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query

from palaver.domain.spending import Grouping
from palaver.web.auth import SeenBy
from palaver.web.errors import answers
from palaver.web.wire import UsageReportOut, report_out

router = APIRouter(tags=["usage"], responses=answers(401))


@router.get("/usage")
async def report_usage(
    seen: SeenBy,
    by: Grouping = Grouping.DAY,
    first: Annotated[date | None, Query(alias="from", description="The first day, in UTC.")] = None,
    last: Annotated[date | None, Query(alias="to", description="The last day, in UTC.")] = None,
) -> UsageReportOut:
    """Tokens and money by day, model, platform, person or conversation; the last thirty days unless told otherwise."""
    return report_out(await seen.usage(by, first=first, last=last))

"""What was used, and what it cost."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from palaver.domain.usage_report import Grouping, Report, Spent
from palaver.web.auth import SeenBy
from palaver.web.errors import answers
from palaver.web.schemas import Counted, Out, counted, shown

router = APIRouter(tags=["usage"], responses=answers(401))


class SpentOut(Counted):
    """What one group used."""

    group: str | None = Field(description="A day, a model, a platform, or an id; null: what belongs to none.")
    label: str
    turns: int


class UsageReportOut(Out):
    """What was used, by group, and in all."""

    rows: list[SpentOut]
    total: SpentOut


@router.get("/usage")
async def report_usage(
    seen: SeenBy,
    by: Grouping = Grouping.DAY,
    first: Annotated[date | None, Query(alias="from", description="The first day, in UTC.")] = None,
    last: Annotated[date | None, Query(alias="to", description="The last day, in UTC.")] = None,
) -> UsageReportOut:
    """Tokens and money by day, model, platform, person or conversation; the last thirty days unless told otherwise."""
    return report_out(await seen.usage(by, first=first, last=last))


def report_out(report: Report) -> UsageReportOut:
    """What was used, as it goes out."""
    return UsageReportOut(rows=[spent_out(row) for row in report.rows], total=spent_out(report.total))


def spent_out(spent: Spent) -> SpentOut:
    """What one group used, as it goes out."""
    return SpentOut(group=spent.group, label=shown(spent.label), turns=spent.turns, **counted(spent))

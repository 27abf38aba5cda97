"""A budget as JSON, for the API, `palaver budget --json` and commands. Money is decimal text, never a float."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from palaver.config.budget_rules import BudgetPeriod, BudgetScope, BudgetStatus, nanos_to_text
from palaver.core.wire import Doc, Time, TypedDict, build_json


class UsedUpBudgetJson(TypedDict):
    """A budget that you share with others and that is used up. What others have spent is not shown."""

    scope: BudgetScope
    subject: Annotated[
        str, Doc("The id of a person or job, or the name of a profile; empty for all together, or each of them.")
    ]
    period: BudgetPeriod
    resets_at: Time
    timezone: Annotated[str, Doc("The time zone in which days and months begin.")]


class BudgetJson(UsedUpBudgetJson):
    """One window of a budget: a day or a month of everybody together, a person, a job or a profile."""

    subject_name: Annotated[str, Doc("For people to read.")]
    used_usd: Annotated[str, Doc("In US dollars, as a decimal.")]
    held_usd: Annotated[str, Doc("Held for calls that are running: the most that they can cost.")]
    limit_usd: Annotated[str | None, Doc("Null: no limit.")]
    used_tokens: int
    held_tokens: int
    limit_tokens: Annotated[int | None, Doc("Null: no limit.")]
    unpriced_calls: Annotated[int, Doc("Calls whose price is unknown and not part of `used_usd`.")]
    percent: Annotated[int | None, Doc("How much of the tighter limit is used or held; null without a limit.")]
    is_limit_set: Annotated[
        bool, Doc("An owner has set a limit for exactly this; otherwise the server settings apply.")
    ]


class BudgetsJson(TypedDict):
    """Budgets."""

    budgets: list[BudgetJson]
    used_up: Annotated[
        list[UsedUpBudgetJson],
        Doc("For members: budgets shared with others that are used up. Owners see those among `budgets`."),
    ]
    next_cursor: Annotated[str | None, Doc("Pass this to get the next page; null on the last page.")]


def status_to_json(status: BudgetStatus) -> BudgetJson:
    return build_json(
        BudgetJson,
        status,
        **asdict(status.key),
        used_usd=nanos_to_text(status.used_nanos),
        held_usd=nanos_to_text(status.held_nanos),
        limit_usd=None if status.limit_nanos is None else nanos_to_text(status.limit_nanos),
        is_limit_set=bool(status.owner_units),
    )


def used_up_to_json(status: BudgetStatus) -> UsedUpBudgetJson:
    return build_json(UsedUpBudgetJson, status, **asdict(status.key))

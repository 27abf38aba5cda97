"""Budgets: what you may spend and have spent, and for owners, everybody's budgets and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Path, Query
from pydantic import Field, StringConstraints

from palaver.config.budget_rules import (
    MAX_LIMIT_TOKENS,
    BudgetKey,
    BudgetPeriod,
    BudgetScope,
    BudgetUnit,
    parse_dollars,
)
from palaver.core.operation import AsyncRunner
from palaver.money.service import MAX_PAGE_SUBJECTS, BudgetOverview, status_to_json
from palaver.people.model import Role, Scope
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, IncludeAll, OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ResponseModel, State, Time, to_utf8_text

if TYPE_CHECKING:
    from palaver.config.budget_rules import BudgetStatus

router = make_router("budgets", "/api/budgets", responses=error_responses(401))

COMMON_SUBJECT = "*"  # in a path: all together, or each of them


class BudgetOut(ResponseModel):
    """One window of a budget: a day or a month of everybody together, a person, a job or a profile."""

    scope: BudgetScope
    subject: str = Field(
        description="The id of a person or job, or the name of a profile; empty for all together, or each of them."
    )
    subject_name: str = Field(description="For people to read.")
    period: BudgetPeriod
    used_usd: str = Field(description="In US dollars, as a decimal.")
    held_usd: str = Field(description="Held for calls that are running: the most that they can cost.")
    limit_usd: str | None = Field(description="Null: no limit.")
    used_tokens: int
    held_tokens: int
    limit_tokens: int | None = Field(description="Null: no limit.")
    unpriced_calls: int = Field(description="Calls whose price is unknown and not part of `used_usd`.")
    percent: int | None = Field(description="How much of the tighter limit is used or held; null without a limit.")
    is_limit_set: bool = Field(
        description="An owner has set a limit for exactly this; otherwise the server settings apply."
    )
    resets_at: Time
    timezone: str = Field(description="The time zone in which days and months begin.")


class UsedUpBudgetOut(ResponseModel):
    """A budget that you share with others and that is used up. What others have spent is not shown."""

    scope: BudgetScope
    subject: str
    period: BudgetPeriod
    resets_at: Time
    timezone: str


class BudgetsOut(ResponseModel):
    """Budgets."""

    budgets: list[BudgetOut]
    used_up: list[UsedUpBudgetOut] = Field(
        description="For members: budgets shared with others that are used up. Owners see those among `budgets`."
    )
    next_cursor: str | None = Field(description="Pass this to get the next page; null on the last page.")


class LimitsIn(RequestModel):
    """Limits to set. A unit that you leave out stays as it is; null means no limit, whatever config.yaml says."""

    usd: Annotated[str, StringConstraints(max_length=20)] | None = Field(
        default=None, description="In US dollars, with at most 6 decimals.", examples=["2.50"]
    )
    tokens: Annotated[int, Field(ge=0, le=MAX_LIMIT_TOKENS)] | None = None


def _open_overview(state: State) -> BudgetOverview[AsyncRunner]:
    gateway = state.gateway
    runner, profiles = AsyncRunner(gateway.store.engine), gateway.profile.profiles.keys()
    return BudgetOverview(runner, gateway.rules.budgets, gateway.store.clock, profiles)


Overview = Annotated[BudgetOverview[AsyncRunner], Depends(_open_overview)]
Subject = Annotated[
    str,
    Path(max_length=200, description="An id, or the name of a profile; `*` for all together (`all`), or each of them."),
]


def _get_key(scope: BudgetScope, subject: Subject, period: BudgetPeriod) -> BudgetKey:
    return BudgetKey(scope, "" if subject == COMMON_SUBJECT else subject, period)


Key = Annotated[BudgetKey, Depends(_get_key)]


@router.get("", responses=error_responses(403, 404))
async def list_budgets(
    overview: Overview,
    caller: Caller,
    include_all: IncludeAll,
    session: Annotated[str, Query(max_length=100, description="Include the budget of its profile.")] | None = None,
    cursor: Annotated[str, Query(max_length=300)] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SUBJECTS, description="How many people, jobs and profiles.")] = 50,
) -> BudgetsOut:
    """List your budgets; with `all`, everybody's that have a limit or were used this month."""
    if include_all:
        page = await overview.list_everything(caller.principal, limit=limit, cursor=cursor)
        return BudgetsOut(budgets=[_to_budget_out(each) for each in page], used_up=[], next_cursor=page.cursor)
    principal = caller.principal
    if Scope.ADMIN not in caller.scopes:  # a token that may not act as an owner learns only what a member may know
        principal = replace(principal, role=Role.MEMBER)
    own = await overview.list_own(principal, session)
    return BudgetsOut(
        budgets=[_to_budget_out(each) for each in own.statuses],
        used_up=[_to_used_up_out(each) for each in own.used_up],
        next_cursor=None,
    )


@router.put("/{scope}/{subject}/{period}", responses=error_responses(403, 404))
async def set_budget_limits(key: Key, body: LimitsIn, overview: Overview, caller: OwnerCaller) -> BudgetOut:
    """Set limits of one budget. They apply from the next call to a model, and win over config.yaml."""
    amounts: dict[BudgetUnit, int | None] = {}
    if "usd" in body.model_fields_set:
        amounts[BudgetUnit.USD] = None if body.usd is None else parse_dollars(body.usd)
    if "tokens" in body.model_fields_set:
        amounts[BudgetUnit.TOKENS] = body.tokens
    return _to_budget_out(await overview.set_limits(caller.principal, key, amounts))


@router.delete("/{scope}/{subject}/{period}", status_code=204, responses=error_responses(403))
async def clear_budget_limits(key: Key, overview: Overview, caller: OwnerCaller) -> None:
    """Remove the limits that were set for one budget, so that the server settings apply."""
    await overview.clear_limits(caller.principal, key)


def _to_budget_out(status: BudgetStatus) -> BudgetOut:
    fields = status_to_json(status) | {"subject_name": to_utf8_text(status.subject_name)}
    return BudgetOut.model_validate(fields | {"resets_at": status.resets_at})


def _to_used_up_out(status: BudgetStatus) -> UsedUpBudgetOut:
    return UsedUpBudgetOut(
        scope=status.key.scope,
        subject=status.key.subject,
        period=status.key.period,
        resets_at=status.resets_at,
        timezone=status.timezone,
    )

"""Budgets: what you may spend and have spent, and for owners, everybody's budgets and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

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
from palaver.money.service import MAX_PAGE_SUBJECTS, BudgetOverview
from palaver.money.wire import BudgetJson, BudgetsJson, status_to_json, used_up_to_json
from palaver.people.model import Role, Scope
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, IncludeAll, OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, State

router = make_router("budgets", "/api/budgets", responses=error_responses(401))

COMMON_SUBJECT = "*"  # in a path: all together, or each of them


class LimitsIn(RequestModel):
    """Limits to set. A unit that you leave out stays as it is; null means no limit, whatever config.yaml says."""

    usd: Annotated[str, StringConstraints(max_length=20)] | None = Field(
        default=None, description="In US dollars, with at most 6 decimals.", examples=["2.50"]
    )
    tokens: Annotated[int, Field(ge=0, le=MAX_LIMIT_TOKENS)] | None = None


async def _open_overview(state: State) -> BudgetOverview[AsyncRunner]:
    gateway = state.gateway
    runner, profiles = AsyncRunner(gateway.store.engine), gateway.profile.profiles.keys()
    return BudgetOverview(runner, gateway.rules.budgets, gateway.store.clock, profiles)


Overview = Annotated[BudgetOverview[AsyncRunner], Depends(_open_overview)]
Subject = Annotated[
    str,
    Path(max_length=200, description="An id, or the name of a profile; `*` for all together (`all`), or each of them."),
]


async def _get_key(scope: BudgetScope, subject: Subject, period: BudgetPeriod) -> BudgetKey:
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
) -> BudgetsJson:
    """List your budgets; with `all`, everybody's that have a limit or were used this month."""
    if include_all:
        page = await overview.list_everything(caller.principal, limit=limit, cursor=cursor)
        return {"budgets": [status_to_json(each) for each in page], "used_up": [], "next_cursor": page.cursor}
    principal = caller.principal
    if Scope.ADMIN not in caller.scopes:  # a token that may not act as an owner learns only what a member may know
        principal = replace(principal, role=Role.MEMBER)
    own = await overview.list_own(principal, session)
    return {
        "budgets": [status_to_json(each) for each in own.statuses],
        "used_up": [used_up_to_json(each) for each in own.used_up],
        "next_cursor": None,
    }


@router.put("/{scope}/{subject}/{period}", responses=error_responses(403, 404))
async def set_budget_limits(key: Key, body: LimitsIn, overview: Overview, caller: OwnerCaller) -> BudgetJson:
    """Set limits of one budget. They apply from the next call to a model, and win over config.yaml."""
    amounts: dict[BudgetUnit, int | None] = {}
    if "usd" in body.model_fields_set:
        amounts[BudgetUnit.USD] = None if body.usd is None else parse_dollars(body.usd)
    if "tokens" in body.model_fields_set:
        amounts[BudgetUnit.TOKENS] = body.tokens
    return status_to_json(await overview.set_limits(caller.principal, key, amounts))


@router.delete("/{scope}/{subject}/{period}", status_code=204, responses=error_responses(403))
async def clear_budget_limits(key: Key, overview: Overview, caller: OwnerCaller) -> None:
    """Remove the limits that were set for one budget, so that the server settings apply."""
    await overview.clear_limits(caller.principal, key)

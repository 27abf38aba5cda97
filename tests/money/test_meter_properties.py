"""Whatever happens to calls of two processes, what they use never passes a limit by more than they were wrong about.

Holds, settlements, releases, crashes and changes of limits in any order, against a model in a few lines of Python.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from hypothesis import HealthCheck, given, settings, strategies as st

from conftest import create_sqlite_database
from palaver import SessionSource, SessionStore
from palaver.config.agent_rules import TurnRules
from palaver.config.budget_rules import (
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetScope,
    BudgetUnit,
    CallPurpose,
)
from palaver.core.engines.base import Write
from palaver.core.errors import BudgetExceeded
from palaver.core.ids import PersonId
from palaver.money import calls_table as call_records, table as budget_limits
from palaver.money.meter import BudgetMeter, Budgets
from palaver.testing import FakeClock
from support.metered_work import count_calls, make_call, make_usage, make_work, read_recorded, read_windows

if TYPE_CHECKING:
    from palaver.agent.base import HeldCall
    from support.metered_work import FakeWork

SCOPES = (BudgetScope.ALL, BudgetScope.PERSON)


@dataclass
class OpenCall:
    call: HeldCall
    process: int
    held: int


@dataclass
class World:
    """Two processes on one database, and what the windows of everybody and of one person should say."""

    store: SessionStore
    works: list[FakeWork]
    dead: set[str] = field(default_factory=set)
    open_calls: list[OpenCall] = field(default_factory=list)
    limits: dict[tuple[BudgetScope, BudgetUnit], int] = field(default_factory=dict)
    used: int = 0
    highest_limit: int = 0  # under which something was held
    excess: int = 0  # what calls have used beyond what was held for them
    is_unlimited: bool = False  # something was held without any limit

    @property
    def held(self) -> int:
        return sum(each.held for each in self.open_calls)

    def make_meter(self, process: int) -> BudgetMeter:
        budgets = Budgets(self.store, TurnRules)
        return budgets.make_meter(self.works[process], CallPurpose.ANSWER)

    def check(self) -> None:
        expected = (self.used, self.held, self.used, self.held, 0)
        assert set(read_windows(self.store).values()) <= {expected}
        if not self.is_unlimited:
            assert self.used + self.held <= self.highest_limit + self.excess


Action = Callable[[World], object]


def hold(process: int, prompt: int, max_tokens: int | None) -> Action:
    async def run(world: World) -> None:
        before = world.used + world.held
        smallest = -(-prompt * 12 // 10) + min(max_tokens or 8000, 1000)
        limit = min(world.limits.values(), default=None)
        try:
            call = await world.make_meter(process).hold(make_call(prompt, max_tokens))
        except BudgetExceeded:
            assert limit is not None
            assert before + smallest > limit
            return
        held = read_windows(world.store)["all", "", "day"][1] - world.held
        assert held >= smallest
        if limit is None:
            world.is_unlimited = True
        else:
            assert before + held <= limit
            world.highest_limit = max(world.highest_limit, limit)
        world.open_calls.append(OpenCall(call, process, held))

    return run


def settle(index: int, percent: int | None) -> Action:
    async def run(world: World) -> None:
        if not world.open_calls:
            return
        ended = world.open_calls.pop(index % len(world.open_calls))
        used = ended.held if percent is None else ended.held * percent // 100
        await ended.call.settle(None if percent is None else make_usage(used, 0))
        world.used += used
        world.excess += max(used - ended.held, 0)

    return run


def release(index: int) -> Action:
    async def run(world: World) -> None:
        if world.open_calls:
            ended = world.open_calls.pop(index % len(world.open_calls))
            await ended.call.release()
            await ended.call.settle(make_usage(10**6, 0))  # it has ended

    return run


def crash(process: int) -> Action:
    async def run(world: World) -> None:
        world.dead.add(world.works[process].owner)
        world.works[process] = make_work(world.store, SOURCE)
        lost = [each for each in world.open_calls if each.process == process]
        world.open_calls = [each for each in world.open_calls if each.process != process]
        world.used += sum(each.held for each in lost)
        budgets = [Budgets(world.store, TurnRules) for _ in range(2)]
        await asyncio.gather(*(each.recover_calls() for each in budgets))
        for each in lost:
            await each.call.settle(make_usage(10**6, 0))  # it is counted already

    return run


def set_limit(scope: BudgetScope, unit: BudgetUnit, amount: int | None) -> Action:
    async def run(world: World) -> None:
        subject = "" if scope is BudgetScope.ALL else str(world.works[0].person_id)
        limit = BudgetLimit(key=BudgetKey(scope, subject, BudgetPeriod.DAY), unit=unit, amount=amount)
        world.store.engine.run(Write(lambda tx: budget_limits.set_limit(tx, limit, PersonId("p_1"), 0)))
        world.limits.pop((scope, unit), None)
        if amount is not None:
            world.limits[scope, unit] = amount

    return run


SOURCE = SessionSource("telegram", "ada", user_id="ada")
processes = st.integers(0, 1)
actions = st.lists(
    st.one_of(
        st.builds(hold, processes, st.integers(0, 2000), st.none() | st.integers(1, 9000)),
        st.builds(hold, processes, st.integers(0, 2000), st.none() | st.integers(1, 9000)),
        st.builds(settle, st.integers(0, 9), st.none() | st.integers(0, 130)),
        st.builds(release, st.integers(0, 9)),
        st.builds(crash, processes),
        st.builds(set_limit, st.sampled_from(SCOPES), st.sampled_from(BudgetUnit), st.none() | st.integers(0, 20_000)),
    ),
    max_size=20,
)


async def play(world: World, script: list[Action]) -> None:
    for action in script:
        await action(world)  # type: ignore[misc]
        world.check()
    for process in (0, 1):
        await crash(process)(world)  # type: ignore[misc]
    assert count_calls(world.store) == 0
    assert world.held == 0
    world.check()
    assert sum(tokens for tokens, _ in read_recorded(world.store)) == world.used


@settings(max_examples=settings().max_examples // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SCOPES), st.sampled_from(BudgetUnit), st.integers(3000, 20_000), actions)
def test_money_spent_never_passes_a_limit_by_more_than_the_estimates_were_wrong(
    scope: BudgetScope, unit: BudgetUnit, first_limit: int, script: list[Action]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SessionStore.open(create_sqlite_database(Path(folder)), clock=FakeClock())
        world = World(store, [make_work(store, SOURCE) for _ in range(2)])
        with store, mock.patch.object(call_records, "is_owner_dead", world.dead.__contains__):
            asyncio.run(play(world, [set_limit(scope, unit, first_limit), *script]))

"""Warnings that most of a budget is used: once, to the right people, with the amounts that they may know."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import CUT_OFF_NOTICE, TextDelta
from palaver.config.budget_rules import BudgetKey, BudgetPeriod, BudgetScope, BudgetUnit
from palaver.core.engines.base import Read, Write
from palaver.core.operation import BlockingRunner
from palaver.money.service import BudgetOverview
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from support.gateway import ask
from support.metered_work import NANO_PER_TOKEN, make_call, make_rules, make_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver import SessionSource
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.gateway.gateway import Gateway
    from palaver.testing import FakeClock
    from support.gateway import StartGateway

MakeSource = Callable[..., "SessionSource"]


@pytest.fixture
def start_gateway(start_gateway: StartGateway, clock: FakeClock) -> StartGateway:
    """Start gateways whose clock stands still, because a budget begins again at midnight."""
    return partial(start_gateway, clock=clock)


async def use_what_is_asked(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
    """Use as many tokens as the message says."""
    held = await request.meter.hold(make_call(10, 10))
    yield TextDelta("ok")
    await held.settle(make_usage(0, int(str(request.messages[-1]["content"]).split()[-1])))


@pytest.fixture
def agent() -> ScriptedAgent:
    return ScriptedAgent(use_what_is_asked, price=NANO_PER_TOKEN)


async def set_role(gateway: Gateway, source: SessionSource, role: Role) -> str:
    person = await gateway.store.aio.get_or_create_person(source)
    await gateway.store.engine.arun(Write(lambda tx: people.set_role(tx, person.id, role)))
    return person.id


def list_deliveries(gateway: Gateway, user: str) -> list[str]:
    """Return what is sent to a chat, in order."""
    rows = gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT address, content FROM delivery ORDER BY no")))
    return [content for address, content in rows if f"{user}" in address]


async def test_a_person_is_warned_once_after_the_answer(
    start_gateway: StartGateway, agent: ScriptedAgent, dm: MakeSource
) -> None:
    gateway = await start_gateway(agent, budgets=make_rules(person_day_tokens=1000))
    await ask(gateway, dm(), "use 700")
    assert list_deliveries(gateway, "ada") == ["ok"]
    await ask(gateway, dm(), "use 120")
    answer, warning = list_deliveries(gateway, "ada")[1:]
    assert answer == "ok"
    assert warning.startswith(
        "Your daily budget is 82% used (820 tokens of 1,000 tokens). It resets at 2026-11-16 00:00"
    )
    await ask(gateway, dm(), "use 20")
    assert list_deliveries(gateway, "ada")[3:] == ["ok"]  # told once


async def test_a_changed_limit_is_warned_about_again(
    start_gateway: StartGateway, agent: ScriptedAgent, dm: MakeSource
) -> None:
    rules = make_rules(person_day_tokens=1000)
    gateway = await start_gateway(agent, budgets=rules)
    await ask(gateway, dm(), "use 900")
    owner, key = gateway.store.get_owner(), BudgetKey(BudgetScope.PERSON, "", BudgetPeriod.DAY)
    overview = BudgetOverview(BlockingRunner(gateway.store.engine), rules, gateway.store.clock, ())
    overview.set_limits(owner.principal, key, {BudgetUnit.TOKENS: 2000})
    await ask(gateway, dm(), "use 600")
    await ask(gateway, dm(), "use 300")
    warnings = [text for text in list_deliveries(gateway, "ada") if "used (" in text]
    assert [text[:30] for text in warnings] == ["Your daily budget is 90% used ", "Your daily budget is 90% used "]


async def test_a_chat_is_told_that_the_budget_cut_an_answer_off(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        held = await request.meter.hold(make_call(10, 3000))
        yield TextDelta("It begins with")
        await held.settle(make_usage(1, 1))
        yield CUT_OFF_NOTICE

    gateway = await start_gateway(ScriptedAgent(answer), budgets=make_rules(person_day_tokens=2000))
    await ask(gateway, dm(), "tell me")
    assert list_deliveries(gateway, "ada") == [
        "It begins with",
        "The answer was cut off because it reached the maximum length. Little of the budget is left, so answers have to"
        " be shorter.",
    ]


async def test_in_a_group_people_cannot_read_the_amounts(
    start_gateway: StartGateway, agent: ScriptedAgent, group: MakeSource
) -> None:
    gateway = await start_gateway(agent, budgets=make_rules(person_day_tokens=1000))
    await ask(gateway, group(), "use 990")
    warning = list_deliveries(gateway, "club")[-1]
    assert warning.startswith("Your daily budget is 99% used. It resets at")
    turn = await ask(gateway, group(), "use 1")
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.startswith("Your daily budget is used up. It resets at")
    assert "1,000" not in turn.error


@pytest.mark.both_engines
async def test_owners_are_told_of_the_budget_of_everybody_and_members_are_not(
    start_gateway: StartGateway, agent: ScriptedAgent, dm: MakeSource
) -> None:
    gateway = await start_gateway(agent, budgets=make_rules(all_day_tokens=1000))
    await ask(gateway, dm("olga"), "use 1")
    await set_role(gateway, dm("olga"), Role.OWNER)
    await ask(gateway, dm("ben"), "use 850")
    assert list_deliveries(gateway, "ben") == ["ok"]
    [_, warning] = list_deliveries(gateway, "olga")
    assert warning.startswith("The daily budget of everybody together is 85% used (851 tokens of 1,000 tokens).")
    turn = await ask(gateway, dm("ben"), "use 140")
    turn = await ask(gateway, dm("ben"), "use 1")
    assert turn.error is not None
    assert turn.error.startswith("The daily budget of everybody together is used up. It resets at")
    assert [hidden for hidden in ("991", "9 tokens", "1,000", "2k") if hidden in turn.error] == []
    turn = await ask(gateway, dm("olga"), "use 1")
    assert "only 9 tokens of 1,000 tokens left" in (turn.error or "")

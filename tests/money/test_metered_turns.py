"""Turns whose calls to models are metered: their usage is recorded once, however they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import CUT_OFF_NOTICE, TextDelta, UsageReport
from palaver.config.budget_rules import FREE, BudgetKey, BudgetLimit, BudgetPeriod, BudgetScope, BudgetUnit, TokenPrice
from palaver.core.engines.base import Read, Write
from palaver.money import table as budget_limits
from palaver.sessions.events import EventKind
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from support.gateway import ask, get_turn, make_member, send_message, wait_for_turn, wait_until
from support.metered_work import (
    NANO_PER_TOKEN,
    count_calls,
    make_call,
    make_rules,
    make_usage,
    read_recorded,
    read_windows,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver import SessionSource
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.testing import FakeClock
    from support.gateway import StartGateway

MakeSource = Callable[..., "SessionSource"]
ALL_DAY = ("all", "", "day")


@pytest.fixture
def start_gateway(start_gateway: StartGateway, clock: FakeClock) -> StartGateway:
    """Start gateways whose clock stands still, because a budget begins again at midnight."""
    return partial(start_gateway, clock=clock)


class MeteredAgent:
    """Calls a model as often as there are words in the message; "hang" makes it wait after the first text."""

    def __init__(
        self, *, can_write_titles: bool = False, is_settled: bool = True, price: TokenPrice = NANO_PER_TOKEN
    ) -> None:
        self.is_waiting = asyncio.Event()
        self._is_settled = is_settled
        self._price = price
        self.agent = ScriptedAgent(self._answer, price=price, can_write_titles=can_write_titles)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        question = str(request.messages[-1]["content"])
        for word in question.split(" ") if request.turn_id else ["title"]:
            held = await request.meter.hold(make_call(10, request.max_tokens or 100, price=self._price))
            yield TextDelta(f"{word} ")
            try:
                if word == "hang":
                    self.is_waiting.set()
                    await asyncio.Event().wait()
            except asyncio.CancelledError:
                await held.settle(None, streamed_tokens=4)
                raise
            if self._is_settled:
                await held.settle(make_usage(3, 2))
            yield UsageReport(make_usage(3, 2), held.is_recorded)


@pytest.fixture
def metered() -> MeteredAgent:
    return MeteredAgent()


async def test_the_usage_of_a_turn_is_recorded_once_and_counted(
    start_gateway: StartGateway, metered: MeteredAgent, dm: MakeSource
) -> None:
    gateway = await start_gateway(metered.agent)
    turn = await ask(gateway, dm(), "three words here")
    assert turn.state is TurnState.DONE
    assert read_recorded(gateway.store) == [(15, 15)]
    assert read_windows(gateway.store)[ALL_DAY] == (15, 0, 15, 0, 0)
    assert count_calls(gateway.store) == 0
    session = gateway.store.get_or_create_session(dm()).session
    assert (session.usage.total_tokens, session.usage.cost_nanos) == (15, 15)


@pytest.mark.parametrize("text", ["two words", "please hang"])
async def test_the_tokens_of_free_calls_are_counted_when_their_turn_ends(
    start_gateway: StartGateway, dm: MakeSource, text: str
) -> None:
    metered = MeteredAgent(price=FREE)
    gateway = await start_gateway(metered.agent)
    turn_id = await send_message(gateway, dm(), text)
    if text == "please hang":
        await metered.is_waiting.wait()
        assert read_windows(gateway.store) == {}
        await send_message(gateway, dm(), "/stop")
    await wait_for_turn(gateway, turn_id)
    tokens = 10 if text == "two words" else 9
    assert {window[2] for window in read_windows(gateway.store).values()} == {tokens}
    assert {scope for scope, _, _ in read_windows(gateway.store)} == {"all", "person"}


async def test_the_tokens_of_free_calls_are_counted_although_the_turn_is_lost(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    metered = MeteredAgent(price=FREE)
    gateway = await start_gateway(metered.agent)
    turn_id = await send_message(gateway, dm(), "please hang")
    await metered.is_waiting.wait()
    await gateway.turn_worker.stop(grace_seconds=0)
    assert (await get_turn(gateway, turn_id)).state is TurnState.QUEUED
    assert read_windows(gateway.store)[ALL_DAY] == (0, 0, 9, 0, 0)


async def test_a_stopped_answer_is_recorded_with_what_was_streamed(
    start_gateway: StartGateway, metered: MeteredAgent, dm: MakeSource
) -> None:
    gateway = await start_gateway(metered.agent)
    turn_id = await send_message(gateway, dm(), "please hang")
    await metered.is_waiting.wait()
    await send_message(gateway, dm(), "/stop")
    assert (await wait_for_turn(gateway, turn_id)).state is TurnState.INTERRUPTED
    assert read_recorded(gateway.store) == [(5 + 12 + 4, 5 + 12 + 4)]
    assert read_windows(gateway.store)[ALL_DAY] == (21, 0, 21, 0, 0)


async def test_a_call_that_is_never_settled_counts_as_held_when_its_turn_ends(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(MeteredAgent(is_settled=False).agent)
    await ask(gateway, dm(), "once")
    assert read_recorded(gateway.store) == [(112, 112)]
    assert read_windows(gateway.store)[ALL_DAY] == (112, 0, 112, 0, 0)


@pytest.mark.both_engines
async def test_a_turn_that_a_budget_does_not_allow_fails_with_its_text(
    start_gateway: StartGateway, metered: MeteredAgent, dm: MakeSource
) -> None:
    gateway = await start_gateway(metered.agent, budgets=make_rules(person_day_tokens=120))
    turn = await ask(gateway, dm(), "two three four")
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.startswith(
        "Your daily budget has only 110 tokens of 120 tokens left, and this answer may need 112"
    )
    assert read_recorded(gateway.store) == [(10, 10)]
    failure = gateway.store.engine.run(
        Read(lambda tx: tx.fetch_one("SELECT body FROM event WHERE kind = $1", EventKind.TURN_FAILED.value))
    )
    assert failure is not None
    assert '"budget_exceeded"' in failure[0]
    assert '"resets_at"' in failure[0]


async def test_a_title_is_metered_and_left_out_silently_when_the_budget_is_used_up(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    metered = MeteredAgent(can_write_titles=True)
    gateway = await start_gateway(metered.agent, budgets=make_rules(person_day_tokens=450))  # a title may need 412
    assert (await ask(gateway, dm(), "hello")).state is TurnState.DONE
    await wait_until(lambda: len(read_recorded(gateway.store)) == 2)  # the answer, and the title
    assert count_calls(gateway.store) == 0
    assert read_windows(gateway.store)[ALL_DAY] == (10, 0, 10, 0, 0)
    assert (await ask(gateway, dm("bob"), " ".join(["word"] * 20))).state is TurnState.DONE
    await wait_until(lambda: len(metered.agent.requests) == 4)  # the model was wanted for a title, and not called
    await gateway.turn_worker.stop()
    assert read_windows(gateway.store)[ALL_DAY] == (110, 0, 110, 0, 0)


async def test_a_summary_that_the_budget_does_not_allow_changes_nothing(
    start_gateway: StartGateway, metered: MeteredAgent, dm: MakeSource
) -> None:
    gateway = await start_gateway(metered.agent, budgets=make_rules(person_day_tokens=140))
    for text in ("one", "two", "three", "four", "five"):
        assert (await ask(gateway, dm(), text)).state is TurnState.DONE
    person = gateway.store.get_or_create_person(dm())
    limit = BudgetLimit(
        key=BudgetKey(BudgetScope.PERSON, person.id, BudgetPeriod.DAY), unit=BudgetUnit.TOKENS, amount=100
    )
    await make_member(gateway.store, dm())
    await gateway.store.engine.arun(Write(lambda tx: budget_limits.set_limit(tx, limit, person.id, 0)))
    turn = await ask(gateway, dm(), "/compress")
    assert turn.state is TurnState.FAILED
    assert (turn.error or "").startswith(
        "Your daily budget has only 75 tokens of 100 tokens left, and this answer may need"
    )
    assert read_recorded(gateway.store) == [(5, 5)] * 5


async def test_a_summary_that_the_budget_cuts_off_changes_nothing(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        held = await request.meter.hold(make_call(10, 100 if request.turn_id else 3000))
        yield TextDelta("They talked about")
        await held.settle(make_usage(3, 2))
        if not request.turn_id:
            yield CUT_OFF_NOTICE

    gateway = await start_gateway(
        ScriptedAgent(answer, price=NANO_PER_TOKEN), budgets=make_rules(person_day_tokens=2000)
    )
    await make_member(gateway.store, dm())
    for text in ("one", "two", "three", "four", "five"):
        assert (await ask(gateway, dm(), text)).state is TurnState.DONE
    turn = await ask(gateway, dm(), "/compress")
    assert (turn.state, turn.error) == (
        TurnState.FAILED,
        "What is left of the budget is not enough for a summary, so nothing was changed.",
    )

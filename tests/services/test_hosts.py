"""Several machines on one PostgreSQL whose clocks differ. A file is used on one machine, which has one clock."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from conftest import emptied
from palaver import GatewayConfig, SessionSource, SessionStore
from palaver.agent.base import TextDelta
from palaver.domain.clock import SystemClock
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.domain.turn import TurnState
from palaver.services.gateway import Gateway
from palaver.storage.engines import postgres_clock
from palaver.storage.engines.base import Read
from palaver.storage.engines.postgres import PostgresEngine
from palaver.storage.engines.postgres_clock import ServerClock
from palaver.testing import ScriptedAgent
from support.gateway import ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from palaver.agent.base import AgentEvent, AgentRequest

ABOUT = timedelta(seconds=5)


@pytest.fixture
def url(postgres_database: str) -> str:
    return emptied(postgres_database)


class Ticks:
    """What a machine counts by; no two of them began at the same moment."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead

    def __call__(self) -> int:
        return postgres_clock.ticks() + self.ahead


@pytest.fixture
def engine(url: str) -> Iterator[tuple[PostgresEngine, Ticks]]:
    ticks = Ticks(3_600_000_000)
    opened = PostgresEngine.open(url, ServerClock(ticks))
    yield opened, ticks
    opened.close()


def test_a_store_goes_by_the_servers_clock_whatever_the_machine_says(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _self: datetime(2001, 1, 1, tzinfo=UTC))
    with SessionStore.open(url) as store:
        said = store.record_user_message(SessionSource.local_cli(), "hello")
        assert abs(store.get_session(said.session_id).created_at - datetime.now(UTC)) < ABOUT


def test_a_machine_that_has_miscounted_knows_the_time_again_when_it_has_asked(
    engine: tuple[PostgresEngine, Ticks],
) -> None:
    opened, ticks = engine
    ticks.ahead += 600_000_000
    assert opened.clock.now() - datetime.now(UTC) > timedelta(minutes=9)
    opened.run(Read(lambda tx: tx.one("SELECT 1")))  # whatever it has to do
    assert abs(opened.clock.now() - datetime.now(UTC)) < ABOUT


async def test_hosts_that_count_their_time_otherwise_leave_each_other_their_turns(
    url: str, engine: tuple[PostgresEngine, Ticks]
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Here ")
        begun.set()
        await go_on.wait()
        yield TextDelta("I am.")

    def gateway(store: SessionStore, agent: ScriptedAgent) -> Gateway:
        return Gateway(store, agent, profile=AgentProfile(), rules=TurnRules())

    async with AsyncExitStack() as stack:
        here = gateway(stack.enter_context(SessionStore.open(url)), ScriptedAgent(slowly))
        there = gateway(SessionStore(engine[0], GatewayConfig(), engine[0].clock), ScriptedAgent("I answer too."))
        await stack.enter_async_context(here.running(5))
        asking = asyncio.create_task(ask(here, SessionSource.local_cli(), "where are you?"))
        await begun.wait()
        await stack.enter_async_context(there.running(5))  # which begins by taking over what the dead have left
        assert await there.turns.recover() == 0
        go_on.set()
        turn = await asking
    assert (turn.state, turn.attempt) == (TurnState.DONE, 1)

"""Several hosts with different clocks on one PostgreSQL. An SQLite file is used by one host, which has one clock."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from conftest import empty_database
from palaver import GatewayConfig, SessionSource, SessionStore
from palaver.agent.base import TextDelta
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import SystemClock
from palaver.core.engines import postgres_connection as postgres_clock
from palaver.core.engines.base import Read
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.engines.postgres_connection import ServerClock
from palaver.gateway.gateway import Gateway
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from support.gateway import ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from palaver.agent.base import AgentEvent, AgentRequest

TOLERANCE = timedelta(seconds=5)


@pytest.fixture
def url(postgres_database: str) -> str:
    return empty_database(postgres_database)


class MonotonicClock:
    """The monotonic clock of a host; no two hosts started at the same moment."""

    def __init__(self, offset_micros: int) -> None:
        self.offset_micros = offset_micros

    def __call__(self) -> int:
        return postgres_clock.read_monotonic_micros() + self.offset_micros


@pytest.fixture
def engine(url: str) -> Iterator[tuple[PostgresEngine, MonotonicClock]]:
    monotonic_clock = MonotonicClock(3_600_000_000)
    opened = PostgresEngine.open(url, ServerClock(monotonic_clock))
    yield opened, monotonic_clock
    opened.close()


def test_a_store_uses_the_clock_of_the_server_and_not_of_the_host(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _self: datetime(2001, 1, 1, tzinfo=UTC))
    with SessionStore.open(url) as store:
        recorded = store.record_user_message(SessionSource.local_cli(), "hello")
        assert abs(store.get_session(recorded.session_id).created_at - datetime.now(UTC)) < TOLERANCE


def test_a_host_whose_clock_is_wrong_corrects_it_with_the_next_query(
    engine: tuple[PostgresEngine, MonotonicClock],
) -> None:
    opened, monotonic_clock = engine
    monotonic_clock.offset_micros += 600_000_000
    assert opened.clock.now() - datetime.now(UTC) > timedelta(minutes=9)
    opened.run(Read(lambda tx: tx.fetch_one("SELECT 1")))  # any query will do
    assert abs(opened.clock.now() - datetime.now(UTC)) < TOLERANCE


async def test_hosts_with_different_clocks_do_not_recover_each_others_running_turns(
    url: str, engine: tuple[PostgresEngine, MonotonicClock]
) -> None:
    started, may_continue = asyncio.Event(), asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Here ")
        started.set()
        await may_continue.wait()
        yield TextDelta("I am.")

    def create_gateway(store: SessionStore, agent: ScriptedAgent) -> Gateway:
        return Gateway(store, agent, profile=AgentProfile(), rules=TurnRules())

    async with AsyncExitStack() as stack:
        first = create_gateway(stack.enter_context(SessionStore.open(url)), ScriptedAgent(answer))
        second = create_gateway(
            SessionStore(engine[0], GatewayConfig(), engine[0].clock), ScriptedAgent("I answered too.")
        )
        await stack.enter_async_context(first.run(5))
        answering = asyncio.create_task(ask(first, SessionSource.local_cli(), "where are you?"))
        await started.wait()
        await stack.enter_async_context(second.run(5))  # its start recovers the turns of dead workers
        assert await second.turn_worker.recover_orphans() == 0
        may_continue.set()
        turn = await answering
    assert (turn.state, turn.attempt) == (TurnState.DONE, 1)

"""PostgreSQL goes away for seconds while many callers wait, and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from palaver import SessionSource, SessionStore
from palaver.agent.base import TextDelta, UsageReport
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.engines import postgres_connection, postgres_pool
from palaver.core.engines.base import Read, Write
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.errors import StoreUnavailable
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import LOOPBACK
from palaver.sessions.turn import TurnState
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from support.gateway import send_message, wait_for_turn, wait_until
from support.postgres_server import run_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.core.engines.postgres_connection import PooledConnection
    from palaver.sessions.turn import Turn

OUTAGE_WAIT_SECONDS = 0.3  # of the pool, in place of two seconds
WAITING_CALLERS = 150

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


class Server:
    """A PostgreSQL server of this module's own, which a test may stop and start."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url = server.get_uri()

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.start()


@pytest.fixture(scope="module")
def module_server() -> Iterator[Server]:
    with run_server() as (server, _):
        yield Server(server)


@pytest.fixture
def server(module_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(postgres_pool, "OUTAGE_WAIT_SECONDS", OUTAGE_WAIT_SECONDS)
    yield module_server
    module_server.start()  # for the next test, if this one failed in between


def build_source(user: str = "ada") -> SessionSource:
    return SessionSource(LOOPBACK, user, user_id=user, user_name=user.title())


@contextlib.asynccontextmanager
async def run_gateway(server: Server, agent: ScriptedAgent) -> AsyncGenerator[Gateway, None]:
    rules = TurnRules(open_platforms=frozenset({LOOPBACK}))
    with SessionStore.open(server.url) as store:
        gateway = Gateway(store, agent, profile=AgentProfile(), rules=rules)
        async with gateway.run(grace_seconds=5):
            yield gateway


class WaitingCallers:
    """Tasks that read and write without pause, whatever the server does, and note when they succeeded."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._tasks = [asyncio.create_task(self._call(number)) for number in range(WAITING_CALLERS)]
        self.last_success = [0.0] * WAITING_CALLERS
        self.failure_counts = [0] * WAITING_CALLERS

    async def _call(self, number: int) -> None:
        while True:
            try:
                if number % 2:
                    await self._store.aio.append_to_transcript(self._session_id, f"from {number}")
                else:
                    await self._store.aio.load_transcript(self._session_id, limit=5)
            except StoreUnavailable:
                self.failure_counts[number] += 1
                await asyncio.sleep(0.2)
            else:
                self.last_success[number] = time.monotonic()
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            assert isinstance(result, asyncio.CancelledError), result  # nothing else but `StoreUnavailable` was raised


async def wait_for_turn_after_outage(gateway: Gateway, turn_id: str | None) -> Turn:
    """Wait for a turn; the first calls may still fail, until one of them has found that the server is back."""
    while True:
        try:
            return await wait_for_turn(gateway, turn_id)
        except StoreUnavailable:
            await asyncio.sleep(postgres_pool.RETRY_SECONDS)


async def test_all_callers_fail_soon_while_the_server_is_away_and_continue_when_it_is_back(server: Server) -> None:
    async with run_gateway(server, ScriptedAgent("Done.")) as gateway:
        session_id = (await gateway.store.aio.get_or_create_session(build_source())).session_id
        callers = WaitingCallers(gateway.store, session_id)
        await wait_until(lambda: all(callers.last_success))
        await asyncio.to_thread(server.stop)
        await wait_until(lambda: min(callers.failure_counts) >= 2)
        await asyncio.to_thread(server.start)
        back = time.monotonic()
        await wait_until(lambda: all(moment > back for moment in callers.last_success))
        await callers.stop()
        turn = await wait_for_turn(gateway, await send_message(gateway, build_source(), "Are you there?"))
    assert turn.state is TurnState.DONE


async def test_an_answer_that_ends_during_an_outage_is_stored_once_when_the_server_is_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    may_finish = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("All of it.")
        await may_finish.wait()
        yield UsageReport(TurnUsage(model="scripted", input_tokens=10, output_tokens=5))

    agent = ScriptedAgent(answer)
    async with run_gateway(server, agent) as gateway:
        turn_ids = [await send_message(gateway, build_source(name), "Tell me.") for name in ("bob", "eve", "joe")]
        await wait_until(lambda: len(agent.requests) == 3)
        await asyncio.to_thread(server.stop)
        may_finish.set()
        await wait_until(lambda: caplog.messages.count("turn_end_delayed") == 3)
        await asyncio.to_thread(server.start)
        turns = [await wait_for_turn_after_outage(gateway, turn_id) for turn_id in turn_ids]
        sessions = [await gateway.store.aio.get_session(turn.session_id) for turn in turns]
    assert [(turn.state, turn.attempt) for turn in turns] == [(TurnState.DONE, 1)] * 3
    assert len(agent.requests) == 3  # no answer was given, and paid for, twice
    assert [(session.message_count, session.usage.output_tokens) for session in sessions] == [(2, 5)] * 3


async def test_a_turn_whose_run_broke_off_in_an_outage_runs_again_at_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The store goes away between the claim of a turn and the first read of its run."""
    agent = ScriptedAgent("Done.")
    async with run_gateway(server, agent) as gateway:
        load_tools, is_claimed, may_continue = agent.load_tools, asyncio.Event(), asyncio.Event()

        async def wait_and_load_tools() -> Any:
            is_claimed.set()
            await may_continue.wait()
            return await load_tools()

        agent.load_tools = wait_and_load_tools  # type: ignore[method-assign]
        turn_id = await send_message(gateway, build_source(), "Hello")
        await is_claimed.wait()
        await asyncio.to_thread(server.stop)
        may_continue.set()
        await wait_until(lambda: "turn_not_stored" in caplog.messages)
        await asyncio.to_thread(server.start)
        turn = await wait_for_turn_after_outage(gateway, turn_id)
    assert (turn.state, turn.attempt) == (TurnState.DONE, 2)


def test_a_read_whose_connection_breaks_runs_once_more(server: Server) -> None:
    with contextlib.closing(PostgresEngine.open(server.url)) as engine:
        attempts = 0

        def read(tx: Transaction) -> Any:
            nonlocal attempts
            attempts += 1
            (pid,) = tx.fetch_one("SELECT pg_backend_pid()") or (0,)
            if attempts <= failures:
                with psycopg.connect(server.url, autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            return tx.fetch_one("SELECT 7")

        failures = 1
        assert engine.run(Read(read)) == (7,)
        attempts, failures = 0, 10
        with pytest.raises(StoreUnavailable):
            engine.run(Read(read))
        attempts = 0
        with pytest.raises(StoreUnavailable):
            engine.run(Write(read))
        assert attempts == 1  # a write may have been stored
        attempts, failures = 0, 0
        assert engine.run(Write(read)) == (7,)


def test_connections_that_the_server_closed_while_idle_are_replaced_unnoticed(server: Server) -> None:
    with contextlib.closing(PostgresEngine.open(server.url)) as engine:
        engine.run(Write(lambda tx: tx.execute("SELECT 1")))
        server.stop()
        server.start()
        assert engine.run(Write(lambda tx: tx.execute("SELECT 1"))) == 1


def test_no_caller_waits_longer_than_the_outage_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(PostgresEngine.open(server.url)) as engine:
        server.stop()
        attempts: list[Any] = []
        connect = postgres_connection.connect

        def count_and_connect(address: Any, **options: Any) -> PooledConnection:
            attempts.append(address)
            return connect(address, **options)

        monkeypatch.setattr(postgres_pool, "connect", count_and_connect)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                engine.run(Read(lambda tx: tx.fetch_one("SELECT 1")))
        attempts.clear()
        for _ in range(200):  # the outage is known: almost all of them fail without trying
            with pytest.raises(StoreUnavailable):
                engine.run(Read(lambda tx: tx.fetch_one("SELECT 1")))
        assert len(attempts) < 100
        server.start()
        time.sleep(postgres_pool.RETRY_SECONDS)
        assert engine.run(Read(lambda tx: tx.fetch_one("SELECT 7"))) == (7,)

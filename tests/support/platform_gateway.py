"""Gateways that are connected to a platform, for the tests of its adapter."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.engines.base import Read
from palaver.delivery.model import Pace
from palaver.gateway.account_link import ConfiguredAccount
from palaver.gateway.account_runner import ConnectionTiming
from palaver.gateway.gateway import Gateway
from palaver.media.attachments import Attachments
from palaver.sessions import delivery_queries
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from palaver.agent.base import AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.core.source import Platform
    from palaver.delivery.adapter import Adapter
    from palaver.sessions.delivery import Delivery
    from support.platform_adapters import PlatformParts

TIMING = ConnectionTiming(acquisition=0.02, first_pause=0.01, max_pause=0.02, refused_pause=0.02)
FAST = Pace(0.01)


def answer_with_question(request: AgentRequest) -> str:
    return f"You said: {request.messages[-1]['content']}"


class SkippingClock:
    """The clock of this machine, plus what a test has skipped."""

    def __init__(self) -> None:
        self._skipped = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._skipped

    def skip(self, seconds: float) -> None:
        self._skipped += timedelta(seconds=seconds)


class GatewayStarter:
    """Starts gateways on one database, one after the other or side by side."""

    def __init__(
        self, folder: Path, stack: AsyncExitStack, parts: PlatformParts | None = None, server: Any = None
    ) -> None:
        self.folder = folder
        self.agent = ScriptedAgent(answer_with_question)  # of gateways that are started without one
        self.after_start: Callable[[Gateway], Awaitable[object]] | None = None
        self._stack = stack
        self._parts = parts
        self._server = server

    async def start(
        self, *servers: Any, agent: ScriptedAgent | None = None, **rules: Any
    ) -> tuple[Gateway, AsyncExitStack]:
        """Return a running gateway with an account on every server (by default the test's), and what stops it."""
        parts = self._parts
        assert parts is not None
        make_adapters = [
            partial(parts.build_adapter, server, account=name_account(number))
            for number, server in enumerate(servers or [self._server])
        ]
        gateway, stack = await self.start_with(parts.address.platform, *make_adapters, agent=agent, **rules)
        if self.after_start is not None:
            await self.after_start(gateway)
        return gateway, stack

    async def start_with(
        self,
        platform: Platform,
        *make_adapters: Callable[[], Adapter],
        agent: ScriptedAgent | None = None,
        **rules: Any,
    ) -> tuple[Gateway, AsyncExitStack]:
        """Return a running gateway with an account for each function, and what stops it.

        The accounts after the first have names: `account1` and so on. Everybody may write, and nothing waits for the
        pace of the platform.
        """
        stack = await self._stack.enter_async_context(AsyncExitStack())
        store = stack.enter_context(SessionStore.open(self.folder / "palaver.db", clock=SkippingClock()))
        gateway = Gateway(
            store,
            agent or self.agent,
            profile=AgentProfile(),
            rules=TurnRules(**{"open_platforms": frozenset({platform}), "model_titles": False, **rules}),
            accounts=[_configure(platform, name_account(number), make) for number, make in enumerate(make_adapters)],
            timing=TIMING,
            files=Attachments(store, self.folder / "attachments"),
        )
        await stack.enter_async_context(gateway.run(grace_seconds=5))
        return gateway, stack


def name_account(number: int) -> str:
    return f"account{number}" if number else ""


def _configure(platform: Platform, account: str, make_adapter: Callable[[], Adapter]) -> ConfiguredAccount:
    async def create() -> Adapter:
        adapter = make_adapter()
        adapter.account = account
        adapter.capabilities = replace(
            adapter.capabilities, pace_per_chat=FAST, pace_per_account=None, edit_pace=Pace(0.05), draft_pace=Pace(0.05)
        )
        return adapter

    return ConfiguredAccount(platform=platform, account=account, create=create)


def skip_time(gateway: Gateway, seconds: float) -> None:
    """Let what waits for a time at most so far away happen now."""
    assert isinstance(gateway.store.clock, SkippingClock)
    gateway.store.clock.skip(seconds)
    for pacer in gateway.outbox._pacers._pacers.values():
        pacer._paused_until -= seconds
    gateway.outbox.wake()
    gateway.turn_worker.wake()


def _is_retried_later(delivery: Delivery) -> bool:
    return delivery.attempt > 0 and delivery.state is DeliveryState.PENDING


async def skip_retry_wait(gateway: Gateway, seconds: float = 2.0) -> None:
    """Wait until a delivery is to be tried again later, and let that time come; it is at most so far away."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not any(map(_is_retried_later, await list_deliveries(gateway))):  # noqa: ASYNC110  (in the database)
            await asyncio.sleep(0.01)
    skip_time(gateway, seconds)


async def list_deliveries(gateway: Gateway) -> list[Delivery]:
    def read(tx: Transaction) -> list[Delivery]:
        numbers = [row[0] for row in tx.fetch_all("SELECT no FROM session ORDER BY no")]
        return [delivery for number in numbers for delivery in delivery_queries.list_for_session(tx, number)]

    return await gateway.store.engine.arun(Read(read))


async def wait_for_states(gateway: Gateway, *states: DeliveryState) -> list[Delivery]:
    """Wait until the deliveries are in these states."""
    found: list[Delivery] = []
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                found = await list_deliveries(gateway)
                if sorted(each.state for each in found) == sorted(states):
                    return found
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"The deliveries are {[(each.state, each.error) for each in found]}.")

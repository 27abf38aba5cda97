"""Gateways that are connected to a platform, for the tests of its adapter."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionStore
from palaver.domain.capabilities import Pace
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.services.attachments import Attachments
from palaver.services.gateway import Gateway
from palaver.services.platforms.account_runner import ConnectionTiming
from palaver.services.platforms.configured_account import ConfiguredAccount
from palaver.storage import delivery_queries
from palaver.storage.engines.base import Read
from palaver.testing import ScriptedAgent
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver.domain.delivery import Delivery, DeliveryState
    from palaver.domain.source import Platform
    from palaver.services.platforms.adapter import Adapter
    from palaver.storage.engines.base import Transaction

TIMING = ConnectionTiming(acquisition=0.02, first_pause=0.01, max_pause=0.02, refused_pause=0.02)
FAST = Pace(0.01)


class GatewayStarter:
    """Starts gateways on one database, one after the other or side by side."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self._stack = stack

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
        store = stack.enter_context(SessionStore.open(self.folder / "palaver.db"))
        gateway = Gateway(
            store,
            agent or ScriptedAgent(lambda request: f"You said: {request.messages[-1]['content']}"),
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
            adapter.capabilities, pace_per_chat=FAST, pace_per_account=None, edit_pace=Pace(0.05)
        )
        return adapter

    return ConfiguredAccount(platform=platform, account=account, create=create)


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

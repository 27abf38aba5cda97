"""A gateway at work, on each engine."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver import SessionStore
from palaver.domain.clock import SystemClock
from palaver.domain.feed import FeedItem, Happened, TurnChanged
from palaver.domain.inbound import Inbound
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.platforms.loopback import LOOPBACK, Loopback
from palaver.services.gateway import Gateway
from palaver.storage import turns
from palaver.storage.engine import Read
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from palaver import SessionSource
    from palaver.domain.turn import Turn

PATIENCE = 20.0  # seconds for anything to happen


class StartGateway(Protocol):
    async def __call__(
        self, agent: ScriptedAgent | None = None, *, loopback: Loopback | None = None, **rules: Any
    ) -> Gateway: ...


@pytest.fixture
async def start_gateway(store_url: str) -> AsyncIterator[StartGateway]:
    """Starts gateways on this test's database, each with a store of its own, and stops them in the end."""
    async with AsyncExitStack() as stack:

        async def start(
            agent: ScriptedAgent | None = None,
            *,
            loopback: Loopback | None = None,
            config: Any = None,
            clock: Any = None,
            **rules: Any,
        ) -> Gateway:
            store = stack.enter_context(SessionStore.open(store_url, config=config, clock=clock or SystemClock()))
            rules.setdefault("open_to_all", frozenset({LOOPBACK, "telegram", "discord"}))
            gateway = Gateway(
                store,
                agent or ScriptedAgent(),
                profile=AgentProfile(),
                rules=TurnRules(**rules),
                adapters=[loopback] if loopback else [],
            )
            await stack.enter_async_context(gateway.running(patience=5))
            return gateway

        yield start


async def until(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait for something to be true."""
    async with asyncio.timeout(patience):
        while True:
            found = condition()
            if found:
                return found
            await asyncio.sleep(0.005)


async def turn_of(gateway: Gateway, turn_id: str | None) -> Turn:
    found = await gateway.store.engine.arun(Read(lambda tx: turns.get(tx, turn_id or "")))
    assert found is not None
    return found


async def ended(gateway: Gateway, turn_id: str | None) -> Turn:
    """Wait for the end of a turn."""
    async with asyncio.timeout(PATIENCE):
        while not (turn := await turn_of(gateway, turn_id)).state.ended:
            await asyncio.sleep(0.005)
    return turn


async def ask(gateway: Gateway, source: SessionSource, text: str, **fields: Any) -> Turn:
    """Say something and wait for the answer."""
    receipt = await gateway.inbox.accept(Inbound(source=source, content=text, **fields))
    return await ended(gateway, receipt.turn_id)


def texts(store: SessionStore, session_id: str | None) -> list[tuple[str, str]]:
    """The conversation: who, what."""
    return [(message["role"], message["content"]) for message in store.load_transcript(session_id or "")]


def told(items: list[FeedItem]) -> list[str]:
    """A feed in short: roles of messages, kinds of events, states of turns."""
    short = []
    for item in items:
        if isinstance(item, Happened):
            short.append(item.event.message.role if item.event.message else item.event.kind.value)
        elif isinstance(item, TurnChanged):
            short.append(item.turn.state.value)
        else:
            short.append(type(item).__name__.lower())
    return short

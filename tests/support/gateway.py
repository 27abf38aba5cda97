"""A gateway in a test: saying things to it, and waiting for what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from palaver import SessionSource
from palaver.domain.feed_events import FeedItem, Happened, TurnChanged
from palaver.domain.inbound import Inbound
from palaver.storage import turns
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.domain.turn import Turn
    from palaver.platforms.loopback import Loopback
    from palaver.services.gateway import Gateway
    from palaver.testing import ScriptedAgent

MakeSource = Callable[..., SessionSource]

PATIENCE = 60.0  # seconds for anything to happen, on a machine that has much else to do


class StartGateway(Protocol):
    async def __call__(
        self,
        agent: ScriptedAgent | None = None,
        *,
        loopback: Loopback | None = None,
        config: Any = None,
        clock: Any = None,
        **rules: Any,
    ) -> Gateway: ...


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
        while not (turn := await turn_of(gateway, turn_id)).state.ended:  # noqa: ASYNC110  (another process may end it)
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

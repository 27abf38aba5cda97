"""A gateway in tests: sending messages to it, and waiting for its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.live.feed_events import EventAppended, FeedItem, TurnChanged
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import turns_table as turns
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.agent.base import Agent
    from palaver.config.agent_rules import AgentProfile
    from palaver.gateway.gateway import Gateway
    from palaver.platforms.loopback import LoopbackAdapter
    from palaver.sessions.context import Redactor
    from palaver.sessions.turn import Turn

MakeSource = Callable[..., SessionSource]

TIMEOUT_SECONDS = 60.0  # for anything that should happen at once, on a busy machine


class StartGateway(Protocol):
    async def __call__(
        self,
        agent: Agent | None = None,
        *,
        loopback: LoopbackAdapter | None = None,
        config: Any = None,
        clock: Any = None,
        profile: AgentProfile | None = None,
        redactor: Redactor | None = None,
        is_server: bool = False,
        **rules: Any,
    ) -> Gateway: ...


async def wait_until(condition: Callable[[], Any], timeout_seconds: float = TIMEOUT_SECONDS) -> Any:
    """Wait until a condition is true; return its value."""
    async with asyncio.timeout(timeout_seconds):
        while True:
            if value := condition():
                return value
            await asyncio.sleep(0.005)


async def get_turn(gateway: Gateway, turn_id: str | None) -> Turn:
    turn = await gateway.store.engine.arun(Read(lambda tx: turns.find(tx, turn_id or "")))
    assert turn is not None
    return turn


async def wait_for_turn(gateway: Gateway, turn_id: str | None) -> Turn:
    """Wait for the end of a turn."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not (turn := await get_turn(gateway, turn_id)).state.has_ended:  # noqa: ASYNC110  (another process may end it)
            await asyncio.sleep(0.005)
    return turn


async def make_member(store: SessionStore, source: SessionSource) -> None:
    """Make the person behind a source a member, who may use every command."""
    person = await store.aio.get_or_create_person(source)
    await store.engine.arun(Write(lambda tx: people.set_role(tx, person.id, Role.MEMBER)))


async def send_message(gateway: Gateway, source: SessionSource, text: str, **fields: Any) -> str | None:
    """Send a message and return the id of its turn."""
    return (await gateway.inbox.accept(Inbound(source=source, content=text, **fields))).turn_id


async def ask(gateway: Gateway, source: SessionSource, text: str, **fields: Any) -> Turn:
    """Send a message and wait for the end of its turn."""
    return await wait_for_turn(gateway, await send_message(gateway, source, text, **fields))


def load_texts(store: SessionStore, session_id: str | None) -> list[tuple[str, str]]:
    """Load the role and the text of every message of a conversation."""
    return [(message["role"], message["content"]) for message in store.load_transcript(session_id or "")]


def summarize_feed(items: list[FeedItem]) -> list[str]:
    """Shorten a feed to roles of messages, kinds of events and states of turns."""
    summary = []
    for item in items:
        if isinstance(item, EventAppended):
            summary.append(item.event.message.role if item.event.message else item.event.kind.value)
        elif isinstance(item, TurnChanged):
            summary.append(item.turn.state.value)
        else:
            summary.append(type(item).__name__.lower())
    return summary

"""The gateway at work: everything that turns messages into delivered answers, started and stopped together."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from palaver.services.delivery.outbox import Outbox
from palaver.services.inbox import Inbox
from palaver.services.live.feed import Feed
from palaver.services.turns.run import RunDependencies
from palaver.services.turns.tools import Toolbox
from palaver.services.turns.worker import Turns
from palaver.storage import sessions
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from palaver.agent.base import Agent
    from palaver.domain.person import Principal
    from palaver.domain.profile import AgentProfile, TurnRules
    from palaver.domain.redact import Redactor
    from palaver.domain.source import Platform
    from palaver.services.attachments import Attachments
    from palaver.services.ports import Adapter
    from palaver.services.store import SessionStore
    from palaver.services.toolsets import Toolset


class Gateway:
    """What edges are given: the inbox, the feed, and views of the store."""

    def __init__(
        self,
        store: SessionStore,
        agent: Agent,
        *,
        profile: AgentProfile,
        rules: TurnRules,
        adapters: Sequence[Adapter] = (),
        redactor: Redactor | None = None,
        files: Attachments | None = None,
    ) -> None:
        self.store = store
        self.agent = agent
        self.rules = rules
        self.files = files
        self.feed = Feed(store)
        self.adapters = {adapter.platform: adapter for adapter in adapters}
        self.toolbox = Toolbox(store.engine, store.clock, rules)
        self._started: list[Adapter] = []
        self.outbox = Outbox(store, self.adapters, self.feed)
        workshop = RunDependencies(
            store=store,
            agent=agent,
            profile=profile,
            rules=rules,
            toolbox=self.toolbox,
            feed=self.feed,
            redactor=redactor,
            files=files,
        )
        self.turns = Turns(workshop, on_change=self.outbox.wake)
        self.inbox = Inbox(store, agent, rules, platforms=self.adapters, on_change=self._changed)

    @property
    def platforms(self) -> frozenset[Platform]:
        """Those that are connected: something can be sent there."""
        return frozenset(self.adapters)

    async def toolsets(self, principal: Principal, session_id: str) -> list[Toolset]:
        """The toolsets there are for somebody in a conversation that they may see."""
        found = await self.store.engine.arun(Read(lambda tx: sessions.seen(tx, session_id, principal.person_id)))
        return self.toolbox.sets_for(principal, found, await self.agent.tools(), self.agent.tool_servers())

    def _changed(self) -> None:
        self.turns.wake()
        self.outbox.wake()

    async def start(self) -> None:
        """Take over what is left from before, then begin to work and to receive."""
        try:
            await self.feed.start()
            await self.outbox.start()
            await self.turns.start()
            for adapter in self.adapters.values():
                self._started.append(adapter)
                await adapter.start(self.inbox.accept)
        except BaseException:  # nothing of it may go on behind the back of whoever is told that it failed
            await self.stop(0)
            raise

    async def stop(self, patience: float = 20.0) -> None:
        """Stop receiving, let what runs finish for a while, and leave the rest for whoever comes next."""
        async with AsyncExitStack() as stack:  # from the last to the first, each also when one before it has failed
            stack.push_async_callback(self.agent.close)
            stack.push_async_callback(self.feed.stop)
            stack.push_async_callback(self.outbox.stop)
            stack.push_async_callback(self.turns.stop, patience)
            while self._started:
                stack.push_async_callback(self._started.pop(0).stop)

    @asynccontextmanager
    async def running(self, patience: float = 20.0) -> AsyncIterator[Gateway]:
        """Started inside the block, stopped after it."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop(patience)

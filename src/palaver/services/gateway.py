"""The gateway: everything that turns messages into delivered answers, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from palaver.domain.source import Platform
from palaver.services.budgets.meter import Budgets
from palaver.services.delivery.local_files import LocalFiles
from palaver.services.delivery.outbox import Outbox
from palaver.services.expiry import ExpiryWatcher
from palaver.services.inbox import Inbox
from palaver.services.jobs.conversation_jobs import ConversationJobs
from palaver.services.jobs.job_fields import JobEnvironment
from palaver.services.jobs.jobs import Jobs
from palaver.services.jobs.prices import ModelPrices
from palaver.services.jobs.scheduler import Scheduler
from palaver.services.live.feed import Feed
from palaver.services.memory_turns.runner import MemoryTurnRunner
from palaver.services.messaging.agent_messages import MessageSenders
from palaver.services.operation import AsyncRunner
from palaver.services.platforms.configured_account import ConfiguredAccount
from palaver.services.platforms.supervisor import Supervisor
from palaver.services.profiles import keep_profile_toolsets
from palaver.services.turns.dependencies import RunDependencies
from palaver.services.turns.tools import Toolbox
from palaver.services.turns.worker import TurnWorker
from palaver.storage import session_settings, sessions
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from palaver.agent.base import Agent
    from palaver.domain.delivery import AccountKey
    from palaver.domain.person import Principal
    from palaver.domain.profile import AgentProfile, TurnRules
    from palaver.domain.redact import Redactor
    from palaver.services.attachments import Attachments
    from palaver.services.platforms.account_runner import ConnectionTiming
    from palaver.services.platforms.adapter import Adapter
    from palaver.services.store import SessionStore
    from palaver.services.toolsets import Toolset
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow


log = logging.getLogger(__name__)


class Gateway:
    """Owns the inbox, the feed, the turn worker and the outbox of one process, and gives edges access to them."""

    def __init__(
        self,
        store: SessionStore,
        agent: Agent,
        *,
        profile: AgentProfile,
        rules: TurnRules,
        accounts: Sequence[ConfiguredAccount] = (),
        adapters: Sequence[Adapter] = (),
        timing: ConnectionTiming | None = None,
        redactor: Redactor | None = None,
        files: Attachments | None = None,
        outputs: Path | None = None,  # the folder for what is sent to `local`
        is_server: bool = False,  # it does what nobody waits for, too; a terminal chat may end before that is done
    ) -> None:
        self.store = store
        self.agent = agent
        self.profile = profile
        self.rules = rules
        self.files = files
        self.is_server = is_server
        self.feed = Feed(store)
        self.budgets = Budgets(store, rules.budgets, rules.timeout)
        self.job_environment = JobEnvironment(
            config=store.config,
            rules=rules,
            agent=agent,
            profile=profile,
            prices=ModelPrices(agent),
            redactor=redactor if store.config.redact_pii else None,
        )
        self.jobs = Jobs(AsyncRunner(store.engine), self.job_environment, store.clock)
        self.toolbox = Toolbox(
            store.engine,
            store.clock,
            rules,
            make_jobs=partial(ConversationJobs, store.engine, store.clock, self.job_environment),
            make_messages=MessageSenders(store, redactor).make,
        )
        self._internal_adapters: dict[AccountKey, Adapter] = (
            {} if outputs is None else {(Platform.LOCAL, ""): LocalFiles(outputs)}
        )
        self._warm_up: asyncio.Task[None] | None = None
        self.outbox = Outbox(
            store,
            self._list_live_adapters,
            self.feed,
            files=files,
            unstreamed_platforms=rules.unstreamed_platforms,
        )
        dependencies = RunDependencies(
            store=store,
            agent=agent,
            profile=profile,
            rules=rules,
            toolbox=self.toolbox,
            feed=self.feed,
            budgets=self.budgets,
            redactor=redactor,
            files=files,
            list_connected_platforms=lambda: self.platforms,
        )
        self.turn_worker = TurnWorker(dependencies, on_change=self.outbox.wake)
        self.scheduler = Scheduler(store, self.feed, rules.max_running_jobs, on_change=self._wake_workers)
        self.memory_runner = MemoryTurnRunner(dependencies)
        self.expiry_watcher = ExpiryWatcher(store, rules, on_change=self.memory_runner.wake)
        self.inbox = Inbox(
            store,
            agent,
            rules,
            profile=profile,
            list_connected_platforms=lambda: self.platforms,
            files=files,
            on_change=self._wake_workers,
        )
        self.accounts = Supervisor(
            [*accounts, *map(ConfiguredAccount.from_adapter, adapters)],
            store,
            self.feed,
            self.inbox,
            sent_messages=self.outbox,
            on_change=self.outbox.wake,
            timing=timing,
        )

    @property
    def platforms(self) -> frozenset[Platform]:
        """The platforms that are connected: an account there is live, in this process or in another on the database."""
        return self.accounts.platforms

    @property
    def configured_accounts(self) -> frozenset[AccountKey]:
        """The accounts that the operator has set up, in config.yaml or by environment variables."""
        return self.accounts.keys | frozenset(self.store.config.chat_accounts)

    async def list_toolsets(self, principal: Principal, session_id: str) -> list[Toolset]:
        """List the toolsets that a principal may use in a conversation visible to them."""

        def read(tx: Transaction) -> tuple[SessionRow, str | None]:
            row = sessions.get_visible(tx, session_id, principal.person_id)
            return row, session_settings.load(tx, row.no).profile

        row, profile_name = await self.store.engine.arun(Read(read))
        toolsets = self.toolbox.list_toolsets(
            principal, row, await self.agent.load_tools(), self.agent.list_tool_servers()
        )
        names = keep_profile_toolsets(self.profile, profile_name, (toolset.name for toolset in toolsets))
        return [toolset for toolset in toolsets if toolset.name in names]

    def _list_live_adapters(self) -> Mapping[AccountKey, Adapter]:
        return {**self.accounts.list_live_adapters(), **self._internal_adapters}

    def wake(self) -> None:
        """Let everything look now for what there is to do, after a change that was not made through the inbox."""
        self._wake_workers()
        self.scheduler.wake()

    def _wake_workers(self) -> None:
        self.turn_worker.wake()
        self.outbox.wake()
        self.memory_runner.wake()  # a command may have left a conversation to learn from

    async def start(self) -> None:
        """Recover what a previous process left unfinished, then start to work and to receive messages."""
        try:
            await self.feed.start()
            await self.outbox.start()
            await self.turn_worker.start()
            if self.is_server:
                await self.memory_runner.start()
                await self.expiry_watcher.start()
                await self.scheduler.start()
            self._warm_up = asyncio.create_task(self._warm_up_agent(), name="palaver-warm-up")
            await self.accounts.start()
        except BaseException:  # a caller who is told that the start failed must not be left with running tasks
            await self.stop(0)
            raise

    async def stop(self, grace_seconds: float = 20.0) -> None:
        """Give running turns some time to finish, stop sending and receiving, and leave the rest to another process."""
        if self._warm_up is not None:
            self._warm_up.cancel()
        async with AsyncExitStack() as stack:  # runs last to first, and goes on when one of them fails
            stack.push_async_callback(self.agent.close)
            stack.push_async_callback(self.feed.stop)
            stack.push_async_callback(self.accounts.stop)  # until then, answers of turns that finish are still sent
            stack.push_async_callback(self.outbox.stop)
            stack.push_async_callback(self.budgets.stop)
            stack.push_async_callback(self.memory_runner.stop)
            stack.push_async_callback(self.turn_worker.stop, grace_seconds)
            stack.push_async_callback(self.expiry_watcher.stop)
            stack.push_async_callback(self.scheduler.stop)

    async def _warm_up_agent(self) -> None:
        try:
            await self.agent.warm_up()
        except Exception:  # the first turn tries again, and tells the person
            log.exception("agent_warm_up_failed")

    @asynccontextmanager
    async def run(self, grace_seconds: float = 20.0) -> AsyncIterator[Gateway]:
        """Run the gateway inside an `async with` block."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop(grace_seconds)

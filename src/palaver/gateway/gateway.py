"""The gateway: everything that turns messages into delivered answers, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from palaver.agent.profiles import CurrentSettings, keep_profile_toolsets
from palaver.core.engines.base import Read, Transaction
from palaver.core.errors import StoreError
from palaver.core.operation import AsyncRunner
from palaver.core.source import Platform
from palaver.core.tasks import BackgroundTasks
from palaver.delivery.local_files import LocalFiles
from palaver.delivery.outbox import Outbox
from palaver.drivers.shared import SharedAgent
from palaver.gateway.account_link import ConfiguredAccount
from palaver.gateway.supervisor import Supervisor
from palaver.inbox import Inbox
from palaver.inbox.speech import Speech
from palaver.inbox.temporary import TemporaryChats
from palaver.jobs.conversation_jobs import ConversationJobs
from palaver.jobs.fields import JobEnvironment
from palaver.jobs.scheduler import Scheduler
from palaver.jobs.service import Jobs
from palaver.live.feed import Feed
from palaver.money.meter import Budgets
from palaver.sessions import settings_table as session_settings, table as sessions
from palaver.turns.expiry import ExpiryWatcher
from palaver.turns.learning import MemoryTurnRunner
from palaver.turns.request_builder import RunDependencies
from palaver.turns.tools import AgentMessages, SendCounter, Toolbox
from palaver.turns.worker import TurnWorker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from palaver.agent.base import Agent
    from palaver.agent.toolsets import Toolset
    from palaver.config.agent_rules import AgentProfile, TurnRules, WebToolRules
    from palaver.delivery.adapter import Adapter
    from palaver.gateway.account_runner import ConnectionTiming
    from palaver.media.attachments import Attachments
    from palaver.media.web.tools import WebAccess
    from palaver.people.model import Principal
    from palaver.push.notifier import PushNotifier
    from palaver.sessions.context import Redactor
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow


AGENT_CLOSE_SECONDS = 5.0  # for an agent that other settings have replaced, when the process stops
STOP_SECONDS = 10.0  # for each part of the gateway to stop, and for all of them after the running turns
MIN_STOP_SECONDS = 0.5  # the same, for a part that comes after the time is over

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
        make_web_access: Callable[[WebToolRules], WebAccess | None] | None = None,  # None: there is no web toolset
        push: PushNotifier | None = None,  # without one, browsers get no notifications
        environ: Mapping[str, str] | None = None,  # where keys of speech providers may be
        is_server: bool = False,  # it also does background work; a terminal chat may end before that is done
    ) -> None:
        self.store = store
        self.agent = agent
        self.settings = CurrentSettings(agent, rules, profile)
        self.files = files
        self.outputs = outputs
        self._make_web_access = make_web_access
        self.is_server = is_server
        self.feed = Feed(store)
        self.budgets = Budgets(store, lambda: self.rules)
        self.speech = Speech(store, files, self.budgets, profile, environ or {})
        self._shared_agent = SharedAgent(agent)
        self._retired_agents = BackgroundTasks("palaver-old-agent")
        self._account_changes = BackgroundTasks("palaver-accounts")
        self._send_counter = SendCounter()
        self._internal_adapters: dict[AccountKey, Adapter] = (
            {} if outputs is None else {(Platform.LOCAL, ""): LocalFiles(outputs)}
        )
        self._warm_up: asyncio.Task[None] | None = None
        self.outbox = Outbox(
            store,
            self._list_live_adapters,
            self.feed,
            files=files,
            get_unstreamed_platforms=lambda: self.rules.unstreamed_platforms,
        )
        self._dependencies = self._build_dependencies(redactor)
        self.push = push
        self.turn_worker = TurnWorker(lambda: self._dependencies, on_change=self._wake_senders)
        self.scheduler = Scheduler(store, self.feed, lambda: self.rules.jobs.max_running, on_change=self._wake_workers)
        self.memory_runner = MemoryTurnRunner(lambda: self._dependencies)
        self.temporary_chats = TemporaryChats(lambda: self._dependencies)
        self.expiry_watcher = ExpiryWatcher(store, self.settings, on_change=self.memory_runner.wake)
        self.inbox = Inbox(
            store,
            self.settings,
            list_connected_platforms=lambda: self.platforms,
            get_max_file_bytes=self._get_max_file_bytes,
            files=files,
            speech=self.speech,
            turn_worker=self.turn_worker,
            on_change=self._wake_workers,
        )
        self.accounts = Supervisor(
            [*accounts, *map(ConfiguredAccount.from_adapter, adapters)],
            store,
            self.feed,
            self.inbox,
            outbox=self.outbox,
            timing=timing,
        )

    def _build_dependencies(self, redactor: Redactor | None) -> RunDependencies:
        """Build everything that depends on the settings and has no state; runs that have started keep theirs."""
        agent, profile, rules = self.agent, self.profile, self.rules
        store = self.store.with_config(self.store.config)
        id_redactor = redactor if store.config.redact_pii else None
        self.job_environment = JobEnvironment(
            config=store.config,
            rules=rules,
            agent=agent,
            profile=profile,
            prices=self.settings.prices,
            redactor=id_redactor,
        )
        self.jobs = Jobs(AsyncRunner(store.engine), self.job_environment, store.clock)
        self.toolbox = Toolbox(
            store.engine,
            store.clock,
            rules,
            make_jobs=partial(ConversationJobs, store.engine, store.clock, self.job_environment),
            make_messages=partial(AgentMessages, store=store, counter=self._send_counter, redactor=id_redactor),
            web_access=self._make_web_access(rules.web) if self._make_web_access else None,
        )
        return RunDependencies(
            store=store,
            agent=agent,
            profile=profile,
            rules=rules,
            toolbox=self.toolbox,
            feed=self.feed,
            budgets=self.budgets,
            redactor=redactor,
            files=self.files,
            list_connected_platforms=lambda: self.platforms,
            acquire_agent=self._shared_agent.acquire,
        )

    def use_settings(
        self,
        *,
        agent: Agent,
        profile: AgentProfile,
        rules: TurnRules,
        config: GatewayConfig,
        redactor: Redactor | None = None,
    ) -> None:
        """Apply other settings to everything that starts from now on; what runs keeps what it began with.

        An agent that is replaced is closed when the last run that uses it has ended.
        """
        if agent is not self.agent:
            self._retired_agents.start(_close_retired_agent(self._shared_agent))
            self.agent, self._shared_agent = agent, SharedAgent(agent)
            if self._warm_up is not None:
                self._warm_up.cancel()
            self._warm_up = asyncio.create_task(self._warm_up_agent(), name="palaver-warm-up")
        self.settings.replace(agent, rules, profile)
        self.store.replace_config(config)
        self._dependencies = self._build_dependencies(redactor)
        self.speech.use_profile(profile)
        for waiting in (self.turn_worker, self.memory_runner, self.scheduler, self.push):  # limits may be higher now
            if waiting is not None:
                waiting.wake()
        self.expiry_watcher.reload_policies()

    @property
    def rules(self) -> TurnRules:
        return self.settings.rules

    @property
    def profile(self) -> AgentProfile:
        return self.settings.profile

    def replace_accounts(self, accounts: Sequence[ConfiguredAccount]) -> None:
        """Connect these accounts instead of those of the settings before; closing takes a while, and nothing waits."""
        self._account_changes.start(self.accounts.replace_accounts(accounts))

    async def _close_agents(self) -> None:
        """Close the agent, and those that other settings have replaced and that are still open."""
        await self._retired_agents.end(AGENT_CLOSE_SECONDS)
        await self.agent.close()

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

    def _get_max_file_bytes(self, account: AccountKey) -> int:
        adapter = None if self.files is None else self._list_live_adapters().get(account)
        return 0 if adapter is None else adapter.capabilities.max_file_bytes

    def wake(self) -> None:
        """Let everything look now for what there is to do, after a change that was not made through the inbox."""
        self._wake_workers()
        self.scheduler.wake()

    def _wake_senders(self) -> None:
        self.outbox.wake()
        if self.push is not None:
            self.push.wake()

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
                if self.push is not None:
                    await self.push.start()
                await self.memory_runner.start()
                await self.expiry_watcher.start()
                await self.scheduler.start()
            self._warm_up = asyncio.create_task(self._warm_up_agent(), name="palaver-warm-up")
            await self.accounts.start()
        except BaseException:  # a caller who is told that the start failed must not be left with running tasks
            await self.stop(0)
            raise

    async def stop(self, grace_seconds: float = 20.0) -> None:
        """Give running turns some time to finish, stop sending and receiving, and leave the rest to another process.

        It takes little longer than `grace_seconds`, whatever the store or a platform does: what is not finished by then
        is left as if the process had been killed.
        """
        deadline = asyncio.get_running_loop().time() + grace_seconds + STOP_SECONDS
        if self._warm_up is not None:
            self._warm_up.cancel()
        await self._account_changes.end(STOP_SECONDS)
        async with AsyncExitStack() as stack:  # runs last to first, and goes on when one of them fails

            def add(stop: Callable[[], Coroutine[Any, Any, None]], more_seconds: float = 0.0) -> None:
                stack.push_async_callback(_stop_in_time, deadline, stop, more_seconds)

            add(self._close_agents)
            add(self.feed.stop)
            add(self.accounts.stop)  # until then, answers of turns that finish are still sent
            add(self.outbox.stop)
            add(self.budgets.stop)
            add(self.speech.stop)
            if self.push is not None:
                add(self.push.stop)
            add(self.memory_runner.stop)
            add(self.temporary_chats.stop)
            add(partial(self.turn_worker.stop, grace_seconds), grace_seconds)
            add(self.expiry_watcher.stop)
            add(self.scheduler.stop)

    async def _warm_up_agent(self) -> None:
        try:
            await self.agent.warm_up()
        except Exception:  # the first turn tries again, and tells the person
            log.exception("agent_warm_up_failed")

    @asynccontextmanager
    async def run(self, grace_seconds: float = 20.0) -> AsyncIterator[Gateway]:
        await self.start()
        try:
            yield self
        finally:
            await self.stop(grace_seconds)


async def _close_retired_agent(agent: SharedAgent) -> None:
    try:
        await agent.close_when_unused()
    except Exception:  # a driver may fail in any way, and nothing waits for it
        log.exception("agent_close_failed")


async def _stop_in_time(deadline: float, stop: Callable[[], Coroutine[Any, Any, None]], more_seconds: float) -> None:
    """Stop a part of the gateway, but do not wait for it longer than there is time."""
    remaining = deadline - asyncio.get_running_loop().time()
    task = asyncio.create_task(stop())
    done, _ = await asyncio.wait([task], timeout=max(MIN_STOP_SECONDS, min(STOP_SECONDS + more_seconds, remaining)))
    if not done:
        log.warning("stop_abandoned", extra={"part": _name_part(stop)})
        task.cancel()
        return
    try:
        task.result()
    except StoreError as error:  # another process recovers what could not be stored
        log.warning("stop_failed", extra={"part": _name_part(stop), "error": str(error)})


def _name_part(stop: Callable[[], object]) -> str:
    function = stop.func if isinstance(stop, partial) else stop
    return str(getattr(function, "__qualname__", function))

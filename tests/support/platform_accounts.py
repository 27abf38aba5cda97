"""Accounts on a platform whose adapters misbehave on demand, and what is stored about them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from palaver import Platform, SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import SystemClock
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.health import load_account_health
from palaver.delivery.model import AccountState
from palaver.gateway.account_link import ConfiguredAccount
from palaver.gateway.account_runner import ConnectionTiming
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import LoopbackAdapter
from palaver.testing import ScriptedAgent
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from palaver.delivery.adapter import AccountLink, Adapter
    from palaver.delivery.model import AccountHealth

PIGEON = Platform("pigeon")
SECRET = "coop-4711-hunter2"
QUICK = ConnectionTiming(renewal=0.05, acquisition=0.02, first_pause=0.01, max_pause=0.02, close=0.5)


class StartAccounts(Protocol):
    async def __call__(
        self, *accounts: PigeonAccount, timing: ConnectionTiming = QUICK, agent: ScriptedAgent | None = None
    ) -> Gateway: ...


@asynccontextmanager
async def run_gateways(store_url: str) -> AsyncIterator[StartAccounts]:
    """Yield a function that starts a gateway with accounts, on a store of its own; all are stopped at the end."""
    async with AsyncExitStack() as stack:

        async def start(
            *accounts: PigeonAccount, timing: ConnectionTiming = QUICK, agent: ScriptedAgent | None = None
        ) -> Gateway:
            store = stack.enter_context(SessionStore.open(store_url, clock=SystemClock()))
            gateway = Gateway(
                store,
                agent or ScriptedAgent(),
                profile=AgentProfile(),
                rules=TurnRules(open_platforms=frozenset({PIGEON})),
                accounts=[account.configured for account in accounts],
                timing=timing,
            )
            await stack.enter_async_context(gateway.run(grace_seconds=5))
            return gateway

        yield start


async def do_nothing(_connection: PigeonAdapter) -> None:
    """Behave."""


@dataclass(eq=False)
class PigeonAccount:
    """An account, how its adapters behave, and what happened to them."""

    name: str = ""
    on_create: Callable[[int], None] = lambda _number: None
    on_probe: Callable[[PigeonAdapter], Awaitable[None]] = do_nothing
    on_run: Callable[[PigeonAdapter], Awaitable[None]] | None = None  # None: be connected until canceled
    on_close: Callable[[PigeonAdapter], Awaitable[None]] = do_nothing
    info: AccountInfo = field(default_factory=AccountInfo)
    silence_seconds: float = 60.0
    adapters: list[PigeonAdapter] = field(default_factory=list)
    history: list[str] = field(default_factory=list)

    @property
    def last(self) -> PigeonAdapter:
        return self.adapters[-1]

    @property
    def configured(self) -> ConfiguredAccount:
        async def create() -> Adapter:
            self.history.append("create")
            self.on_create(self.history.count("create"))
            self.adapters.append(PigeonAdapter(self))
            return self.last

        return ConfiguredAccount(platform=PIGEON, account=self.name, create=create, secrets=(SECRET,))


class PigeonAdapter(LoopbackAdapter):
    """One connection of such an account."""

    platform = PIGEON

    def __init__(self, owner: PigeonAccount) -> None:
        super().__init__(account=owner.name)
        self.owner = owner
        self.silence_seconds = owner.silence_seconds
        self.link: AccountLink | None = None

    async def probe(self) -> AccountInfo:
        await self.owner.on_probe(self)
        return self.owner.info

    async def run(self, link: AccountLink) -> None:
        self.link = link
        self.owner.history.append("run")
        try:
            await (super().run(link) if self.owner.on_run is None else self.owner.on_run(self))
        finally:
            self.owner.history.append("end")

    async def close(self) -> None:
        await self.owner.on_close(self)
        self.owner.history.append("close")


def is_live(health: AccountHealth) -> bool:
    return health.state is AccountState.LIVE


async def get_health(gateway: Gateway, account: str = "") -> AccountHealth:
    found = await load_account_health(gateway.store, gateway.configured_accounts)
    return next(each for each in found if each.account == account)


async def wait_for_health(
    gateway: Gateway, condition: Callable[[AccountHealth], Any], account: str = ""
) -> AccountHealth:
    """Wait until what is stored about an account is as expected."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition(health := await get_health(gateway, account)):  # noqa: ASYNC110  (another process may change it)
            await asyncio.sleep(0.01)
    return health

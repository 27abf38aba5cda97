"""Settings that change while gateways run: in force everywhere, and only for what starts afterwards."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import TextDelta
from palaver.app import make_live_settings
from palaver.config.agent_rules import AgentProfile
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.inbound import Inbound
from palaver.sessions.policy import ResetMode
from palaver.sessions.turn import BusyPolicy, TurnState
from palaver.settings.editor import SettingsEdit
from palaver.testing import ScriptedAgent
from support.gateway import StartGateway, ask, load_texts, wait_for_turn, wait_until
from support.platform_accounts import PIGEON, PigeonAccount, run_gateways
from support.settings import API_KEY
from support.web import make_base_settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.gateway.gateway import Gateway
    from palaver.settings.live_settings import LiveSettings

    Follow = Callable[[Gateway], Any]

pytestmark = pytest.mark.slow


class ClosableAgent(ScriptedAgent):
    """Notes whether it was closed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
async def follow(store_url: str, tmp_path: Path) -> AsyncIterator[Follow]:
    """Let a gateway follow the settings of its store."""
    async with AsyncExitStack() as stack:

        async def start(gateway: Gateway) -> LiveSettings:
            live = make_live_settings(gateway, make_base_settings(store_url, tmp_path, gateway))
            await stack.enter_async_context(live.follow(gateway.feed))
            return live

        yield start


async def change(live: LiveSettings, gateway: Gateway, **values: Any) -> None:
    owner = (await gateway.store.aio.get_owner()).principal
    edit = SettingsEdit(values={key.replace("__", "."): value for key, value in values.items()})
    await live.change(owner, edit)


async def wait_for_limit(gateway: Gateway, max_running: int) -> None:
    await wait_until(lambda: gateway.rules.max_running == max_running)


async def test_a_change_is_in_force_in_this_process_and_in_others(start_gateway: StartGateway, follow: Follow) -> None:
    here, there = await start_gateway(), await start_gateway(is_server=True)
    live = await follow(here)
    await follow(there)
    await change(
        live, here, turns__max_running=2, turns__busy_policy="reject", session_reset__mode="daily", memory__learn=True
    )
    for gateway in (here, there):
        await wait_for_limit(gateway, 2)
        assert gateway.rules.busy_policy is BusyPolicy.REJECT
        assert gateway.store.config.default_reset_policy.mode is ResetMode.DAILY
        assert gateway.turn_worker._get_dependencies().rules.memory.learn


async def test_a_gateway_that_was_not_connected_catches_up(start_gateway: StartGateway, follow: Follow) -> None:
    here = await start_gateway()
    live = await follow(here)
    await change(live, here, turns__max_queued=3)
    late = await start_gateway()
    assert (await follow(late)).current.settings.turns.max_queued == 3
    await wait_until(lambda: here.rules.max_queued == 3)


async def test_a_turn_that_runs_keeps_the_settings_that_it_began_with(start_gateway: StartGateway) -> None:
    release = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("old ")
        await release.wait()
        yield TextDelta("settings")

    first, second = ClosableAgent(answer), ClosableAgent("new settings")
    loopback = LoopbackAdapter()
    gateway = await start_gateway(first, loopback=loopback)
    running = await gateway.inbox.accept(Inbound(source=loopback.get_source("ada"), content="hello"))
    await wait_until(lambda: first.requests)
    rules = replace(gateway.rules, max_queued=7)
    gateway.use_settings(agent=second, profile=AgentProfile(), rules=rules, config=gateway.store.config)
    other = await gateway.inbox.accept(Inbound(source=loopback.get_source("ben"), content="hello"))
    assert (await wait_for_turn(gateway, other.turn_id)).state is TurnState.DONE
    assert not first.is_closed
    release.set()
    assert (await wait_for_turn(gateway, running.turn_id)).state is TurnState.DONE
    await wait_until(lambda: first.is_closed)
    assert load_texts(gateway.store, running.session_id)[-1] == ("assistant", "old settings")
    assert load_texts(gateway.store, other.session_id)[-1] == ("assistant", "new settings")
    assert not second.is_closed


async def test_the_agent_is_made_again_when_models_change(start_gateway: StartGateway, follow: Follow) -> None:
    gateway = await start_gateway()
    live = await follow(gateway)
    await change(live, gateway, turns__max_queued=3)
    assert gateway.agent.model == "scripted"  # not touched by other settings
    await change(live, gateway, model="openai:gpt-5", providers__openai__api_key=API_KEY)
    assert gateway.agent.model == "openai:gpt-5"


async def test_a_secret_without_its_key_disables_only_what_needs_it(
    start_gateway: StartGateway, follow: Follow, tmp_path: Path
) -> None:
    gateway = await start_gateway()
    live = await follow(gateway)
    await change(live, gateway, model="openai:gpt-5", providers__openai__api_key=API_KEY)
    (tmp_path / "settings.key").unlink()
    await change(live, gateway, turns__max_queued=3)
    assert gateway.rules.max_queued == 3
    assert "its key is missing on this machine. Copy settings.key" in gateway.agent.description
    turn = await ask(gateway, SessionSource.local_cli(), "hello")
    assert turn.state is TurnState.FAILED
    assert "providers.openai.api_key" in (turn.error or "")


# ---- accounts ----------------------------------------------------------------------------------------------


def configure(account: PigeonAccount, fingerprint: str) -> Any:
    return replace(account.configured, fingerprint=fingerprint)


async def test_only_accounts_whose_settings_differ_are_connected_again(tmp_path: Path) -> None:
    from conftest import create_sqlite_database

    async with run_gateways(create_sqlite_database(tmp_path)) as start:
        gateway = await start()
        same, changed, removed, added = (PigeonAccount(name) for name in ("same", "changed", "removed", "added"))
        await gateway.accounts.replace_accounts(
            [configure(same, "1"), configure(changed, "1"), configure(removed, "1")]
        )
        await wait_until(lambda: len(gateway.accounts.list_live_adapters()) == 3)
        untouched = gateway.accounts.list_live_adapters()[PIGEON, "same"]
        await gateway.accounts.replace_accounts([configure(same, "1"), configure(changed, "2"), configure(added, "1")])
        await wait_until(
            lambda: set(gateway.accounts.list_live_adapters()) == {(PIGEON, n) for n in ("same", "changed", "added")}
        )
        assert gateway.accounts.list_live_adapters()[PIGEON, "same"] is untouched
        assert same.history == ["create", "run"]
        assert changed.history.count("create") == 2
        assert "close" in removed.history
        assert gateway.accounts.keys == {(PIGEON, "same"), (PIGEON, "changed"), (PIGEON, "added")}

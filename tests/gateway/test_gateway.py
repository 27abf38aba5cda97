"""The gateway: starting and stopping all of its parts together."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, HomeChannel, Platform
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.engines.base import Read
from palaver.core.engines.sqlite import SqliteWriter
from palaver.drivers.demo import DemoAgent
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from support.gateway import ask, wait_for_turn

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver.sessions.inbound import Receipt
    from support.gateway import MakeSource, StartGateway


class FailingAdapter(LoopbackAdapter):
    """Fails to close its connections."""

    async def close(self) -> None:
        raise ConnectionError("the platform is unreachable")


async def test_a_gateway_that_cannot_start_leaves_no_task_running(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asyncio.all_tasks()
    gateway = Gateway(
        open_store(), ScriptedAgent(), profile=AgentProfile(), rules=TurnRules(), adapters=[LoopbackAdapter()]
    )

    async def fail() -> None:
        raise ConnectionError("the database is unreachable")

    monkeypatch.setattr(gateway.turn_worker, "start", fail)
    with pytest.raises(ConnectionError):
        await gateway.start()
    assert {task.get_name() for task in asyncio.all_tasks() - before} == set()


async def test_a_platform_that_is_set_up_but_not_connected_is_not_in_the_prompt(open_store: OpenStore) -> None:
    config = GatewayConfig(
        connected_platforms=(Platform.TELEGRAM, LOOPBACK, Platform.LOCAL),
        home_channels={Platform.TELEGRAM: HomeChannel(Platform.TELEGRAM, "-100777", "Family")},
    )
    agent, adapter = ScriptedAgent(), LoopbackAdapter()
    rules = TurnRules(open_platforms=frozenset({LOOPBACK}))
    gateway = Gateway(open_store(config), agent, profile=AgentProfile(), rules=rules, adapters=[adapter])
    async with gateway.run():
        await wait_for_turn(gateway, (await adapter.say("hello")).turn_id)
        assert gateway.platforms == {LOOPBACK}
    assert gateway.configured_accounts == {(Platform.TELEGRAM, ""), (LOOPBACK, "")}
    prompt = agent.requests[0].instructions
    assert "- Connected platforms: Loopback\n" in prompt
    assert "Family" not in prompt
    assert "target" not in prompt  # no tool can send
    assert "- First contact" in prompt


async def test_an_adapter_that_fails_to_close_does_not_prevent_the_shutdown(open_store: OpenStore) -> None:
    before = asyncio.all_tasks()
    adapter = FailingAdapter()
    rules = TurnRules(open_platforms=frozenset({LOOPBACK}))
    gateway = Gateway(open_store(), ScriptedAgent(), profile=AgentProfile(), rules=rules, adapters=[adapter])
    await gateway.start()
    receipt: Receipt = await adapter.say("hello")
    await wait_for_turn(gateway, receipt.turn_id)
    with contextlib.suppress(ConnectionError):
        await gateway.stop(1)
    assert {task.get_name() for task in asyncio.all_tasks() - before} == set()


async def test_an_answered_message_takes_two_commits(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start_gateway(DemoAgent(word_delay=0))
    await ask(gateway, dm(), "hello")  # the person and the conversation are new
    commit, commits = SqliteWriter.commit, []

    def count_and_commit(writer: SqliteWriter) -> None:
        commits.append(writer)
        commit(writer)

    monkeypatch.setattr(SqliteWriter, "commit", count_and_commit)
    turn = await ask(gateway, dm(), "and again")
    assert turn.state is TurnState.DONE
    assert len(commits) == 2, "the message with its claimed turn; the answer with its usage and the counted tokens"
    assert gateway.store.engine.run(Read(lambda tx: tx.fetch_one("SELECT COUNT(*) FROM budget_window"))) == (4,)

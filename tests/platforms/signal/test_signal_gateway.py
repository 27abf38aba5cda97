"""A whole gateway with Signal accounts: nothing lost, nothing doubled, and nothing told to the wrong people."""

from __future__ import annotations

import json

from palaver.core.source import Platform
from palaver.delivery.model import AccountState
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, wait_for_states

from .signal_server import ADA, BEN, GROUP, OWN_ACI, SignalServer

MENTION = [{"name": OWN_ACI, "number": None, "uuid": OWN_ACI, "start": 0, "length": 1}]


async def test_questions_are_answered_across_a_restart_and_a_crash(
    server: SignalServer, starter: GatewayStarter
) -> None:
    _, first = await starter.start(server)
    question = server.push_text("one")
    await wait_until(server.list_texts)
    await first.aclose()
    server.push_text("two")
    gateway, _ = await starter.start(server)
    await wait_until(lambda: len(server.list_texts()) == 2)
    await server.end_programs()
    server.push_text("three")
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert server.list_texts() == ["You said: one", "You said: two", "You said: three"]
    assert f"{ADA}:{server.messages[0].parameters['quoteTimestamp']}" == question


async def test_a_group_and_a_private_chat_do_not_know_of_each_other(
    server: SignalServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent(lambda request: f"Answer {len(agent.requests)}")
    gateway, _ = await starter.start(server, agent=agent)
    server.push_text("my secret", BEN)
    await wait_until(lambda: server.list_texts(BEN))
    server.push_text("just talking", BEN, group=GROUP)
    server.push_text("\ufffc what do you know?", ADA, group=GROUP, mentions=MENTION)
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert server.list_texts(GROUP) == ["Answer 2"]
    assert server.list_texts(ADA) == []
    asked = json.dumps(agent.requests[-1].messages, default=str)
    assert "what do you know?" in asked
    assert "just talking" in asked
    assert "secret" not in asked


async def test_a_file_of_a_person_reaches_the_agent(server: SignalServer, starter: GatewayStarter) -> None:
    agent = ScriptedAgent("I see.")
    gateway, _ = await starter.start(server, agent=agent)
    server.push_text("Read this", attachments=[server.add_file("notes.txt", b"remember the milk")])
    await wait_for_states(gateway, DeliveryState.SENT)
    assert "remember the milk" in json.dumps(agent.requests[0].messages, default=str)


async def test_an_unlinked_account_stops_no_other_and_can_be_linked_again(
    server: SignalServer, starter: GatewayStarter
) -> None:
    async with SignalServer() as other:
        gateway, _ = await starter.start(server, other)
        runners = gateway.accounts._runners
        await wait_until(lambda: len(gateway.accounts.list_live_adapters()) == 2)
        other.is_revoked = True
        await other.end_programs()
        refused = runners[Platform.SIGNAL, "account1"]
        await wait_until(lambda: refused.status.state is AccountState.REFUSED)
        other.store_account(is_registered=False)  # as signal-cli does then
        server.push_text("hello")
        await wait_until(server.list_texts)
        await wait_until(lambda: refused.status.state is AccountState.LINKING)
        assert refused.status.linking is not None
        other.scan_code()
        await wait_until(lambda: refused.status.state is AccountState.LIVE)
        other.push_text("and me?")
        await wait_until(other.list_texts)
        assert other.problems == []

"""A whole gateway with a linked account: nothing lost, nothing doubled, and nothing leaks from a group."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.domain.capabilities import Pace
from palaver.domain.delivery import DeliveryState
from palaver.domain.platform_health import AccountState
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.domain.source import Platform
from palaver.services.attachments import Attachments
from palaver.services.gateway import Gateway
from palaver.services.platforms.account_runner import ConnectionTiming
from palaver.services.platforms.configured_account import ConfiguredAccount
from palaver.storage import delivery_queries
from palaver.storage.engines.base import Read
from palaver.testing import ScriptedAgent
from support.gateway import wait_until

from .conftest import make_adapter_for
from .whatsapp_server import ADA, ADA_LID, BEN, GROUP, LID, OWN, SendFault, WhatsAppServer, make_media

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.domain.delivery import Delivery
    from palaver.services.platforms.adapter import Adapter
    from palaver.storage.engines.base import Transaction

TIMEOUT_SECONDS = 30.0
TIMING = ConnectionTiming(acquisition=0.02, first_pause=0.01, max_pause=0.02, refused_pause=0.02)
MENTION = [f"{LID}@lid"]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Starter:
    """Starts gateways on one database, with the account of a server."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack

    async def start(self, server: WhatsAppServer, agent: ScriptedAgent | None = None) -> tuple[Gateway, AsyncExitStack]:
        """Return a running gateway, and what stops it."""
        stack = await self._stack.enter_async_context(AsyncExitStack())
        store = stack.enter_context(SessionStore.open(self._folder / "palaver.db"))

        async def create() -> Adapter:
            adapter = make_adapter_for(server, self._folder / "account")
            adapter.capabilities = replace(adapter.capabilities, pace_per_chat=Pace(0.01), pace_per_account=None)
            return adapter

        gateway = Gateway(
            store,
            agent or ScriptedAgent(lambda request: f"You said: {request.messages[-1]['content']}"),
            profile=AgentProfile(),
            rules=TurnRules(open_platforms=frozenset({Platform.WHATSAPP_WEB}), model_titles=False),
            accounts=[ConfiguredAccount(platform=Platform.WHATSAPP_WEB, account="", create=create)],
            timing=TIMING,
            files=Attachments(store, self._folder / "attachments"),
        )
        await stack.enter_async_context(gateway.run(grace_seconds=5))
        return gateway, stack


@pytest.fixture
async def starter(tmp_path: Path) -> AsyncIterator[Starter]:
    async with AsyncExitStack() as stack:
        yield Starter(tmp_path, stack)


async def list_deliveries(gateway: Gateway) -> list[Delivery]:
    def read(tx: Transaction) -> list[Delivery]:
        numbers = [row[0] for row in tx.fetch_all("SELECT no FROM session ORDER BY no")]
        return [delivery for number in numbers for delivery in delivery_queries.list_for_session(tx, number)]

    return await gateway.store.engine.arun(Read(read))


async def wait_for_states(gateway: Gateway, *states: DeliveryState) -> list[Delivery]:
    """Wait until the deliveries are in these states."""
    found: list[Delivery] = []
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                found = await list_deliveries(gateway)
                if sorted(each.state for each in found) == sorted(states):
                    return found
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"The deliveries are {[(each.state, each.error) for each in found]}.")


async def test_a_person_who_is_named_by_another_id_goes_on_with_their_conversation(
    server: WhatsAppServer, starter: Starter
) -> None:
    gateway, _ = await starter.start(server)
    server.say("by number", sender=ADA)
    await wait_for_states(gateway, DeliveryState.SENT)
    server.say("by LID", sender=ADA_LID, sender_alt=None, chat_alt=None)
    deliveries = await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert len({delivery.session_id for delivery in deliveries}) == 1
    assert [message.text for message in server.messages] == ["You said: by number", "You said: by LID"]


async def test_in_a_group_answers_stay_in_the_group_and_nothing_leaks(server: WhatsAppServer, starter: Starter) -> None:
    agent = ScriptedAgent(lambda request: f"You said: {request.messages[-1]['content']}")
    gateway, _ = await starter.start(server, agent)
    server.say("my private plan", sender=BEN)
    await wait_for_states(gateway, DeliveryState.SENT)
    server.say("nobody asked", chat=GROUP)
    server.say(f"@{LID} hello", chat=GROUP, mentions=MENTION)
    await wait_until(lambda: server.list_texts(GROUP), TIMEOUT_SECONDS)
    server.say(f"@{LID} and me?", sender=BEN, chat=GROUP, mentions=MENTION)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert len(server.list_texts(GROUP)) == 2
    assert server.list_texts(BEN) == ["You said: my private plan"]
    assert server.list_texts(ADA) == []
    asked = json.dumps([request.messages for request in agent.requests[1:]], default=str)
    assert "my private plan" not in asked
    quoted = [message.fields["quoted"]["sender"] for message in server.messages if message.chat == GROUP]
    assert quoted == [ADA, BEN]


async def test_a_note_to_oneself_is_answered_once(server: WhatsAppServer, starter: Starter) -> None:
    gateway, _ = await starter.start(server)
    server.say("remember the milk", sender=OWN[0], chat=OWN[0])
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(OWN[0]) == ["You said: remember the milk"]


async def test_pictures_go_to_the_agent(server: WhatsAppServer, starter: Starter) -> None:
    server.files["p1"] = PIXEL
    agent = ScriptedAgent("I see.")
    media = make_media("p1", type="image", media_type="image/png", name=None, size=len(PIXEL))
    server.say("What is this?", media=media)
    gateway, _ = await starter.start(server, agent)
    await wait_for_states(gateway, DeliveryState.SENT)
    [request] = agent.requests
    assert base64.b64encode(PIXEL).decode() in json.dumps(request.messages, default=str)


async def test_a_crash_in_the_middle_of_a_download_does_not_lose_the_file(
    server: WhatsAppServer, starter: Starter
) -> None:
    server.files["p1"] = PIXEL
    server.crashes_on_download = True
    agent = ScriptedAgent("I see.")
    server.say("Look", media=make_media("p1", type="image", media_type="image/png", size=len(PIXEL)))
    gateway, _ = await starter.start(server, agent)
    await wait_for_states(gateway, DeliveryState.SENT)
    [request] = agent.requests
    assert base64.b64encode(PIXEL).decode() in json.dumps(request.messages, default=str)


@pytest.mark.parametrize("fault", [SendFault(error="uncertain", arrives=True), SendFault(arrives=True, panics=True)])
async def test_an_answer_whose_confirmation_is_lost_is_uncertain_and_not_sent_again(
    server: WhatsAppServer, starter: Starter, fault: SendFault
) -> None:
    server.faults.append(fault)
    server.say("hello")
    gateway, _ = await starter.start(server)
    await wait_for_states(gateway, DeliveryState.UNCERTAIN)
    server.say("still there?")
    await wait_for_states(gateway, DeliveryState.UNCERTAIN, DeliveryState.SENT)
    assert server.list_texts(ADA) == ["You said: hello", "You said: still there?"]


async def test_crashes_and_restarts_lose_and_double_nothing(server: WhatsAppServer, starter: Starter) -> None:
    gateway, first = await starter.start(server)
    server.say("one")
    await wait_for_states(gateway, DeliveryState.SENT)
    server.tell(misbehave="crash")
    server.say("two")
    await wait_for_states(gateway, *[DeliveryState.SENT] * 2)
    await first.aclose()
    server.say("three")
    gateway, _ = await starter.start(server)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert server.list_texts(ADA) == ["You said: one", "You said: two", "You said: three"]


async def test_an_account_waits_to_be_linked_and_then_works(server: WhatsAppServer, starter: Starter) -> None:
    server.is_linked = False
    gateway, _ = await starter.start(server)
    [runner] = gateway.accounts._runners.values()
    await wait_until(lambda: runner.status.state is AccountState.LINKING, TIMEOUT_SECONDS)
    assert runner.status.linking is not None
    assert runner.status.linking.qr_text == "2@first,key"
    [warning] = runner.status.warnings
    assert "not linked" in warning
    server.connect()
    await wait_until(lambda: runner.status.name == "Palaver", TIMEOUT_SECONDS)
    assert (runner.status.state, runner.status.warnings) == (AccountState.LIVE, ())
    server.say("hello")
    await wait_for_states(gateway, DeliveryState.SENT)

"""A whole gateway with a linked account: nothing lost, nothing doubled, and nothing leaks from a group."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta
from palaver.delivery.model import AccountState
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, wait_for_states

from .whatsapp_server import ADA, ADA_LID, BEN, GROUP, LID, OWN, SendFault, WhatsAppServer, make_media

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest

MENTION = [f"{LID}@lid"]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_person_who_is_named_by_another_id_goes_on_with_their_conversation(
    server: WhatsAppServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server)
    server.say("by number", sender=ADA)
    await wait_for_states(gateway, DeliveryState.SENT)
    server.say("by LID", sender=ADA_LID, sender_alt=None, chat_alt=None)
    deliveries = await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert len({delivery.session_id for delivery in deliveries}) == 1
    assert [message.text for message in server.messages] == ["You said: by number", "You said: by LID"]


async def test_in_a_group_answers_stay_in_the_group_and_nothing_leaks(
    server: WhatsAppServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent(lambda request: f"You said: {request.messages[-1]['content']}")
    gateway, _ = await starter.start(server, agent=agent)
    server.say("my private plan", sender=BEN)
    await wait_for_states(gateway, DeliveryState.SENT)
    server.say("not for the agent", chat=GROUP)
    server.say(f"@{LID} hello", chat=GROUP, mentions=MENTION)
    await wait_until(lambda: server.list_texts(GROUP))
    server.say(f"@{LID} and me?", sender=BEN, chat=GROUP, mentions=MENTION)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert len(server.list_texts(GROUP)) == 2
    assert server.list_texts(BEN) == ["You said: my private plan"]
    assert server.list_texts(ADA) == []
    asked = json.dumps([request.messages for request in agent.requests[1:]], default=str)
    assert "my private plan" not in asked
    quoted = [message.fields["quoted"]["sender"] for message in server.messages if message.chat == GROUP]
    assert quoted == [ADA, BEN]


async def test_a_note_to_oneself_is_answered_once(server: WhatsAppServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start(server)
    server.say("remember the milk", sender=OWN[0], chat=OWN[0])
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(OWN[0]) == ["You said: remember the milk"]


async def test_pictures_go_to_the_agent(server: WhatsAppServer, starter: GatewayStarter) -> None:
    server.files["p1"] = PIXEL
    agent = ScriptedAgent("I see.")
    media = make_media("p1", type="image", media_type="image/png", name=None, size=len(PIXEL))
    server.say("What is this?", media=media)
    gateway, _ = await starter.start(server, agent=agent)
    await wait_for_states(gateway, DeliveryState.SENT)
    [request] = agent.requests
    assert base64.b64encode(PIXEL).decode() in json.dumps(request.messages, default=str)


async def test_a_crash_in_the_middle_of_a_download_does_not_lose_the_file(
    server: WhatsAppServer, starter: GatewayStarter
) -> None:
    server.files["p1"] = PIXEL
    server.crashes_on_download = True
    agent = ScriptedAgent("I see.")
    server.say("Look", media=make_media("p1", type="image", media_type="image/png", size=len(PIXEL)))
    gateway, _ = await starter.start(server, agent=agent)
    await wait_for_states(gateway, DeliveryState.SENT)
    [request] = agent.requests
    assert base64.b64encode(PIXEL).decode() in json.dumps(request.messages, default=str)


async def test_a_file_that_crashes_the_library_every_time_is_given_up_and_no_other_is(
    server: WhatsAppServer, starter: GatewayStarter
) -> None:
    server.files["p1"] = PIXEL
    server.crashing_files.add("bad")
    is_given_up = asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if "Look" in str(request.messages):
            is_given_up.set()
        await is_given_up.wait()  # a crash while an answer is sent would make it uncertain
        yield TextDelta("I see.")

    agent = ScriptedAgent(answer)
    picture = make_media("p1", type="image", media_type="image/png", size=len(PIXEL))
    server.say("Look", media=make_media("bad"))
    server.say("And this", sender=BEN, media=picture)
    gateway, _ = await starter.start(server, agent=agent)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 2)
    requests = [json.dumps(request.messages, default=str) for request in agent.requests]
    [look] = [text for text in requests if "Look" in text]
    [other] = [text for text in requests if "And this" in text]
    assert "crashed each time" in look
    assert base64.b64encode(PIXEL).decode() in other


async def test_an_answer_whose_confirmation_is_lost_is_uncertain_and_not_sent_again(
    server: WhatsAppServer, starter: GatewayStarter
) -> None:
    server.faults.append(SendFault(arrives=True, panics=True))
    server.say("hello")
    gateway, _ = await starter.start(server)
    await wait_for_states(gateway, DeliveryState.UNCERTAIN)
    server.say("still there?")
    await wait_for_states(gateway, DeliveryState.UNCERTAIN, DeliveryState.SENT)
    assert server.list_texts(ADA) == ["You said: hello", "You said: still there?"]


async def test_crashes_and_restarts_lose_and_double_nothing(server: WhatsAppServer, starter: GatewayStarter) -> None:
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


async def test_an_account_waits_to_be_linked_and_then_works(server: WhatsAppServer, starter: GatewayStarter) -> None:
    server.is_linked = False
    gateway, _ = await starter.start(server)
    [runner] = gateway.accounts._runners.values()
    await wait_until(lambda: runner.status.state is AccountState.LINKING)
    assert runner.status.linking is not None
    assert runner.status.linking.qr_text == "2@first,key"
    server.connect()
    await wait_until(lambda: runner.status.name == "Palaver")
    assert (runner.status.state, runner.status.warnings) == (AccountState.LIVE, ())
    server.say("hello")
    await wait_for_states(gateway, DeliveryState.SENT)

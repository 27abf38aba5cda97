"""A whole gateway with a Discord bot: nothing lost, nothing doubled, nothing told to the wrong people."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import TextDelta
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.source import Platform, SessionSource
from palaver.delivery import table as deliveries
from palaver.delivery.model import AccountState
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, list_deliveries, skip_retry_wait, wait_for_states

from .conftest import DIRECT
from .discord_api import BLOCKED, LATE_INTERACTION, LOSE_ANSWER, limit_rate
from .discord_data import ADA, ADA_DM_ID, BEN, BEN_DM_ID, FORUM_ID, GENERAL_ID, HIDDEN_ID
from .discord_server import MENTION, DiscordServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from palaver.agent.base import AgentEvent, AgentRequest


@pytest.fixture
def starter(starter: GatewayStarter, server: DiscordServer) -> GatewayStarter:
    """Starts gateways, and waits until they receive: Discord keeps nothing for a bot that was never there."""
    starter.after_start = lambda _gateway: wait_until(lambda: server.gateway.is_connected)
    return starter


async def test_a_direct_message_is_answered_as_a_reply(server: DiscordServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start(server)
    message = server.say("hello")
    server.send_created(message)  # once more
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(ADA_DM_ID) == ["You said: hello"]
    [request] = server.list_requests("createMessage")
    assert request.body["message_reference"]["message_id"] == message["id"]


async def test_what_two_people_say_in_a_channel_stays_apart(server: DiscordServer, starter: GatewayStarter) -> None:
    agent = ScriptedAgent(lambda request: f"{len(request.messages)} messages")
    gateway, _ = await starter.start(server, agent=agent)
    server.say("my private secret")
    server.say(f"{MENTION} the password is swordfish", channel_id=GENERAL_ID, author=ADA)
    await wait_until(lambda: len(agent.requests) == 2)
    server.say(f"{MENTION} what did Ada say?", channel_id=GENERAL_ID, author=BEN)
    server.say("and what did she write to you?", channel_id=BEN_DM_ID, author=BEN)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 4)
    bens = [str(request.messages) for request in agent.requests[2:]]
    assert not any("private secret" in text for text in bens)
    [direct] = [text for text in bens if "write to you" in text]
    assert "swordfish" not in direct
    assert len(server.list_texts(BEN_DM_ID)) == len(server.list_texts(ADA_DM_ID)) == 1


async def test_an_answer_stays_in_its_post(server: DiscordServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start(server)
    post_ids = [server.start_thread(name, parent_id=FORUM_ID) for name in ("Steam", "Coal")]
    for number, post_id in enumerate(post_ids):
        server.say(f"{MENTION} question {number}", channel_id=post_id)
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    texts = [server.list_texts(post_id) for post_id in post_ids]
    assert texts == [["You said: [Ada] question 0"], ["You said: [Ada] question 1"]]


async def test_a_rate_limit_in_the_middle_of_the_parts_loses_and_doubles_nothing(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    answer = "\n\n".join(f"Paragraph {number} " + "word " * 300 for number in range(5))
    server.fail("createMessage", None, limit_rate(0.2), None, LOSE_ANSWER)
    gateway, _ = await starter.start(server, agent=ScriptedAgent(answer))
    server.say("long please")
    await skip_retry_wait(gateway)  # for the limit
    await wait_until(lambda: len(server.list_requests("createMessage")) >= 4)
    await skip_retry_wait(gateway)  # for the message whose answer was lost
    await wait_for_states(gateway, DeliveryState.SENT)
    texts = server.list_texts(ADA_DM_ID)
    assert len(texts) == 5
    assert "\n\n".join(texts).split() == answer.split()


async def test_what_came_during_a_restart_is_answered_once(server: DiscordServer, starter: GatewayStarter) -> None:
    _, first = await starter.start(server)
    server.say("one")
    await wait_until(lambda: server.list_texts(ADA_DM_ID))
    await first.aclose()
    server.say("two")
    server.say("three")
    server.say(f"{MENTION} four", channel_id=GENERAL_ID)
    gateway, _ = await starter.start(server)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 4)
    assert server.list_texts(ADA_DM_ID) == ["You said: one", "You said: two", "You said: three"]
    assert server.list_texts(GENERAL_ID) == ["You said: four"]


async def test_files_go_both_ways(server: DiscordServer, starter: GatewayStarter) -> None:
    agent = ScriptedAgent("I see.")
    gateway, _ = await starter.start(server, agent=agent)
    server.say("What is this?", attachments=[server.attach("notes.txt", b"engine notes", content_type="text/plain")])
    await wait_for_states(gateway, DeliveryState.SENT)
    assert "engine notes" in str(agent.requests[0].messages)

    async def read() -> AsyncIterator[bytes]:
        yield b"a plan"

    files = gateway.outbox._files
    assert files is not None
    source = SessionSource(Platform.DISCORD, ADA_DM_ID, user_id=ADA["id"])
    file = await files.receive((await gateway.store.aio.get_or_create_person(source)).principal, "plan.txt", read())
    now = to_micros(gateway.store.clock.now())
    server.fail("createMessage", None, LOSE_ANSWER)  # the file is there all the same, once
    await gateway.store.engine.arun(
        Write(lambda tx: deliveries.enqueue(tx, str(DIRECT), "Here it is.", now, attachment_ids=[file.id]))
    )
    await wait_until(lambda: len(server.list_own(ADA_DM_ID)) == 3)
    assert server.list_texts(ADA_DM_ID) == ["I see.", "Here it is.", ""]
    [attachment] = server.list_own(ADA_DM_ID)[-1]["attachments"]
    assert (attachment["filename"], server.files[attachment["id"]]) == ("plan.txt", b"a plan")


async def test_a_late_command_is_run_and_its_reply_goes_to_the_channel(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    await starter.start(server)
    server.fail("answerInteraction", LATE_INTERACTION)
    server.call_command("new", channel_id=GENERAL_ID)
    await wait_until(lambda: len(server.list_texts(GENERAL_ID)) == 1)
    server.call_command("new", channel_id=GENERAL_ID)
    await wait_until(lambda: len(server.list_texts(GENERAL_ID)) == 2)
    await wait_until(lambda: len(server.list_requests("deleteOriginal")) == 1)
    assert server.list_placeholders() == []


async def test_a_command_in_a_channel_that_the_bot_does_not_see_is_answered_to_its_sender(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent("never")
    gateway, _ = await starter.start(server, agent=agent)
    hidden = {"app_permissions": str(1 << 11)}  # it may write, but sees nothing
    listed = server.call_command("help", channel_id=HIDDEN_ID, **hidden)
    changed = server.call_command("new", channel_id=HIDDEN_ID, **hidden)
    asked = server.call_command("queue", "What is a turbine?", channel_id=HIDDEN_ID, **hidden)
    await wait_until(lambda: listed.answers and changed.answers and asked.answers)
    await wait_until(lambda: server.list_placeholders() == [])
    assert "`/retry`" in "".join(listed.answers)
    assert "messages here" in changed.answers[0]
    assert asked.answers[0].startswith("I can't write in this chat")
    assert agent.requests == []
    assert await list_deliveries(gateway) == []


async def test_in_a_channel_only_the_sender_sees_a_command_that_changes_nothing(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    await starter.start(server)
    status = server.call_command("status", channel_id=GENERAL_ID, locale="de")
    changed = server.call_command("new", channel_id=GENERAL_ID)
    await wait_until(lambda: status.answers and server.list_texts(GENERAL_ID))
    await wait_until(lambda: server.list_placeholders() == [])
    assert "Modell" in "".join(status.answers)  # in the language of their app
    assert changed.answers == []


async def test_a_strangers_command_in_a_channel_gets_a_hint_that_only_they_see(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server, open_platforms=frozenset())
    command = server.call_command("sessions", channel_id=GENERAL_ID)
    await wait_until(lambda: command.answers)
    assert command.answers == ["You don't have access here yet. Write me a direct message to ask for it."]
    await wait_until(lambda: server.list_placeholders() == [])
    assert server.list_texts(GENERAL_ID) == []
    assert await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT 1 FROM person"))) == []


async def test_a_person_who_blocks_the_bot_stops_only_their_own_answers(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server)
    server.fail("createMessage", BLOCKED)
    server.say("hello")
    [failed] = await wait_for_states(gateway, DeliveryState.FAILED)
    assert "blocked the bot" in str(failed.error)
    server.say("hello", channel_id=BEN_DM_ID, author=BEN)
    await wait_for_states(gateway, DeliveryState.FAILED, DeliveryState.SENT)
    assert server.list_texts(BEN_DM_ID) == ["You said: hello"]


async def test_a_token_that_is_reset_stops_the_bot_until_it_is_fixed(
    server: DiscordServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server)
    runner = gateway.accounts._runners[Platform.DISCORD, ""]
    server.is_revoked = True
    server.gateway.forget_sessions()
    server.gateway.cut()
    await wait_until(lambda: runner.status.state is AccountState.REFUSED)
    server.say("hello?")
    server.is_revoked = False
    await wait_until(lambda: runner.status.state is AccountState.LIVE)
    server.say("hello")
    await wait_until(lambda: server.list_texts(ADA_DM_ID))


@pytest.mark.usefixtures("instant_previews")
async def test_an_answer_grows_and_ends_as_one_message(server: DiscordServer, starter: GatewayStarter) -> None:
    shown = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent]:
        yield TextDelta("Growing ")
        await shown.wait()
        yield TextDelta("and done.")

    gateway, _ = await starter.start(server, agent=ScriptedAgent(answer))
    server.say(f"{MENTION} tell me", channel_id=GENERAL_ID)
    await wait_until(lambda: any(text.startswith("Growing") for text in server.list_texts(GENERAL_ID)))
    [message] = server.list_own(GENERAL_ID)
    assert message["components"][0]["components"][0]["label"] == "Stop"
    await wait_until(lambda: GENERAL_ID in server.typing)
    shown.set()
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(GENERAL_ID) == ["Growing and done."]
    assert message["components"] == []

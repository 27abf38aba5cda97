"""A whole gateway with Slack apps: nothing lost, nothing doubled, nothing told to the wrong people or thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import TextDelta
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.source import Platform, SessionSource
from palaver.delivery import table as deliveries
from palaver.delivery.model import AccountState
from palaver.media.attachments import Attachments
from palaver.people import table as people
from palaver.sessions.delivery import Address, DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, list_deliveries, wait_for_states

from .slack_server import (
    ADA,
    BEN,
    BEN_DM,
    BOT_USER,
    CHANNEL,
    DM,
    LOSE_ANSWER,
    Fault,
    SlackServer,
    get_shown_text,
)
from .slack_workspace import OTHER_CHANNEL, OTHER_DM

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Row, Transaction

MENTION = f"<@{BOT_USER}>"


def list_thread(server: SlackServer, thread: str, channel: str = CHANNEL) -> list[str]:
    """Return what the app has written in a thread."""
    own = server.list_own_messages(channel)
    return [get_shown_text(message) for message in own if message.get("thread_ts") == thread]


def make_reader(table: str) -> Callable[[Transaction], list[Row]]:
    return lambda tx: tx.fetch_all(f"SELECT 1 FROM {table}")


async def test_a_direct_message_that_comes_twice_is_answered_once_and_marked_meanwhile(
    server: SlackServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server)
    ts = server.say("hello")
    server.push_message(DM, ts)
    server.say("again")
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert server.list_texts() == ["You said: hello", "You said: again"]
    assert all("thread_ts" not in message for message in server.list_own_messages())
    marked = [each.parameters["timestamp"] for each in server.list_requests("reactions.add")]
    assert ts in marked
    await wait_until(lambda: not any(server.reactions.values()))


async def test_a_mention_is_answered_in_its_thread_and_the_thread_is_the_conversation(
    server: SlackServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent(lambda request: f"{len(request.messages)} messages")
    gateway, _ = await starter.start(server, agent=agent)
    server.say("lunch at noon?", channel=CHANNEL, user=BEN)
    first = server.say(f"{MENTION} what did he say?", channel=CHANNEL)
    await wait_for_states(gateway, DeliveryState.SENT)
    server.say(f"{MENTION} and now?", channel=CHANNEL, thread_ts=first, user=BEN)
    second = server.say(f"{MENTION} another thing", channel=CHANNEL, user=BEN)
    sent = await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert (list_thread(server, first), list_thread(server, second)) == (["1 messages", "3 messages"], ["1 messages"])
    assert len(server.list_own_messages(CHANNEL)) == 3  # none in the channel itself
    assert len({delivery.session_id for delivery in sent}) == 2
    assert "lunch at noon?" in str(agent.requests[0].messages)
    await wait_until(lambda: not any(server.statuses.values()))
    assert (CHANNEL, first) in server.statuses  # it was shown that the app is at work


async def test_what_one_person_says_in_private_is_not_told_to_another(
    server: SlackServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent("Fine.")
    gateway, _ = await starter.start(server, agent=agent)
    server.say("my secret is 4711")
    thread = server.say(f"{MENTION} the channel's word is apple", channel=CHANNEL, user=BEN)
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    server.say("hi", user=BEN, channel=BEN_DM)
    server.say(f"{MENTION} and?", channel=CHANNEL, thread_ts=thread)
    server.say(f"{MENTION} elsewhere", channel=CHANNEL)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 5)
    seen = {str(request.messages[-1]["content"]).split("]\n")[-1]: str(request.messages) for request in agent.requests}
    assert [name for name, text in seen.items() if "4711" in text] == ["my secret is 4711"]
    assert "apple" not in seen["hi"]
    assert any("apple" in text and "and?" in name for name, text in seen.items())


async def test_what_follows_in_a_thread_needs_no_mention_until_another_person_is_addressed(
    server: SlackServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server)
    thread = server.say(f"{MENTION} one", channel=CHANNEL)
    await wait_for_states(gateway, DeliveryState.SENT)
    for text, user in (("two", BEN), (f"<@{BEN}> three", ADA), ("four", BEN), (f"{MENTION} five", ADA), ("six", BEN)):
        server.say(text, channel=CHANNEL, thread_ts=thread, user=user)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 4)
    assert [text.split()[-1] for text in list_thread(server, thread)] == ["one", "two", "five", "six"]


async def test_each_thread_of_the_agent_view_is_a_conversation(server: SlackServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start(server)
    roots = [server.say("New chat", user=BOT_USER, sends_event=False) for _ in range(2)]
    server.push(
        {
            "type": "assistant_thread_started",
            "assistant_thread": {"user_id": ADA, "context": {}, "channel_id": DM, "thread_ts": roots[0]},
            "event_ts": server.make_ts(),
        }
    )
    for number, root in enumerate(roots):
        server.say(f"topic {number}", thread_ts=root)
    sent = await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert [list_thread(server, root, DM) for root in roots] == [["You said: topic 0"], ["You said: topic 1"]]
    assert len({delivery.session_id for delivery in sent}) == 2


async def test_an_answer_whose_confirmation_is_lost_is_found_in_the_history(
    server: SlackServer, starter: GatewayStarter
) -> None:
    server.fail("chat.postMessage", LOSE_ANSWER)
    gateway, _ = await starter.start(server)
    server.say("hello")
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts() == ["You said: hello"]
    assert len(server.list_requests("chat.postMessage")) == 1
    assert server.list_requests("conversations.history")


async def test_what_came_during_a_restart_is_answered_once(server: SlackServer, starter: GatewayStarter) -> None:
    _, first = await starter.start(server)
    server.say("one")
    await wait_until(lambda: server.list_texts() == ["You said: one"])
    await first.aclose()
    server.say("two")  # Slack still repeats this one
    server.say("three", sends_event=False)  # and this one no longer
    thread = server.say(f"{MENTION} four", channel=CHANNEL, sends_event=False)
    gateway, _ = await starter.start(server)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 4)
    assert server.list_texts() == ["You said: one", "You said: two", "You said: three"]
    assert list_thread(server, thread) == ["You said: [Ada] four"]


async def test_a_cut_socket_loses_and_doubles_nothing(server: SlackServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start(server)
    for number in range(6):
        server.say(f"{number}", channel=CHANNEL if number % 2 else DM)
        if number % 2:
            await server.cut_sockets()
        else:
            await server.ask_to_reconnect()
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert sorted(server.list_texts()) == ["You said: 0", "You said: 2", "You said: 4"]
    await wait_until(lambda: server.open_sockets == 1 and not server.unacknowledged)


async def test_a_revoked_token_stops_one_app_and_no_other(server: SlackServer, starter: GatewayStarter) -> None:
    async with SlackServer() as other:
        gateway, closing = await starter.start(server, other)
        await wait_until(lambda: len(gateway.accounts.list_live_adapters()) == 2)
        other.is_revoked = True
        await other.cut_sockets()
        refused = gateway.accounts._runners[Platform.SLACK, "account1"]
        await wait_until(lambda: refused.status.state is AccountState.REFUSED)
        other.say("are you there?")
        server.say("hello")
        await wait_until(lambda: server.list_texts() == ["You said: hello"])
        other.is_revoked = False  # the owner has fixed it
        await wait_until(lambda: refused.status.state is AccountState.LIVE)
        await wait_until(lambda: other.list_texts() == ["You said: are you there?"])
        await closing.aclose()


async def test_a_channel_without_the_app_stops_only_its_own_answers(
    server: SlackServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server)
    server.fail("chat.postMessage", Fault(error="not_in_channel"))
    server.say(f"{MENTION} hello", channel=CHANNEL)
    [failed] = await wait_for_states(gateway, DeliveryState.FAILED)
    assert "/invite" in str(failed.error)
    server.say("hello")
    await wait_for_states(gateway, DeliveryState.FAILED, DeliveryState.SENT)


async def test_files_go_both_ways_and_to_the_thread(server: SlackServer, starter: GatewayStarter) -> None:
    agent = ScriptedAgent("I see.")
    gateway, _ = await starter.start(server, agent=agent)
    thread = server.say(f"{MENTION} what is this?", channel=CHANNEL, file=("notes.txt", b"engine notes"))
    await wait_for_states(gateway, DeliveryState.SENT)
    assert "engine notes" in str(agent.requests[0].messages)
    person = await gateway.store.aio.get_or_create_person(SessionSource(Platform.SLACK, DM, user_id=ADA))

    async def read_plan() -> AsyncIterator[bytes]:
        yield b"the plan"

    file = await Attachments(gateway.store, starter.folder / "attachments").receive(
        person.principal, "plan.txt", read_plan()
    )
    address = str(Address(Platform.SLACK, CHANNEL, thread))
    now = to_micros(gateway.store.clock.now())
    await gateway.store.engine.arun(
        Write(lambda tx: deliveries.enqueue(tx, address, "Here it is.", now, attachment_ids=[file.id]))
    )
    gateway.outbox.wake()
    await wait_until(lambda: any(message.get("files") for message in server.list_own_messages(CHANNEL)))
    [message] = [each for each in server.list_own_messages(CHANNEL) if each.get("files")]
    assert message["thread_ts"] == thread
    assert server.contents[message["files"][0]["id"]] == b"the plan"
    assert list_thread(server, thread)[:2] == ["I see.", "Here it is."]


async def test_a_slash_command_is_answered_in_its_chat(server: SlackServer, starter: GatewayStarter) -> None:
    await starter.start(server)
    server.say("hello")
    await wait_until(lambda: server.list_texts() == ["You said: hello"])
    server.send_command("/palaver", "new")
    await wait_until(lambda: len(server.list_texts()) == 2)
    await wait_until(lambda: not server.unacknowledged)
    assert "new" in server.list_texts()[1].lower()


@pytest.mark.parametrize("channel", [OTHER_CHANNEL, OTHER_DM])
async def test_a_command_where_the_app_is_no_member_is_answered_to_its_sender(
    server: SlackServer, starter: GatewayStarter, channel: str
) -> None:
    agent = ScriptedAgent("never")
    gateway, _ = await starter.start(server, agent=agent)
    server.send_command("/palaver", "help", channel=channel)
    server.send_command("/palaver", "new Trip", channel=channel)
    server.send_command("/palaver", "what is a turbine?", channel=channel)
    await wait_until(lambda: all(server.command_answers))
    [[listed], [changed], [refused]] = server.command_answers
    assert "`/palaver retry" in listed
    assert changed == "New conversation: **Trip**."
    assert refused.startswith("I can't write in this chat")
    assert agent.requests == []
    assert await list_deliveries(gateway) == []  # nothing waits for a chat that can't be written to
    person = await gateway.store.aio.get_or_create_person(SessionSource(Platform.SLACK, DM, user_id=ADA))
    identities = await gateway.store.engine.arun(Read(lambda tx: people.list_identities(tx, person.id)))
    assert [each.dm_source for each in identities] == [None]  # notices don't go to a chat of other people


async def test_in_a_channel_only_the_sender_sees_a_command_that_changes_nothing(
    server: SlackServer, starter: GatewayStarter
) -> None:
    await starter.start(server)
    server.send_command("/palaver", "status", channel=CHANNEL)
    server.send_command("/palaver", "undo many", channel=CHANNEL)
    server.send_command("/palaver", "new", channel=CHANNEL)  # of which others in the channel must know
    await wait_until(lambda: len(server.list_texts(CHANNEL)) == 1)
    await wait_until(lambda: all(server.command_answers[:2]))
    assert server.command_answers[1] == ["How many exchanges? Use a number from 1 to 1000, as in `/palaver undo 2`."]
    assert server.command_answers[2] == []


async def test_a_strangers_command_in_a_channel_gets_a_hint_that_only_they_see(
    server: SlackServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start(server, open_platforms=frozenset())
    for text in ("sessions", "hello"):
        server.send_command("/palaver", text, channel=CHANNEL)
    await wait_until(lambda: all(server.command_answers))
    hint = "You don't have access here yet. Write me a direct message to ask for it."
    assert server.command_answers == [[hint], [hint]]
    assert server.list_texts(CHANNEL) == []
    assert await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT 1 FROM person"))) == []
    assert await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT 1 FROM pairing_request"))) == []


async def test_ignored_strangers_get_nothing_and_leave_nothing(server: SlackServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start(server, open_platforms=frozenset(), ignoring_platforms=frozenset({Platform.SLACK}))
    server.send_command("/palaver", "sessions", channel=CHANNEL)
    server.say("let me in")
    server.say("/link ABCD-EFGH")
    await wait_until(lambda: not server.unacknowledged and len(server.sent_envelopes) == 3)
    assert (server.command_answers, server.list_texts(), server.list_texts(CHANNEL)) == ([[]], [], [])
    for table in ("person", "pairing_request", "inbound_message", "delivery", "session"):
        rows = await gateway.store.engine.arun(Read(make_reader(table)))
        assert rows == [], table


async def test_an_answer_to_a_command_that_slack_does_not_take_does_no_harm(
    server: SlackServer, starter: GatewayStarter
) -> None:
    await starter.start(server)
    server.fail("response_url", LOSE_ANSWER, Fault(500))
    for _ in range(3):
        server.send_command("/palaver", "help", channel=OTHER_CHANNEL)
    await wait_until(lambda: bool(server.command_answers[2]))
    assert not server.unacknowledged


async def test_hints_in_a_thread_work_as_they_are_shown(server: SlackServer, starter: GatewayStarter) -> None:
    agent = ScriptedAgent("one")
    await starter.start(server, agent=agent)
    thread = server.say(f"{MENTION} hello", channel=CHANNEL)
    await wait_until(lambda: list_thread(server, thread) == ["one"])
    server.say("!undo", channel=CHANNEL, thread_ts=thread)
    await wait_until(lambda: len(list_thread(server, thread)) == 2)
    assert "Use !redo to bring it back" in list_thread(server, thread)[1]
    server.say("!redo", channel=CHANNEL, thread_ts=thread)
    await wait_until(lambda: len(list_thread(server, thread)) == 3)
    assert "Redone" in list_thread(server, thread)[2]


async def test_replies_are_in_the_language_that_a_person_uses_slack_in(
    server: SlackServer, starter: GatewayStarter
) -> None:
    server.locales[ADA] = "de-AT"
    await starter.start(server)
    server.send_command("/palaver", "new")
    await wait_until(lambda: len(server.list_texts()) == 1)
    server.say("!new", channel=BEN_DM, user=BEN)
    await wait_until(lambda: len(server.list_texts(BEN_DM)) == 1)
    assert "Hier gibt es noch keine Nachrichten" in server.list_texts()[0]
    assert "There are no messages here yet" in server.list_texts(BEN_DM)[0]


@pytest.mark.usefixtures("instant_previews")
@pytest.mark.parametrize("place", ["thread", "chat"])
async def test_an_answer_grows_and_ends_as_one_message(
    server: SlackServer, starter: GatewayStarter, place: str
) -> None:
    shown = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent]:
        yield TextDelta("Growing ")
        await shown.wait()
        yield TextDelta("and done.")

    gateway, _ = await starter.start(server, agent=ScriptedAgent(answer))
    channel = CHANNEL if place == "thread" else DM
    server.say(f"{MENTION} tell me", channel=channel)
    await wait_until(lambda: any(text.startswith("Growing") for text in server.list_texts(channel)))
    [message] = server.list_own_messages(channel)
    assert message.get("streaming_state") == ("in_progress" if place == "thread" else None)
    shown.set()
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(channel) == ["Growing and done."]
    final: dict[str, Any] = server.list_own_messages(channel)[0]
    assert [block["type"] for block in final["blocks"]] == ["markdown"]  # without the button to stop it
    assert final.get("streaming_state") == ("completed" if place == "thread" else None)


@pytest.mark.usefixtures("instant_previews")
async def test_a_stream_whose_process_dies_is_completed_by_the_next_one(
    server: SlackServer, starter: GatewayStarter
) -> None:
    texts = ["Growing ", "and done."]
    is_stopped = asyncio.Event()

    async def never_end(_request: AgentRequest) -> AsyncGenerator[AgentEvent]:
        yield TextDelta(texts[0])
        await is_stopped.wait()

    first, closing = await starter.start(server, agent=ScriptedAgent(never_end))
    thread = server.say(f"{MENTION} tell me", channel=CHANNEL)
    await wait_until(lambda: list_thread(server, thread) == ["Growing"])
    await first.stop(grace_seconds=0)
    await closing.aclose()
    gateway, _ = await starter.start(server, agent=ScriptedAgent("".join(texts)))
    await wait_for_states(gateway, DeliveryState.SENT)
    assert list_thread(server, thread) == ["Growing and done."]

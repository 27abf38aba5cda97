"""A whole gateway with Telegram bots: nothing lost, nothing doubled, and each failure stays where it is."""

from __future__ import annotations

import asyncio
import base64
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.accounts.people import People
from palaver.agent.base import TextDelta
from palaver.core.operation import BlockingRunner
from palaver.core.source import Platform
from palaver.delivery.model import AccountState
from palaver.inbox.message_queue import ALBUM_WINDOW
from palaver.people.pairing_table import Grant
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, skip_retry_wait, skip_time, wait_for_states

from .bot_api_server import BLOCKED, CHANNEL, GROUP, PRIVATE, BotApiServer, build_move_fault, flood, make_message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest

ADA_ID, GROUP_ID = PRIVATE["id"], GROUP["id"]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MENTION = [{"type": "mention", "offset": 0, "length": 12}]


async def test_a_message_that_comes_twice_is_answered_once(server: BotApiServer, starter: GatewayStarter) -> None:
    update = server.push_text("hello", message_id=1)
    server.push(message=update["message"])
    gateway, _ = await starter.start(server)
    server.push_text("again", message_id=2)
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert server.list_texts(ADA_ID) == ["You said: hello", "You said: again"]
    [first, *_] = server.list_requests("sendMessage")
    assert first.parameters["reply_parameters"]["message_id"] == 1


async def test_a_flood_limit_in_the_middle_of_the_parts_loses_and_doubles_nothing(
    server: BotApiServer, starter: GatewayStarter
) -> None:
    answer = "\n\n".join(f"Paragraph {number} " + "word " * 400 for number in range(5))
    server.fail("sendMessage", None, flood(1))
    server.push_text("long please", message_id=1)
    gateway, _ = await starter.start(server, agent=ScriptedAgent(answer))
    await skip_retry_wait(gateway)
    await wait_for_states(gateway, DeliveryState.SENT)
    texts = server.list_texts(ADA_ID)
    assert len(texts) == 5
    assert "\n\n".join(texts).split() == answer.split()
    assert len(server.list_requests("sendMessage")) == 6


async def test_an_answer_follows_a_group_that_became_a_supergroup(
    server: BotApiServer, starter: GatewayStarter
) -> None:
    old_group = {"id": -4001, "type": "group", "title": "Engines"}
    server.fail("sendMessage", build_move_fault(GROUP_ID))
    server.push_text("@palaver_bot hello", message_id=1, chat=old_group, entities=MENTION)
    gateway, _ = await starter.start(server)
    await wait_until(lambda: server.list_texts(GROUP_ID))
    # Telegram then tells in both chats that the group has moved. The conversation goes on under the new id.
    server.push(message=make_message(None, chat=old_group, message_id=2, migrate_to_chat_id=GROUP_ID))
    server.push(message=make_message(None, chat=GROUP, message_id=1, migrate_from_chat_id=-4001))
    server.push_text("@palaver_bot and now", message_id=2, chat=GROUP, entities=MENTION)
    deliveries = await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert server.list_texts(GROUP_ID) == ["You said: hello", "You said: and now"]
    assert server.list_texts(-4001) == []
    assert len({delivery.session_id for delivery in deliveries}) == 1


async def test_a_person_who_blocks_the_bot_stops_only_their_own_answers(
    server: BotApiServer, starter: GatewayStarter
) -> None:
    bob = {"id": 43, "is_bot": False, "first_name": "Bob"}
    server.fail("sendMessage", BLOCKED)
    server.push_text("hello", message_id=1)
    gateway, _ = await starter.start(server)
    [failed] = await wait_for_states(gateway, DeliveryState.FAILED)
    assert failed.error == "The person has blocked the bot on Telegram."
    server.push_text("hello", message_id=1, chat={"id": 43, "type": "private", "first_name": "Bob"}, sender=bob)
    await wait_for_states(gateway, DeliveryState.FAILED, DeliveryState.SENT)
    assert server.list_texts(43) == ["You said: hello"]


async def test_a_revoked_token_stops_one_bot_and_no_other(server: BotApiServer, starter: GatewayStarter) -> None:
    async with BotApiServer() as other:
        gateway, closing = await starter.start(server, other)
        runners = gateway.accounts._runners
        await wait_until(lambda: len(gateway.accounts.list_live_adapters()) == 2)
        other.is_revoked = True
        other.push_text("wake up", message_id=1)
        refused = runners[Platform.TELEGRAM, "account1"]
        await wait_until(lambda: refused.status.state is AccountState.REFUSED)
        server.push_text("hello", message_id=1)
        await wait_until(lambda: server.list_texts(ADA_ID))
        other.is_revoked = False  # the owner has fixed it
        await wait_until(lambda: refused.status.state is AccountState.LIVE)
        await wait_until(lambda: other.list_texts(ADA_ID))
        await closing.aclose()


async def test_what_came_during_a_restart_is_answered_once(server: BotApiServer, starter: GatewayStarter) -> None:
    _, first = await starter.start(server)
    server.push_text("one", message_id=1)
    await wait_until(lambda: server.list_texts(ADA_ID))
    await first.aclose()
    server.push_text("two", message_id=2)
    server.push_text("three", message_id=3)
    gateway, _ = await starter.start(server)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert server.list_texts(ADA_ID) == ["You said: one", "You said: two", "You said: three"]


async def test_no_person_waits_for_another_persons_file(server: BotApiServer, starter: GatewayStarter) -> None:
    server.sends_files.clear()
    server.files["p1"] = PIXEL
    photo = [{"file_id": "p1", "file_unique_id": "u1", "width": 1, "height": 1}]
    server.push(message=make_message(None, message_id=1, photo=photo, caption="What is this?"))
    server.push_text("and this?", message_id=2)
    ben = {"id": 77, "is_bot": False, "first_name": "Ben"}
    await starter.start(server, agent=ScriptedAgent("I see."))

    def has_texts(count: int) -> bool:
        return len(server.list_texts(77)) == count

    for number in (3, 4):
        server.push_text("hello", message_id=number, chat=PRIVATE | {"id": 77}, sender=ben)
        await wait_until(partial(has_texts, number - 2))
    assert server.list_texts(ADA_ID) == []
    assert server.confirmed_offset <= 1000  # Telegram keeps them until the photo is stored
    server.sends_files.set()
    await wait_until(lambda: len(server.list_texts(ADA_ID)) == 2)
    await wait_until(lambda: server.confirmed_offset == 1004)


async def test_an_album_is_one_question_with_all_its_pictures(server: BotApiServer, starter: GatewayStarter) -> None:
    agent = ScriptedAgent("I see.")
    for number in (1, 2, 3):
        server.files[f"p{number}"] = PIXEL + bytes([number])
        photo = [{"file_id": f"p{number}", "file_unique_id": f"u{number}", "width": 1, "height": 1}]
        caption = "What is this?" if number == 1 else None
        server.push(message=make_message(None, message_id=number, photo=photo, media_group_id="g1", caption=caption))
    gateway, _ = await starter.start(server, agent=agent)
    await wait_until(lambda: server.confirmed_offset == 1003)
    skip_time(gateway, ALBUM_WINDOW.total_seconds())  # for which the gateway waits for the rest of an album
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(ADA_ID) == ["I see."]
    [request] = agent.requests
    asked = json.dumps(request.messages, default=str)
    assert "What is this?" in asked
    assert all(base64.b64encode(content).decode() in asked for content in server.files.values())


@pytest.mark.usefixtures("instant_previews")
@pytest.mark.parametrize("chat", [PRIVATE, GROUP], ids=["private", "group"])
async def test_an_answer_grows_and_ends_as_one_message(
    server: BotApiServer, starter: GatewayStarter, chat: dict[str, Any]
) -> None:
    shown = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent]:
        yield TextDelta("Growing ")
        await shown.wait()
        yield TextDelta("and done.")

    entities = MENTION if chat is GROUP else []
    server.push_text("@palaver_bot tell me", message_id=1, chat=chat, entities=entities)
    gateway, _ = await starter.start(server, agent=ScriptedAgent(answer))
    if chat is PRIVATE:
        await wait_until(lambda: server.drafts.get(ADA_ID, (0, ""))[1].startswith("Growing"))
        assert server.messages == {}
    else:
        await wait_until(lambda: any(text.startswith("Growing") for text in server.list_texts(GROUP_ID)))
        [message] = server.messages.values()
        assert message["asked"]["reply_markup"]["inline_keyboard"][0][0]["text"] == "Stop"
    await wait_until(lambda: server.list_requests("sendChatAction"))
    shown.set()
    await wait_for_states(gateway, DeliveryState.SENT)
    assert server.list_texts(chat["id"]) == ["Growing and done."]
    [message] = server.messages.values()
    assert "reply_markup" not in message["asked"]


def push_command(server: BotApiServer, text: str, message_id: int) -> None:
    command = [{"type": "bot_command", "offset": 0, "length": len(text)}]
    server.push_post(text, message_id=message_id, entities=command)


async def test_a_channel_is_opened_by_an_owner_and_answers_there(server: BotApiServer, starter: GatewayStarter) -> None:
    channel_id = CHANNEL["id"]
    gateway, _ = await starter.start(server, open_platforms=frozenset())
    server.push_post("@palaver_bot who are you?", message_id=1, entities=MENTION)
    push_command(server, "/help", 2)
    push_command(server, "/pair@palaver_bot", 3)
    await wait_until(lambda: server.list_texts(channel_id))
    [offer] = server.list_texts(channel_id)
    assert "To open this channel" in offer
    store = gateway.store
    people = People(BlockingRunner(store.engine), store, store.get_owner().principal)
    [request] = people.list_requests()
    assert (request.name, request.account, request.is_channel) == ("News", str(channel_id), True)
    people.approve(request.id, Grant.GUEST)
    gateway.outbox.wake()
    await wait_until(lambda: len(server.list_texts(channel_id)) == 2)
    server.push_post("Engines are late.", message_id=4, author_signature="Ben")
    server.push_post("@palaver_bot why?", message_id=5, entities=MENTION, author_signature="Ada")
    await wait_until(lambda: len(server.list_texts(channel_id)) == 3)
    [*_, answer] = server.list_requests("sendMessage")
    assert answer.parameters["reply_parameters"]["message_id"] == 5
    answer_text = server.list_texts(channel_id)[-1]
    assert "News (Ben): Engines are late." in answer_text
    assert "News (Ada)" in answer_text.splitlines()[-1]
    assert answer_text.endswith("why?")


async def test_a_channel_in_the_allow_list_is_open_and_no_other(server: BotApiServer, starter: GatewayStarter) -> None:
    allowed = {Platform.TELEGRAM: frozenset({str(CHANNEL["id"])})}
    await starter.start(server, open_platforms=frozenset(), allowed_users=allowed)
    stranger = CHANNEL | {"id": -1005550009999, "title": "Spam"}
    post: dict[str, Any] = {"chat": stranger, "sender": None, "sender_chat": stranger, "entities": MENTION}
    server.push(channel_post=make_message("@palaver_bot buy this", message_id=1, **post))
    copy: dict[str, Any] = {"chat": GROUP, "sender_chat": CHANNEL, "is_automatic_forward": True, "entities": MENTION}
    server.push_text("@palaver_bot hello", message_id=2, **copy)  # in the group for comments
    server.push_post("@palaver_bot hello", message_id=3, entities=MENTION)
    await wait_until(lambda: server.list_texts(CHANNEL["id"]))
    assert {int(request.parameters["chat_id"]) for request in server.list_requests("sendMessage")} == {CHANNEL["id"]}

"""Slash commands and buttons: Discord is answered in time, and the command runs even if it was not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.errors import LeaseLost
from palaver.sessions.delivery import Button
from palaver.sessions.inbound import ButtonPressed
from palaver.testing import MemoryInbox, MemoryLink
from palaver.testing.account_link import Death
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import run_adapter, wait_for_texts

from .conftest import connect, make_adapter_for, make_outgoing
from .discord_api import BAD_GATEWAY, LATE_INTERACTION
from .discord_data import FORUM_ID, GENERAL_ID

if TYPE_CHECKING:
    from palaver.sessions.inbound import AnyUpdate, Cursor, Receipt

    from .discord_server import DiscordServer


async def test_a_command_runs_and_leaves_no_placeholder(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        server.call_command("new", "Engines")
        server.call_command("stop", channel_id=GENERAL_ID)
        await wait_for_texts(inbox, "/new Engines", "/stop")
        await wait_until(lambda: len(server.list_requests("deleteOriginal")) == 2)
    assert server.list_placeholders() == []
    assert [request.body["data"]["flags"] for request in server.list_requests("answerInteraction")] == [64, 64]


async def test_a_command_that_discord_no_longer_knows_runs_all_the_same(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    server.fail("answerInteraction", LATE_INTERACTION)
    async with connect(server, inbox):
        server.call_command("new")
        await wait_for_texts(inbox, "/new")
        server.call_command("stop")  # the next one is not affected
        await wait_until(lambda: len(server.list_requests("deleteOriginal")) == 1)
    assert server.list_placeholders() == []


async def test_discord_is_answered_at_once_even_if_accepting_takes_long(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    link = MemoryLink(inbox, death=Death.BEFORE_STORING)  # the database hangs
    adapter = make_adapter_for(server)
    async with run_adapter(adapter, link):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        server.say("busy")
        await asyncio.wait_for(link.reached_death.wait(), TIMEOUT_SECONDS)
        interaction = server.call_command("new")
        await wait_until(lambda: interaction.is_acknowledged)
        assert interaction.has_placeholder
    assert server.list_placeholders() == []  # it was not run, and says nothing else


async def test_a_press_is_answered_at_once_and_its_result_only_the_person_sees(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    async with connect(server, inbox) as adapter:
        message = make_outgoing(adapter, buttons=[Button("Stop", "stop:t_1")])
        message_id = await adapter.send(message)
        interaction = server.press(message_id, "Stop")
        await inbox.wait_until(lambda: inbox.updates, TIMEOUT_SECONDS)
        await wait_until(lambda: interaction.is_acknowledged)
        [press] = inbox.updates
        assert isinstance(press, ButtonPressed)
        assert (press.data, press.message_id) == ("stop:t_1", message_id)
        await adapter.answer_press("404", "This was never pressed")
    assert server.list_texts(message.address.chat_id) == ["Hello"]
    [answer] = server.list_requests("answerInteraction")
    assert answer.body == {"type": 6}


async def test_the_result_of_a_press_is_shown(server: DiscordServer, inbox: MemoryInbox) -> None:
    class AnsweringLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            return replace(await super().accept(update, cursor=cursor), reply="Stopped.")

    adapter = make_adapter_for(server)
    async with run_adapter(adapter, AnsweringLink(inbox)):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        message_id = await adapter.send(make_outgoing(adapter, buttons=[Button("Stop", "stop:t_1")]))
        server.fail("followUp", None)
        interaction = server.press(message_id, "Stop")
        await wait_until(lambda: interaction.answers == ["Stopped."])
        server.fail("followUp", BAD_GATEWAY)  # an answer that fails does no harm
        server.press(message_id, "Stop")
        server.say("hello")
        await wait_for_texts(inbox, "hello")


async def test_a_command_in_a_post_stays_there(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        thread_id = server.start_thread("Steam", parent_id=FORUM_ID)
        server.call_command("stop", channel_id=thread_id)
        await wait_for_texts(inbox, "/stop")
    assert (inbox.messages[0].source.chat_id, inbox.messages[0].source.thread_id) == (FORUM_ID, thread_id)


async def test_losing_the_account_leaves_no_placeholder(server: DiscordServer, inbox: MemoryInbox) -> None:
    class LeaselessLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            raise LeaseLost

    adapter = make_adapter_for(server)
    async with run_adapter(adapter, LeaselessLink(inbox)) as task:
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        server.call_command("new")
        await asyncio.wait({task}, timeout=TIMEOUT_SECONDS)
        assert isinstance(task.exception(), LeaseLost)
    assert server.list_placeholders() == []

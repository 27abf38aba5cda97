"""Sending through the real SDK: what arrives where, and what each failure means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import (
    ConnectionLost,
    InvalidInput,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.sessions.delivery import Address
from support.gateway import TIMEOUT_SECONDS

from .conftest import DIRECT, connect, make_outgoing
from .discord_api import (
    BAD_GATEWAY,
    BLOCKED,
    CUT_LINE,
    LOSE_ANSWER,
    NO_HISTORY,
    NO_PERMISSION,
    UNAUTHORIZED,
    UNKNOWN_CHANNEL,
    Fault,
    limit_rate,
)
from .discord_data import ADA_DM_ID, GENERAL_ID, TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.discord.adapter import DiscordAdapter
    from palaver.testing import MemoryInbox

    from .discord_server import DiscordServer


async def test_an_answer_in_a_thread_goes_to_the_thread(server: DiscordServer, adapter: DiscordAdapter) -> None:
    thread_id = server.start_thread("Steam")
    address = Address(Platform.DISCORD, GENERAL_ID, thread_id)
    message_id = await adapter.send(make_outgoing(adapter, address=address))
    await adapter.edit(message_id, make_outgoing(adapter, "Changed", address=address))
    await adapter.show_typing(address)
    assert (server.list_texts(thread_id), server.list_texts(GENERAL_ID)) == (["Changed"], [])
    assert server.typing == [thread_id]


async def test_a_file_keeps_its_name_and_its_bytes(server: DiscordServer, adapter: DiscordAdapter) -> None:
    async def read() -> AsyncIterator[bytes]:
        yield b"0123"
        yield b"4567"

    file = OutgoingFile("übersicht [1].txt", "text/plain", 8, read)
    for number in (1, 2):
        await adapter.send(make_outgoing(adapter, "", file=file, key=f"d_f.{number}", reply_to="77"))
    assert [request.files for request in server.list_requests("createMessage")] == [((file.name, b"01234567"),)] * 2
    assert len(server.list_own(ADA_DM_ID)) == 2


async def test_where_it_cannot_read_the_history_it_answers_without_a_quote(
    server: DiscordServer, adapter: DiscordAdapter
) -> None:
    server.fail("createMessage", NO_HISTORY)
    await adapter.send(make_outgoing(adapter, reply_to="77"))
    refused, sent = server.list_requests("createMessage")
    assert refused.body["message_reference"]["message_id"] == "77"
    assert "message_reference" not in sent.body
    assert server.list_texts(ADA_DM_ID) == ["Hello"]


async def test_the_echo_of_a_message_confirms_it(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox) as adapter:
        server.fail("createMessage", LOSE_ANSWER)
        with pytest.raises(SendUncertain):
            await adapter.send(make_outgoing(adapter, key="d_lost.1"))
        await inbox.wait_until(lambda: inbox.confirmed, TIMEOUT_SECONDS)
    [message] = server.list_own(ADA_DM_ID)
    assert inbox.confirmed == {"d_lost.1": message["id"]}
    assert inbox.updates == []


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (limit_rate(1.5), SendRetryable, "wait 2 seconds"),
        (BAD_GATEWAY, SendUncertain, "did not confirm"),
        (CUT_LINE, SendUncertain, "did not confirm"),
        (UNKNOWN_CHANNEL, TargetUnreachable, "deleted"),
        (NO_PERMISSION, TargetUnreachable, "Send Messages"),
        (BLOCKED, TargetUnreachable, "don't accept direct messages"),
        (Fault(403, {"message": "Something new", "code": 77}), TargetUnreachable, "Something new"),
        (Fault(400, {"message": "Invalid Form Body", "code": 50035}), SendRejected, "Invalid Form Body"),
        (UNAUTHORIZED, SendRetryable, "Reset Token"),
        (Fault(403), SendRetryable, "in front of Discord"),  # the address of this machine is blocked: it passes
        (Fault(404), SendRetryable, "in front of Discord"),
        (Fault(413), SendRejected, "in front of Discord"),
    ],
)
async def test_each_failure_says_what_happened_to_the_message(
    server: DiscordServer, adapter: DiscordAdapter, fault: Fault, kind: type[Exception], words: str
) -> None:
    server.fail("createMessage", fault)
    with pytest.raises(kind, match=words) as failed:
        await adapter.send(make_outgoing(adapter))
    assert TOKEN not in str(failed.value)
    assert type(failed.value) is kind


@pytest.mark.parametrize(
    ("fault", "seconds", "is_whole_account"),
    [
        (limit_rate(1.5), 1.5, False),
        (limit_rate(2.5, is_global=True), 2.5, True),
        (Fault(429), 60.0, True),  # not Discord's API, but what protects it
        (Fault(403), 60.0, False),
        (UNAUTHORIZED, None, True),
    ],
)
async def test_a_limit_says_how_long_and_for_whom(
    server: DiscordServer, adapter: DiscordAdapter, fault: Fault, seconds: float | None, is_whole_account: bool
) -> None:
    server.fail("createMessage", fault)
    with pytest.raises(SendRetryable) as failed:
        await adapter.send(make_outgoing(adapter))
    assert (failed.value.retry_after, failed.value.whole_account) == (seconds, is_whole_account)
    assert await adapter.send(make_outgoing(adapter))  # nothing is left of it


async def test_what_can_be_repeated_is_never_uncertain(server: DiscordServer, adapter: DiscordAdapter) -> None:
    message_id = await adapter.send(make_outgoing(adapter))
    server.fail("editMessage", LOSE_ANSWER)
    with pytest.raises(SendRetryable):
        await adapter.edit(message_id, make_outgoing(adapter, "Changed"))
    server.fail("deleteMessage", BAD_GATEWAY)
    with pytest.raises(SendRetryable):
        await adapter.delete(DIRECT, message_id)


async def test_a_message_that_is_gone_is_sent_again_instead_of_edited(
    server: DiscordServer, adapter: DiscordAdapter
) -> None:
    with pytest.raises(SendRejected) as failed:
        await adapter.edit("404", make_outgoing(adapter))
    assert not isinstance(failed.value, TargetUnreachable)
    await adapter.delete(DIRECT, "404")


async def test_a_reaction_is_set_and_taken_back(server: DiscordServer, adapter: DiscordAdapter) -> None:
    message = server.say("look")
    await adapter.react(DIRECT, message["id"], "👀")
    assert [reaction["emoji"]["name"] for reaction in message["reactions"]] == ["👀"]
    message["reactions"].append({"emoji": {"id": None, "name": "👍"}, "me": False})
    await adapter.react(DIRECT, message["id"], "")
    assert [reaction["emoji"]["name"] for reaction in message["reactions"]] == ["👍"]
    with pytest.raises(SendRejected, match="slash command"):
        await adapter.react(DIRECT, "command:9", "👀")


async def test_a_reaction_never_changes_the_address_of_a_request(
    server: DiscordServer, adapter: DiscordAdapter
) -> None:
    message = server.say("look")
    await adapter.react(DIRECT, message["id"], "a/../../b")
    assert [reaction["emoji"]["name"] for reaction in message["reactions"]] == ["a/../../b"]


async def test_a_server_that_cannot_be_reached_is_said_in_words(server: DiscordServer, adapter: DiscordAdapter) -> None:
    await server.__aexit__()
    with pytest.raises(ConnectionLost, match="can't be reached right now: the connection was refused") as failed:
        await adapter.probe()
    assert "Error" not in str(failed.value)


@pytest.mark.parametrize("chat_id", ["general", "../users/@me", "５"])
async def test_an_address_that_is_no_channel_is_never_asked_for(
    server: DiscordServer, adapter: DiscordAdapter, chat_id: str
) -> None:
    count = len(server.requests)
    with pytest.raises(SendRejected, match="number"):
        await adapter.send(make_outgoing(adapter, address=Address(Platform.DISCORD, chat_id)))
    assert len(server.requests) == count


async def test_a_closed_adapter_sends_nothing(server: DiscordServer, adapter: DiscordAdapter) -> None:
    await adapter.close()
    with pytest.raises(SendRetryable):
        await adapter.send(make_outgoing(adapter))
    with pytest.raises(ConnectionLost):
        await adapter._client.load_account()


async def test_files_are_downloaded_from_discord_only(server: DiscordServer, adapter: DiscordAdapter) -> None:
    for url in ("https://example.org/a.txt", "http://169.254.169.254/latest", "file:///etc/passwd"):
        with pytest.raises(InvalidInput, match="not one of Discord"):
            [chunk async for chunk in adapter._client.download(url)]
    url = server.attach("a.txt", b"0123")["url"]
    assert b"".join([chunk async for chunk in adapter._client.download(url)]) == b"0123"

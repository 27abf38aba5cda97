"""The adapter with the real SDK against a local Bot API server: sending, and every way that it fails."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.sessions.delivery import Address, Button

from .bot_api_server import (
    BAD_GATEWAY,
    BLOCKED,
    CHAT_NOT_FOUND,
    CUT_LINE,
    FORUM,
    GROUP,
    LOSE_ANSWER,
    PRIVATE,
    TOKEN,
    BotApiServer,
    Fault,
    flood,
)
from .conftest import ADDRESS, make_outgoing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.core.errors import PalaverError
    from palaver.platforms.telegram.adapter import TelegramAdapter

    from .conftest import MakeAdapter

GROUP_ADDRESS = Address(Platform.TELEGRAM, str(GROUP["id"]))


def make_file(name: str, media_type: str, content: bytes) -> OutgoingFile:
    async def read() -> AsyncIterator[bytes]:
        yield content[:2]
        yield content[2:]

    return OutgoingFile(name, media_type, len(content), read)


# ---- sending -------------------------------------------------------------------------------------------------


async def test_a_message_has_entities_a_reply_buttons_and_a_topic(
    server: BotApiServer, adapter: TelegramAdapter
) -> None:
    address = Address(Platform.TELEGRAM, str(FORUM["id"]), "17")
    buttons = [Button(f"Button {number}", f"stop:t_{number}") for number in range(4)]
    message_id = await adapter.send(make_outgoing(adapter, "**Hello**", address=address, reply_to="7", buttons=buttons))
    [request] = server.list_requests("sendMessage")
    assert request.parameters["entities"] == [{"type": "bold", "offset": 0, "length": 5}]
    assert request.parameters["reply_parameters"] == {"message_id": 7, "allow_sending_without_reply": True}
    assert request.parameters["message_thread_id"] == 17
    assert [len(row) for row in request.parameters["reply_markup"]["inline_keyboard"]] == [3, 1]
    assert server.messages[FORUM["id"], int(message_id)]["text"] == "Hello"


async def test_the_topic_general_is_left_out(server: BotApiServer, adapter: TelegramAdapter) -> None:
    address = Address(Platform.TELEGRAM, str(FORUM["id"]), "1")
    await adapter.send(make_outgoing(adapter, address=address))
    await adapter.show_typing(address)
    assert all(
        "message_thread_id" not in request.parameters
        for request in server.list_requests("sendMessage", "sendChatAction")
    )


@pytest.mark.parametrize(
    ("name", "media_type", "method"),
    [
        ("a.png", "image/png", "sendPhoto"),
        ("a.ogg", "audio/ogg", "sendVoice"),
        ("a.mp3", "audio/mpeg", "sendAudio"),
        ("a.mp4", "video/mp4", "sendVideo"),
        ("a.pdf", "application/pdf", "sendDocument"),
    ],
)
async def test_a_file_is_sent_as_what_it_is(
    server: BotApiServer, adapter: TelegramAdapter, name: str, media_type: str, method: str
) -> None:
    message = make_outgoing(adapter, "", file=make_file(name, media_type, b"content"), reply_to="7")
    message_id = await adapter.send(message)
    [request] = server.list_requests(method)
    assert list(request.files.values()) == [(name, b"content")]
    assert (PRIVATE["id"], int(message_id)) in server.messages


async def test_a_picture_that_telegram_refuses_is_sent_as_a_file(
    server: BotApiServer, adapter: TelegramAdapter
) -> None:
    message = make_outgoing(adapter, "", file=make_file("tall.png", "image/png", b"content"))
    server.fail("sendPhoto", Fault(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"))
    await adapter.send(message)
    assert len(server.list_requests("sendDocument")) == 1
    server.fail("sendPhoto", BLOCKED)
    with pytest.raises(TargetUnreachable):
        await adapter.send(message)
    server.fail("sendPhoto", LOSE_ANSWER)
    with pytest.raises(SendUncertain):  # it may be there: it is not sent a second time as a file
        await adapter.send(message)
    assert len(server.list_requests("sendDocument")) == 1


async def test_an_edit_replaces_text_and_buttons(server: BotApiServer, adapter: TelegramAdapter) -> None:
    message_id = await adapter.send(make_outgoing(adapter, "Thinking", buttons=[Button("Stop", "stop:t_1")]))
    await adapter.edit(message_id, make_outgoing(adapter, "**Done**"))
    [request] = server.list_requests("editMessageText")
    assert "reply_markup" not in request.parameters
    assert server.list_texts(PRIVATE["id"]) == ["Done"]
    with pytest.raises(SendRejected, match="message to edit not found"):
        await adapter.edit("1", make_outgoing(adapter, "Too late"))


@pytest.mark.parametrize("fault", [CUT_LINE, BAD_GATEWAY])
async def test_an_edit_whose_outcome_is_unknown_can_be_repeated(
    server: BotApiServer, adapter: TelegramAdapter, fault: Fault
) -> None:
    message_id = await adapter.send(make_outgoing(adapter, "Thinking"))
    server.fail("editMessageText", fault)
    with pytest.raises(SendRetryable):
        await adapter.edit(message_id, make_outgoing(adapter, "Done"))


async def test_a_draft_is_shown_in_private_chats_only(server: BotApiServer, adapter: TelegramAdapter) -> None:
    [body] = adapter.render("Thin**king**")
    assert await adapter.show_draft(ADDRESS, "t_1", body)
    draft_id, text = server.drafts[PRIVATE["id"]]
    assert text == "Thinking"
    await adapter.show_draft(ADDRESS, "t_1", adapter.render("Thinking more")[0])
    assert server.drafts[PRIVATE["id"]] == (draft_id, "Thinking more")
    assert not await adapter.show_draft(GROUP_ADDRESS, "t_1", body)
    server.fail("sendMessageDraft", Fault(400, "Bad Request: TEXTDRAFT_PEER_INVALID"))
    assert not await adapter.show_draft(ADDRESS, "t_1", body)


async def test_reactions_outside_telegrams_list_are_rejected(server: BotApiServer, adapter: TelegramAdapter) -> None:
    await adapter.react(ADDRESS, "7", "👀")
    assert server.reactions == {(PRIVATE["id"], 7): ["👀"]}
    await adapter.react(ADDRESS, "7", "")
    assert server.reactions == {(PRIVATE["id"], 7): []}
    await adapter.react(ADDRESS, "7", "❤\ufe0f")  # as keyboards type it
    assert server.reactions == {(PRIVATE["id"], 7): ["❤"]}
    with pytest.raises(SendRejected, match="does not offer 🧮"):
        await adapter.react(ADDRESS, "7", "🧮")


async def test_the_answer_to_a_press_is_cut_and_may_be_late(server: BotApiServer, adapter: TelegramAdapter) -> None:
    await adapter.answer_press("55", "x" * 300)
    [request] = server.list_requests("answerCallbackQuery")
    assert len(request.parameters["text"]) == 200
    server.fail("answerCallbackQuery", Fault(400, "Bad Request: query is too old and response timeout expired"))
    await adapter.answer_press("55", None)


async def test_a_rich_message_falls_back_to_entities(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    adapter = make_adapter(rich_messages=True)
    await adapter.probe()
    table = "| a | b |\n|-|-|\n| 1 | 2 |"
    await adapter.send(make_outgoing(adapter, table, reply_to="7", buttons=[Button("Stop", "stop:t_1")]))
    [request] = server.list_requests("sendRichMessage")
    assert request.parameters["rich_message"] == {"markdown": table}
    for fault in (Fault(400, "Bad Request: RICH_MESSAGE_INVALID"), Fault(404, "Not Found")):
        server.fail("sendRichMessage", fault)
        await adapter.send(make_outgoing(adapter, table))
    assert len(server.list_requests("sendMessage")) == 2
    server.fail("sendRichMessage", LOSE_ANSWER)
    with pytest.raises(SendUncertain):
        await adapter.send(make_outgoing(adapter, table))
    assert len(server.list_requests("sendMessage")) == 2


# ---- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (flood(7), SendRetryable, "wait 7 seconds"),
        (Fault(429, "Too Many Requests"), SendRetryable, "wait 5 seconds"),
        (BAD_GATEWAY, SendUncertain, "502"),
        (Fault(500, "Internal Server Error: sent message was not found"), SendUncertain, "not found"),
        (LOSE_ANSWER, SendUncertain, "did not confirm"),
        (CUT_LINE, SendUncertain, "did not confirm"),
        (BLOCKED, TargetUnreachable, "blocked the bot"),
        (Fault(403, "Forbidden: bot was kicked from the supergroup chat"), TargetUnreachable, "removed from this chat"),
        (Fault(403, "Forbidden: user is deactivated"), TargetUnreachable, "deleted their Telegram account"),
        (Fault(403, "Forbidden: something new"), TargetUnreachable, "something new"),
        (CHAT_NOT_FOUND, TargetUnreachable, "does not know this chat"),
        (Fault(400, "Bad Request: message thread not found"), TargetUnreachable, "topic was deleted"),
        (Fault(400, "Bad Request: have no rights to send a message"), TargetUnreachable, "administrator"),
        (Fault(400, "Bad Request: TOPIC_CLOSED"), SendRejected, "TOPIC_CLOSED"),
        (Fault(400, "Bad Request: message is too long"), SendRejected, "too long"),
        (Fault(401, "Unauthorized"), SendRetryable, "@BotFather"),
    ],
)
async def test_a_failure_says_honestly_what_happened(
    server: BotApiServer, adapter: TelegramAdapter, fault: Fault, kind: type[PalaverError], words: str
) -> None:
    server.fail("sendMessage", fault)
    with pytest.raises(kind, match=words) as failed:
        await adapter.send(make_outgoing(adapter))
    assert type(failed.value) is kind
    assert TOKEN not in str(failed.value)


async def test_a_second_chat_that_has_to_wait_means_the_whole_account(
    server: BotApiServer, adapter: TelegramAdapter
) -> None:
    waits = []
    for address in (ADDRESS, ADDRESS, GROUP_ADDRESS):
        server.fail("sendMessage", flood(30))
        with pytest.raises(SendRetryable) as failed:
            await adapter.send(make_outgoing(adapter, address=address))
        waits.append((failed.value.retry_after, failed.value.whole_account))
    assert waits == [(30.0, False), (30.0, False), (30.0, True)]


async def test_after_closing_nothing_is_sent(server: BotApiServer, adapter: TelegramAdapter) -> None:
    await adapter.close()
    with pytest.raises(SendRetryable, match="closed"):
        await adapter.send(make_outgoing(adapter))


async def test_an_address_that_is_no_chat_id_is_rejected(server: BotApiServer, adapter: TelegramAdapter) -> None:
    with pytest.raises(SendRejected, match="its id is a number"):
        await adapter.send(make_outgoing(adapter, address=Address(Platform.TELEGRAM, "ada")))


async def test_no_log_line_contains_the_token(
    server: BotApiServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    adapter = make_adapter()
    await adapter.probe()
    server.fail("sendMessage", BAD_GATEWAY)
    with suppress(SendUncertain):
        await adapter.send(make_outgoing(adapter))
    await adapter.send(make_outgoing(adapter))
    assert TOKEN not in caplog.text

"""The adapter with the real SDK against a local Bot API server: signing in, receiving, the webhook."""

from __future__ import annotations

import asyncio
import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from palaver.core.errors import AccountRefused, ConnectionLost, LimitReached, SendRetryable
from palaver.delivery.adapter import WebhookRequest
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.telegram.adapter import TelegramAdapter
from palaver.platforms.telegram.manifest import TelegramSettings
from palaver.sessions.inbound import MessageReaction
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import WEBHOOK_URL, run_adapter

from .bot_api_server import (
    ADA,
    BAD_GATEWAY,
    CUT_LINE,
    GROUP,
    OTHER_POLL,
    PRIVATE,
    TOKEN,
    BotApiServer,
    Fault,
    flood,
    make_message,
)
from .conftest import make_outgoing

if TYPE_CHECKING:
    from palaver.sessions.inbound import AnyUpdate, Cursor, Receipt

    from .conftest import MakeAdapter


def has_text(inbox: MemoryInbox, text: str) -> bool:
    return text in inbox.texts


# ---- signing in ----------------------------------------------------------------------------------------------


async def test_signing_in_names_the_bot(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    info = await make_adapter().probe()
    assert (info.user_id, info.name, info.warnings) == ("8312345678", "@palaver_bot", ())


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ("can_read_all_group_messages", ["/setprivacy", "Disable", "add it again"]),
        ("can_join_groups", ["/setjoingroups", "Enable"]),
    ],
)
async def test_a_switch_that_is_off_is_named_with_the_clicks_to_change_it(
    server: BotApiServer, make_adapter: MakeAdapter, switch: str, words: list[str]
) -> None:
    server.bot[switch] = False
    [warning] = (await make_adapter().probe()).warnings
    assert all(word in warning for word in words)


async def test_a_revoked_token_is_refused_with_the_fix(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    server.is_revoked = True
    with pytest.raises(AccountRefused, match="@BotFather") as refused:
        await make_adapter().probe()
    assert TOKEN not in str(refused.value)


async def test_a_token_that_is_revoked_while_the_bot_runs_ends_it(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with run_adapter(adapter, MemoryLink(inbox)) as task:
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        server.is_revoked = True
        server.push_text("wake up", message_id=1)  # the poll that waits ends, and the next is refused
        with pytest.raises(AccountRefused):
            await asyncio.wait_for(asyncio.shield(task), TIMEOUT_SECONDS)
        [message] = [make_outgoing(adapter)]
        with pytest.raises(SendRetryable, match="@BotFather") as refused:
            await adapter.send(message)
        assert refused.value.whole_account


# ---- receiving -----------------------------------------------------------------------------------------------


async def test_an_update_is_confirmed_only_after_it_was_accepted(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    update = server.push_text("one", message_id=1)
    confirmed: list[int] = []

    class SlowLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            confirmed.append(server.confirmed_offset)
            return await super().accept(update, cursor=cursor)

    async with run_adapter(make_adapter(), SlowLink(inbox)):
        await wait_until(lambda: server.confirmed_offset > update["update_id"])
    assert confirmed == [0]
    assert inbox.cursors == {"": str(update["update_id"] + 1)}


async def test_after_a_restart_it_goes_on_at_the_stored_cursor(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    inbox.cursors[""] = "1001"
    server.push_text("stored before", message_id=1)  # number 1000
    server.push_text("new", message_id=2)
    async with run_adapter(make_adapter(), MemoryLink(inbox)):
        await inbox.wait_until(lambda: inbox.texts, TIMEOUT_SECONDS)
    assert inbox.texts == ["new"]


async def test_updates_that_mean_nothing_move_the_cursor_too(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    server.push(message=make_message(None, chat=GROUP, new_chat_title="Other"))
    async with run_adapter(make_adapter(), MemoryLink(inbox)):
        await inbox.wait_until(lambda: inbox.cursors, TIMEOUT_SECONDS)
    assert (inbox.cursors, inbox.updates) == ({"": "1001"}, [])


async def test_an_update_that_cannot_be_read_does_not_stop_the_others(
    server: BotApiServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = MemoryInbox()
    server.pending.append({"update_id": 999, "message": {"text": "no chat"}})
    server.push_text("good", message_id=2)
    async with run_adapter(make_adapter(), MemoryLink(inbox)):
        await inbox.wait_until(lambda: inbox.texts, TIMEOUT_SECONDS)
    assert (inbox.texts, inbox.cursors) == (["good"], {"": "1001"})
    logged = [record.message for record in caplog.records if record.name.startswith("palaver")]
    assert logged == ["telegram_update_unreadable"]


async def test_the_cursor_is_stored_with_the_last_part_of_an_update(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    cursors: list[Cursor | None] = []

    class WatchingLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            cursors.append(cursor)
            return await super().accept(update, cursor=cursor)

    reactions = [[{"type": "emoji", "emoji": emoji}] for emoji in ("👍", "🔥")]
    server.push(
        message_reaction={
            "chat": PRIVATE,
            "message_id": 5,
            "user": ADA,
            "date": 1,
            "old_reaction": reactions[0],
            "new_reaction": reactions[1],
        }
    )
    async with run_adapter(make_adapter(), WatchingLink(inbox)):
        await inbox.wait_until(lambda: len(inbox.updates) == 2, TIMEOUT_SECONDS)
    assert [cursor and cursor.value for cursor in cursors] == [None, "1001"]
    assert all(isinstance(update, MessageReaction) for update in inbox.updates)


async def test_it_is_connected_at_once_and_asks_for_all_kinds_of_updates(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    async with run_adapter(make_adapter(), MemoryLink(inbox)):
        await wait_until(lambda: len(server.list_requests("getUpdates")) == 2)
    first, second = [request.parameters for request in server.list_requests("getUpdates")]
    assert (first["timeout"], second["timeout"]) == (0, 20)
    assert {"message_reaction", "callback_query", "my_chat_member"} <= set(first["allowed_updates"])
    assert inbox.connected_count == 1
    assert server.commands == [
        {"command": "new", "description": "Start a new conversation"},
        {"command": "stop", "description": "Stop the answer"},
    ]


@pytest.mark.parametrize(
    ("fault", "words"),
    [(OTHER_POLL, "Another program"), (BAD_GATEWAY, "502"), (CUT_LINE, "can't be reached"), (flood(7), "7 seconds")],
)
async def test_a_failed_poll_is_a_lost_connection_in_words(
    server: BotApiServer, make_adapter: MakeAdapter, fault: Fault, words: str
) -> None:
    server.fail("getUpdates", fault)
    with pytest.raises(ConnectionLost, match=words) as lost:
        await asyncio.wait_for(make_adapter().run(MemoryLink(MemoryInbox())), TIMEOUT_SECONDS)
    assert TOKEN not in str(lost.value)


async def test_two_polls_of_one_bot_explain_themselves(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    first_inbox, second_inbox = MemoryInbox(), MemoryInbox()
    async with run_adapter(make_adapter(), MemoryLink(first_inbox)) as first:
        await wait_until(lambda: len(server.list_requests("getUpdates")) == 2)
        async with run_adapter(make_adapter(), MemoryLink(second_inbox)):
            with pytest.raises(ConnectionLost, match="Another program receives the messages"):
                await asyncio.wait_for(asyncio.shield(first), TIMEOUT_SECONDS)


async def test_closing_ends_the_poll_so_that_the_next_one_meets_no_conflict(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    texts = [f"message {number}" for number in range(3)]
    for number, text in enumerate(texts):
        async with run_adapter(make_adapter(), MemoryLink(inbox)) as task:
            server.push_text(text, message_id=number + 1)
            await inbox.wait_until(functools.partial(has_text, inbox, text), TIMEOUT_SECONDS)
            assert not task.done()
    assert inbox.texts == texts


async def test_a_webhook_of_another_program_stays_and_is_explained(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    server.webhook["url"] = "https://other.example.net/secret-path"
    with pytest.raises(AccountRefused, match=r"other\.example\.net") as refused:
        await make_adapter().run(MemoryLink(MemoryInbox()))
    assert "secret-path" not in str(refused.value)
    assert server.webhook["url"]


async def test_our_own_webhook_is_removed_when_the_mode_changes(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    server.webhook["url"] = WEBHOOK_URL
    inbox = MemoryInbox()
    async with run_adapter(make_adapter(), MemoryLink(inbox)):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
    assert server.webhook["url"] == ""


async def test_the_person_who_presses_a_button_is_told_what_happened(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    class ReplyingLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            return replace(await super().accept(update, cursor=cursor), reply="Stopped.")

    message = {"chat": PRIVATE, "message_id": 70, "date": 0}
    server.push(callback_query={"id": "55", "from": ADA, "chat_instance": "c", "message": message, "data": "stop:t_1"})
    async with run_adapter(make_adapter(), ReplyingLink(MemoryInbox())):
        await wait_until(lambda: server.list_requests("answerCallbackQuery"))
    [request] = server.list_requests("answerCallbackQuery")
    assert request.parameters == {"callback_query_id": "55", "text": "Stopped."}


# ---- webhook -------------------------------------------------------------------------------------------------


def make_request(update: Any, secret: str | None, method: str = "POST") -> WebhookRequest:
    headers = {"x-telegram-bot-api-secret-token": secret} if secret is not None else {}
    body = update if isinstance(update, bytes) else json.dumps(update).encode()
    return WebhookRequest(method=method, headers=headers, query={}, body=body)


async def test_a_webhook_needs_an_address_that_telegram_can_reach(server: BotApiServer) -> None:
    settings = TelegramSettings(bot_token=SecretStr(TOKEN), api_url=server.url, mode="webhook")
    place = AccountPlace(account="", folder=Path("/nowhere"), webhook_url=None)
    adapter = TelegramAdapter(settings, place)
    with pytest.raises(AccountRefused, match=r"web\.public_url"):
        await adapter.probe()
    await adapter.close()


async def test_a_webhook_accepts_only_requests_with_the_secret(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter(mode="webhook")
    await adapter.probe()
    link = MemoryLink(inbox)
    async with run_adapter(adapter, link):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        assert (server.webhook["url"], server.list_requests("getUpdates")) == (WEBHOOK_URL, [])
        secret = server.webhook_secret
        update = server.make_update(message=make_message("through the webhook"))
        for request, status in (
            (make_request(update, None), 401),
            (make_request(update, "wrong"), 401),
            (make_request(update, "é"), 401),
            (make_request(update, secret, "GET"), 404),
            (make_request(b"{", secret), 400),
            (make_request([], secret), 400),
        ):
            assert (await adapter.handle_webhook(link, request)).status == status
        assert inbox.texts == []
        for _ in range(2):  # Telegram repeats a request whose answer was lost
            assert (await adapter.handle_webhook(link, make_request(update, secret))).status == 200
    assert (inbox.texts, inbox.duplicate_count) == (["through the webhook"], 1)


async def test_a_request_is_not_answered_with_success_before_its_update_is_stored(
    server: BotApiServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter(mode="webhook")
    await adapter.probe()

    class FailingLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            raise ConnectionLost("the database is away")

    update = server.make_update(message=make_message("later"))
    secret = adapter._settings.get_webhook_secret()
    with pytest.raises(ConnectionLost):
        await adapter.handle_webhook(FailingLink(MemoryInbox()), make_request(update, secret))


async def test_a_request_with_a_slow_file_is_answered_in_time_and_succeeds_when_it_is_repeated(
    server: BotApiServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = make_adapter(mode="webhook")
    await adapter.probe()
    is_downloaded = asyncio.Event()

    class SlowLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            await is_downloaded.wait()
            return await super().accept(update, cursor=cursor)

    inbox = MemoryInbox()
    link = SlowLink(inbox)
    update = server.make_update(message=make_message("with a large file"))
    request = make_request(update, adapter._settings.get_webhook_secret())
    with monkeypatch.context() as impatient:
        impatient.setattr("palaver.gateway.intake.ACCEPT_SECONDS", 0.02)
        assert (await adapter.handle_webhook(link, request)).status == 503
    is_downloaded.set()
    await inbox.wait_until(lambda: inbox.texts, TIMEOUT_SECONDS)
    assert (await adapter.handle_webhook(link, request)).status == 200
    assert inbox.texts == ["with a large file"]
    await adapter.close()


async def test_a_webhook_that_another_program_has_changed_is_noticed(
    server: BotApiServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.telegram.adapter.WEBHOOK_CHECK_SECONDS", 0.01)
    inbox = MemoryInbox()
    async with run_adapter(make_adapter(mode="webhook"), MemoryLink(inbox)) as task:
        await inbox.wait_until(lambda: inbox.connected_count > 1, TIMEOUT_SECONDS)
        server.webhook["url"] = "https://other.example.net/"
        with pytest.raises(ConnectionLost, match="Another program"):
            await asyncio.wait_for(asyncio.shield(task), TIMEOUT_SECONDS)


# ---- files in ------------------------------------------------------------------------------------------------


async def test_a_file_is_downloaded_when_it_is_opened(server: BotApiServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    content = bytes(range(256)) * 1000
    server.files["doc1"] = content
    document = {"file_id": "doc1", "file_unique_id": "u1", "file_name": "a.bin", "file_size": len(content)}
    server.push(message=make_message(None, document=document, caption="here"))
    async with run_adapter(make_adapter(), MemoryLink(inbox)):
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        assert server.list_requests("getFile") == []
        [file] = inbox.messages[0].files
        chunks = [chunk async for chunk in file.open()]
    assert b"".join(chunks) == content
    assert len(chunks) > 1


async def test_files_that_cannot_be_downloaded_say_why(server: BotApiServer, adapter: TelegramAdapter) -> None:
    async def download(file_id: str, size: int | None) -> None:
        async for _ in adapter._client.download(file_id, size):
            pass

    with pytest.raises(LimitReached, match=r"up to 20 MB\. This one has 31 MB"):
        await download("big", 31 * 1024 * 1024)
    server.files["big"] = bytes(21 * 1024 * 1024)
    with pytest.raises(LimitReached, match="up to 20 MB"):
        await download("big", None)
    with pytest.raises(ConnectionLost, match="temporarily unavailable"):
        await download("unknown", 5)
    server.files["gone"] = b"x"
    server.has_lost_files = True
    with pytest.raises(ConnectionLost, match="no longer has this file"):
        await download("gone", 1)

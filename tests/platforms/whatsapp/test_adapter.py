"""The WhatsApp adapter: what it refuses at its webhook, what it says about its account, and how it sends."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost, InvalidInput, SendRejected, SendRetryable, StoreBusy
from palaver.delivery.adapter import OutgoingFile, WebhookRequest
from palaver.platforms.whatsapp.adapter import MAX_WEBHOOK_BYTES, NO_PUBLIC_URL, NOT_SUBSCRIBED
from palaver.platforms.whatsapp.client import GraphRefusal, make_platform_error
from palaver.sessions.delivery import Button
from palaver.sessions.inbound import Outcome, Receipt
from palaver.testing.account_link import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import WEBHOOK_URL

from .conftest import ADDRESS, make_outgoing
from .graph_server import (
    ADAS_NUMBER,
    APP_SECRET,
    BAD_GATEWAY,
    BENS_NUMBER,
    BUSINESS_ID,
    EXPIRED,
    INVALID,
    NUMBER_ID,
    TOKEN,
    UNKNOWN_OBJECT,
    VERIFY_TOKEN,
    GraphFault,
    GraphServer,
    make_message,
    make_status,
    make_webhook,
    sign,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.delivery.adapter import WebhookResponse
    from palaver.platforms.whatsapp.adapter import WhatsAppAdapter
    from palaver.sessions.inbound import AnyUpdate, Cursor

    from .conftest import MakeAdapter


def make_request(payload: Any, *, signature: str | None = None, method: str = "POST") -> WebhookRequest:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    headers = {"x-hub-signature-256": sign(body) if signature is None else signature}
    return WebhookRequest(method=method, headers=headers, query={}, body=body)


async def call(adapter: WhatsAppAdapter, inbox: MemoryInbox, payload: Any, **fields: Any) -> WebhookResponse:
    return await adapter.handle_webhook(MemoryLink(inbox), make_request(payload, **fields))


# ---- webhook ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "status", "body"),
    [
        (
            {"hub.mode": "subscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "1158201444"},
            200,
            b"1158201444",
        ),
        ({"hub.mode": "subscribe", "hub.verify_token": "wrong", "hub.challenge": "1"}, 403, b""),
        ({"hub.mode": "unsubscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "1"}, 403, b""),
        ({"hub.mode": "subscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "<script>"}, 403, b""),
        ({"hub.mode": "subscribe", "hub.verify_token": "\udcff", "hub.challenge": "1"}, 403, b""),
        ({}, 403, b""),
    ],
)
async def test_the_webhook_is_proved_with_our_own_token(
    adapter: WhatsAppAdapter, query: dict[str, str], status: int, body: bytes
) -> None:
    request = WebhookRequest(method="GET", headers={}, query=query, body=b"")
    response = await adapter.handle_webhook(MemoryLink(MemoryInbox()), request)
    assert (response.status, response.body) == (status, body)


@pytest.mark.parametrize(
    "signature", ["", "sha256=", sign(b"{}", "f" * 32), sign(b"other"), "sha256=\udcff", "x" * 5000]
)
async def test_a_request_without_metas_signature_is_refused_unread(adapter: WhatsAppAdapter, signature: str) -> None:
    inbox = MemoryInbox()
    payload = make_webhook(make_message("text", "Hello"))
    assert (await call(adapter, inbox, payload, signature=signature)).status == 401
    assert inbox.updates == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 400),
        (b"[" * 100_000, 400),
        (b"[]", 400),
        (b'{"object": "page"}', 400),
        (b"x" * (MAX_WEBHOOK_BYTES + 1), 413),
    ],
)
async def test_a_signed_request_of_another_form_is_refused(adapter: WhatsAppAdapter, body: bytes, status: int) -> None:
    assert (await call(adapter, MemoryInbox(), body)).status == status
    assert (await call(adapter, MemoryInbox(), body, method="PUT")).status == 405


async def test_a_batch_is_acknowledged_when_all_of_it_is_stored(adapter: WhatsAppAdapter) -> None:
    """If one message cannot be stored, the others are, and Meta sends the batch again."""

    class FullLink(MemoryLink):
        is_full = True

        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            if update.source.chat_id == BENS_NUMBER and self.is_full:
                raise StoreBusy
            return await super().accept(update, cursor=cursor)

    inbox = MemoryInbox()
    link = FullLink(inbox)
    payload = make_webhook(
        make_message("text", "one", number=BENS_NUMBER, message_id="wamid.1"),
        make_message("text", "two", message_id="wamid.2"),
        make_message("text", "three", message_id="wamid.3"),
    )
    with pytest.raises(StoreBusy):
        await adapter.handle_webhook(link, make_request(payload))
    assert inbox.texts == ["two", "three"]
    link.is_full = False
    assert (await adapter.handle_webhook(link, make_request(payload))).status == 200
    assert sorted(inbox.texts) == ["one", "three", "two"]


async def test_closing_ends_what_is_being_accepted(adapter: WhatsAppAdapter) -> None:
    class StuckLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            await asyncio.Event().wait()
            raise AssertionError

    request = make_request(make_webhook(make_message("text", "Hello")))
    handling = asyncio.create_task(adapter.handle_webhook(StuckLink(MemoryInbox()), request))
    await wait_until(lambda: not adapter._intake.is_idle)
    await adapter.close()
    assert (await handling).status == 503
    assert adapter._intake.is_idle


async def test_statuses_confirm_and_fail_messages_in_any_order(adapter: WhatsAppAdapter) -> None:
    inbox = MemoryInbox()
    statuses = [
        make_status("wamid.1", "delivered", "d_1.1"),
        make_status("wamid.1", "sent", "d_1.1"),
        make_status("wamid.1", "failed", "d_1.1", code=131026),  # of one of several devices
        make_status("wamid.2", "failed", "d_2.1", code=131047),
        make_status("wamid.3", "read", None),
    ]
    assert (await call(adapter, inbox, make_webhook(statuses=statuses))).status == 200
    assert inbox.confirmed == {"d_1.1": "wamid.1"}
    assert {key: "24 hours" in str(error) for key, error in inbox.failed.items()} == {"d_2.1": True}


async def test_a_failure_that_comes_before_the_answer_is_told_again(adapter: WhatsAppAdapter) -> None:
    class BusyLink(MemoryLink):
        async def report_failed(self, key: str, error: SendRejected) -> bool:
            return False

    payload = make_webhook(statuses=[make_status("wamid.1", "failed", "d_1.1", code=131026)])
    assert (await adapter.handle_webhook(BusyLink(MemoryInbox()), make_request(payload))).status == 503


@pytest.mark.parametrize("error", [{}, {"title": "?"}, {"code": "x"}, {"code": 1, "error_data": "?"}, "?", None])
async def test_a_failure_without_a_readable_reason_is_recorded(adapter: WhatsAppAdapter, error: Any) -> None:
    """Otherwise the request would fail for ever, with everything else that is in it."""
    inbox = MemoryInbox()
    status = make_status("wamid.1", "failed", "d_1.1") | {"errors": [error]}
    payload = make_webhook(make_message("text", "Hello"), statuses=[status])
    assert (await call(adapter, inbox, payload)).status == 200
    assert list(inbox.failed) == ["d_1.1"]
    assert inbox.texts == ["Hello"]


async def test_a_wrong_app_secret_is_named_in_the_log(
    adapter: WhatsAppAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    payload = make_webhook(make_message("text", "Hello"))
    await call(adapter, MemoryInbox(), payload, signature=sign(b"{}", "f" * 32))
    await call(adapter, MemoryInbox(), payload, signature="")  # it says nothing about our app_secret
    assert [each.message for each in caplog.records] == ["whatsapp_signature_wrong"]


async def test_a_press_is_answered_in_the_chat_once(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    class PressLink(MemoryLink):
        outcome = Outcome.COMMAND

        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            return Receipt(outcome=self.outcome, reply="**Stopped.**")

    link = PressLink(MemoryInbox())
    reply = {"type": "button_reply", "button_reply": {"id": "stop:t_1", "title": "Stop"}}
    payload = make_webhook(make_message("interactive", reply, context={"from": "1", "id": "wamid.out1"}))
    assert (await adapter.handle_webhook(link, make_request(payload))).status == 200
    link.outcome = Outcome.DUPLICATE
    assert (await adapter.handle_webhook(link, make_request(payload))).status == 200
    assert server.list_texts() == ["*Stopped.*"]


# ---- the account -----------------------------------------------------------------------------------------------


async def test_the_number_and_its_quality_are_shown(adapter: WhatsAppAdapter) -> None:
    info = await adapter.probe()
    assert (info.user_id, info.name) == (NUMBER_ID, "Palaver +1 555-000-1111")
    assert (info.warnings, info.details) == ((), ("Quality rating: green",))


async def test_what_is_missing_is_named(server: GraphServer, make_adapter: MakeAdapter) -> None:
    server.number |= {"quality_rating": "RED", "webhook_configuration": {"application": "https://old.example.org/hook"}}
    server.token_info = {"scopes": ["whatsapp_business_messaging"], "expires_at": 1_790_000_000}
    server.subscribed_apps = []
    warnings = (await make_adapter().probe()).warnings
    assert [each.split(".")[0] for each in warnings] == [
        "Meta sends the messages of this number to https://old",
        "Meta rates the quality of this number as low",
        "The access token lacks whatsapp_business_management",
        "The access token expires on 2026-09-21",
        NOT_SUBSCRIBED.split(".", maxsplit=1)[0],
    ]
    assert WEBHOOK_URL in warnings[0]


async def test_the_most_specific_webhook_counts(server: GraphServer, make_adapter: MakeAdapter) -> None:
    server.number["webhook_configuration"] = {"application": "https://other.example.org", "phone_number": WEBHOOK_URL}
    assert (await make_adapter().probe()).warnings == ()


async def test_checks_that_are_not_possible_are_no_failure(server: GraphServer, make_adapter: MakeAdapter) -> None:
    server.fail("debug_token", GraphFault(400, 100))
    server.fail(f"{BUSINESS_ID}/subscribed_apps", GraphFault(403, 200))
    info = await make_adapter().probe()
    assert info.warnings == ()
    assert len([each for each in info.details if "could not be checked" in each]) == 2
    details = (await make_adapter(business_account_id=None).probe()).details
    assert "Set business_account_id to have the subscription of the webhook checked." in details


@pytest.mark.parametrize(
    ("fault", "error", "reason"),
    [
        (EXPIRED, AccountRefused, "system user"),
        (UNKNOWN_OBJECT, AccountRefused, "phone_number_id"),
        (GraphFault(403, 10), AccountRefused, "permission"),
        (BAD_GATEWAY, ConnectionLost, "can't be reached"),
    ],
)
async def test_an_account_that_does_not_work_says_why(
    server: GraphServer, adapter: WhatsAppAdapter, fault: GraphFault, error: type[Exception], reason: str
) -> None:
    server.fail("number", fault)
    with pytest.raises(error, match=reason):
        await adapter.probe()


@pytest.mark.parametrize(
    "body", [b'{"error": "no"}', b'{"error": {"code": 1, "error_data": "no"}}', b"[]", b'{"error": {}}']
)
async def test_an_answer_that_is_not_of_the_graph_api_is_no_other_error(body: bytes) -> None:
    refusal = GraphRefusal.from_response(502, body)
    assert (refusal.status, isinstance(make_platform_error(refusal), ConnectionLost)) == (502, True)


async def test_without_a_public_address_a_warning_says_so(make_adapter: MakeAdapter) -> None:
    assert (await make_adapter(webhook_url=None).probe()).warnings == (NO_PUBLIC_URL,)


async def test_an_expired_token_is_noticed_by_the_first_send(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    inbox = MemoryInbox()
    running = asyncio.create_task(adapter.run(MemoryLink(inbox)))
    await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
    server.is_revoked = True
    with pytest.raises(SendRetryable) as caught:
        await adapter.send(make_outgoing())
    assert caught.value.whole_account
    with pytest.raises(AccountRefused):
        await asyncio.wait_for(running, TIMEOUT_SECONDS)


async def test_one_failed_check_is_not_the_end(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    server.fail("number", BAD_GATEWAY)
    inbox = MemoryInbox()
    running = asyncio.create_task(adapter.run(MemoryLink(inbox)))
    await wait_until(lambda: server.requests)
    adapter._check_now.set()
    await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
    running.cancel()


# ---- sending and files -----------------------------------------------------------------------------------------


async def read_chunks() -> AsyncIterator[bytes]:
    for chunk in (b"01234", b"56789"):
        yield chunk


async def test_a_file_is_uploaded_and_then_sent(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    file = OutgoingFile("Größe.csv", "text/csv", 10, read_chunks)
    await adapter.send(make_outgoing("", file=file))
    [message] = server.messages
    assert message["file"] == ("Größe.csv", "text/plain", b"0123456789")
    assert message["document"]["filename"] == "Größe.csv"
    server.fail("media", BAD_GATEWAY)
    with pytest.raises(SendRetryable):  # nothing was sent
        await adapter.send(make_outgoing("", file=file))
    server.fail("media", INVALID)
    with pytest.raises(SendRejected):
        await adapter.send(make_outgoing("", file=file))
    assert len(server.messages) == 1


async def test_a_file_of_a_person_comes_from_metas_servers_only(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    media_id = server.add_media(b"0123456789", "image/png")
    assert b"".join([chunk async for chunk in adapter._client.download(media_id)]) == b"0123456789"
    own_url, server.url = server.url, "http://169.254.169.254"
    with pytest.raises(InvalidInput):
        _ = [chunk async for chunk in adapter._client.download(media_id)]
    server.url = "https://evil-fbsbx.com"
    with pytest.raises(InvalidInput):
        _ = [chunk async for chunk in adapter._client.download(media_id)]
    server.url = own_url


async def test_the_sign_of_typing_needs_a_message(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    await adapter.show_typing_for(ADDRESS, None)
    await adapter.show_typing(ADDRESS)
    assert server.requests == []
    await adapter.show_typing_for(ADDRESS, "wamid.in1")
    assert server.read_ids == ["wamid.in1"]


async def test_markdown_buttons_and_reactions_arrive(server: GraphServer, adapter: WhatsAppAdapter) -> None:
    [body] = adapter.render("# Title\n\nSome **bold** and `code`.")
    await adapter.send(make_outgoing(body, buttons=[Button("Answer this message again", "retry:t_1")]))
    await adapter.react(ADDRESS, "wamid.in1", "👀")
    assert server.list_texts() == ["*Title*\n\nSome *bold* and `code`."]
    assert server.messages[0]["interactive"]["action"]["buttons"][0]["reply"]["title"] == "Answer this message…"
    assert server.reactions == {"wamid.in1": "👀"}


async def test_nothing_is_sent_after_closing(adapter: WhatsAppAdapter) -> None:
    await adapter.close()
    with pytest.raises(SendRetryable):
        await adapter.send(make_outgoing())


async def test_no_log_has_a_secret(
    server: GraphServer, adapter: WhatsAppAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await adapter.probe()
    await adapter.send(make_outgoing())
    server.is_revoked = True
    with pytest.raises(AccountRefused) as refused:
        await adapter.probe()
    texts = [caplog.text, str(refused.value), repr(refused.value.__cause__), repr(refused.value.__context__)]
    assert not any(secret in text for text in texts for secret in (TOKEN, APP_SECRET, VERIFY_TOKEN))
    assert ADAS_NUMBER not in caplog.text

"""Slack's requests to the webhook: only what Slack has signed just now is read, and answered when it is stored."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AccountRefused
from palaver.delivery.adapter import WebhookRequest
from palaver.sessions.inbound import ButtonPressed, Inbound
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS
from support.platform_adapters import WEBHOOK_URL, GatedLink

from .conftest import make_outgoing
from .slack_server import ADA, BOT_USER, DM, SIGNING_SECRET, TOKEN, SlackServer, sign_request

if TYPE_CHECKING:
    from palaver.platforms.slack.adapter import SlackAdapter

    from .conftest import MakeAdapter


def make_request(headers: dict[str, str], body: bytes, method: str = "POST") -> WebhookRequest:
    return WebhookRequest(method=method, headers=headers, query={}, body=body)


def make_event(text: str = "hello") -> dict[str, Any]:
    event = {"type": "message", "channel": DM, "user": ADA, "text": text, "ts": "1790000000.000100"}
    return {"type": "event_callback", "event": event}


@pytest.fixture
async def http_adapter(make_adapter: MakeAdapter) -> SlackAdapter:
    adapter = make_adapter(mode="http", app_token=None)
    await adapter.probe()
    return adapter


async def test_a_signed_request_is_accepted_and_then_answered(http_adapter: SlackAdapter) -> None:
    inbox = MemoryInbox()
    response = await http_adapter.handle_webhook(
        MemoryLink(inbox), make_request(*sign_request("events_api", make_event()))
    )
    assert (response.status, inbox.texts) == (200, ["hello"])


async def test_an_http_request_is_answered_only_after_it_was_accepted(http_adapter: SlackAdapter) -> None:
    link = GatedLink(MemoryInbox())
    request = make_request(*sign_request("events_api", make_event()))
    answering = asyncio.create_task(http_adapter.handle_webhook(link, request))
    await asyncio.wait_for(link.is_asked.wait(), TIMEOUT_SECONDS)
    assert not answering.done()
    link.is_open.set()
    assert (await answering).status == 200


async def test_slack_checks_the_address_once(http_adapter: SlackAdapter) -> None:
    request = make_request(*sign_request("events_api", {"type": "url_verification", "challenge": "abc"}))
    response = await http_adapter.handle_webhook(MemoryLink(MemoryInbox()), request)
    assert (response.status, response.body) == (200, b"abc")


async def test_buttons_and_commands_come_as_forms(server: SlackServer, http_adapter: SlackAdapter) -> None:
    inbox = MemoryInbox()
    link = MemoryLink(inbox)
    ts = await http_adapter.send(make_outgoing(http_adapter))
    message = {"ts": ts, "user": BOT_USER}
    press = {
        "type": "block_actions",
        "user": {"id": ADA, "name": "ada"},
        "channel": {"id": DM},
        "message": message,
        "actions": [{"value": "stop:t_1", "action_ts": "1.2"}],
    }
    command = {"command": "/palaver", "text": "new", "user_id": ADA, "channel_id": DM, "trigger_id": "9"}
    for kind, payload in (("interactive", press), ("slash_commands", command)):
        response = await http_adapter.handle_webhook(link, make_request(*sign_request(kind, payload)))
        assert response.status == 200
    assert [type(update) for update in inbox.updates] == [ButtonPressed, Inbound]
    assert inbox.texts == ["/new"]


def _change_body(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return headers, body + b" "


def _make_old(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return {**headers, "x-slack-request-timestamp": str(int(time.time()) - 301)}, body


@pytest.mark.parametrize(
    "change",
    [
        _change_body,
        _make_old,
        lambda headers, body: ({**headers, "x-slack-signature": "v0=00"}, body),
        lambda headers, body: ({**headers, "x-slack-signature": "v0=ü"}, body),
        lambda headers, body: ({**headers, "x-slack-request-timestamp": "soon"}, body),
        lambda headers, body: ({"content-type": headers["content-type"]}, body),
        lambda headers, _body: (headers, b"\xff"),
    ],
)
async def test_what_slack_has_not_signed_just_now_is_refused(http_adapter: SlackAdapter, change: Any) -> None:
    inbox = MemoryInbox()
    request = make_request(*change(*sign_request("events_api", make_event())))
    assert (await http_adapter.handle_webhook(MemoryLink(inbox), request)).status == 401
    assert inbox.updates == []


async def test_a_request_that_was_recorded_and_sent_later_is_refused_by_its_own_signature(
    http_adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = make_request(*sign_request("events_api", make_event()))
    later = time.time() + 301
    monkeypatch.setattr("palaver.platforms.slack.adapter.time.time", lambda: later)
    assert (await http_adapter.handle_webhook(MemoryLink(MemoryInbox()), request)).status == 401


@pytest.mark.parametrize(
    ("kind", "payload"), [("events_api", [1]), ("slash_commands", {"text": "x"}), ("slash_commands", {"payload": "{"})]
)
async def test_a_body_that_makes_no_sense_is_refused(http_adapter: SlackAdapter, kind: str, payload: Any) -> None:
    request = make_request(*sign_request(kind, payload))
    assert (await http_adapter.handle_webhook(MemoryLink(MemoryInbox()), request)).status == 400


async def test_a_retry_is_accepted_like_the_first_one(http_adapter: SlackAdapter) -> None:
    inbox = MemoryInbox()
    headers, body = sign_request("events_api", make_event())
    retry = {**headers, "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"}
    for each in (retry, headers):  # the retry may be the only copy
        assert (await http_adapter.handle_webhook(MemoryLink(inbox), make_request(each, body))).status == 200
    assert (inbox.texts, inbox.duplicate_count) == (["hello"], 1)


async def test_other_requests_are_not_found(http_adapter: SlackAdapter, adapter: SlackAdapter) -> None:
    link = MemoryLink(MemoryInbox())
    headers, body = sign_request("events_api", make_event())
    assert (await http_adapter.handle_webhook(link, make_request(headers, body, "GET"))).status == 404
    assert (await adapter.handle_webhook(link, make_request(headers, body))).status == 404
    assert SIGNING_SECRET not in json.dumps(headers)


async def test_the_address_for_slacks_pages_is_named(http_adapter: SlackAdapter) -> None:
    assert f"Request URL: {WEBHOOK_URL}" in (await http_adapter.probe()).details


class EarlyRequestLink(MemoryLink):
    """Slack calls at the moment at which the cursor was loaded."""

    def __init__(self, inbox: MemoryInbox, adapter: SlackAdapter, request: WebhookRequest) -> None:
        super().__init__(inbox)
        self._adapter, self._request = adapter, request

    async def load_cursor(self, name: str = "") -> str | None:
        cursor = await super().load_cursor(name)
        self.answering = asyncio.create_task(self._adapter.handle_webhook(self, self._request))
        return cursor


async def test_a_request_at_the_start_does_not_hide_what_was_missed(
    server: SlackServer, http_adapter: SlackAdapter
) -> None:
    inbox = MemoryInbox()
    now = time.time()
    inbox.cursors[""] = f"{now - 3600:.6f}"
    missed, ts = f"{now - 1800:.6f}", f"{now:.6f}"
    server.messages[DM, missed] = {"type": "message", "user": ADA, "text": "missed", "ts": missed}
    event = {"type": "message", "channel": DM, "user": ADA, "text": "live", "ts": ts}
    await http_adapter._directory.load({ADA})  # so that the request is read at once
    request = make_request(*sign_request("events_api", {"type": "event_callback", "event": event}))
    link = EarlyRequestLink(inbox, http_adapter, request)
    task = asyncio.create_task(http_adapter.run(link))
    try:
        await inbox.wait_until(lambda: sorted(inbox.texts) == ["live", "missed"], TIMEOUT_SECONDS)
        assert (await link.answering).status == 200
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_slacks_check_of_the_certificate_is_answered(http_adapter: SlackAdapter) -> None:
    request = make_request(*sign_request("slash_commands", {"ssl_check": "1", "token": "x"}))
    assert (await http_adapter.handle_webhook(MemoryLink(MemoryInbox()), request)).status == 200


async def test_http_needs_a_public_address(server: SlackServer) -> None:
    from pathlib import Path

    from palaver.platforms.manifest import AccountPlace
    from palaver.platforms.slack.adapter import SlackAdapter
    from palaver.platforms.slack.manifest import SlackSettings

    fields = {"bot_token": TOKEN, "signing_secret": SIGNING_SECRET, "mode": "http", "api_url": server.api_url}
    settings = SlackSettings.model_validate(fields)
    adapter = SlackAdapter(settings, AccountPlace(account="", folder=Path("/nowhere"), webhook_url=None))
    with pytest.raises(AccountRefused, match=r"web\.public_url"):
        await adapter.probe()
    await adapter.close()

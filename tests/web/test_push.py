"""Notifications to browsers while the page is closed, against a push service that checks and decrypts them."""

from __future__ import annotations

import stat
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag

from palaver.app import make_push_notifier
from palaver.domain.profile import PushRules
from palaver.domain.push import PushSubscription
from palaver.services.push.encryption import ServerKey, encrypt
from palaver.services.turns import finish
from palaver.storage.engines.base import Read, Write
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.push_service import HOST, PushService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.services.push.notifier import PushNotifier
    from support.web import StartWebServer, WebServer

PUSH = "/api/me/push-subscriptions"


@pytest.fixture(autouse=True)
def _send_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "PUSH_DELAY_MICROS", 0)


@asynccontextmanager
async def run_push(start_web: StartWebServer, **rules: Any) -> AsyncIterator[tuple[WebServer, PushService]]:
    """Run a server whose notifications a test sends itself, with `run_once`."""
    async with PushService() as service:
        web = await start_web(ScriptedAgent())
        base = replace(web.state.settings.reader.base, turns=replace(web.gateway.rules, push=PushRules(**rules)))
        notifier = make_push_notifier(web.gateway.store, base, [HOST])
        web.app.state.palaver = replace(web.state, push=notifier)
        service.server_key = await notifier.get_public_key()
        yield web, service


def get_notifier(web: WebServer) -> PushNotifier:
    notifier: PushNotifier = web.app.state.palaver.push
    return notifier


def count_rows(web: WebServer, table: str) -> int:
    rows = web.gateway.store.engine.run(Read(lambda tx: tx.fetch_all(f"SELECT 1 FROM {table}")))
    return len(rows)


async def subscribe(web: WebServer, service: PushService, person: str = "owner") -> Any:
    client = await web.sign_in(person)
    browser = service.add_browser()
    response = await client.post(PUSH, json=browser.subscription)
    assert response.status_code == 204, response.text
    return browser


@pytest.mark.both_engines
async def test_an_answer_that_is_not_read_is_pushed_once(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        browser = await subscribe(web, service)
        client = await web.sign_in()
        session_id = await web.create_conversation(client, "hello there")
        await client.patch(f"/api/sessions/{session_id}", json={"title": "Garden"})
        await get_notifier(web).run_once()
        assert service.messages == [(browser.path, {"kind": "answer", "session": session_id, "title": "Garden"})]
        await get_notifier(web).run_once()
        assert len(service.messages) == 1
        assert count_rows(web, "push_message") == 0


async def test_an_answer_that_was_read_is_not_pushed(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        client = await web.sign_in()
        session_id = await web.create_conversation(client, "hello")
        response = await client.put(f"/api/sessions/{session_id}/read", json={"seq": 100})
        assert response.is_success, response.text
        await get_notifier(web).run_once()
        assert service.requests == []
        assert count_rows(web, "push_message") == 0


async def test_the_text_is_sent_only_if_the_operator_wants_it(start_web: StartWebServer) -> None:
    async with run_push(start_web, show_preview=True) as (web, service):
        await subscribe(web, service)
        client = await web.sign_in()
        await web.create_conversation(client, "hello")
        await get_notifier(web).run_once()
        [(_, content)] = service.messages
        assert content["body"]


async def test_a_person_gets_nothing_about_the_conversations_of_others(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        owner_browser = await subscribe(web, service)
        eve_browser = await subscribe(web, service, "eve")
        eve = await web.sign_in("eve")
        session_id = await web.create_conversation(eve, "a secret")
        await get_notifier(web).run_once()
        assert [path for path, _ in service.messages] == [eve_browser.path]
        assert service.messages[0][1]["session"] == session_id
        assert owner_browser.path != eve_browser.path


async def test_a_notification_about_a_conversation_that_was_deleted_is_dropped(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        client = await web.sign_in()
        session_id = await web.create_conversation(client, "hello")
        assert (await client.delete(f"/api/sessions/{session_id}")).is_success
        await get_notifier(web).run_once()
        assert service.requests == []


@pytest.mark.both_engines
async def test_a_browser_unsubscribes_itself_and_nobody_else(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        eve_browser = await subscribe(web, service, "eve")
        assert (await (await web.sign_in()).delete(PUSH)).status_code == 204
        assert count_rows(web, "push_subscription") == 1
        for person in ("owner", "eve"):
            await web.create_conversation(await web.sign_in(person), "hello")
        await get_notifier(web).run_once()
        assert [path for path, _ in service.messages] == [eve_browser.path]


@pytest.mark.both_engines
async def test_a_subscription_ends_with_the_sign_in(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service, "eve")
        eve = await web.sign_in("eve")
        await web.create_conversation(eve, "hello")
        assert (await eve.post("/api/sign-out")).is_success
        await get_notifier(web).run_once()
        assert service.requests == []
        assert count_rows(web, "push_subscription") == 0
        assert (await eve.get(PUSH)).status_code == 401


@pytest.mark.both_engines
@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_has_unsubscribed_is_forgotten(start_web: StartWebServer, status: int) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        service.status = status
        await web.create_conversation(await web.sign_in(), "hello")
        await get_notifier(web).run_once()
        assert len(service.requests) == 1
        assert count_rows(web, "push_subscription") == 0
        assert count_rows(web, "push_message") == 0


@pytest.mark.both_engines
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_push_service_with_a_problem_is_asked_again(start_web: StartWebServer, status: int) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        service.status = status
        service.headers = {"retry-after": "120"}
        await web.create_conversation(await web.sign_in(), "hello")
        await get_notifier(web).run_once()
        await get_notifier(web).run_once()
        assert len(service.requests) == 1  # it waits
        engine = web.gateway.store.engine
        [(wait,)] = engine.run(Read(lambda tx: tx.fetch_all("SELECT due_at - created_at FROM push_message")))
        assert 119_000_000 <= wait <= 180_000_000
        service.status = 201
        engine.run(Write(lambda tx: tx.execute("UPDATE push_message SET due_at = 0")))
        await get_notifier(web).run_once()
        assert len(service.messages) == 1
        assert count_rows(web, "push_message") == 0


async def test_a_notification_that_is_refused_for_good_is_dropped(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        service.status = 413
        await web.create_conversation(await web.sign_in(), "hello")
        await get_notifier(web).run_once()
        assert count_rows(web, "push_message") == 0
        assert count_rows(web, "push_subscription") == 1


async def test_a_newer_answer_replaces_the_notification_of_an_older_one(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        await web.create_conversation(await web.sign_in(), "one", "two", "three")
        await get_notifier(web).run_once()
        assert len(service.messages) == 1


@pytest.mark.both_engines
async def test_the_test_button_reports_what_the_push_service_says(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        client = await web.sign_in()
        assert (await client.post(f"{PUSH}/test")).status_code == 422
        await subscribe(web, service)
        assert (await client.post(f"{PUSH}/test")).status_code == 204
        assert service.messages[0][1] == {"kind": "test"}
        service.status, service.body = 403, b"bad token"
        response = await client.post(f"{PUSH}/test")
        assert response.status_code == 502
        assert "403: bad token" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    "endpoint",
    [
        *(
            "http://push.example/x",
            "https://user@push.example/x",
            "ftp://push.example/x",
            "https://",
            "https://[::1",
            "x",
        ),
        *("https://a..b/x", "https://push.example:99999/x", "https://push.example/\x1d"),
    ],
)
async def test_an_endpoint_has_to_be_an_https_address(start_web: StartWebServer, endpoint: str) -> None:
    async with run_push(start_web) as (web, service):
        client = await web.sign_in()
        body = {**service.add_browser().subscription, "endpoint": endpoint}
        assert (await client.post(PUSH, json=body)).status_code == 422


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "169.254.169.254", "[::1]", "192.168.1.1"])
async def test_nothing_is_sent_into_our_own_network(start_web: StartWebServer, host: str) -> None:
    async with run_push(start_web) as (web, service):
        client = await web.sign_in()
        body = {**service.add_browser().subscription, "endpoint": f"https://{host}:1/x"}
        assert (await client.post(PUSH, json=body)).status_code == 204
        response = await client.post(f"{PUSH}/test")
        assert response.status_code == 502
        assert "private network" in response.json()["error"]["message"]
        await web.create_conversation(client, "hello")
        await get_notifier(web).run_once()
        assert count_rows(web, "push_subscription") == 0


@pytest.mark.parametrize("key", ["AAAA", "!" * 87, "A" * 87])
async def test_keys_that_are_none_are_refused(start_web: StartWebServer, key: str) -> None:
    async with run_push(start_web) as (web, service):
        client = await web.sign_in()
        body = service.add_browser().subscription
        body["keys"]["p256dh"] = key
        response = await client.post(PUSH, json=body)
        assert response.status_code == 422
        assert "p256dh" in response.text


async def test_a_token_cannot_subscribe_a_browser(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        program = await web.open_token_client("read", "write", "chat")
        assert (await program.post(PUSH, json=service.add_browser().subscription)).status_code == 403


async def test_the_key_is_in_a_file_that_only_its_owner_can_read(start_web: StartWebServer, tmp_path: Path) -> None:
    async with run_push(start_web) as (web, service):
        [path] = tmp_path.rglob("push.key")  # noqa: ASYNC240
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        again = make_push_notifier(web.gateway.store, web.state.settings.reader.base)
        assert await again.get_public_key() == service.server_key


async def test_a_browser_of_another_key_is_left_to_the_host_that_has_it(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service)
        await web.create_conversation(await web.sign_in(), "hello")
        engine = web.gateway.store.engine
        engine.run(Write(lambda tx: tx.execute("UPDATE push_subscription SET server_key = 'another'")))
        await get_notifier(web).run_once()
        assert service.requests == []
        assert count_rows(web, "push_message") == 1


async def test_the_loop_sends_without_being_asked(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        notifier = get_notifier(web)
        await subscribe(web, service)
        await notifier.start()
        try:
            await web.create_conversation(await web.sign_in(), "hello")
            notifier.wake()
            await wait_until(lambda: service.messages)
        finally:
            await notifier.stop()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, None),
        ({"audience": "https://other.example"}, AssertionError),
        ({"now": time.time() - 86400}, AssertionError),  # the token has expired
        ({"now": time.time() + 86400}, AssertionError),  # it is valid for too long
        ({"contact": "no address"}, AssertionError),
        ({"signer": 8}, InvalidSignature),
        ({"subscriber": 8}, AssertionError),  # the browser has subscribed to another server
        ({"ttl": "0"}, AssertionError),
        ({"ttl": str(29 * 86400)}, AssertionError),
        ({"encoding": "aesgcm"}, AssertionError),
        ({"browser": "another"}, InvalidTag),
    ],
)
def test_the_push_service_of_these_tests_refuses_what_the_standards_forbid(
    change: dict[str, Any], error: type[Exception] | None
) -> None:
    service = PushService()
    service.url = "https://push.example"
    browser, other = service.add_browser(), service.add_browser()
    key = ServerKey.from_number(7)
    service.server_key = ServerKey.from_number(change.get("subscriber", 7)).public_text
    token = ServerKey.from_number(change.get("signer", 7)).sign_token(
        change.get("audience", service.url),
        change.get("contact", "mailto:a@b.example"),
        int(change.get("now", time.time())),
    )
    reader = other if "browser" in change else browser
    keys = reader.subscription["keys"]
    subscription = PushSubscription(
        id="push_1", endpoint="", public_key=keys["p256dh"], auth_secret=keys["auth"], server_key=service.server_key
    )
    headers = {
        "authorization": f"{token.rpartition('k=')[0]}k={key.public_text}",
        "content-encoding": change.get("encoding", "aes128gcm"),
        "ttl": change.get("ttl", "60"),
        "urgency": "normal",
        "topic": "s1",
    }
    body = encrypt(b'{"kind":"test"}', subscription)
    if error is None:
        assert service.check_request("POST", browser.path, headers, body) == {"kind": "test"}
        return
    with pytest.raises(error):
        service.check_request("POST", browser.path, headers, body)

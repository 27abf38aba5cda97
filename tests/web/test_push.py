"""Notifications to browsers while the page is closed, against a push service that checks and decrypts them."""

from __future__ import annotations

import asyncio
import stat
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag

from palaver.app import make_push_notifier
from palaver.config.agent_rules import PushRules
from palaver.core.engines.base import Read, Write
from palaver.push import notifier as notifier_module
from palaver.push.encryption import ServerKey, encrypt
from palaver.push.model import MAX_SUBSCRIPTIONS_PER_PERSON, PushSubscription
from palaver.testing import ScriptedAgent
from palaver.turns import answer_recorder as finish
from support.gateway import wait_until
from support.push_service import HOST, PushService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.push.notifier import PushNotifier
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


# ---- two people ------------------------------------------------------------------------------------------


class HangingServices:
    """Push services that take requests and never answer."""

    def __init__(self) -> None:
        self.requests = 0
        self._servers: list[asyncio.Server] = []
        self._end = asyncio.Event()

    async def add(self) -> str:
        """Start one and return its address."""
        self._servers.append(await asyncio.start_server(self._handle, HOST, 0))
        return f"http://{HOST}:{self._servers[-1].sockets[0].getsockname()[1]}"

    async def _handle(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        await self._end.wait()
        writer.close()

    def close(self) -> None:
        self._end.set()
        for server in self._servers:
            server.close()


def add_sign_in(web: WebServer, person: str, number: int) -> str:
    """Sign a person in with one more browser."""
    sign_in_id = f"{person}-{number}"
    values = "SELECT $1, $1, id, 'link', 'Phone', '::1', $3, $3 FROM person WHERE name = $2"
    now = time.time_ns() // 1000
    sql = f"INSERT INTO sign_in {values}"
    assert web.gateway.store.engine.run(Write(lambda tx: tx.execute(sql, sign_in_id, person, now))) == 1
    return sign_in_id


async def subscribe_browser(web: WebServer, sign_in_id: str, subscription: dict[str, Any]) -> None:
    keys = subscription["keys"]
    await get_notifier(web).subscribe(sign_in_id, subscription["endpoint"], keys["p256dh"], keys["auth"])


def list_subscribers(web: WebServer) -> list[str]:
    sql = "SELECT sign_in_id FROM push_subscription ORDER BY created_at, sign_in_id"
    return [str(row[0]) for row in web.gateway.store.engine.run(Read(lambda tx: tx.fetch_all(sql)))]


@pytest.mark.both_engines
async def test_push_services_that_hang_delay_nobody_else(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eve's browsers are at services that never answer; the owner's notification arrives meanwhile."""
    monkeypatch.setattr(notifier_module, "MAX_SENDING", 3)
    monkeypatch.setattr(notifier_module, "MAX_SENDING_PER_PERSON", 2)
    hanging = HangingServices()
    async with run_push(start_web) as (web, service):
        notifier = get_notifier(web)
        eve = await web.sign_in("eve")
        for number in range(3):
            subscription = {**service.add_browser().subscription, "endpoint": f"{await hanging.add()}/x"}
            await subscribe_browser(web, add_sign_in(web, "eve", number), subscription)
        for text in ("one", "two"):
            await web.create_conversation(eve, text)
        assert count_rows(web, "push_message") == 6
        await notifier.start()
        try:
            await wait_until(lambda: hanging.requests == 2)
            browser = await subscribe(web, service)
            await web.create_conversation(await web.sign_in(), "hello")
            notifier.wake()
            await wait_until(lambda: service.messages)
            assert [path for path, _ in service.messages] == [browser.path]
            assert hanging.requests == 2  # they still hang, and no more of hers were started
        finally:
            hanging.close()
            await notifier.stop()


async def test_a_push_service_that_hangs_leaves_places_to_others(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many people's browsers are at one service that never answers."""
    monkeypatch.setattr(notifier_module, "MAX_SENDING", 3)
    monkeypatch.setattr(notifier_module, "MAX_SENDING_PER_SERVICE", 2)
    hanging = HangingServices()
    async with run_push(start_web) as (web, service):
        notifier = get_notifier(web)
        url = await hanging.add()
        for person in ("ada", "ben", "eve", "mia"):
            subscription = {**service.add_browser().subscription, "endpoint": f"{url}/{person}"}
            assert (await (await web.sign_in(person)).post(PUSH, json=subscription)).status_code == 204
            await web.create_conversation(await web.sign_in(person), "hello")
        await notifier.start()
        try:
            await wait_until(lambda: hanging.requests == 2)
            await subscribe(web, service)
            await web.create_conversation(await web.sign_in(), "hello")
            notifier.wake()
            await wait_until(lambda: service.messages)
            assert hanging.requests == 2
        finally:
            hanging.close()
            await notifier.stop()


async def test_a_push_service_that_hangs_is_tried_again_later(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[asyncio.Timeout] = []
    open_timeout = asyncio.timeout

    def open_recorded_timeout(seconds: float | None) -> asyncio.Timeout:
        timeout = open_timeout(seconds)
        if seconds == notifier_module.SEND_SECONDS:
            timeouts.append(timeout)
        return timeout

    monkeypatch.setattr(notifier_module, "SEND_SECONDS", 3601.0)
    monkeypatch.setattr(asyncio, "timeout", open_recorded_timeout)
    hanging = HangingServices()
    async with run_push(start_web) as (web, service):
        client = await web.sign_in()
        subscription = {**service.add_browser().subscription, "endpoint": f"{await hanging.add()}/x"}
        assert (await client.post(PUSH, json=subscription)).status_code == 204
        await web.create_conversation(client, "hello")
        try:
            sending = asyncio.create_task(get_notifier(web).run_once())
            await wait_until(lambda: hanging.requests == 1)
            timeouts[0].reschedule(0)  # the time is over
            await sending
            await get_notifier(web).run_once()
            assert (hanging.requests, count_rows(web, "push_message")) == (1, 1)
        finally:
            hanging.close()


async def test_one_test_of_a_person_is_sent_at_a_time(start_web: StartWebServer) -> None:
    hanging = HangingServices()
    async with run_push(start_web) as (web, service):
        eve = await web.sign_in("eve")
        subscription = {**service.add_browser().subscription, "endpoint": f"{await hanging.add()}/x"}
        assert (await eve.post(PUSH, json=subscription)).status_code == 204
        first = asyncio.create_task(eve.post(f"{PUSH}/test"))
        await wait_until(lambda: hanging.requests == 1)
        refused = await eve.post(f"{PUSH}/test")
        assert (refused.status_code, hanging.requests) == (429, 1)
        assert int(refused.headers["retry-after"]) >= 1
        await subscribe(web, service)
        assert (await (await web.sign_in()).post(f"{PUSH}/test")).status_code == 204
        assert not first.done()
        hanging.close()
        assert (await first).status_code == 502
        assert (await eve.post(f"{PUSH}/test")).status_code == 502  # it may try again


@pytest.mark.both_engines
async def test_the_oldest_browser_of_a_person_makes_room_for_a_new_one(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        await subscribe(web, service, "eve")
        [eve] = list_subscribers(web)
        await web.sign_in()
        names = [add_sign_in(web, "owner", number) for number in range(MAX_SUBSCRIPTIONS_PER_PERSON + 5)]
        for name in names[:MAX_SUBSCRIPTIONS_PER_PERSON]:
            await subscribe_browser(web, name, service.add_browser().subscription)
        late = names[MAX_SUBSCRIPTIONS_PER_PERSON:]
        await asyncio.gather(*(subscribe_browser(web, name, service.add_browser().subscription) for name in late))
        subscribers = list_subscribers(web)
        assert len(subscribers) == MAX_SUBSCRIPTIONS_PER_PERSON + 1
        assert set(subscribers) == {eve, *names[5:]}


@pytest.mark.both_engines
async def test_the_browser_of_another_person_cannot_be_taken_over(start_web: StartWebServer) -> None:
    """Eve knows the address of the owner's browser, and not its keys."""
    async with run_push(start_web) as (web, service):
        browser = await subscribe(web, service)
        eve = await web.sign_in("eve")
        stolen = {**service.add_browser().subscription, "endpoint": browser.subscription["endpoint"]}
        half = {**browser.subscription, "keys": {**browser.subscription["keys"], "auth": stolen["keys"]["auth"]}}
        for body in (stolen, half):
            response = await eve.post(PUSH, json=body)
            assert response.status_code == 422
            assert "another person" in response.json()["error"]["message"]
        owner = await web.sign_in()
        assert (await owner.get(PUSH)).json()["is_subscribed"]
        assert not (await eve.get(PUSH)).json()["is_subscribed"]
        await web.create_conversation(owner, "hello")
        await get_notifier(web).run_once()
        assert [path for path, _ in service.messages] == [browser.path]


async def test_the_same_browser_changes_hands_with_its_keys(start_web: StartWebServer) -> None:
    """Eve turns notifications on in the browser in which the owner has: it shows hers, and the owner's no more."""
    async with run_push(start_web) as (web, service):
        browser = await subscribe(web, service)
        owner, eve = await web.sign_in(), await web.sign_in("eve")
        await web.create_conversation(owner, "hello")
        assert (await eve.post(PUSH, json=browser.subscription)).status_code == 204
        assert not (await owner.get(PUSH)).json()["is_subscribed"]
        session_id = await web.create_conversation(eve, "hello")
        await get_notifier(web).run_once()
        assert [content["session"] for _, content in service.messages] == [session_id]


async def test_a_person_subscribes_the_same_address_again_with_new_keys(start_web: StartWebServer) -> None:
    async with run_push(start_web) as (web, service):
        browser = await subscribe(web, service)
        owner = await web.sign_in()
        again = {**service.add_browser().subscription, "endpoint": browser.subscription["endpoint"]}
        assert (await owner.post(PUSH, json=again)).status_code == 204
        assert count_rows(web, "push_subscription") == 1


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

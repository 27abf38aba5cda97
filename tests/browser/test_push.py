"""Notifications while the page is closed: switched on in the settings, sent to a push service, shown by the worker.

Chromium has no push service here, so `PushManager` of the page is replaced: it subscribes at a push service on
loopback, with a real pair of keys. The messages are the server's own; what the service has decrypted is handed to the
real service worker by the browser (DevTools: `ServiceWorker.deliverPushMessage`). Most clicks on a notification are
events that the test makes, without the permission of a real click to focus or to open a window; on Linux, one test
clicks as the desktop does. A badge is seen on installed apps only: the test sees that the browser takes its number.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import (
    launch_profile,
    open_path,
    send_message,
    sign_in_context,
    wait_for_answer,
)
from browser.page_checks import find_violations
from palaver.app import make_push_notifier
from palaver.config.agent_rules import PushRules
from palaver.core.engines.base import Read, Write
from palaver.testing import ScriptedAgent
from palaver.turns import answer_recorder as finish
from support.desktop_notifications import DesktopNotifications
from support.gateway import wait_until
from support.push_service import HOST, PushBrowser, PushService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Worker

    from browser.conftest import Visitors
    from palaver.push.notifier import PushNotifier
    from support.web import StartWebServer, WebServer

SETTING = "Also when Palaver is closed"
SETTING_IN_GERMAN = "Auch wenn Palaver geschlossen ist"

# A PushManager whose subscription is kept in the browser, as a real one is. It refuses what a real one refuses.
_REPLACE_PUSH_MANAGER = """
const subscription = %s
const key = 'test.push'
const make = () => localStorage.getItem(key) && {
    endpoint: subscription.endpoint,
    options: {applicationServerKey: Uint8Array.from(JSON.parse(localStorage.getItem(key))).buffer},
    toJSON: () => subscription,
    unsubscribe: async () => { localStorage.removeItem(key); return true },
}
PushManager.prototype.getSubscription = async () => make() || null
PushManager.prototype.subscribe = async ({userVisibleOnly, applicationServerKey}) => {
    const bytes = [...new Uint8Array(applicationServerKey)]
    if (await Notification.requestPermission() !== 'granted') throw new DOMException('denied', 'NotAllowedError')
    if (!userVisibleOnly || bytes.length !== 65) throw new DOMException('bad options', 'InvalidAccessError')
    const curve = {name: 'ECDSA', namedCurve: 'P-256'}
    await crypto.subtle.importKey('raw', Uint8Array.from(bytes), curve, true, [])  // fails if it is no point of it
    localStorage.setItem(key, JSON.stringify(bytes))
    return make()
}"""
_LIST_NOTIFICATIONS = """async () => (await self.registration.getNotifications())
    .map(({title, body, tag, data}) => ({title, body, tag, session: data.session}))"""
_COUNT_PAGES = "async () => (await self.clients.matchAll({type: 'window', includeUncontrolled: true})).length"
_IS_GERMAN_SAVED = """async () => {
    const saved = await (await caches.open('palaver-language')).match(`${location.origin}/`)
    return await saved?.text() === 'de'
}"""
_CLICK_FIRST_NOTIFICATION = """async () => {
    const [notification] = await self.registration.getNotifications()
    self.dispatchEvent(new NotificationEvent('notificationclick', {notification}))
}"""


# Calls of the worker that change something outside of it, with what the browser answers.
_RECORD_CALLS = """() => {
    self.calls = []
    const record = (target, name, describe) => {
        const real = target[name]
        target[name] = function (...values) {
            const done = real.apply(this, values)
            const note = what => self.calls.push([name, what])
            done.then(result => note(describe(values[0], result)), error => note(error.message))
            return done
        }
    }
    record(Clients.prototype, 'openWindow', address => new URL(address).pathname)
    record(WindowClient.prototype, 'focus', (_, page) => page.focused)
    record(WorkerNavigator.prototype, 'setAppBadge', count => count)
    record(WorkerNavigator.prototype, 'clearAppBadge', () => 0)
}"""
# A tab that is closed in the moment of a click: the browser still lists it, and then it is gone.
_REMEMBER_PAGE = "async () => { self.closed = (await self.clients.matchAll({type: 'window'}))[0] }"
_LIST_CLOSED_PAGE_ONCE = """() => {
    const real = Clients.prototype.matchAll
    Clients.prototype.matchAll = async () => { Clients.prototype.matchAll = real; return [self.closed] }
}"""
_REFUSE_SUBSCRIPTION = """() => {
    const real = PushManager.prototype.subscribe
    PushManager.prototype.subscribe = async () => {
        PushManager.prototype.subscribe = real
        throw new DOMException('Registration failed - push service not available', 'AbortError')
    }
}"""


@pytest.fixture
def browser(full_browser: Browser) -> Browser:
    return full_browser


@pytest.fixture(autouse=True)
def _send_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "PUSH_DELAY_MICROS", 0)


def make_notifier(web: WebServer, **rules: Any) -> PushNotifier:
    base = replace(web.state.settings.reader.base, turns=replace(web.gateway.rules, push=PushRules(**rules)))
    return make_push_notifier(web.gateway.store, base, [HOST])


@asynccontextmanager
async def run_push(start_web: StartWebServer) -> AsyncIterator[tuple[WebServer, PushService]]:
    """Run a server that sends notifications, also to a push service on this machine."""
    async with PushService() as service:
        web = await start_web(ScriptedAgent())
        notifier = make_notifier(web)
        web.gateway.push = notifier  # the end of a turn wakes it
        web.app.state.palaver = replace(web.state, push=notifier)
        service.server_key = await notifier.get_public_key()
        await notifier.start()
        try:
            yield web, service
        finally:
            await notifier.stop()
            web.gateway.push = None


@dataclass
class PushedBrowser:
    """A browser profile with the keys of its subscription, and its service worker."""

    context: BrowserContext
    page: Page
    keys: PushBrowser
    worker: Worker
    devtools: CDPSession
    registration_id: str
    origin: str

    async def deliver(self, content: dict[str, Any]) -> None:
        """Let the browser hand a message to the service worker, as if its push service had sent it."""
        message = {"origin": self.origin, "registrationId": self.registration_id, "data": json.dumps(content)}
        await self.devtools.send("ServiceWorker.deliverPushMessage", message)

    async def list_notifications(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many notifications are shown, and return them."""
        async with asyncio.timeout(60):
            while len(found := await self.worker.evaluate(_LIST_NOTIFICATIONS)) != count:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return list(found)


async def visit(web: WebServer, service: PushService, visitors: Visitors, **options: Any) -> PushedBrowser:
    """Open the settings in a browser that may show notifications."""
    keys = service.add_browser()
    context = await visitors.open_context(web.url, service_workers="allow", **options)
    await context.grant_permissions(["notifications"], origin=web.url)
    await context.add_init_script(_REPLACE_PUSH_MANAGER % json.dumps(keys.subscription))
    await sign_in_context(context, web)
    return await open_settings(web, keys, context, await context.new_page())


async def open_settings(web: WebServer, keys: PushBrowser, context: BrowserContext, page: Page) -> PushedBrowser:
    devtools = await context.new_cdp_session(page)
    registrations: list[dict[str, Any]] = []
    devtools.on("ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"]))
    await devtools.send("ServiceWorker.enable")
    await page.goto(f"{web.url}/settings")
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    await wait_until(lambda: registrations)
    return PushedBrowser(
        context, page, keys, context.service_workers[0], devtools, registrations[0]["registrationId"], web.url
    )


def count_subscriptions(web: WebServer) -> int:
    return len(web.gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM push_subscription"))))


async def turn_on(page: Page, setting: str = SETTING, on: str = "On") -> None:
    group = page.get_by_role("group", name=setting)
    await group.get_by_label(on).click()
    await expect(group.get_by_label(on)).to_be_checked()


@pytest.mark.soak
async def test_push_is_turned_on_tested_in_two_languages_refused_and_turned_off(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    """One story, because the full browser with a service worker takes twice as long as others."""
    visitors.allowed_errors += ("502",)
    async with run_push(start_web) as (web, service):
        pushed = await visit(web, service, visitors)
        page = pushed.page
        await expect(page.get_by_text("Your browser’s push service delivers them, encrypted.")).to_be_visible()
        await expect(page.get_by_role("button", name="Send a test notification")).to_have_count(0)
        assert count_subscriptions(web) == 0
        await page.evaluate(_REFUSE_SUBSCRIPTION)
        await page.get_by_role("group", name=SETTING).get_by_label("On").click()
        await expect(page.get_by_text("Your browser refused: Registration failed - push service")).to_be_visible()
        await expect(page.get_by_role("group", name=SETTING).get_by_label("Off")).to_be_checked()
        await turn_on(page)
        assert count_subscriptions(web) == 1
        await page.get_by_role("button", name="Send a test notification").click()
        await expect(page.get_by_text("Test notification sent.")).to_be_visible()
        assert service.messages == [(pushed.keys.path, {"kind": "test"})]
        assert await find_violations(page) == []
        await check_open_page(web, service, pushed)
        await check_refusal(service, page)
        await check_switch(web, page)
        await check_german(service, pushed)
        await check_server_without_push(web, page)


async def check_open_page(web: WebServer, service: PushService, pushed: PushedBrowser) -> None:
    """A page that is looked at gets no notification of an answer, only of a test."""
    await pushed.deliver({"kind": "answer", "session": "s_1", "title": "Garden"})
    await pushed.deliver(service.messages[0][1])  # handled after it
    shown = await pushed.list_notifications(1)
    assert shown == [{"title": "Palaver", "body": "Notifications work.", "tag": "test", "session": ""}]
    await pushed.worker.evaluate(_CLICK_FIRST_NOTIFICATION)
    await pushed.list_notifications(0)
    await expect(pushed.page).to_have_url(f"{web.url}/settings")  # it is about no conversation


async def check_refusal(service: PushService, page: Page) -> None:
    accepted = service.status, service.body
    service.status, service.body = 403, b"bad token"
    await page.get_by_role("button", name="Send a test notification").click()
    await expect(page.get_by_text("403: bad token")).to_be_visible()
    service.status, service.body = accepted


async def check_switch(web: WebServer, page: Page) -> None:
    """The switch is still on after a reload; then it is turned off."""
    await page.reload()
    group = page.get_by_role("group", name=SETTING)
    await expect(group.get_by_label("On")).to_be_checked()
    await group.get_by_label("Off").click()
    await expect(group.get_by_label("Off")).to_be_checked()
    await expect(page.get_by_role("button", name="Send a test notification")).to_have_count(0)
    assert count_subscriptions(web) == 0
    assert await page.evaluate("localStorage.getItem('test.push')") is None
    await page.reload()
    await expect(group.get_by_label("Off")).to_be_checked()
    assert count_subscriptions(web) == 0


async def check_german(service: PushService, pushed: PushedBrowser) -> None:
    """The setting and the notifications are in the language of the page."""
    page = pushed.page
    service.messages.clear()
    await page.get_by_role("group", name="Language").get_by_label("Deutsch").click()
    await turn_on(page, SETTING_IN_GERMAN, "An")
    await page.get_by_role("button", name="Testbenachrichtigung senden").click()
    await expect(page.get_by_text("Testbenachrichtigung gesendet.")).to_be_visible()
    assert await find_violations(page) == []
    await page.wait_for_function(_IS_GERMAN_SAVED)
    await pushed.deliver(service.messages[0][1])
    [shown] = await pushed.list_notifications(1)
    assert shown["body"] == "Benachrichtigungen funktionieren."


async def check_server_without_push(web: WebServer, page: Page) -> None:
    """A server that allows no push says so."""
    web.app.state.palaver = replace(web.app.state.palaver, push=make_notifier(web, enabled=False))
    await page.get_by_role("group", name="Sprache").get_by_label("English").click()
    await page.reload()
    await expect(page.get_by_text("Turned off by the owner of this server.")).to_be_visible()
    await expect(page.get_by_role("group", name=SETTING)).to_have_count(0)


async def test_an_answer_that_comes_while_the_page_is_closed_is_pushed_and_opened_by_a_click(
    start_web: StartWebServer, visitors: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "PUSH_DELAY_MICROS", 60_000_000)
    async with run_push(start_web) as (web, service):
        pushed = await visit(web, service, visitors)
        page = pushed.page
        await turn_on(page)
        await open_path(page, "/")
        await send_message(page, "When does the train leave?")
        await wait_for_answer(page)
        session = page.url.rpartition("/")[2]
        await wait_until(lambda: is_read(web))  # the page has shown it
        make_push_due(web)
        await wait_until(lambda: count_messages(web) == 0)
        assert service.messages == []
        monkeypatch.setattr(finish, "PUSH_DELAY_MICROS", 0)

        # Another site in the only tab. This one is not closed, because it holds the DevTools session.
        await page.goto("about:blank")
        owner = await web.sign_in()
        await web.send_message(owner, session, "And back?")
        await wait_until(lambda: service.messages)
        content = {"kind": "answer", "session": session, "title": "When does the train leave?"}
        assert service.messages == [(pushed.keys.path, content)]

        await pushed.deliver(content)
        await pushed.deliver(content)  # a second one, as after a crash, replaces the first
        [shown] = await pushed.list_notifications(1)
        assert shown == {
            "title": "When does the train leave?",
            "body": "Your answer is ready.",
            "tag": session,
            "session": session,
        }
        other = await pushed.context.new_page()
        await other.goto(web.url)
        await expect(other.locator("main.main h1")).to_be_visible()
        await pushed.worker.evaluate(_CLICK_FIRST_NOTIFICATION)
        await expect(other).to_have_url(f"{web.url}/{session}")
        await expect(other.get_by_role("heading", name="When does the train leave?")).to_be_visible()
        await pushed.list_notifications(0)


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="clicks go through D-Bus")
async def test_a_click_of_the_desktop_opens_a_window_or_focuses_the_open_one(
    start_web: StartWebServer, tmp_path: Path
) -> None:
    web = await start_web(ScriptedAgent())
    session = await web.create_conversation(await web.sign_in(), "When does the train leave?")
    content = {"kind": "answer", "session": session, "title": "When does the train leave?"}
    async with (
        DesktopNotifications(tmp_path) as desktop,
        launch_profile(tmp_path / "profile", env=os.environ | {"DBUS_SESSION_BUS_ADDRESS": desktop.address}) as context,
    ):
        await context.grant_permissions(["notifications"], origin=web.url)
        await sign_in_context(context, web)
        pushed = await open_settings(web, PushBrowser(""), context, await context.new_page())
        worker = pushed.worker
        await worker.evaluate(_RECORD_CALLS)
        await leave_page(pushed, pushed.page)
        await pushed.deliver(content)
        await wait_until(lambda: desktop.shown)
        assert desktop.shown[0].title == "When does the train leave?"
        assert "Your answer is ready." in desktop.shown[0].body
        async with asyncio.timeout(60), context.expect_page() as opened:
            await desktop.click(desktop.shown[0])
        page = await opened.value
        await expect(page.get_by_role("heading", name="When does the train leave?")).to_be_visible()
        await wait_for_calls(worker, ["setAppBadge", 1], ["openWindow", f"/{session}"], ["clearAppBadge", 0])

        await leave_page(pushed, page)
        await pushed.deliver(content)
        await wait_until(lambda: len(desktop.shown) == 2)
        await page.goto(f"{web.url}/jobs")
        await expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
        page_count = len(context.pages)
        async with asyncio.timeout(60):
            await desktop.click(desktop.shown[1])
        await expect(page).to_have_url(f"{web.url}/{session}")
        await wait_for_calls(worker, ["setAppBadge", 1], ["focus", True], ["clearAppBadge", 0])
        assert len(context.pages) == page_count

        await leave_page(pushed, page)
        await pushed.deliver(content)
        await wait_until(lambda: len(desktop.shown) == 3)
        await page.goto(f"{web.url}/{session}")  # the person opens the conversation without the notification
        await wait_until(lambda: desktop.shown[2].id in desktop.closed_ids)

        await worker.evaluate(_REMEMBER_PAGE)
        await leave_page(pushed, page)
        await pushed.deliver(content)
        await wait_until(lambda: len(desktop.shown) == 4)
        await worker.evaluate(_LIST_CLOSED_PAGE_ONCE)
        async with asyncio.timeout(60), context.expect_page() as opened:
            await desktop.click(desktop.shown[3])
        await expect((await opened.value).get_by_role("heading", name="When does the train leave?")).to_be_visible()


async def leave_page(pushed: PushedBrowser, page: Page) -> None:
    """Go to another site, and wait until the worker has no page of Palaver."""
    await page.goto("about:blank")
    async with asyncio.timeout(30):
        while await pushed.worker.evaluate(_COUNT_PAGES):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def wait_for_calls(worker: Worker, *calls: list[Any]) -> None:
    """Wait until the worker has made these calls and no others, in any order, and forget them."""
    async with asyncio.timeout(30):
        while sorted(await worker.evaluate("self.calls")) != sorted(calls):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await worker.evaluate("() => { self.calls = [] }")


def count_messages(web: WebServer) -> int:
    return len(web.gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM push_message"))))


def is_read(web: WebServer) -> bool:
    """Whether the conversation of the only queued notification is read to its end."""
    query = "SELECT 1 FROM push_message m JOIN read_mark r ON r.session_no = m.session_no WHERE r.read_seq >= m.seq"
    return web.gateway.store.engine.run(Read(lambda tx: tx.fetch_one(query) is not None))


def make_push_due(web: WebServer) -> None:
    web.gateway.store.engine.run(Write(lambda tx: tx.execute("UPDATE push_message SET due_at = 0")))
    assert web.gateway.push is not None
    web.gateway.push.wake()


async def test_the_next_person_in_a_browser_is_not_subscribed(start_web: StartWebServer, visitors: Visitors) -> None:
    visitors.allowed_errors += ("401",)  # of the open page, after the sign-out
    async with run_push(start_web) as (web, service):
        pushed = await visit(web, service, visitors)
        page = pushed.page
        await turn_on(page)
        await pushed.context.request.post(f"{web.url}/api/sign-out", headers={"Origin": web.url})
        assert count_subscriptions(web) == 0
        await sign_in_context(pushed.context, web, "eve")
        await page.goto(f"{web.url}/settings")
        await expect(page.get_by_role("group", name=SETTING).get_by_label("Off")).to_be_checked()
        await asyncio.sleep(0.5)  # in which it would be subscribed
        assert count_subscriptions(web) == 0

        await sign_in_context(pushed.context, web)  # the one who had switched it on
        await page.goto(f"{web.url}/settings")
        await wait_until(lambda: count_subscriptions(web) == 1)

"""Browser notifications about finished answers."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import send_message
from palaver.agent.base import TextDelta
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Browser, BrowserContext, Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

LIST_NOTIFICATIONS = """async () => {
    const worker = await navigator.serviceWorker.ready
    return (await worker.getNotifications()).map(({title, body, tag}) => ({title, body, tag}))
}"""
# Acts like a click on the first notification.
CLICK_FIRST_NOTIFICATION = """async () => {
    const [notification] = await self.registration.getNotifications()
    self.dispatchEvent(new NotificationEvent('notificationclick', {notification}))
}"""
READ_DELAY_MILLISECONDS = 1_000  # after which a tab notifies, unless the answer was read meanwhile
UNREAD_TITLE = re.compile(r"^\(1\) ")
# Counts how often the page requests permission.
COUNT_PERMISSION_REQUESTS = """window.permissionRequests = 0
const ask = Notification.requestPermission.bind(Notification)
Notification.requestPermission = () => (window.permissionRequests += 1, ask())"""

# Counts the notifications of a tab, because two notifications for one conversation look like one.
COUNT_NOTIFICATIONS = """window.notificationCount = 0
const worker = window.ServiceWorkerRegistration?.prototype
const show = worker?.showNotification
if (worker) worker.showNotification = function (...args) {
    window.notificationCount += 1
    return show.apply(this, args)
}"""


@pytest.fixture
def browser(full_browser: Browser) -> Browser:
    return full_browser


class PausingAgent:
    """Starts to answer, and finishes once `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("The **train**")
        await self.go_on.wait()
        yield TextDelta(" leaves at 20:38.")


async def visit_with_service_worker(web: WebServer, visitors: Visitors) -> tuple[BrowserContext, Page]:
    page = await visitors.visit(web, service_workers="allow", has_clock=True)
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    return page.context, page


async def enable_notifications(page: Page, web: WebServer) -> None:
    await page.goto(f"{web.url}/settings")
    await page.get_by_role("group", name="Notify me when an answer is ready").get_by_label("On").click()
    await expect(page.get_by_role("group", name="Notify me when an answer is ready").get_by_label("On")).to_be_checked()


async def wait_for_notifications(page: Page) -> list[dict[str, Any]]:
    """Wait until there is a notification, and return all."""
    async with asyncio.timeout(60):
        while not (found := await page.evaluate(LIST_NOTIFICATIONS)):  # noqa: ASYNC110  (a browser does it)
            await asyncio.sleep(0.05)
    return list(found)


async def start_answer(page: Page, web: WebServer) -> str:
    """Start a conversation, wait until its answer has started, and return its ID."""
    await page.goto(web.url)
    await send_message(page, "When does it leave?")
    await expect(page.locator(".answer")).to_contain_text("The train")
    return page.url.rpartition("/")[2]


@pytest.mark.soak
async def test_permission_is_requested_once_and_one_tab_notifies_of_an_answer_that_is_ready_elsewhere(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    """One story, because the full browser with a service worker takes twice as long as others."""
    pausing_agent = PausingAgent()
    web = await start_web(pausing_agent.agent())
    context, page = await visit_with_service_worker(web, visitors)
    await context.add_init_script(COUNT_PERMISSION_REQUESTS)
    await context.add_init_script(COUNT_NOTIFICATIONS)
    await context.grant_permissions([], origin=web.url)  # no permissions at all
    await check_refused_permission(page, web)
    await context.grant_permissions(["notifications"], origin=web.url)
    await enable_notifications(page, web)
    await check_answer_on_screen(page, web, pausing_agent)
    pausing_agent.go_on.clear()
    await check_answer_elsewhere(page, web, pausing_agent)


async def check_refused_permission(page: Page, web: WebServer) -> None:
    """Permission is requested only when notifications are turned on, and a refusal is explained."""
    await page.goto(f"{web.url}/settings")
    await expect(page.get_by_role("heading", name="Appearance")).to_be_visible()
    assert await page.evaluate("window.permissionRequests") == 0
    group = page.get_by_role("group", name="Notify me when an answer is ready")
    await group.get_by_label("On").click()
    await expect(page.get_by_text("Notifications are blocked.").first).to_be_visible()
    assert await page.evaluate("window.permissionRequests") == 1
    await expect(group.get_by_label("Off")).to_be_checked()


async def check_answer_on_screen(page: Page, web: WebServer, pausing_agent: PausingAgent) -> None:
    """An answer that is on screen is not notified, also in a second tab."""
    await start_answer(page, web)
    pausing_agent.go_on.set()
    await expect(page.locator(".answer")).to_contain_text("20:38")
    second = await page.context.new_page()
    await second.goto(web.url)
    await send_message(second, "And back?")  # answered at once, and on screen too
    await expect(second.locator(".answer")).to_contain_text("20:38")
    await wait_until_read(web)
    for each in (page, second):
        await expect(each).not_to_have_title(UNREAD_TITLE)
        await each.clock.fast_forward(READ_DELAY_MILLISECONDS)
        assert await each.evaluate("window.notificationCount") == 0
    assert await page.evaluate(LIST_NOTIFICATIONS) == []
    await second.close()


async def wait_until_read(web: WebServer) -> None:
    """Wait until the server knows that every answer was seen."""
    owner = await web.sign_in()
    async with asyncio.timeout(60):
        while any(  # noqa: ASYNC110  (the page tells the server)
            session["read_seq"] < session["last_seq"]
            for session in (await owner.get("/api/sessions")).json()["sessions"]
        ):
            await asyncio.sleep(0.05)


async def check_answer_elsewhere(page: Page, web: WebServer, pausing_agent: PausingAgent) -> None:
    """One of two tabs notifies when an answer is ready that is on no screen; a click on it opens the conversation."""
    context = page.context
    other = await context.new_page()  # it would notify too, if the tabs did not agree
    await other.goto(f"{web.url}/usage")
    session = await start_answer(page, web)
    await page.get_by_role("button", name="New conversation").first.click()
    pausing_agent.go_on.set()
    for each in (page, other):
        await expect(each).to_have_title(UNREAD_TITLE)  # it knows of the answer
    for each in (page, other):
        await each.clock.fast_forward(READ_DELAY_MILLISECONDS)
    told = await wait_for_notifications(page)
    assert told == [{"title": "When does it leave?", "body": "The train leaves at 20:38.", "tag": session}]
    assert [await each.evaluate("window.notificationCount") for each in (page, other)] in ([1, 0], [0, 1])

    await other.close()
    await context.service_workers[0].evaluate(CLICK_FIRST_NOTIFICATION)
    await expect(page.get_by_role("heading", name="When does it leave?")).to_be_visible()
    assert await page.evaluate(LIST_NOTIFICATIONS) == []
    await expect(page).to_have_title("When does it leave? · Palaver")

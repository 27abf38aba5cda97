"""What one person leaves behind in a tab in which another one signs in: nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import open_path, send_message, wait_for_answer
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Request

    from browser.conftest import Visitors
    from support.web import StartWebServer

PASSWORD = "eleven grey herons"
SECRET = "heliotrope"  # in everything that the first person writes


async def test_nothing_of_a_person_is_there_for_the_next_one_in_the_same_tab(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    eve = await web.sign_in("eve")
    await eve.put("/api/me/password", json={"current_password": None, "new_password": PASSWORD})
    await eve.post("/api/me/welcome")
    page = await visitors.visit(web)
    visitors.allowed_errors = ("401",)
    await page.evaluate("window.isSameDocument = true")

    await open_path(page, "/temporary")
    await send_message(page, f"{SECRET} in private")
    await expect(page.locator(".bubble")).to_contain_text(SECRET)
    await open_path(page, "/")
    await send_message(page, f"{SECRET} in public")
    await wait_for_answer(page)
    session = page.url.rpartition("/")[2]
    await page.locator("#composer").fill(f"{SECRET}, not sent")
    await page.locator("#search").fill(SECRET)
    await expect(page.locator(".search-hit").first).to_be_visible()
    await expect(page).to_have_url(f"{web.url}/{session}?q={SECRET}")
    await page.keyboard.press("Control+k")
    await expect(page.locator(".palette")).to_be_visible()

    await page.context.clear_cookies()  # the session ends, and the page stays open
    await page.evaluate("dispatchEvent(new Event('visibilitychange'))")  # it loads again what may have changed
    await page.get_by_label("Name", exact=True).fill("eve")
    requests: list[Request] = []

    def record_request(request: Request) -> None:
        requests.append(request)

    page.on("request", record_request)
    await open_path(page, "/")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("heading", name="Hello, eve")).to_be_visible()
    await expect(page.locator(".palette")).to_have_count(0)
    await expect(page.locator("#composer")).to_have_value("")
    assert SECRET not in await page.content()
    await open_path(page, "/temporary")
    await expect(page.locator("#composer")).to_have_value("")
    assert SECRET not in await page.content() + page.url
    assert not [each.url for each in requests if SECRET in each.url or session in each.url]
    assert await page.evaluate("window.isSameDocument")

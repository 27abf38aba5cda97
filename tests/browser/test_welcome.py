"""The first visit after a sign-in link, and what the start page says about a placeholder model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, create_sign_in_link
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from support.web import StartWebServer

PASSWORD = "eleven grey herons"


async def test_a_link_signs_in_once_and_the_chosen_name_with_the_password_always(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await (await visitors.open_context(web.url)).new_page()
    link = await create_sign_in_link(web, "owner", is_welcomed=False)
    await page.goto(link)
    await expect(page.get_by_role("heading", name="Welcome to Palaver")).to_be_visible()
    assert "#" not in page.url
    await expect(page.get_by_label("Your name")).to_be_focused()
    await expect(page.get_by_text("you need a new link to sign in again")).to_contain_text("palaver serve --link")
    assert await find_violations(page) == []
    visitors.allowed_errors = ("400", "401", "422")
    await page.get_by_label("Your name").fill("Grace")
    await page.get_by_label("Password").fill("password1")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("alert")).to_contain_text("too common")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="Hello, Grace")).to_be_visible()

    step = page.locator(".model-setup")  # a placeholder answers
    await expect(step).to_contain_text("Connect a real model")
    await expect(step.get_by_role("link", name="Connect one in the server settings")).to_be_visible()
    await expect(step).to_contain_text("a small placeholder answers")
    assert await find_violations(page) == []

    await page.goto(link)  # no new link is needed while the person is signed in
    await expect(page.get_by_role("heading", name="Hello, Grace")).to_be_visible()
    await page.locator(".account").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    await page.goto(link)
    await expect(page.get_by_role("alert")).to_contain_text("expired or was already used")

    await page.goto(web.url)
    await page.get_by_label("Name", exact=True).fill("Grace")
    await page.get_by_label("Password").fill("wrong")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("heading", name="Hello, Grace")).to_be_visible()


async def test_an_invited_person_skips_the_welcome_for_good(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    options = {"viewport": PHONE_VIEWPORT, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    context = await visitors.open_context(web.url, locale="de-DE", **options)
    page = await context.new_page()
    await page.goto(await create_sign_in_link(web, "Amina", is_welcomed=False))
    await expect(page.get_by_role("heading", name="Willkommen bei Palaver")).to_be_visible()
    await expect(page.get_by_label("Dein Name")).to_have_value("Amina")
    await expect(page.get_by_text("Den bekommst du vom Besitzer dieses Servers.")).to_be_visible()
    skip = page.get_by_role("button", name="Vorerst überspringen")
    await expect(skip).to_be_in_viewport()
    assert (await find_violations(page), await find_small_targets(page), await measure_overflow(page)) == ([], [], 0)
    await skip.click()
    await expect(page.get_by_role("heading", name="Hallo, Amina")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("heading", name="Hallo, Amina")).to_be_visible()

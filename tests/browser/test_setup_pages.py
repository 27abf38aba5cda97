"""Setting up the server on the page: server settings, platforms, saved prompts, instructions of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from agent.openai_server import OpenAIServer, reply_with_error
from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.agent.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

pytestmark = pytest.mark.slow


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save", exact=True).click()


async def test_an_owner_changes_a_setting_sees_errors_and_undoes_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/server#turns")
    visitors.allowed_errors = ("409", "422")
    field = page.get_by_label("Max running", exact=True)
    await expect(field).to_have_value("8")
    await field.fill("0")
    await save(page)
    await expect(page.locator(".setting-field", has=field).get_by_role("alert")).to_contain_text("0 is not allowed")
    assert await find_violations(page) == []
    await field.fill("4")
    await save(page)
    await expect(page.get_by_text("Saved. It applies now.")).to_be_visible()
    assert web.gateway.rules.max_running == 4
    await page.get_by_role("button", name="Reset to default: Max running").click()
    await save(page)
    await expect(page.get_by_text("1 unsaved change")).to_have_count(0)
    await expect(field).to_have_value("8")
    assert web.gateway.rules.max_running == 8

    await page.get_by_role("button", name="History").click()
    await expect(page.locator(".change-row")).to_have_count(2)
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Undo change 2").click()
    await expect(page.locator(".change-row")).to_have_count(3)
    assert web.gateway.rules.max_running == 4


async def test_changes_of_two_owners_do_not_overwrite_each_other_unnoticed(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/server#turns")
    visitors.allowed_errors = ("409",)
    field = page.get_by_label("Max queued", exact=True)
    await field.fill("7")
    other = await web.sign_in()
    assert (await other.patch("/api/settings", json={"set": {"turns.max_running": 5}})).is_success
    await save(page)
    await expect(page.locator(".save-bar").get_by_role("alert")).to_contain_text("changed the settings in the meantime")
    await expect(page.get_by_label("Max running", exact=True)).to_have_value("5")
    await expect(field).to_have_value("7")
    await save(page)
    await expect(page.get_by_text("Saved. It applies now.")).to_be_visible()
    assert (web.gateway.rules.max_running, web.gateway.rules.max_queued) == (5, 7)

    await field.fill("9")
    page.once("dialog", lambda dialog: dialog.dismiss())
    await page.get_by_role("button", name="Memory").click()
    await expect(field).to_have_value("9")  # stayed, nothing is lost
    page.once("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Memory").click()
    await expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()


async def test_an_owner_adds_a_profile_by_keyboard(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/server#profiles", reduced_motion="reduce")
    await page.get_by_label("Short name").focus()
    await page.keyboard.type("clerk")
    await page.keyboard.press("Enter")
    entry = page.locator("details.entry", has_text="clerk")
    await entry.get_by_label("Instructions").focus()
    await page.keyboard.type("You are a clerk.")
    save_button = entry.get_by_role("button", name="Save", exact=True)
    await expect(save_button).to_be_enabled()
    await save_button.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Saved. It applies now.")).to_be_visible()
    assert web.gateway.profile.profiles["clerk"].instructions == "You are a clerk."
    assert await find_violations(page) == []


async def test_the_providers_own_error_is_shown_and_a_key_only_by_its_end(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    with OpenAIServer(models=("large", "small")) as provider:
        provider.add_replies(reply_with_error(401, "This key has expired."))
        page = await visitors.visit(web, path="/server#models")
        form = page.locator(".provider-form")
        await form.get_by_role("combobox", name="Provider").select_option(label="Other (OpenAI-compatible)")
        await form.get_by_label("Name").fill("lab")
        await form.get_by_label("Address (URL)").fill(provider.url)
        await form.get_by_label("API key").fill("sk-0123456789abcdef")
        await form.get_by_role("button", name="Test").click()
        await expect(form.get_by_role("status")).to_contain_text("This key has expired.")
        assert await find_violations(page) == []
        await form.get_by_role("button", name="Save provider").click()
        await expect(form.get_by_role("combobox", name="Model")).to_have_value("large")
        await form.get_by_role("combobox", name="Model").select_option("small")
        await form.get_by_role("button", name="Use as default model").click()
        await expect(page.get_by_label("Providers").get_by_text("ends in …cdef")).to_be_visible()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("lab:small")
    assert web.gateway.profile.providers["lab"].api_key == "sk-0123456789abcdef"
    assert "sk-0123456789abcdef" not in await page.content()


async def test_a_platform_is_set_up_on_its_page(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/platforms", reduced_motion="reduce")
    visitors.allowed_errors = ("422",)
    await page.get_by_role("link", name="Telegram").click()
    await expect(page.get_by_role("heading", name="Connect Telegram")).to_be_visible()
    await expect(page.get_by_text("Open a chat with @BotFather")).to_be_visible()
    assert await find_violations(page) == []
    await page.get_by_role("link", name="All platforms").click()
    await page.get_by_role("link", name="Webhook").click()
    await page.get_by_label("Secret").fill("short")
    await page.get_by_role("button", name="Save and connect").click()
    await expect(page.get_by_role("alert").filter(has_text="24 to 512")).to_be_visible()
    await page.get_by_label("Secret").fill("0123456789abcdefghijklmnopqrst")
    await page.get_by_role("button", name="Save and connect").click()
    await expect(page.get_by_text("ends in …qrst")).to_be_visible()
    await expect(page.locator(".account-status")).to_be_visible()
    assert await find_violations(page) == []


async def test_members_get_no_server_settings_and_nothing_of_others_prompts(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner = await web.sign_in()
    assert (await owner.post("/api/prompts", json={"name": "Of the owner", "text": "secret"})).is_success
    page = await visitors.visit(web, "Amina", path="/server")
    visitors.allowed_errors = ("404",)
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await page.goto(f"{web.url}/prompts")
    await expect(page.get_by_role("heading", name="No saved prompts yet")).to_be_visible()
    await page.goto(f"{web.url}/platforms")
    await expect(page.get_by_role("heading", name="Platforms")).to_be_visible()
    await expect(page.get_by_role("heading", name="Connect a platform")).to_have_count(0)


async def test_a_saved_prompt_asks_for_its_placeholders(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/prompts")
    await page.get_by_role("button", name="New prompt").click()
    await page.get_by_label("Name").fill("Explain")
    await page.get_by_label("Text").fill("Explain {{topic}} to {{audience}}.")
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("list", name="Saved prompts")).to_contain_text("Explain {{topic}}")
    await page.goto(web.url)
    composer = page.locator("#composer")
    await composer.fill("/expl")
    await expect(page.get_by_role("option", name="Explain")).to_be_visible()
    await composer.press("Enter")
    await page.get_by_label("topic").fill("tides")
    await page.get_by_label("audience").fill("children")
    assert await find_violations(page) == []
    await page.keyboard.press("Enter")
    await expect(composer).to_have_value("Explain tides to children.")
    await expect(composer).to_be_focused()
    await page.get_by_role("button", name="Prompts", exact=True).click()
    await page.get_by_role("menuitem", name="Explain").click()
    await page.keyboard.press("Escape")
    await expect(composer).to_have_value("Explain tides to children.")
    await composer.press("Enter")
    await expect(page.locator(".message.user, .user-message").first).to_contain_text("Explain tides to children.")


async def test_a_project_has_instructions(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web)
    await page.get_by_role("button", name="New project").click()
    await page.get_by_label("Project name").fill("Garden")
    await page.get_by_label("Instructions").fill("Answer in rhymes.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("button", name="Garden", exact=True)).to_be_visible()
    projects = (await (await web.sign_in()).get("/api/projects")).json()["projects"]
    assert [each["instructions"] for each in projects] == ["Answer in rhymes."]


@pytest.mark.parametrize("path", ["/server#models", "/server#conversations", "/platforms#email", "/prompts"])
async def test_the_screens_fit_a_phone_in_german_and_dark(
    start_web: StartWebServer, visitors: Visitors, path: str
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    options: dict[str, Any] = {"viewport": PHONE_VIEWPORT, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    page = await visitors.visit(web, path=path, locale="de-DE", **options)
    await expect(page.locator(".panel-column .card, .panel-empty").first).to_be_visible()
    assert (await find_violations(page), await measure_overflow(page)) == ([], 0)
    assert await find_small_targets(page) == []


async def test_settings_and_steps_are_explained_in_german(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/server#turns", locale="de-DE")
    for section in ("Unterhaltungen", "Antworten", "Gedächtnis", "Budgets", "Aufgaben und Sicherungen", "Modelle"):
        await page.get_by_label("Bereiche der Servereinstellungen").get_by_role("button", name=section).click()
        await expect(page.locator(".setting-field").first).to_be_visible()
        assert await page.locator(".setting-field [lang=en]").all_text_contents() == []
    for platform in ("telegram", "slack", "email", "signal", "matrix"):
        await page.goto(f"{web.url}/platforms#{platform}")
        await expect(page.locator(".steps-list li").first).to_be_visible()
        assert await page.locator(".steps-list [lang=en]").all_text_contents() == []

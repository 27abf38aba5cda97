"""Setting up the server on the page: server settings, platforms, saved prompts, instructions of projects."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import open_path, send_message, wait_for_answer
from browser.page_checks import find_violations
from drivers.openai_server import OpenAIServer, reply_with_error
from palaver import SessionSource
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.core.source import Platform
from palaver.drivers.demo import DemoAgent
from palaver.sessions.policy import ResetMode
from support.gateway import wait_until
from web.test_attachments import make_png

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.core.engines.base import Transaction
    from support.web import StartWebServer, WebServer

pytestmark = pytest.mark.slow


async def choose_demo_model(web: WebServer) -> None:
    """Keep the demo: with the first change of settings, the agent is the one that they name."""
    assert (await (await web.sign_in()).patch("/api/settings", json={"set": {"model": "demo"}})).is_success


def age_sessions(tx: Transaction, user: str, moment: int) -> None:
    """Let everything in a person's sessions have happened at a moment."""
    columns = ("created_at", "active_at", "last_human_at", "last_message_at")
    changes = ", ".join(f"{column} = $1" for column in columns)
    tx.execute(f"UPDATE session SET {changes} WHERE key LIKE $2", moment, f"%:{user}")


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save", exact=True).click()


async def test_an_owner_changes_a_setting_sees_errors_undoes_it_and_overwrites_no_change_of_another_owner(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/server#turns")
    visitors.allowed_errors = ("409", "422")
    field = page.get_by_label("How many at the same time", exact=True)
    await expect(field).to_have_value("8")
    await field.fill("0")
    await save(page)
    await expect(page.locator(".setting-field", has=field).get_by_role("alert")).to_contain_text("0 is not allowed")
    assert await find_violations(page) == []
    await field.fill("4")
    await save(page)
    await expect(page.get_by_text("Saved. It applies now.")).to_be_visible()
    assert web.gateway.rules.max_running == 4
    await page.get_by_role("button", name="Reset to default: How many at the same time").click()
    await save(page)
    await expect(page.get_by_text("1 unsaved change")).to_have_count(0)
    await expect(field).to_have_value("8")
    assert web.gateway.rules.max_running == 8

    await page.get_by_role("button", name="History").click()
    await expect(page.locator(".change-row")).to_have_count(2)
    assert await find_violations(page) == []
    other = await web.sign_in()
    assert (await other.patch("/api/settings", json={"set": {"turns.max_queued": 7}})).is_success
    await page.get_by_role("button", name="Undo change 2").click()
    await expect(page.get_by_text("Nothing was changed: someone else has changed the settings")).to_be_visible()
    await expect(page.locator(".change-row")).to_have_count(3)  # the change of the other owner, too
    assert web.gateway.rules.max_running == 8
    await page.reload()  # a second click is ignored while anything is still being loaded after the first
    await page.get_by_role("button", name="Undo change 2").click()
    await expect(page.locator(".change-row")).to_have_count(4)
    assert (web.gateway.rules.max_running, web.gateway.rules.max_queued) == (4, 7)
    await open_path(page, "/server#turns")
    await check_changes_of_two_owners(web, page)


async def check_changes_of_two_owners(web: WebServer, page: Page) -> None:
    field = page.get_by_label("Most waiting messages", exact=True)
    await field.fill("6")
    other = await web.sign_in()
    assert (await other.patch("/api/settings", json={"set": {"turns.max_running": 5}})).is_success
    await save(page)
    await expect(page.locator(".save-bar").get_by_role("alert")).to_contain_text("changed the settings in the meantime")
    await expect(page.get_by_label("How many at the same time", exact=True)).to_have_value("5")
    await expect(field).to_have_value("6")
    await save(page)
    await wait_until(lambda: (web.gateway.rules.max_running, web.gateway.rules.max_queued) == (5, 6))
    await expect(page.get_by_text("Saved. It applies now.")).to_be_visible()
    await expect(page.get_by_text("1 unsaved change")).to_have_count(0)

    while await field.input_value() != "9":  # the page may draw the saved value again between selecting and typing
        await field.fill("9")
    page.once("dialog", lambda dialog: dialog.dismiss())
    await page.get_by_role("button", name="Memory").click()
    await expect(field).to_have_value("9")  # stayed, nothing is lost
    page.once("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Memory").click()
    await expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()


@pytest.mark.soak
async def test_an_owner_adds_a_profile_by_keyboard_with_a_picture_that_people_see_who_set_up_nothing(
    start_web: StartWebServer, visitors: Visitors, tmp_path: Path
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await choose_demo_model(web)
    page = await visitors.visit(web, path="/server#profiles", reduced_motion="reduce")
    await page.get_by_label("Short name").focus()
    await page.keyboard.type("Clerk")  # names are lowercase
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

    (tmp_path / "notes.png").write_text("These are no pixels.")
    (tmp_path / "face.png").write_bytes(make_png())
    await entry.locator("input[type=file]").set_input_files(tmp_path / "notes.png")
    await expect(page.get_by_text("This file is not a picture that the browser can read.")).to_be_visible()
    await expect(entry.locator(".picture-input img")).to_have_count(0)
    await entry.locator("input[type=file]").set_input_files(tmp_path / "face.png")
    await expect(entry.locator(".picture-input img")).to_be_visible()
    await entry.get_by_role("combobox", name="Choose one to add").select_option(label="Memory")
    await expect(entry.get_by_label("Toolsets")).to_have_value("memory")
    await entry.get_by_label("Title").fill("The clerk")
    await expect(entry.get_by_role("heading", name="When conversations restart")).to_be_visible()
    await entry.get_by_label("Restart", exact=True).select_option("idle")
    await entry.get_by_label("Minutes without a message").fill("30")
    await save_button.click()
    await expect(entry.locator("summary")).to_contain_text("The clerk")
    await expect(entry.locator("summary img")).to_be_visible()
    assert await find_violations(page) == []
    policy = web.gateway.store.config.reset_by_profile["clerk"]
    assert (policy.mode, policy.idle_minutes) == (ResetMode.IDLE, 30)
    assert web.gateway.profile.profiles["clerk"].toolsets == ("memory",)
    assert (web.gateway.profile.profiles["clerk"].picture or "").startswith("data:image/png;base64,")

    member = await visitors.visit(web, "Amina")
    await member.get_by_role("button", name="Profile and workspace").click()
    choice = member.get_by_role("menuitemradio", name="The clerk")
    await expect(choice.locator("img")).to_be_visible()
    await choice.click()
    await expect(member.get_by_role("button", name="Profile and workspace: The clerk").locator("img")).to_be_visible()
    await send_message(member, "hello")
    await wait_for_answer(member)
    answer = member.get_by_role("article", name="Agent")
    await expect(answer.locator(".profile-name")).to_have_text("The clerk")
    await expect(answer.locator(".profile-name img")).to_be_visible()
    assert await find_violations(member) == []
    await open_path(member, "/settings")
    rule = member.get_by_role("listitem").filter(has=member.get_by_role("heading", name="Profile “The clerk”"))
    await expect(rule).to_contain_text("30 minutes")
    await expect(rule).to_contain_text("profiles.clerk.session_reset")
    visitors.allowed_errors = ("404",)
    await check_member_sees_no_setup(web, member)


async def check_member_sees_no_setup(web: WebServer, page: Page) -> None:
    """Members get no server settings, and nothing of the prompts of others."""
    owner = await web.sign_in()
    assert (await owner.post("/api/prompts", json={"name": "Of the owner", "text": "secret"})).is_success
    await page.goto(f"{web.url}/server")
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await open_path(page, "/prompts")
    await expect(page.get_by_role("heading", name="No saved prompts yet")).to_be_visible()
    await open_path(page, "/platforms")
    await expect(page.get_by_role("heading", name="Platforms")).to_be_visible()
    await expect(page.get_by_role("heading", name="Connect a platform")).to_have_count(0)


@pytest.mark.soak
async def test_an_owner_sets_up_tools_deletes_old_conversations_and_connects_a_platform(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/server#tools", reduced_motion="reduce")
    visitors.allowed_errors = ("422",)
    await add_mcp_server(web, page)
    await choose_known_names(web, page)
    await delete_old_conversations(web, page)
    await open_path(page, "/platforms")
    await set_up_platform(web, page)


async def add_mcp_server(web: WebServer, page: Page) -> None:
    """Add an MCP server with a header."""
    servers = page.get_by_role("region", name="MCP servers")
    await servers.get_by_label("Name", exact=True).fill("library")
    await servers.get_by_role("button", name="Add", exact=True).click()
    entry = servers.locator("details.entry", has_text="library")
    await entry.get_by_label("URL").fill("https://tools.example.org/mcp")
    for name in ("Not a name", "X-Api-Key"):
        await entry.get_by_label("Name (Headers)").fill(name)
        await entry.get_by_role("button", name="Add to Headers").click()
    await expect(entry.get_by_label("Name (Env)")).to_have_count(0)  # variables are for the terminal only
    await entry.get_by_label("X-Api-Key").fill("sesame-0123456789")
    await entry.get_by_label("Not a name").fill("x")
    await entry.get_by_role("button", name="Save", exact=True).click()
    await expect(entry.get_by_role("alert").filter(has_text="this name is not valid")).to_be_visible()
    await entry.get_by_label("Not a name").fill("")
    await entry.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved. It applies now.")).to_be_visible()
    await expect(entry.get_by_text("Set, ends in …6789.")).to_be_visible()
    server = web.gateway.profile.mcp_servers["library"]
    assert (server.url, dict(server.headers)) == ("https://tools.example.org/mcp", {"X-Api-Key": "sesame-0123456789"})
    await entry.get_by_role("button", name="Remove X-Api-Key").click()
    await entry.get_by_role("button", name="Save", exact=True).click()
    await expect(entry.get_by_label("X-Api-Key")).to_have_count(0)
    assert dict(web.gateway.profile.mcp_servers["library"].headers) == {}


async def choose_known_names(web: WebServer, page: Page) -> None:
    """Choose toolsets and platforms among those that the server knows, and go to the conversations."""
    toolsets = page.get_by_role("region", name="Toolsets")
    names = ("Earlier conversations", "Memory", "Jobs", "Messages", "Web")
    for index, name in enumerate(names):  # all of them, though none was changed yet
        await expect(toolsets.locator("summary").nth(index)).to_contain_text(name)
        await expect(toolsets.locator("summary").nth(index)).to_contain_text("On · Owner, Member")
    await expect(toolsets.locator(".add-entry")).to_have_count(0)
    entry = toolsets.locator("details.entry").last
    await entry.locator("summary").click()
    await entry.get_by_label("Enabled").select_option(label="Off")
    await entry.get_by_role("button", name="Save", exact=True).click()
    await expect(entry.locator("summary")).to_contain_text("Off")
    assert "web" not in web.gateway.rules.toolsets
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Conversations", exact=True).click()
    platforms = page.get_by_role("region", name="When conversations restart, by platform")
    await platforms.get_by_role("combobox", name="Name").select_option(label="Telegram")
    await platforms.get_by_role("button", name="Add", exact=True).click()
    entry = platforms.locator("details.entry", has_text="Telegram")
    await entry.get_by_label("Restart", exact=True).select_option("daily")
    await entry.get_by_role("button", name="Save", exact=True).click()
    await expect(entry.get_by_text("1 unsaved change")).to_have_count(0)
    assert web.gateway.store.config.reset_by_platform[Platform.TELEGRAM].mode is ResetMode.DAILY


async def delete_old_conversations(web: WebServer, page: Page) -> None:
    """See what would be deleted before it is deleted."""
    store = web.gateway.store
    for user in ("ada", "ben"):
        store.record_user_message(SessionSource("telegram", user, user_id=user), "hello")
    year_ago = to_micros(store.clock.now() - timedelta(days=400))
    store.engine.run(Write(lambda tx: age_sessions(tx, "ada", year_ago)))
    card = page.get_by_role("region", name="Delete old conversations")
    await card.get_by_label("Not used for (days)").fill("500")
    await card.get_by_role("button", name="Show what would be deleted").click()
    await expect(card.get_by_role("status")).to_contain_text("No conversation is that old")
    await card.get_by_label("Not used for (days)").fill("365")
    await card.get_by_role("button", name="Show what would be deleted").click()
    await expect(card.get_by_role("status")).to_contain_text("1 conversation would be deleted: 1 message,")
    assert await find_violations(page) == []
    await card.get_by_role("button", name="Delete 1 conversation").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert len(store.list_sessions()) == 2
    await card.get_by_role("button", name="Delete 1 conversation").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete 1 conversation").click()
    await expect(page.get_by_text("1 conversation was deleted.")).to_be_visible()
    assert [session.origin.user_id for session in store.list_sessions()] == ["ben"]


async def set_up_platform(web: WebServer, page: Page) -> None:
    """Set up a platform on its page."""
    await page.get_by_role("link", name="Telegram").click()
    await expect(page.get_by_role("heading", name="Connect Telegram")).to_be_visible()
    await expect(page.get_by_text("Open a chat with @BotFather")).to_be_visible()
    await expect(page.get_by_role("link", name="@BotFather")).to_have_attribute("href", "https://t.me/BotFather")
    await expect(page.get_by_role("heading", name="Connection")).to_have_count(0)  # there is none before it is set up
    assert await find_violations(page) == []
    await page.get_by_role("link", name="All platforms").click()
    await page.get_by_role("link", name="Webhook").click()
    await expect(page.get_by_text(f"{web.url}/hooks/webhook")).to_be_visible()
    await expect(page.get_by_role("button", name="Copy: Webhook address")).to_be_visible()
    await page.get_by_label("Secret").fill("short")
    await page.get_by_role("button", name="Save and connect").click()
    await expect(page.get_by_role("alert").filter(has_text="24 to 512")).to_be_visible()
    await page.get_by_label("Secret").fill("0123456789abcdefghijklmnopqrst")
    await page.get_by_role("button", name="Save and connect").click()
    await expect(page.get_by_text("ends in …qrst")).to_be_visible()
    await expect(page.locator(".account-status")).to_be_visible()
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
        other = await web.sign_in()
        assert (await other.patch("/api/settings", json={"set": {"turns.max_running": 5}})).is_success
        visitors.allowed_errors = ("409",)
        await form.get_by_role("button", name="Save provider").click()
        await expect(form.get_by_role("alert")).to_contain_text("changed the settings in the meantime")
        await form.get_by_role("button", name="Save provider").click()
        await expect(form.get_by_role("combobox", name="Model")).to_have_value("large")
        await form.get_by_role("combobox", name="Model").select_option("small")
        await form.get_by_role("button", name="Use as default model").click()
        await expect(page.get_by_label("Providers").get_by_text("API key ends in …cdef")).to_be_visible()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("lab:small")

        provider.models.clear()  # now it lists none, as many servers
        visitors.allowed_errors = ("409", "502")
        await page.get_by_role("button", name="Edit lab").click()
        await expect(form.get_by_label("Address (URL)")).to_be_focused()
        await form.get_by_label("Address (URL)").fill(f"{provider.url}/")
        await expect(form.get_by_text("You changed the address, so enter the key again.")).to_be_visible()
        await form.get_by_label("API key").fill("sk-0123456789abcdef")  # the same
        await form.get_by_role("button", name="Save provider").click()
        await expect(form.get_by_role("alert")).to_contain_text("Enter the name of a model instead.")
        await form.get_by_label("Name of the model").fill("tiny")
        await form.get_by_role("button", name="Use as default model").click()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("lab:tiny")
        await expect(page.get_by_role("button", name="Add a provider")).to_be_focused()
    assert web.gateway.profile.providers["lab"].api_key == "sk-0123456789abcdef"
    assert "sk-0123456789abcdef" not in await page.content()


async def test_a_saved_prompt_asks_for_its_placeholders_and_a_project_has_instructions(
    start_web: StartWebServer, visitors: Visitors
) -> None:
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

    await page.get_by_role("button", name="New project").click()
    await page.get_by_label("Project name").fill("Garden")
    await page.get_by_label("Instructions").fill("Answer in rhymes.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("button", name="Garden", exact=True)).to_be_visible()
    projects = (await (await web.sign_in()).get("/api/projects")).json()["projects"]
    assert [each["instructions"] for each in projects] == ["Answer in rhymes."]

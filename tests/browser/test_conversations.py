"""Finding, organizing, branching and undoing conversations on the page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import open_path, send_message, sign_in_context, wait_for_answer
from palaver.drivers.demo import DemoAgent
from palaver.testing import FakeClock, ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer


def find_row(page: Page, text: str) -> Locator:
    return page.locator(".session").filter(has_text=text)


async def choose_from_menu(page: Page, row: Locator, *names: str) -> None:
    """Open the menu of a conversation and choose an item, through submenus if several names are given."""
    await row.hover()
    await row.get_by_role("button").click()
    for name in names[:-1]:
        await page.get_by_role("menuitem", name=name, exact=True).press("ArrowRight")
    last = page.get_by_role("menu").last
    await last.locator("[role^=menuitem]").filter(has_text=names[-1]).click()


async def start_conversations(page: Page, *texts: str) -> None:
    for text in texts:
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator(".home")).to_be_visible()
        await send_message(page, text)
        await wait_for_answer(page)


async def test_a_search_and_links_open_messages_of_a_long_conversation_which_can_be_compacted(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("In short."))
    owner = await web.sign_in()
    session = await web.create_session(owner, title="A long one")
    texts = ["where is the platypus" if number == 5 else f"message {number}\n" * 4 for number in range(300)]
    await web.gateway.store.aio.rewrite_transcript(session, [{"role": "user", "content": text} for text in texts])
    page = await visitors.visit(web, permissions=["clipboard-read", "clipboard-write"])
    await page.get_by_role("combobox", name="Search").fill("platypus")
    hit = page.locator(".search-hit").filter(has_text="where is the")
    await expect(hit.locator("mark")).to_have_text("platypus")
    await hit.click()
    await page.wait_for_url(re.compile(r"#\d+$"))
    await expect(page.locator(".row.target")).to_contain_text("where is the platypus")
    await expect(page.locator(".row.target")).to_be_in_viewport()
    await page.get_by_role("button", name="Jump to latest").click()
    await expect(page.get_by_text("message 299").last).to_be_in_viewport()
    await check_links_in_open_conversation(page)

    visitors.allowed_errors = ("503",)
    busy = {"error": {"code": "store_busy", "message": "in the server's words", "facts": {}}}
    await page.route("**/api/search?*", lambda route: route.fulfill(status=503, json=busy))
    await page.get_by_role("combobox", name="Search").fill("wombat")
    await expect(page.get_by_role("alert")).to_contain_text("The database is busy.")
    await expect(page.get_by_text("No results")).to_have_count(0)
    await page.unroute("**/api/search?*")
    await page.get_by_role("alert").get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No results")).to_be_visible()
    await page.get_by_role("combobox", name="Search").fill("")
    await check_compaction(web, page)


async def check_links_in_open_conversation(page: Page) -> None:
    """Open an earlier message of the open conversation, and another one with a copied link in another tab."""
    target = page.locator(".row.target")
    await page.evaluate("location.hash = '20'")
    await expect(target.locator(".bubble")).to_have_text(re.compile(r"message 1\d"))
    await expect(target).to_be_in_viewport()
    await page.evaluate("location.hash = '250'")
    await expect(target.locator(".bubble")).to_have_text(re.compile(r"message 24\d"))
    await target.locator(".user-message").hover()
    await target.get_by_role("button", name="Copy link to this message").click()
    await expect(page.get_by_text("Link copied.")).to_be_visible()
    other = await page.context.new_page()
    await other.goto(await page.evaluate("navigator.clipboard.readText()"))
    await expect(other.locator(".row.target .bubble")).to_have_text(re.compile(r"message 24\d"))
    await expect(other.locator(".row.target")).to_be_in_viewport()
    await other.close()


async def test_messages_are_separated_by_day(start_web: StartWebServer, visitors: Visitors) -> None:
    noon = datetime(2026, 3, 12, 12, tzinfo=UTC)
    clock = FakeClock(noon - timedelta(days=8))
    web = await start_web(ScriptedAgent("Certainly."), clock=clock)
    session = await web.create_conversation(await web.sign_in(), "long ago", "the same day", title="Over the days")
    for away, text in ((1, "the day before"), (0, "just now")):
        clock.set(noon - timedelta(days=away))
        await web.send_message(await web.sign_in(), session, text)
    context = await visitors.open_context(web.url, timezone_id="UTC")
    await context.clock.set_fixed_time(noon)
    await sign_in_context(context, web)
    page = await context.new_page()
    await page.goto(f"{web.url}/{session}")
    await expect(page.get_by_role("separator")).to_have_text(["Wednesday 4 March", "Yesterday", "Today"])
    await expect(page.locator(".day, .user-message .bubble")).to_have_text(
        ["Wednesday 4 March", "long ago", "the same day", "Yesterday", "the day before", "Today", "just now"]
    )


async def check_compaction(web: WebServer, page: Page) -> None:
    """Compaction is shown, and can be undone."""
    session = await web.create_conversation(
        await web.sign_in(), *(f"message {number}" for number in range(8)), title="Long"
    )
    await open_path(page, f"/{session}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Long")
    await page.locator("header.bar").get_by_role("button", name=re.compile("Actions for")).click()
    await page.get_by_role("menuitem", name="Compact context").click()
    line = page.locator(".event-block")
    await expect(line).to_contain_text("The agent now sees a summary of")
    await line.get_by_role("button", name="Show summary").click()
    await expect(line.locator(".summary")).to_contain_text("In short.")
    await line.get_by_role("button", name="Undo", exact=True).click()
    await expect(page.get_by_text("Compaction undone. The agent sees all messages again.")).to_be_visible()


async def check_branching(page: Page) -> None:
    """Branching keeps the original, in which exchanges are undone and redone."""
    count = await page.locator(".session").count()
    await start_conversations(page, "first")
    await send_message(page, "second")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    original = page.url
    first = page.locator(".answer").first
    await first.hover()
    await first.get_by_role("button", name="Branch from here").click()
    await page.wait_for_url(lambda url: url != original)
    await expect(page.locator(".user-message")).to_have_count(1)
    await expect(page.locator(".user-message")).to_contain_text("first")
    await expect(page.locator(".row").last).to_contain_text("Everything above is from the original conversation")
    await expect(page.get_by_role("heading", level=1)).to_have_text("first #2")
    await expect(page.locator(".session")).to_have_count(count + 2)
    await expect(page.get_by_role("img", name="unread")).to_have_count(0)
    await page.get_by_role("link", name="Original conversation").click()
    await expect(page.locator(".user-message")).to_have_count(2)

    head = page.locator("header.bar")
    await head.get_by_role("button", name=re.compile("Actions for")).click()
    await page.get_by_role("menuitem", name="Undo last exchange").click()
    await expect(page.locator(".user-message")).to_have_count(1)
    await expect(page.locator("#composer")).to_have_value("second")
    await head.get_by_role("button", name=re.compile("Actions for")).click()
    await page.get_by_role("menuitem", name="Undo last exchange").click()
    await expect(page.get_by_text("Last 2 exchanges undone.")).to_be_visible()
    await expect(page.get_by_role("button", name="Redo", exact=True)).to_have_count(1)
    await page.get_by_role("button", name="Redo", exact=True).click()
    await expect(page.get_by_text("Last exchange undone.")).to_be_visible()
    await expect(page.locator(".user-message")).to_have_count(1)
    await page.get_by_role("button", name="Redo", exact=True).click()
    await expect(page.locator(".user-message")).to_have_count(2)
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.get_by_text("Last exchange undone.")).to_have_count(0)


async def test_an_answer_is_regenerated_an_edited_message_sent_in_a_new_branch_and_an_exchange_undone(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    agent = ScriptedAgent(lambda request: f"Answer {len(agent.requests)} to {request.messages[-1]['content']}")
    page = await visitors.visit(await start_web(agent))
    await start_conversations(page, "what is one")
    await page.get_by_role("button", name="Regenerate", exact=True).click()
    await expect(page.locator(".answer")).to_contain_text("Answer 2 to what is one")
    await expect(page.locator(".answer")).to_have_count(1)
    await expect(page.locator(".user-message")).to_have_count(1)
    await wait_for_answer(page)

    original = page.url
    await page.locator(".user-message").hover()
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("textbox", name="Edit").fill("what is two")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("and three")
    await expect(page.get_by_role("textbox", name="Edit")).to_have_value("what is two\nand three")
    await page.get_by_role("button", name="Send in a new branch").click()
    await page.wait_for_url(lambda url: url != original)
    await expect(page.locator(".user-message")).to_have_text(re.compile("what is two\\s+and three"))
    await expect(page.locator(".user-message")).to_have_attribute("aria-label", "You")
    await wait_for_answer(page)
    await expect(page.locator(".answer")).to_contain_text("what is two")
    await expect(page.get_by_role("heading", level=1)).to_have_text("what is one #2")
    await expect(page.locator(".row").nth(1)).to_contain_text("Branched from the start of the original conversation")
    await expect(page.locator(".session")).to_have_count(2)
    await expect(page.get_by_role("img", name="unread")).to_have_count(0)
    await check_branching(page)


@pytest.mark.soak
async def test_conversations_are_pinned_archived_moved_to_projects_and_opened_with_the_command_palette(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    for text in ("alpha", "beta", "gamma"):
        await web.create_conversation(await web.sign_in(), text)
    page = await visitors.visit(web)
    await page.get_by_role("button", name="New project").click()
    await page.get_by_role("textbox", name="Project name").fill("Travel")
    await page.get_by_role("button", name="Save").click()
    project = page.get_by_role("button", name="Travel", exact=True)
    await expect(project).to_be_visible()

    await choose_from_menu(page, find_row(page, "alpha"), "Pin")
    await expect(page.locator(".session").first).to_contain_text("alpha")
    await find_row(page, "beta").drag_to(project)
    await expect(page.get_by_text("Moved to “Travel”.")).to_be_visible()
    await project.click()
    await expect(page.locator(".session")).to_have_count(1)
    await expect(page.locator(".session")).to_contain_text("beta")
    await start_conversations(page, "delta")
    await expect(page.locator(".session")).to_have_count(2)
    await project.click()
    await expect(page.locator(".session")).to_have_count(4)

    await choose_from_menu(page, find_row(page, "gamma"), "Archive")
    await expect(find_row(page, "gamma")).to_have_count(0)
    await page.get_by_role("navigation").get_by_role("button", name="Archive", exact=True).click()
    await expect(page.locator(".session")).to_have_count(1)
    await expect(page.locator(".session")).to_contain_text("gamma")

    await page.keyboard.press("ControlOrMeta+k")
    await page.get_by_role("dialog").get_by_role("combobox").fill("alpha")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("alpha")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("alpha")


@pytest.mark.soak
async def test_unread_conversations_are_marked_until_they_are_opened_and_conversations_are_renamed(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web)
    await start_conversations(page, "alpha")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page).to_have_title("Palaver")
    await expect(page.get_by_role("img", name="unread")).to_have_count(0)
    owner = await web.sign_in()
    [alpha] = (await owner.get("/api/sessions")).json()["sessions"]
    await web.send_message(owner, alpha["id"], "said in another place")
    await expect(find_row(page, "alpha").get_by_role("img", name="unread")).to_be_visible()
    await web.create_conversation(owner, "hello", title="beta")
    await expect(page).to_have_title("(2) Palaver")
    await find_row(page, "beta").get_by_role("link").click()
    await expect(page).to_have_title("(1) beta · Palaver")
    await find_row(page, "alpha").get_by_role("link").click()
    await expect(page.locator(".user-message").last).to_contain_text("said in another place")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page).to_have_title("Palaver")
    await expect(page.get_by_role("img", name="unread")).to_have_count(0)
    await check_renaming(page)


async def check_renaming(page: Page) -> None:
    """Renaming from the menu or by a double click updates every tab, and Escape cancels."""
    await start_conversations(page, "good morning")
    other = await page.context.new_page()
    await other.goto(page.url)
    field = page.get_by_role("textbox", name="Conversation title")
    await choose_from_menu(page, find_row(page, "good morning"), "Rename")
    await field.fill("Greetings")
    await page.keyboard.press("Enter")
    for each in (page, other):
        await expect(each.get_by_role("heading", level=1)).to_have_text("Greetings")
        await expect(find_row(each, "Greetings")).to_be_visible()

    await find_row(page, "Greetings").dblclick()
    await field.fill("Never mind")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Greetings")
    await find_row(page, "Greetings").dblclick()
    await field.fill("Welcome")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Welcome")
    await page.reload()
    await expect(find_row(page, "Welcome")).to_be_visible()

    # By keyboard, from the menu of the header: the field gets the focus, and afterwards it returns.
    menu = page.locator("header").get_by_role("button", name="Actions")
    await menu.press("Enter")
    await page.get_by_role("menuitem", name="Rename").press("Enter")
    await expect(field).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Welcome", exact=True)).to_be_focused()
    await menu.press("Enter")
    await page.get_by_role("menuitem", name="Delete").press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(menu).to_be_focused()


@pytest.mark.soak
async def test_selected_conversations_are_moved_to_a_project_archived_unarchived_and_deleted(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner = await web.sign_in()
    assert (await owner.post("/api/projects", json={"name": "Travel", "color": "#3b82f6"})).is_success
    for title in ("alpha", "beta", "gamma", "delta"):
        await web.create_conversation(owner, "hello", title=title)
    page = await visitors.visit(web)
    await find_row(page, "gamma").get_by_role("link").click(modifiers=["ControlOrMeta"])
    await find_row(page, "alpha").get_by_role("link").click(modifiers=["Shift"])
    await expect(page.get_by_role("toolbar", name="3 selected")).to_be_visible()
    project = page.get_by_role("button", name="Travel", exact=True)
    await find_row(page, "beta").drag_to(project)
    await expect(page.get_by_text("Moved to “Travel”.")).to_be_visible()
    await page.get_by_role("button", name="Clear selection").click()
    await find_row(page, "alpha").get_by_role("link").click(modifiers=["ControlOrMeta"])
    await project.click()
    await expect(page.locator(".session")).to_have_count(3)
    await expect(page.get_by_role("toolbar")).to_have_count(0)  # a selection belongs to one list

    for name in ("alpha", "beta"):
        await find_row(page, name).get_by_role("link").click(modifiers=["ControlOrMeta"])
    await page.get_by_role("toolbar", name="2 selected").get_by_role("button", name="Archive").click()
    await expect(page.locator(".session")).to_have_count(1)
    await page.get_by_role("button", name="Undo", exact=True).click()
    await expect(page.locator(".session")).to_have_count(3)

    for name in ("alpha", "beta"):
        await find_row(page, name).get_by_role("link").click(modifiers=["ControlOrMeta"])
    await page.get_by_role("toolbar", name="2 selected").get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.locator(".session")).to_have_count(1)
    await expect(page.locator(".session")).to_contain_text("gamma")


async def test_members_see_only_their_own_conversations_and_owners_all_on_demand(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    ann = await visitors.visit(web, "Ann")
    owner = await visitors.visit(web)
    await start_conversations(ann, "a secret of Ann")
    await start_conversations(owner, "the owner's own")
    await expect(find_row(owner, "secret")).to_have_count(0)
    await expect(ann.locator(".session")).to_have_count(1)
    await expect(ann.get_by_role("switch")).to_have_count(0)
    visitors.allowed_errors = ("404",)
    await ann.goto(owner.url)
    await expect(ann.get_by_role("heading", name="Conversation not found")).to_be_visible()

    await owner.get_by_role("switch", name="Everyone’s conversations").click()
    await find_row(owner, "a secret of Ann").get_by_role("link").click()
    await expect(owner.locator(".user-message")).to_contain_text("a secret of Ann")
    await expect(owner.get_by_text("Only its participants can write here.")).to_be_visible()

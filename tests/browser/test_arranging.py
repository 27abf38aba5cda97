"""Finding, arranging and branching conversations on the page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import answered, say
from palaver.agent.demo import DemoAgent
from palaver.testing import FakeClock, ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from support.web import StartWeb


def listed(page: Page, text: str) -> Locator:
    return page.locator(".session").filter(has_text=text)


async def choose(page: Page, row: Locator, *names: str) -> None:
    """Open the menu of a conversation and choose from it."""
    await row.hover()
    await row.get_by_role("button").click()
    for name in names[:-1]:
        await page.get_by_role("menuitem", name=name, exact=True).press("ArrowRight")
    last = page.get_by_role("menu").last
    await last.locator("[role^=menuitem]").filter(has_text=names[-1]).click()


async def begun(page: Page, *texts: str) -> None:
    for text in texts:
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator(".home")).to_be_visible()
        await say(page, text)
        await answered(page)


async def test_a_title_is_changed_in_place_in_every_tab(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "hello")
    other = await page.context.new_page()
    await other.goto(page.url)
    await choose(page, listed(page, "hello"), "Rename")
    await page.get_by_role("textbox", name="Title of the conversation").fill("Greetings")
    await page.keyboard.press("Enter")
    for each in (page, other):
        await expect(each.get_by_role("heading", level=1)).to_have_text("Greetings")
        await expect(listed(each, "Greetings")).to_be_visible()


async def test_a_title_is_changed_where_it_stands_in_the_list_or_left_as_it_was(
    start_web: StartWeb, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "hello")
    field = page.get_by_role("textbox", name="Title of the conversation")
    await listed(page, "hello").dblclick()
    await field.fill("Never mind")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("heading", level=1)).to_have_text("hello")
    await listed(page, "hello").dblclick()
    await field.fill("Greetings")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Greetings")
    await page.reload()
    await expect(listed(page, "Greetings")).to_be_visible()


async def test_search_finds_words_and_jumps_to_the_message(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.client()
    session = await web.session(owner, title="A long one")
    for number in range(60):
        await web.say(owner, session, "where is the platypus" if number == 5 else f"message {number}\n" * 8)
    page = await visitors.visit(web)
    await page.get_by_role("searchbox").fill("platypus")
    hit = page.locator(".found").filter(has_text="where is the")
    await expect(hit.locator("mark")).to_have_text("platypus")
    await hit.click()
    await page.wait_for_url(re.compile(r"#\d+$"))
    await expect(page.locator(".row.target")).to_contain_text("where is the platypus")
    await expect(page.locator(".row.target")).to_be_in_viewport()
    await page.get_by_role("button", name="Jump to the latest").click()
    await expect(page.get_by_text("message 59").last).to_be_in_viewport()

    visitors.expected = ("503",)
    busy = {"error": {"code": "store_busy", "message": "in the server's words", "facts": {}}}
    await page.route("**/api/search?*", lambda route: route.fulfill(status=503, json=busy))
    await page.get_by_role("searchbox").fill("wombat")
    await expect(page.get_by_role("alert")).to_contain_text("The database is busy.")
    await expect(page.get_by_text("Nothing was found.")).to_have_count(0)
    await page.unroute("**/api/search?*")
    await page.get_by_role("alert").get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Nothing was found.")).to_be_visible()


async def test_a_link_leads_to_an_earlier_message_of_the_open_conversation(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.client()
    session = await web.session(owner, title="A long one")
    messages = [{"role": "user", "content": f"message {number}\n" * 4} for number in range(300)]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
    await expect(page.get_by_text("message 299").last).to_be_in_viewport()
    await page.evaluate("location.hash = '20'")
    await expect(page.locator(".row.target")).to_be_in_viewport()
    await expect(page.locator(".row.target .bubble")).to_have_text(re.compile(r"message 1\d"))
    await page.evaluate("location.hash = '250'")
    await expect(page.locator(".row.target .bubble")).to_have_text(re.compile(r"message 24\d"))


async def test_the_link_to_a_message_leads_there_in_another_tab(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    session = await web.talk(await web.client(), *(f"message {number}\n" * 9 for number in range(12)), title="Long")
    page = await visitors.visit(web, permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"{web.url}/{session}#2")
    wanted = page.locator(".said").filter(has_text="message 2")
    await wanted.scroll_into_view_if_needed()
    await wanted.hover()
    await wanted.get_by_role("button", name="Copy link to this message").click()
    await expect(page.get_by_text("Link copied.")).to_be_visible()
    link = await page.evaluate("navigator.clipboard.readText()")
    other = await page.context.new_page()
    await other.goto(link)
    await expect(other.locator(".row.target")).to_contain_text("message 2")
    await expect(other.locator(".row.target")).to_be_in_viewport()


async def test_days_part_what_was_said_on_them(start_web: StartWeb, visitors: Visitors) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    clock = FakeClock(noon - timedelta(days=8))
    web = await start_web(ScriptedAgent("Certainly."), clock=clock)
    session = await web.talk(await web.client(), "long ago", "the same day", title="Over the days")
    for away, text in ((1, "the day before"), (0, "just now")):
        clock.set(noon - timedelta(days=away))
        await web.say(await web.client(), session, text)
    page = await visitors.visit(web, timezone_id="UTC")
    await page.goto(f"{web.url}/{session}")
    days = page.get_by_role("separator")
    await expect(days).to_have_count(3)
    long_ago = noon - timedelta(days=8)
    assert await days.all_inner_texts() == [f"{long_ago:%A} {long_ago.day} {long_ago:%B}", "Yesterday", "Today"]
    shown = await page.locator(".day, .said .bubble").all_inner_texts()
    assert [text for text in shown if text not in {"Yesterday", "Today"}][1:] == [
        "long ago",
        "the same day",
        "the day before",
        "just now",
    ]


async def test_a_summary_for_the_agent_is_shown_and_taken_back(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("In short."))
    session = await web.talk(await web.client(), *(f"message {number}" for number in range(8)), title="Long")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
    await page.locator("header.bar").get_by_role("button", name=re.compile("Actions for")).click()
    await page.get_by_role("menuitem", name="Summarise for the agent").click()
    line = page.locator(".quiet-block")
    await expect(line).to_contain_text("for the agent alone")
    await line.get_by_role("button", name="Show the summary").click()
    await expect(line.locator(".summary")).to_contain_text("In short.")
    await line.get_by_role("button", name="Take back").click()
    await expect(page.get_by_text("The summary was taken back.")).to_be_visible()


async def test_a_copy_goes_on_from_a_message(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "first")
    await say(page, "second")
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    original = page.url
    first = page.locator(".answer").first
    await first.hover()
    await first.get_by_role("button", name="Go on in a copy from here").click()
    await page.wait_for_url(lambda url: url != original)
    await expect(page.locator(".said")).to_have_count(1)
    await expect(page.locator(".said")).to_contain_text("first")
    await page.get_by_role("link", name="To the original").click()
    await expect(page.locator(".said")).to_have_count(2)


async def test_an_earlier_message_is_asked_differently_in_a_copy(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "what is one")
    original = page.url
    await page.locator(".said").hover()
    await page.get_by_role("button", name="Edit and ask again").click()
    await page.get_by_role("textbox", name="Edit and ask again").fill("what is two")
    await page.get_by_role("button", name="Ask in a copy").click()
    await page.wait_for_url(lambda url: url != original)
    await expect(page.locator(".said")).to_have_text(re.compile("what is two"))
    await answered(page)
    await expect(page.locator(".answer")).to_contain_text("what is two")


async def test_a_turn_is_undone_and_brought_back(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "first")
    await say(page, "second")
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    head = page.locator("header.bar")
    await head.get_by_role("button", name=re.compile("Actions for")).click()
    await page.get_by_role("menuitem", name="Undo the last turn").click()
    await expect(page.locator(".said")).to_have_count(1)
    await expect(page.locator("#composer")).to_have_value("second")
    await page.get_by_role("button", name="Bring back", exact=True).click()
    await expect(page.locator(".said")).to_have_count(2)
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.get_by_text("One turn was taken back.")).to_have_count(0)


async def test_asking_again_hides_the_former_answer(start_web: StartWeb, visitors: Visitors) -> None:
    agent = ScriptedAgent(lambda _request: f"Answer {len(agent.requests)}")
    page = await visitors.visit(await start_web(agent))
    await begun(page, "try")
    await page.get_by_role("button", name="Ask again", exact=True).click()
    await expect(page.locator(".answer")).to_contain_text("Answer 2")
    await expect(page.locator(".answer")).to_have_count(1)
    await expect(page.locator(".said")).to_have_count(1)


async def test_conversations_are_pinned_archived_and_put_into_projects(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "alpha", "beta", "gamma")
    await page.get_by_role("button", name="New project").click()
    await page.get_by_role("textbox", name="Name of the project").fill("Travel")
    await page.get_by_role("button", name="Save").click()
    project = page.get_by_role("button", name="Travel", exact=True)
    await expect(project).to_be_visible()

    await choose(page, listed(page, "alpha"), "Pin")
    await expect(page.locator(".session").first).to_contain_text("alpha")
    await listed(page, "beta").drag_to(project)
    await expect(page.get_by_text("Moved to “Travel”.")).to_be_visible()
    await project.click()
    await expect(page.locator(".session")).to_have_count(1)
    await expect(page.locator(".session")).to_contain_text("beta")
    await begun(page, "delta")
    await expect(page.locator(".session")).to_have_count(2)
    await project.click()
    await expect(page.locator(".session")).to_have_count(4)

    await choose(page, listed(page, "gamma"), "Archive")
    await expect(listed(page, "gamma")).to_have_count(0)
    await page.get_by_role("navigation").get_by_role("button", name="Archive", exact=True).click()
    await expect(page.locator(".session")).to_have_count(1)
    await expect(page.locator(".session")).to_contain_text("gamma")


async def test_what_was_answered_elsewhere_is_marked_until_it_is_read(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await begun(page, "alpha", "beta")
    await expect(page.get_by_role("img", name="unread")).to_have_count(0)
    owner = await web.client()
    sessions = (await owner.get("/api/sessions")).json()["sessions"]
    alpha = next(each["id"] for each in sessions if each["title"] == "alpha")
    await web.say(owner, alpha, "said in another place")
    await expect(listed(page, "alpha").get_by_role("img", name="unread")).to_be_visible()
    await listed(page, "alpha").get_by_role("link").click()
    await expect(page.locator(".said").last).to_contain_text("said in another place")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.get_by_role("img", name="unread")).to_have_count(0)


async def test_several_conversations_are_deleted_together(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "alpha", "beta", "gamma")
    for name in ("alpha", "beta"):
        await listed(page, name).get_by_role("link").click(modifiers=["ControlOrMeta"])
    bar = page.get_by_role("toolbar", name="2 selected")
    await bar.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.locator(".session")).to_have_count(1)
    await expect(page.locator(".session")).to_contain_text("gamma")


async def test_a_range_is_dragged_into_a_project_and_archived_and_brought_back(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    owner = await web.client()
    assert (await owner.post("/api/projects", json={"name": "Travel", "colour": "#3b82f6"})).is_success
    for title in ("alpha", "beta", "gamma", "delta"):
        await web.talk(owner, "hello", title=title)
    page = await visitors.visit(web)
    await listed(page, "gamma").get_by_role("link").click(modifiers=["ControlOrMeta"])
    await listed(page, "alpha").get_by_role("link").click(modifiers=["Shift"])
    await expect(page.get_by_role("toolbar", name="3 selected")).to_be_visible()
    project = page.get_by_role("button", name="Travel", exact=True)
    await listed(page, "beta").drag_to(project)
    await expect(page.get_by_text("Moved to “Travel”.")).to_be_visible()
    await page.get_by_role("button", name="End the selection").click()
    await listed(page, "alpha").get_by_role("link").click(modifiers=["ControlOrMeta"])
    await project.click()
    await expect(page.locator(".session")).to_have_count(3)
    await expect(page.get_by_role("toolbar")).to_have_count(0)  # what was selected in another list

    for name in ("alpha", "beta"):
        await listed(page, name).get_by_role("link").click(modifiers=["ControlOrMeta"])
    await page.get_by_role("toolbar", name="2 selected").get_by_role("button", name="Archive").click()
    await expect(page.locator(".session")).to_have_count(1)
    await page.get_by_role("button", name="Take back").click()
    await expect(page.locator(".session")).to_have_count(3)


async def test_the_palette_goes_anywhere_by_keyboard(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await begun(page, "about cheese", "about wine")
    await page.keyboard.press("ControlOrMeta+k")
    await page.get_by_role("combobox").fill("cheese")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("about cheese")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("about cheese")


async def test_a_member_sees_nothing_of_others_and_the_owner_only_on_demand(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    ann = await visitors.visit(web, "Ann")
    owner = await visitors.visit(web)
    await begun(ann, "a secret of Ann")
    await begun(owner, "the owner's own")
    await expect(listed(owner, "secret")).to_have_count(0)
    await expect(ann.locator(".session")).to_have_count(1)
    await expect(ann.get_by_role("switch")).to_have_count(0)
    visitors.expected = ("404",)
    await ann.goto(owner.url)
    await expect(ann.get_by_role("heading", name="This conversation is not there.")).to_be_visible()

    await owner.get_by_role("switch", name="Everybody’s conversations").click()
    await listed(owner, "a secret of Ann").get_by_role("link").click()
    await expect(owner.locator(".said")).to_contain_text("a secret of Ann")
    await expect(owner.get_by_text("Only those who take part can write in it.")).to_be_visible()

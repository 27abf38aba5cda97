"""The page in another language: whatever it says itself is said in that language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from palaver.agent.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWeb, Web

# What is read or heard: text, names for those who do not see it, and hints.
_SAID = """() => {
  const said = [];
  const others = 'pre, code, kbd, .markdown, .bubble, .session-preview, .reasoning-text, .snippet';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const around = walker.currentNode.parentElement;
    if (around.checkVisibility() && !around.closest(others)) said.push(walker.currentNode.data);
  }
  for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
    for (const each of document.querySelectorAll(`[${name}]`)) said.push(each.getAttribute(name));
  }
  return said.map(each => each.trim()).filter(each => /\\p{L}{2}/u.test(each));
}"""

# The same in both languages: names, what people have said, and what the demo agent understands.
SAME = {
    *("Palaver", "English", "Deutsch", "Agent", "Name", "Person", "Tokens", "Passkeys", "Web", "Terminal", "API"),
    *("owner", "Travels", "Alpha", "Beta", "demo", "Chrome, Linux"),
    *("What can you do?", "Show me Markdown", "Think about the sea", "Remember that my cat is called Ada"),
}


async def said_by(page: Page, address: str, session: str) -> dict[str, set[str]]:
    """Everything that the page says, place by place."""
    keys, said = page.keyboard, {}

    async def hear(place: str) -> None:
        said[place] = set(await page.evaluate(_SAID))

    await page.goto(address)
    await expect(page.locator(".session")).to_have_count(2)
    await hear("home")
    await keys.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await hear("palette")
    await keys.press("Escape")
    await page.locator("h1").click()
    await keys.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await hear("shortcuts")
    await keys.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("searchbox").fill("hello")
    await expect(page.locator(".found").first).to_be_visible()
    await hear("search")
    await page.get_by_role("searchbox").fill("")
    await page.locator(".session").first.hover()
    await page.locator(".session").first.get_by_role("button").click()
    await expect(page.get_by_role("menu")).to_be_visible()
    await hear("menu")
    await keys.press("Escape")
    await page.goto(f"{address}/{session}")
    await expect(page.locator(".answer").last).to_be_visible()
    for summary in await page.locator(".answer summary").all():
        await summary.click()
    await hear("conversation")
    for panel in ("usage", "people", "platforms", "settings"):
        await page.goto(f"{address}/{panel}")
        await expect(page.locator(".card").first).to_be_visible()
        await expect(page.locator(".panel .spinner")).to_have_count(0)
        await hear(panel)
    await page.context.clear_cookies()
    await page.goto(address)
    await expect(page.locator(".sign-in")).to_be_visible()
    await hear("sign-in")
    return said


async def everything(web: Web) -> str:
    """A conversation in which everything has happened that a conversation tells of; its id."""
    owner = await web.client()
    assert (await owner.post("/api/projects", json={"name": "Travels", "colour": "#3b82f6"})).is_success
    await web.talk(owner, "hello", title="Beta")
    session = await web.talk(owner, "think about the sea", "remember that my cat is called Ada", title="Alpha")
    for command in ("/busy steer", "/undo"):
        await web.say(owner, session, command)
    return session


async def test_a_refusal_is_told_in_german_with_what_it_is_about(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    for title in ("Alpha", "Beta"):
        await web.talk(await web.client(), "hello", title=title)
    page = await visitors.visit(web, locale="de-DE")
    visitors.expected = ("409", "422")
    await page.locator(".session").filter(has_text="Beta").get_by_role("link").dblclick()
    await page.get_by_role("textbox", name="Titel des Gesprächs").fill("Alpha")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("„Alpha“ hast du schon; „Alpha #2“ ist frei.")).to_be_visible()
    await expect(page.locator(".session a[aria-current=page]")).to_be_focused()
    await page.locator("header.bar").get_by_role("button", name="Aktionen für „Beta“").click()
    await page.get_by_role("menuitem", name="Für den Agenten zusammenfassen").click()
    await expect(page.get_by_text("Es braucht wenigstens 6 Nachrichten.")).to_be_visible()


async def test_a_page_in_german_has_no_english_left(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    session = await everything(web)
    await (await web.client()).post("/api/sign-out")  # a program that was signed in is no device to be named
    visitors.expected = ("401",)
    english = await said_by(await visitors.visit(web, locale="en-GB"), web.url, session)
    german = await said_by(await visitors.visit(web, locale="de-DE"), web.url, session)
    left = {place: sorted(german[place] & said - SAME) for place, said in english.items()}
    assert {place: texts for place, texts in left.items() if texts} == {}

"""The page for everybody: checked by axe, worked from the keyboard, read aloud, in every theme and size."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import DESK, PHONE, answered, say
from palaver.agent.base import TextDelta
from palaver.agent.demo import DemoAgent
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWeb, Web

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
PANELS = ("memory", "usage", "people", "platforms", "settings")
ALL_IN_ONE = ("show me markdown", "think about the sea", "remember that my cat is called Ada")


async def findings(page: Page) -> list[str]:
    """What axe takes for a serious fault, and where."""
    await page.evaluate(AXE.read_text("utf-8"))
    found: list[dict[str, Any]] = await page.evaluate("async () => (await axe.run()).violations")
    serious = [each for each in found if each["impact"] in {"serious", "critical"}]
    return [f"{each['id']} at {node['target']}: {node['failureSummary']}" for each in serious for node in each["nodes"]]


async def a_conversation(web: Web) -> str:
    """One in which an answer had everything that an answer can have."""
    return await web.talk(await web.client(), *ALL_IN_ONE, title="Everything at once")


def device(name: str) -> dict[str, Any]:
    """How a browser on a desk or in a hand differs."""
    return {"viewport": DESK} if name == "desk" else {"viewport": PHONE, "has_touch": True, "is_mobile": True}


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "where"), [("light", "desk"), ("dark", "phone")])
async def test_axe_finds_nothing_serious_on_any_page(
    start_web: StartWeb, visitors: Visitors, theme: str, where: str
) -> None:
    web = await start_web(DemoAgent(pace=0))
    session = await a_conversation(web)
    await web.client("Jonas")
    look: dict[str, Any] = device(where) | {"color_scheme": theme, "reduced_motion": "reduce"}
    page = await visitors.visit(web, **look)
    found = {"home": await findings(page)}

    await page.goto(f"{web.url}/{session}")
    await expect(page.locator(".answer").last).to_be_visible()
    await page.locator(".tool summary").last.click()
    found["conversation"] = await findings(page)
    for panel in PANELS:
        await page.goto(f"{web.url}/{panel}")
        await expect(page.locator(".card").first).to_be_visible()
        await expect(page.locator(".panel .spinner")).to_have_count(0)
        found[panel] = await findings(page)

    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    found["palette"] = await findings(page)
    await page.keyboard.press("Escape")

    stranger = await (await visitors.context(web.url, **look)).new_page()
    visitors.expected = ("401",)
    await stranger.goto(web.url)
    await expect(stranger.get_by_role("heading", name="Palaver")).to_be_visible()
    found["sign-in"] = await findings(stranger)
    made = await (await web.client()).post(f"/api/sessions/{session}/shares")
    await stranger.goto(f"{web.url}{made.json()['path']}")
    await expect(stranger.locator(".answer").first).to_be_visible()
    found["shared"] = await findings(stranger)
    assert {where: faults for where, faults in found.items() if faults} == {}


async def test_dialogues_and_menus_are_accessible_too(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    session = await a_conversation(web)
    page = await visitors.visit(web, reduced_motion="reduce")
    await page.goto(f"{web.url}/{session}")
    for name in ("Context", "Model", "Tools", "Actions for"):
        await page.locator("header").get_by_role("button", name=name).click()
        await expect(page.get_by_role("menu")).to_be_visible()
        await expect(page.get_by_role("menu").get_by_text("Loading")).to_have_count(0)
        assert await findings(page) == []
        if name != "Actions for":
            await page.keyboard.press("Escape")
    await page.get_by_role("menuitem", name="Share a copy").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await findings(page) == []
    await page.goto(f"{web.url}/settings")
    await page.get_by_text("How to change it").first.click()
    assert await findings(page) == []
    await page.get_by_role("button", name="New token").click()
    assert await findings(page) == []
    await page.goto(f"{web.url}/memory")
    await page.get_by_role("button", name="Change “my cat is called Ada”").click()
    await expect(page.get_by_label("Change", exact=True)).to_be_focused()
    assert await findings(page) == []


class Waiting:
    """An agent that says a word and then waits to be let on, or stopped."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(self._said)

    async def _said(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once upon a time")
        await self.go_on.wait()
        yield TextDelta(" there was **nothing** more.")


async def test_the_page_can_be_used_with_the_keyboard_alone(start_web: StartWeb, visitors: Visitors) -> None:
    waiting = Waiting()
    web = await start_web(waiting.agent())
    page = await visitors.visit(web)
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    keys = page.keyboard

    await keys.press("Control+Shift+O")
    await expect(page.locator("#composer")).to_be_focused()
    await keys.type("Tell me a story")
    await keys.press("Enter")
    await expect(page.locator(".answer")).to_contain_text("Once upon a time")
    await keys.press("Shift+Escape")
    await expect(page.locator(".answer")).to_contain_text("stopped")

    await tab_to(page, "nav a[aria-current=page]", backwards=True)
    await keys.press("Tab")
    await keys.press("Enter")
    await expect(page.get_by_role("menu")).to_be_visible()
    await choose(page, "Rename")
    await expect(page.get_by_label("Title of the conversation")).to_be_focused()
    await keys.press("Control+a")
    await keys.type("A short story")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="A short story")).to_be_visible()

    await tab_to(page, "nav #sidebar-toggle", backwards=True)
    await keys.press("Enter")
    await expect(page.get_by_role("button", name="Show conversations")).to_be_focused()
    await keys.press("Enter")
    await expect(page.get_by_role("button", name="Hide conversations")).to_be_focused()

    await open_palette(page)
    await keys.type("settings")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    await page.get_by_role("group", name="Shortcuts of a single key").get_by_role("radio", name="Off").focus()
    await keys.press("Space")
    await page.get_by_role("button", name="About").focus()
    await keys.press("?")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await open_palette(page)
    await keys.type("short story")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="A short story")).to_be_visible()


async def open_palette(page: Page) -> None:
    """Ask for the palette, and wait until it listens."""
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox")).to_be_focused()


async def tab_to(page: Page, wanted: str, *, backwards: bool = False) -> None:
    """Press Tab until something has the focus."""
    for _ in range(60):
        await page.keyboard.press("Shift+Tab" if backwards else "Tab")
        if await page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
    pytest.fail(f"the keyboard does not reach {wanted}")


async def choose(page: Page, name: str) -> None:
    """Go down an open menu to an item, and take it."""
    for _ in range(20):
        if name in await page.evaluate("document.activeElement.textContent"):
            await page.keyboard.press("Enter")
            return
        await page.keyboard.press("ArrowDown")
    pytest.fail(f"the menu has no {name}")


@pytest.mark.parametrize("step", ["", "settings"])
async def test_whatever_has_the_focus_shows_it(start_web: StartWeb, visitors: Visitors, step: str) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client(), "hello", title="Hello")
    page = await visitors.visit(web, reduced_motion="reduce")
    await page.goto(f"{web.url}/{step}")
    await expect(page.get_by_role("link", name="Hello").first).to_be_visible()
    hidden = []
    for _ in range(40):
        await page.keyboard.press("Tab")
        if shown := await page.evaluate(_UNMARKED_FOCUS):
            hidden.append(shown)
    assert hidden == []


# The focused element, when neither it nor what stands for it has an outline or a border in the accent colour.
_UNMARKED_FOCUS = """() => {
  document.getAnimations().forEach(each => each instanceof CSSTransition && each.finish());
  const at = document.activeElement;
  if (at === document.body) return null;
  const accent = getComputedStyle(document.querySelector('.button.primary')).backgroundColor;
  const around = [at, at.nextElementSibling, at.closest('form'), at.closest('label')].filter(Boolean);
  const isMarked = around.map(each => getComputedStyle(each)).some(
    style => style.outlineStyle !== 'none' || style.borderTopColor === accent);
  return isMarked ? null : at.outerHTML.slice(0, 120);
}"""


async def test_an_answer_is_read_aloud_once_it_is_whole(start_web: StartWeb, visitors: Visitors) -> None:
    waiting = Waiting()
    page = await visitors.visit(await start_web(waiting.agent()))
    await say(page, "Tell me a story")
    told = page.locator(".messages [role=status].visually-hidden")
    await expect(page.locator(".answer")).to_contain_text("Once upon a time")
    await expect(told).to_have_text("")
    waiting.go_on.set()
    await expect(told).to_have_text("Agent: Once upon a time there was nothing more.")


async def test_text_runs_in_its_own_direction(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await say(page, "שלום עולם, מה שלומך?")
    await answered(page)
    assert await direction(page, ".bubble") == "rtl"
    assert await direction(page, ".session-name") == "rtl"
    assert await direction(page, ".answer .markdown") == "ltr"
    await page.locator("#composer").fill("مرحبا")
    assert await direction(page, "#composer") == "rtl"


async def direction(page: Page, where: str) -> str:
    """Which way the text of something runs."""
    found: str = await page.locator(where).first.evaluate("element => getComputedStyle(element).direction")
    return found


async def test_nothing_moves_for_those_who_want_no_motion(start_web: StartWeb, visitors: Visitors) -> None:
    waiting = Waiting()
    page = await visitors.visit(await start_web(waiting.agent()), reduced_motion="reduce")
    await say(page, "Tell me a story")
    await expect(page.locator(".answer")).to_contain_text("Once upon a time")
    endless = "document.getAnimations().filter(each => each.effect.getTiming().iterations === Infinity).length"
    assert await page.evaluate(endless) == 0
    waiting.go_on.set()
    await answered(page)

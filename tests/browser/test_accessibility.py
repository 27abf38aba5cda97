"""Accessibility of the page: axe, keyboard, screen readers, text direction and reduced motion."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import (
    DESKTOP_VIEWPORT,
    PHONE_VIEWPORT,
    open_panel,
    open_path,
    send_message,
    wait_for_answer,
)
from browser.page_checks import find_violations
from browser.settings_walk import make_job
from drivers.openai_server import OpenAIServer, reply_with_text
from palaver.agent.base import TextDelta
from palaver.drivers.demo import DemoAgent
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

DEMO_MESSAGES = ("show me markdown", "think about the sea", "remember that my cat is called Ada")
EVERYTHING_IN_MARKDOWN = """A plan[^1] with H<sub>2</sub>O and <kbd>Ctrl</kbd>.

- [x] Buy milk
  - [ ] from the shop

| {cells} |
| {rules} |
| {cells} |

```python
# a comment in a long line {words}
def greet(name: str) -> str: return f"Hello {{name}}" + 'x' * 42
```

<details><summary>The steps</summary>

- one

</details>

![A cat](https://images.example/cat.png)

$$ {formula} $$

[^1]: The note.
""".format(
    cells=" | ".join(f"A cell in column {number}, with some text" for number in range(12)),
    rules=" | ".join(["---"] * 12),
    words="and " * 60,
    formula=" + ".join(f"x_{{{number}}}" for number in range(80)),
)


async def create_rich_conversation(web: WebServer) -> str:
    """Create a conversation whose answers contain Markdown, reasoning and tool calls."""
    return await web.create_conversation(await web.sign_in(), *DEMO_MESSAGES, title="Everything at once")


def get_device_options(name: str) -> dict[str, Any]:
    return (
        {"viewport": DESKTOP_VIEWPORT}
        if name == "desk"
        else {"viewport": PHONE_VIEWPORT, "has_touch": True, "is_mobile": True}
    )


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "where"), [pytest.param("light", "desk", marks=pytest.mark.soak), ("dark", "phone")])
async def test_axe_finds_nothing_serious_in_conversations_and_outside(
    start_web: StartWebServer, visitors: Visitors, theme: str, where: str
) -> None:
    """The settings are checked where they are translated."""
    web = await start_web(DemoAgent(word_delay=0))
    session = await create_rich_conversation(web)
    look: dict[str, Any] = get_device_options(where) | {"color_scheme": theme, "reduced_motion": "reduce"}
    page = await visitors.visit(web, **look)
    found = {"home": await find_violations(page)}

    await open_path(page, f"/{session}")
    await expect(page.locator(".answer").last).to_be_visible()
    await page.locator(".tool summary").last.click()
    found["conversation"] = await find_violations(page)
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    found["palette"] = await find_violations(page)
    await page.keyboard.press("Escape")

    stranger = await (await visitors.open_context(web.url, **look)).new_page()
    visitors.allowed_errors = ("401",)
    await stranger.goto(web.url)
    await expect(stranger.get_by_role("heading", name="Palaver")).to_be_visible()
    found["sign-in"] = await find_violations(stranger)
    made = await (await web.sign_in()).post(f"/api/sessions/{session}/shares")
    await stranger.goto(f"{web.url}{made.json()['path']}")
    await expect(stranger.locator(".answer").first).to_be_visible()
    found["shared"] = await find_violations(stranger)
    assert {where: faults for where, faults in found.items() if faults} == {}


@pytest.mark.soak
async def test_axe_finds_nothing_in_any_kind_of_text(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent(lambda _request: EVERYTHING_IN_MARKDOWN))
    page = await visitors.visit(web, color_scheme="light", reduced_motion="reduce")
    long_line = f"x = '{'long ' * 40}'"
    await send_message(page, f"See https://example.org\n\n```python\n# mine\n{long_line}\n```\n" + "line\n" * 60)
    await wait_for_answer(page)
    await page.get_by_text("The steps").click()
    await expect(page.locator(".katex").first).to_be_visible()
    await expect(page.locator(".answer .hljs-comment")).to_be_visible()
    for name in ("Code (python)", "Table", "Formula"):
        await expect(page.locator(".answer").get_by_role("group", name=name)).to_have_attribute("tabindex", "0")
    assert await find_violations(page) == []
    await page.emulate_media(color_scheme="dark")
    await page.wait_for_function("() => document.getAnimations().length === 0")  # every color has changed
    assert await find_violations(page) == []
    await page.get_by_role("link", name="Footnote 1").click()
    await expect(page.locator(".footnotes li")).to_be_focused()


@pytest.mark.soak
async def test_axe_finds_nothing_serious_in_dialogs_and_menus(start_web: StartWebServer, visitors: Visitors) -> None:
    visitors.allowed_errors = ("422",)  # of the schedule that is not valid
    web = await start_web(DemoAgent(word_delay=0))
    session = await create_rich_conversation(web)
    page = await visitors.visit(web, reduced_motion="reduce", path=f"/{session}")
    for name in ("Context", "Model", "Tools", "Actions for"):
        await page.locator("header").get_by_role("button", name=name).click()
        await expect(page.get_by_role("menu")).to_be_visible()
        await expect(page.get_by_role("menu").get_by_text("Loading")).to_have_count(0)
        assert await find_violations(page) == []
        if name != "Actions for":
            await page.keyboard.press("Escape")
    await page.get_by_role("menuitem", name="Share").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await find_violations(page) == []
    await page.keyboard.press("Escape")
    await open_panel(page, "settings")
    assert await find_violations(page) == []
    await page.get_by_role("button", name="New token").click()
    assert await find_violations(page) == []
    await page.keyboard.press("Escape")
    await make_job(web, "Plants")
    await open_panel(page, "jobs")
    await page.get_by_role("button", name="Details of “Plants”").click()
    await expect(page.get_by_role("region", name="History")).to_contain_text("It hasn’t run yet.")
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Actions for “Plants”").click()
    await page.get_by_role("menuitem", name="Edit job").click()
    await expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("every 2 hours")
    assert await find_violations(page) == []
    await page.get_by_role("dialog").get_by_label("When?").fill("often")
    await expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("is not valid")
    assert await find_violations(page) == []
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Actions for “Plants”")).to_be_focused()
    await open_panel(page, "memory")
    await page.get_by_role("button", name="Edit “my cat is called Ada”").click()
    await expect(page.get_by_label("Edit", exact=True)).to_be_focused()
    assert await find_violations(page) == []


class PausingAgent:
    """Answers with a few words, and with the rest once `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once upon a time")
        await self.go_on.wait()
        yield TextDelta(" there was **nothing** more.")


async def test_the_page_can_be_used_with_the_keyboard_alone_and_answers_are_announced(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    pausing_agent = PausingAgent()
    web = await start_web(pausing_agent.agent())
    page = await visitors.visit(web, reduced_motion="no-preference")
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    keys = page.keyboard

    await keys.press("Control+Shift+O")
    await expect(page.locator("#composer")).to_be_focused()
    await keys.type("Tell me a story")
    await keys.press("Enter")
    await expect(page.locator(".answer")).to_contain_text("Once upon a time")
    await keys.press("Shift+Escape")
    await expect(page.locator(".answer")).to_contain_text("stopped")

    await press_tab_until(page, "nav a[aria-current=page]", backwards=True)
    await keys.press("Tab")
    await keys.press("Enter")
    await expect(page.get_by_role("menu")).to_be_visible()
    await choose_menu_item(page, "Rename")
    await expect(page.get_by_label("Conversation title")).to_be_focused()
    await keys.press("Control+a")
    await keys.type("A short story")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="A short story")).to_be_visible()

    await press_tab_until(page, "nav #sidebar-toggle", backwards=True)
    await keys.press("Enter")
    await expect(page.get_by_role("button", name="Show conversations")).to_be_focused()
    await keys.press("Enter")
    await expect(page.get_by_role("button", name="Hide conversations")).to_be_focused()

    await open_palette(page)
    await keys.type("settings")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    await page.get_by_role("group", name="Single-key shortcuts").get_by_role("radio", name="Off").focus()
    await keys.press("Space")
    await page.get_by_role("button", name="About").focus()
    await keys.press("?")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await open_palette(page)
    await keys.type("short story")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="A short story")).to_be_visible()
    await open_path(page, "/")
    await check_announcement(page, pausing_agent)


@pytest.mark.soak
@pytest.mark.slow
async def test_a_provider_is_connected_and_its_model_chosen_with_the_keyboard_alone(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web)
    keys = page.keyboard
    with OpenAIServer(models=("large", "small")) as provider:
        provider.add_replies(reply_with_text("Yes."))
        await open_palette(page)
        await keys.type("server settings")
        await keys.press("Enter")
        await expect(page.get_by_role("heading", name="Server settings", level=1)).to_be_visible()
        form = page.locator(".provider-form")
        await press_tab_until(page, ".provider-form select")
        await keys.type("Other")
        for text in ("lab", provider.url, "sk-0123456789abcdef"):
            await keys.press("Tab")
            await keys.type(text)
        await press_tab_until(page, ".provider-form .button:not(.primary)")
        await keys.press("Enter")
        await expect(form.get_by_role("status")).to_contain_text("It works")
        await press_tab_until(page, ".provider-form .primary", backwards=True)
        await keys.press("Enter")
        await expect(form.get_by_role("combobox", name="Model")).to_be_visible()
        await press_tab_until(page, ".provider-form select", backwards=True)
        await keys.type("large")
        await press_tab_until(page, ".provider-form .primary")
        await keys.press("Enter")
        await expect(page.get_by_role("button", name="Add a provider")).to_be_focused()

        await keys.press("Control+Shift+O")
        await expect(page.locator("#composer")).to_be_focused()
        await press_tab_until(page, "[aria-label^='Model:']", backwards=True)
        await keys.press("Enter")
        await expect(page.get_by_role("menu")).to_be_visible()
        await choose_menu_item(page, "More models")
        await expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("2 models")
        await keys.type("small")
        await keys.press("Enter")
        await expect(page.get_by_role("button", name="Model: lab:small")).to_be_focused()
        provider.add_replies(reply_with_text("High tide is at noon."), reply_with_text("Tides"))
        await keys.press("Control+Shift+O")
        await keys.type("When is high tide?")
        await keys.press("Enter")
        await expect(page.locator(".answer").last).to_contain_text("High tide is at noon.")
        assert [each["model"] for each in provider.requests[:2]] == ["large", "small"]  # the test, then the answer


async def open_palette(page: Page) -> None:
    """Open the command palette and wait until it has the focus."""
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()


async def press_tab_until(page: Page, selector: str, *, backwards: bool = False) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(60):
        await page.keyboard.press("Shift+Tab" if backwards else "Tab")
        if await page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"the keyboard does not reach {selector}")


async def choose_menu_item(page: Page, name: str) -> None:
    """Move down in an open menu to an item and press Enter."""
    for _ in range(20):
        if name in await page.evaluate("document.activeElement.textContent"):
            await page.keyboard.press("Enter")
            return
        await page.keyboard.press("ArrowDown")
    pytest.fail(f"the menu has no {name}")


async def test_the_focused_element_is_visibly_marked_and_text_is_shown_in_its_own_direction(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await web.create_conversation(await web.sign_in(), "hello", title="Hello")
    page = await visitors.visit(web, reduced_motion="reduce")
    await expect(page.get_by_role("link", name="Hello").first).to_be_visible()
    assert await find_unmarked_focus(page) == []
    await open_panel(page, "settings")
    await page.get_by_role("link", name="Skip to content").focus()
    assert await find_unmarked_focus(page) == []
    await open_path(page, "/")
    await check_text_direction(page)


async def find_unmarked_focus(page: Page) -> list[str]:
    """Press Tab many times, and list the elements that have the focus without showing it."""
    unmarked = []
    for _ in range(40):
        await page.keyboard.press("Tab")
        if shown := await page.evaluate(_FIND_UNMARKED_FOCUS):
            unmarked.append(shown)
    return unmarked


# Returns the focused element if neither it nor the element that shows its focus has an outline or an accent border.
_FIND_UNMARKED_FOCUS = """() => {
  document.getAnimations().forEach(each => each instanceof CSSTransition && each.finish());
  const at = document.activeElement;
  if (at === document.body) return null;
  const accent = getComputedStyle(document.querySelector('.button.primary')).backgroundColor;
  const around = [at, at.nextElementSibling, at.closest('form'), at.closest('label')].filter(Boolean);
  const isMarked = around.map(each => getComputedStyle(each)).some(
    style => style.outlineStyle !== 'none' || style.borderTopColor === accent);
  return isMarked ? null : at.outerHTML.slice(0, 120);
}"""


async def check_announcement(page: Page, pausing_agent: PausingAgent) -> None:
    """An answer is announced once it is complete, and nothing moves if motion is reduced."""
    await page.emulate_media(reduced_motion="reduce")
    await send_message(page, "Tell me a story")
    told = page.locator(".messages [role=status].visually-hidden")
    await expect(page.locator(".answer")).to_contain_text("Once upon a time")
    await expect(told).to_have_text("")
    count_endless_animations = (
        "document.getAnimations().filter(each => each.effect.getTiming().iterations === Infinity).length"
    )
    assert await page.evaluate(count_endless_animations) == 0  # because this person prefers reduced motion
    pausing_agent.go_on.set()
    await expect(told).to_have_text("Agent: Once upon a time there was nothing more.")


async def check_text_direction(page: Page) -> None:
    await send_message(page, "שלום עולם, מה שלומך?")
    await wait_for_answer(page)
    assert await get_text_direction(page, ".bubble") == "rtl"
    assert await get_text_direction(page, ".session-name") == "rtl"
    assert await get_text_direction(page, ".answer .markdown") == "ltr"
    await page.locator("#composer").fill("مرحبا")
    assert await get_text_direction(page, "#composer") == "rtl"


async def get_text_direction(page: Page, where: str) -> str:
    found: str = await page.locator(where).first.evaluate("element => getComputedStyle(element).direction")
    return found

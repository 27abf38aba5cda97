"""Mermaid diagrams: rendered in an isolated frame, shown as images."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from textwrap import indent
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, open_path, send_message, wait_for_answer
from browser.page_checks import MIN_TARGET_PIXELS, find_violations, measure_overflow, scroll_with_wheel
from palaver.agent.base import TextDelta
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

HOSTILE_DIAGRAMS = [
    """graph TD
  A["<script>top.postMessage('ran', '*')</script>"] --> B["<img src=x onerror=top.postMessage('ran','*')>"]""",
    """graph TD
  A --> B
  click A href "javascript:top.postMessage('ran', '*')"
  click B call alert()""",
    """%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true},
  "themeCSS": "* { background: url(https://evil.example/b) }", "fontFamily": "x; background: url(https://evil.example/c)"}}%%
graph TD
  A["<iframe src=https://evil.example/d></iframe>"] --> B""",
    """---
config:
  securityLevel: loose
  themeCSS: "@import url(https://evil.example/e);"
---
graph TD
  A --> B""",
    """graph TD
  A --> B
  style A fill:url(//evil.example/f)
  classDef bad background-image:url(//evil.example/g)
  class B bad""",
    """graph TD
  A@{ img: "https://evil.example/h.png", label: "A", h: 60 } --> B""",
]
LIGHT_ACCENT, DARK_ACCENT = re.compile("%23dcebe7"), re.compile("%231d3934")  # the CSS color --accent-soft


def format_diagrams(*sources: str) -> str:
    return "\n\n".join(f"```mermaid\n{source}\n```" for source in sources)


def build_chain(*names: str) -> str:
    return "graph TD\n" + "\n".join(f"  {one} --> {other}" for one, other in pairwise(names))


async def read_svg(picture: Locator) -> str:
    """Return the SVG source of an image."""
    kind, _, content = (await picture.get_attribute("src") or "").partition(",")
    assert kind == "data:image/svg+xml"
    return unquote(content)


async def measure_image(picture: Locator) -> tuple[float, float]:
    """Wait until an image is decoded, and return its width and height."""
    await picture.evaluate("image => image.decode()")
    box = await picture.bounding_box()
    assert box is not None
    return box["width"], box["height"]


def record_mermaid_requests(page: Page) -> list[str]:
    """Return a list that grows with every request for Mermaid."""
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if "mermaid" in request.url else None)
    return fetched


@pytest.mark.soak
async def test_diagrams_are_rendered_when_needed_in_messages_and_shared_conversations_and_have_controls(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    go_on = asyncio.Event()

    async def answer_slowly(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"] == "hello":
            yield TextDelta("A plain answer.")
            return
        if request.messages[-1]["content"] == "draw A":
            yield TextDelta(format_diagrams(build_chain("A", "B")))
            return
        if request.messages[-1]["content"].startswith("What about"):
            yield TextDelta("I would say:\n\n" + format_diagrams(build_chain("Yours", "Mine")))
            return
        yield TextDelta("```mermaid\ngraph TD\n  A --> B\n")
        await go_on.wait()
        yield TextDelta(f"  B --> C\n```\n\n{drawn}")

    inside = indent(format_diagrams(build_chain("Snow", "Ice")) + "\n\n```sh\nls\n```", "   ")
    drawn = f"See:\n\n{format_diagrams(build_chain('Sea', 'Cloud', 'Rain'))}\n\n1. and\n\n{inside}\n2. That is all."
    web = await start_web(ScriptedAgent(answer_slowly))
    page = await visitors.visit(web, color_scheme="light")
    fetched = record_mermaid_requests(page)
    await send_message(page, "hello")
    await wait_for_answer(page)
    assert fetched == []
    await send_message(page, "draw it")
    await expect(page.locator(".answer pre")).to_contain_text("A --> B")  # not finished, so it is shown as code
    assert fetched == []
    go_on.set()
    await wait_for_answer(page)
    await expect(page.get_by_role("img", name="Diagram: A, B, C")).to_be_visible()
    picture = page.get_by_role("img", name="Diagram: Sea, Cloud, Rain")
    width, height = await measure_image(picture)
    assert 60 < width < 400
    assert 200 < height < 500
    assert "<svg" in await read_svg(picture)
    steps = page.locator(".answer li")
    await expect(steps.get_by_role("img", name="Diagram: Snow, Ice")).to_be_visible()
    await expect(steps.locator("figure", has_text="sh").get_by_role("button", name="Copy")).to_be_visible()
    assert len(set(fetched)) == 1
    await expect(page.locator("svg[id^=diagram], main style")).to_have_count(0)
    await expect(page.locator("iframe")).to_have_count(1)
    await expect(page.locator("iframe")).to_be_hidden()

    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await send_message(page, "draw A")
    await check_controls(page)
    await check_color_theme(page)
    await check_message_and_shared_conversation(web, visitors, page)


async def check_controls(page: Page) -> None:
    """A diagram can be enlarged, copied, and shown as source."""
    figure = page.locator("figure.diagram")
    before = await measure_image(figure.get_by_role("img"))
    larger = figure.get_by_role("button", name="Enlarge")
    await larger.focus()
    await page.keyboard.press("Enter")
    after = await measure_image(page.get_by_role("dialog").get_by_role("img", name="Diagram: A, B"))
    assert after[0] > 1.5 * before[0]
    assert await find_violations(page) == []
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(larger).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(figure.locator("pre")).to_have_text(build_chain("A", "B"))
    await figure.get_by_role("button", name="Show diagram").click()
    await expect(figure.get_by_role("img")).to_be_visible()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await figure.get_by_role("button", name="Copy").click()
    is_copied = "async text => (await navigator.clipboard.readText()) === text"
    await page.wait_for_function(is_copied, arg=build_chain("A", "B"))


async def check_color_theme(page: Page) -> None:
    """A diagram follows the color theme."""
    picture = page.get_by_role("img", name="Diagram: A, B")
    await expect(picture).to_have_attribute("src", LIGHT_ACCENT)
    await page.emulate_media(color_scheme="dark")
    await expect(picture).to_have_attribute("src", DARK_ACCENT)
    await expect(picture).not_to_have_attribute("src", LIGHT_ACCENT)
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitemradio", name="Light").click()
    await expect(picture).to_have_attribute("src", LIGHT_ACCENT)


async def check_message_and_shared_conversation(web: WebServer, visitors: Visitors, page: Page) -> None:
    """Diagrams of people are rendered, too, also for a visitor who reads a shared conversation."""
    owner = await web.sign_in()
    session = await web.create_conversation(
        owner, f"What about *this*?\n\n{format_diagrams(build_chain('Ask', 'Hear'))}"
    )
    await open_path(page, f"/{session}")
    made = await owner.post(f"/api/sessions/{session}/shares")
    assert made.is_success, made.text
    stranger = await (await visitors.open_context(web.url)).new_page()
    await stranger.goto(f"{web.url}/{made.json()['path'].lstrip('/')}")
    for reader in (page, stranger):
        said = reader.locator(".user-message")
        await expect(said.get_by_text("What about *this*?")).to_be_visible()
        await expect(said.get_by_role("img", name="Diagram: Ask, Hear")).to_be_visible()
        await expect(reader.locator(".answer").get_by_role("img", name="Diagram: Yours, Mine")).to_be_visible()


@pytest.mark.soak
async def test_a_diagram_that_is_invalid_or_cannot_be_rendered_yet_is_shown_as_code_with_the_reason(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    long_diagram = build_chain(*(f"node{number}" for number in range(2000)))
    said = format_diagrams("graph TD\n  A --> ", long_diagram, build_chain("Good", "Better"))
    page = await visitors.visit(await start_web(ScriptedAgent(said)))
    visitors.allowed_errors = ("ERR_FAILED",)
    await page.route("**/mermaid*", lambda route: route.abort())
    await send_message(page, "draw it")
    good = page.locator("figure.diagram").last
    await expect(good).to_contain_text("Can’t render this diagram right now: the server can’t be reached.")
    await expect(good.locator("pre")).to_contain_text("Good --> Better")
    await page.unroute("**/mermaid*")
    await page.emulate_media(color_scheme="dark")  # which renders it again
    await expect(good.get_by_role("img", name="Diagram: Good, Better")).to_be_visible()
    wrong, too_long, _ = await page.locator("figure.diagram").all()
    await expect(wrong.locator("pre")).to_contain_text("A -->")
    await expect(wrong).to_contain_text("Couldn’t render this diagram: Parse error on line 3.")
    await expect(too_long).to_contain_text("This diagram is too long to render.")
    await expect(page.locator("figure.diagram").get_by_role("button", name="Enlarge")).to_have_count(1)


async def test_hostile_diagrams_do_no_harm_and_their_frame_is_isolated(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    """Mermaid lets some of it through, but the content security policy of its frame blocks it."""
    web = await start_web(ScriptedAgent(format_diagrams(*HOSTILE_DIAGRAMS)))
    page = await visitors.visit(web)
    visitors.allowed_errors = (
        *("violates the following Content Security Policy", "Refused to connect"),
        *("CSP script-src-attr", "CSP img-src", "CSP connect-src"),
    )
    forbidden: list[str] = []
    page.on("requestfailed", lambda failed: forbidden.append(failed.url) if failed.failure == "csp" else None)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await page.evaluate(
        "window.seen = []; for (const kind of ['securitypolicyviolation', 'message'])"
        " addEventListener(kind, event => window.seen.push(event.type))"
    )
    await send_message(page, "draw it")
    await wait_for_answer(page)
    await expect(page.locator("figure.diagram :is(img, .diagram-error)")).to_have_count(len(HOSTILE_DIAGRAMS))
    for picture in await page.locator("img.diagram-image").all():
        content = await read_svg(picture)
        assert "<script" not in content
        assert "javascript:" not in content
        await picture.click()
    assert dialogs == []
    assert {frame.url for frame in page.frames} == {page.url, f"{web.url}/diagram.html"}
    assert await page.evaluate("window.seen") == []
    frame = next(each for each in page.frames if each.url.endswith("/diagram.html"))
    attempts = """async () => {
        const failed = async act => { try { await act(); return false; } catch { return true; } };
        return [origin, await failed(() => document.cookie), await failed(() => localStorage.length),
                await failed(() => parent.document.title), await failed(() => fetch('/api/me'))];
    }"""
    assert await frame.evaluate(attempts) == ["null", True, True, True, True]
    never_sent = {f"request to another host: {url}" for url in forbidden}
    visitors.problems = [each for each in visitors.problems if each not in never_sent]


@pytest.mark.soak
async def test_a_diagram_fits_a_phone_screen(start_web: StartWebServer, visitors: Visitors) -> None:
    wide = "graph LR\n" + "\n".join(f"  stage{number} --> stage{number + 1}" for number in range(12))
    phone: dict[str, Any] = {"viewport": PHONE_VIEWPORT, "has_touch": True, "is_mobile": True, "color_scheme": "light"}
    phone["reduced_motion"] = "reduce"  # the colors are those of the theme, though nothing moves from one to the other
    page = await visitors.visit(await start_web(ScriptedAgent(format_diagrams(wide))), **phone)
    await page.locator("#composer").fill("draw it")
    await page.get_by_role("button", name="Send").tap()
    await wait_for_answer(page)
    picture = page.get_by_role("img", name="Diagram:")
    themes: dict[Literal["light", "dark"], re.Pattern[str]] = {"light": LIGHT_ACCENT, "dark": DARK_ACCENT}
    for theme, accent in themes.items():
        await page.emulate_media(color_scheme=theme)
        await expect(picture).to_have_attribute("src", accent)
        width, _ = await measure_image(picture)
        assert width < PHONE_VIEWPORT["width"]
        assert await measure_overflow(page) == 0
        assert await find_violations(page) == [], theme
    await page.get_by_role("button", name="Enlarge").tap()
    width, _ = await measure_image(page.get_by_role("dialog").get_by_role("img"))
    assert width > PHONE_VIEWPORT["width"]
    close_button = await page.get_by_role("dialog").get_by_role("button", name="Close").bounding_box()
    assert close_button is not None
    assert min(close_button["width"], close_button["height"]) >= MIN_TARGET_PIXELS
    await page.get_by_role("dialog").get_by_role("button", name="Close").tap()
    await expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.soak
async def test_the_scroll_position_is_stable_while_diagrams_above_are_rendered(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    session = await web.create_session(await web.sign_in(), title="Drawn")
    messages = []
    for number in range(60):
        drawing = format_diagrams(build_chain(*(f"n{number}x{step}" for step in range(3 + number % 5))))
        messages += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"Look:\n\n{drawing}"},
        ]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    page = await visitors.visit(web, path=f"/{session}")
    log = page.get_by_role("region", name="Messages")
    await expect(page.get_by_text("question 59", exact=True)).to_be_in_viewport()
    await expect(page.get_by_role("img", name="Diagram: n59x0")).to_be_in_viewport()
    await log.hover()
    locate_middle_row = """log => {
        const middle = log.getBoundingClientRect().top + log.clientHeight / 2;
        const row = [...log.querySelectorAll('.row')].find(each => each.getBoundingClientRect().bottom > middle);
        return [row.dataset.index, Math.round(row.getBoundingClientRect().bottom)]; }"""
    motions: list[Literal["no-preference", "reduce"]] = ["no-preference", "reduce"]
    for motion in motions:
        await page.emulate_media(reduced_motion=motion)
        for _ in range(12):
            await scroll_with_wheel(page, log, -400)
            before = await log.evaluate(locate_middle_row)
            # Every diagram near the viewport is rendered.
            await expect(page.locator("figure.diagram pre")).to_have_count(0)
            after = await log.evaluate(locate_middle_row)
            assert after[0] == before[0]
            assert abs(after[1] - before[1]) <= 2

"""Diagrams: drawn apart from the page, shown as pictures in it."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from textwrap import indent
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE, answered, link_for, say
from browser.test_accessibility import findings
from browser.test_sizes import too_wide
from palaver.agent.base import TextDelta
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWeb

HOSTILE = [
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
LIGHT, DARK = re.compile("%23dcebe7"), re.compile("%231d3934")  # what is called accent-soft


def fenced(*sources: str) -> str:
    """An answer with diagrams."""
    return "\n\n".join(f"```mermaid\n{source}\n```" for source in sources)


def chain(*names: str) -> str:
    return "graph TD\n" + "\n".join(f"  {one} --> {other}" for one, other in pairwise(names))


async def svg(picture: Locator) -> str:
    """What a picture is made of."""
    kind, _, content = (await picture.get_attribute("src") or "").partition(",")
    assert kind == "data:image/svg+xml"
    return unquote(content)


async def size(picture: Locator) -> tuple[float, float]:
    """How large a picture is, once it is painted."""
    await picture.evaluate("image => image.decode()")
    box = await picture.bounding_box()
    assert box is not None
    return box["width"], box["height"]


def loaded(page: Page) -> list[str]:
    """What the page fetches for diagrams from now on."""
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if "mermaid" in request.url else None)
    return fetched


async def test_a_diagram_is_drawn_and_nothing_is_fetched_for_it_before(start_web: StartWeb, visitors: Visitors) -> None:
    inside = indent(fenced(chain("Snow", "Ice")) + "\n\n```sh\nls\n```", "   ")
    drawn = f"See:\n\n{fenced(chain('Sea', 'Cloud', 'Rain'))}\n\n1. and\n\n{inside}\n2. That is all."
    answers = iter(["A plain answer.", drawn])
    page = await visitors.visit(await start_web(ScriptedAgent(lambda _: [TextDelta(next(answers))])))
    fetched = loaded(page)
    await say(page, "hello")
    await answered(page)
    assert fetched == []
    await say(page, "draw it")
    await answered(page)
    picture = page.get_by_role("img", name="Diagram: Sea, Cloud, Rain")
    width, height = await size(picture)
    assert 60 < width < 400
    assert 200 < height < 500
    assert "<svg" in await svg(picture)
    steps = page.locator(".answer li")
    await expect(steps.get_by_role("img", name="Diagram: Snow, Ice")).to_be_visible()
    await expect(steps.locator("figure", has_text="sh").get_by_role("button", name="Copy")).to_be_visible()
    assert len(set(fetched)) == 1
    await expect(page.locator("svg[id^=diagram], main style")).to_have_count(0)
    await expect(page.locator("iframe")).to_have_count(1)
    await expect(page.locator("iframe")).to_be_hidden()


async def test_a_diagram_that_still_grows_is_code(start_web: StartWeb, visitors: Visitors) -> None:
    go_on = asyncio.Event()

    async def slowly(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("```mermaid\ngraph TD\n  A --> B\n")
        await go_on.wait()
        yield TextDelta("  B --> C\n```\n\nDone.")

    page = await visitors.visit(await start_web(ScriptedAgent(slowly)))
    fetched = loaded(page)
    await say(page, "draw it")
    await expect(page.locator(".answer pre")).to_contain_text("A --> B")
    assert fetched == []
    go_on.set()
    await expect(page.get_by_role("img", name="Diagram: A, B, C")).to_be_visible()
    await expect(page.locator(".answer pre")).to_have_count(0)


async def test_a_diagram_that_is_wrong_is_shown_as_code_with_the_reason(
    start_web: StartWeb, visitors: Visitors
) -> None:
    long = chain(*(f"node{number}" for number in range(2000)))
    said = fenced("graph TD\n  A --> ", long, chain("Good", "Better"))
    page = await visitors.visit(await start_web(ScriptedAgent(said)))
    await say(page, "draw it")
    await expect(page.get_by_role("img", name="Diagram: Good, Better")).to_be_visible()
    wrong, too_long, _ = await page.locator("figure.diagram").all()
    await expect(wrong.locator("pre")).to_contain_text("A -->")
    await expect(wrong).to_contain_text("This could not be drawn: Parse error on line 3.")
    await expect(too_long).to_contain_text("This is too long to be drawn.")
    await expect(page.locator("figure.diagram").get_by_role("button", name="Show it larger")).to_have_count(1)


async def test_without_a_connection_a_diagram_is_code_until_there_is_one(
    start_web: StartWeb, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(ScriptedAgent(fenced(chain("A", "B")))), service_workers="block")
    visitors.expected = ("ERR_FAILED",)
    await page.route("**/mermaid*", lambda route: route.abort())
    await say(page, "draw it")
    figure = page.locator("figure.diagram")
    await expect(figure).to_contain_text("This cannot be drawn now: the server cannot be reached.")
    await expect(figure.locator("pre")).to_contain_text("A --> B")
    await page.unroute("**/mermaid*")
    await page.emulate_media(color_scheme="dark")  # which asks for it once more
    await expect(figure.get_by_role("img", name="Diagram: A, B")).to_be_visible()


async def test_what_a_hostile_diagram_wants_does_not_happen(start_web: StartWeb, visitors: Visitors) -> None:
    """Mermaid itself lets some of it through, to where the policy of the frame forbids it and nothing is lost."""
    web = await start_web(ScriptedAgent(fenced(*HOSTILE)))
    page = await visitors.visit(web)
    visitors.expected = ("violates the following Content Security Policy", "CSP script-src-attr", "CSP img-src")
    forbidden: list[str] = []
    page.on("requestfailed", lambda failed: forbidden.append(failed.url) if failed.failure == "csp" else None)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await page.evaluate(
        "window.seen = []; for (const kind of ['securitypolicyviolation', 'message'])"
        " addEventListener(kind, event => window.seen.push(event.type))"
    )
    await say(page, "draw it")
    await answered(page)
    await expect(page.locator("figure.diagram :is(img, .diagram-error)")).to_have_count(len(HOSTILE))
    for picture in await page.locator("img.drawing").all():
        content = await svg(picture)
        assert "<script" not in content
        assert "javascript:" not in content
        await picture.click()
    assert dialogs == []
    assert {frame.url for frame in page.frames} == {page.url, f"{web.url}/diagram.html"}
    assert await page.evaluate("window.seen") == []
    never_sent = {f"request to elsewhere: {url}" for url in forbidden}
    visitors.troubles = [each for each in visitors.troubles if each not in never_sent]


async def test_the_frame_that_draws_can_reach_nothing(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent(fenced(chain("A", "B"))))
    page = await visitors.visit(web)
    await say(page, "draw it")
    await expect(page.get_by_role("img", name="Diagram: A, B")).to_be_visible()
    frame = next(each for each in page.frames if each.url.endswith("/diagram.html"))
    visitors.expected = ("CSP connect-src", "violates the following Content Security Policy", "Refused to connect")
    tried = """async () => {
        const failed = async act => { try { await act(); return false; } catch { return true; } };
        return [origin, await failed(() => document.cookie), await failed(() => localStorage.length),
                await failed(() => parent.document.title), await failed(() => fetch('/api/me'))];
    }"""
    assert await frame.evaluate(tried) == ["null", True, True, True, True]


async def test_a_diagram_has_the_colours_of_the_page(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(ScriptedAgent(fenced(chain("A", "B")))), color_scheme="light")
    await say(page, "draw it")
    picture = page.get_by_role("img", name="Diagram: A, B")
    await expect(picture).to_be_visible()
    await expect(picture).to_have_attribute("src", LIGHT)
    await page.emulate_media(color_scheme="dark")
    await expect(picture).to_have_attribute("src", DARK)
    await expect(picture).not_to_have_attribute("src", LIGHT)
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitemradio", name="Light").click()
    await expect(picture).to_have_attribute("src", LIGHT)


async def test_a_diagram_can_be_read_as_text_copied_and_seen_larger(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(ScriptedAgent(fenced(chain("A", "B")))))
    await say(page, "draw it")
    figure = page.locator("figure.diagram")
    before = await size(figure.get_by_role("img"))
    larger = figure.get_by_role("button", name="Show it larger")
    await larger.focus()
    await page.keyboard.press("Enter")
    after = await size(page.get_by_role("dialog").get_by_role("img", name="Diagram: A, B"))
    assert after[0] > 1.5 * before[0]
    assert await findings(page) == []
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(larger).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(figure.locator("pre")).to_have_text(chain("A", "B"))
    await figure.get_by_role("button", name="Show the drawing").click()
    await expect(figure.get_by_role("img")).to_be_visible()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await figure.get_by_role("button", name="Copy").click()
    assert await page.evaluate("navigator.clipboard.readText()") == chain("A", "B")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_phone_shows_a_diagram_within_its_width(start_web: StartWeb, visitors: Visitors, theme: str) -> None:
    wide = "graph LR\n" + "\n".join(f"  stage{number} --> stage{number + 1}" for number in range(12))
    phone: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True, "color_scheme": theme}
    page = await visitors.visit(await start_web(ScriptedAgent(fenced(wide))), **phone)
    await page.locator("#composer").fill("draw it")
    await page.get_by_role("button", name="Send").tap()
    await answered(page)
    width, _ = await size(page.get_by_role("img", name="Diagram:"))
    assert width < PHONE["width"]
    assert await too_wide(page) == 0
    assert await findings(page) == []
    await page.get_by_role("button", name="Show it larger").tap()
    width, _ = await size(page.get_by_role("dialog").get_by_role("img"))
    assert width > PHONE["width"]
    shut = await page.get_by_role("dialog").get_by_role("button", name="Close").bounding_box()
    assert shut is not None
    assert min(shut["width"], shut["height"]) >= 44
    await page.get_by_role("dialog").get_by_role("button", name="Close").tap()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_people_draw_too_and_whoever_reads_a_copy_sees_it(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("I would say:\n\n" + fenced(chain("Yours", "Mine"))))
    owner = await web.client()
    session = await web.talk(owner, f"What about *this*?\n\n{fenced(chain('Ask', 'Hear'))}")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
    made = await owner.post(f"/api/sessions/{session}/shares")
    assert made.is_success, made.text
    stranger = await (await visitors.context(web.url)).new_page()
    await stranger.goto(f"{web.url}/{made.json()['path'].lstrip('/')}")
    for reader in (page, stranger):
        said = reader.locator(".said")
        await expect(said.get_by_text("What about *this*?")).to_be_visible()
        await expect(said.get_by_role("img", name="Diagram: Ask, Hear")).to_be_visible()
        await expect(reader.locator(".answer").get_by_role("img", name="Diagram: Yours, Mine")).to_be_visible()


async def test_diagrams_are_drawn_below_a_base_path(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent(fenced(chain("A", "B"))), base_path="/talk")
    page = await (await visitors.context(web.url)).new_page()
    await page.goto((await link_for(web, "owner")).replace("/sign-in", "/talk/sign-in"))
    await say(page, "draw it")
    await expect(page.get_by_role("img", name="Diagram: A, B")).to_be_visible()
    assert f"{web.url}/talk/diagram.html" in {frame.url for frame in page.frames}


async def test_what_is_read_stays_in_place_while_diagrams_above_it_are_drawn(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    session = await web.session(await web.client(), title="Drawn")
    messages = []
    for number in range(60):
        drawing = fenced(chain(*(f"n{number}x{step}" for step in range(3 + number % 5))))
        messages += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"Look:\n\n{drawing}"},
        ]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
    log = page.get_by_role("region", name="Messages")
    await expect(page.get_by_text("question 59", exact=True)).to_be_in_viewport()
    await expect(page.get_by_role("img", name="Diagram: n59x0")).to_be_in_viewport()
    await log.hover()
    place = """log => {
        const middle = log.getBoundingClientRect().top + log.clientHeight / 2;
        const row = [...log.querySelectorAll('.row')].find(each => each.getBoundingClientRect().bottom > middle);
        return [row.dataset.index, Math.round(row.getBoundingClientRect().bottom)]; }"""
    for _ in range(25):
        await page.mouse.wheel(0, -400)
        await page.wait_for_timeout(50)
        before = await log.evaluate(place)
        await expect(page.locator("figure.diagram pre")).to_have_count(0)  # everything near is drawn now
        after = await log.evaluate(place)
        assert after[0] == before[0]
        assert abs(after[1] - before[1]) <= 2

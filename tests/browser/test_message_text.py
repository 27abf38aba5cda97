"""The text of messages: code and links in one's own, long ones folded, images from other sites, wide tables."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import DESKTOP_VIEWPORT, PHONE_VIEWPORT, send_message, wait_for_answer
from browser.page_checks import measure_overflow
from palaver.agent.base import TextDelta
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Locator, Page, Route

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer

CODE_LINE = "value = 'a line that does not fit into a message, because it is much longer than a message is wide' * 2"
OWN_MESSAGE = f"""Look at https://example.org/tea_(drink), *please*:

```python
# mine
{CODE_LINE}
```

<b>This</b> stays as typed."""
LONG_MESSAGE = "\n".join(f"line {number}" for number in range(300))
LONG_ANSWER = "\n\n".join(f"Paragraph {number}. {'All of it is text. ' * 8}" for number in range(120))
GROWING_QUESTION = "Tell me everything"
IMAGE_URL = "https://images.example/cat.png"
IMAGE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
TABLE = "\n".join(
    [
        "| " + " | ".join(f"Column number {number}" for number in range(12)) + " |",
        "|" + "---|" * 12,
        "| " + " | ".join("A cell with enough text to need several lines" for _ in range(12)) + " |",
    ]
)


async def test_code_links_and_wide_tables_stay_inside_their_message(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent(lambda _request: TABLE))
    page = await visitors.visit(web)
    await send_message(page, OWN_MESSAGE)
    await wait_for_answer(page)
    bubble = page.locator(".bubble")
    await expect(bubble.get_by_role("link")).to_have_attribute("href", "https://example.org/tea_(drink)")
    await expect(bubble.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer")
    await expect(bubble.locator(".hljs-comment")).to_have_text("# mine")
    await expect(bubble.get_by_role("button", name="Copy")).to_be_visible()
    await expect(bubble).to_contain_text("*please*")
    await expect(bubble).to_contain_text("<b>This</b> stays as typed.")
    for scroller in (page.get_by_role("group", name="Code (python)"), page.get_by_role("group", name="Table")):
        await expect(scroller).to_have_attribute("tabindex", "0")
        await scroller.focus()
        await page.keyboard.press("ArrowRight")
        await page.wait_for_function("() => document.activeElement.scrollLeft > 0")
    await check_widths(page, DESKTOP_VIEWPORT["width"])
    await page.set_viewport_size({"width": PHONE_VIEWPORT["width"], "height": PHONE_VIEWPORT["height"]})
    await expect(page.get_by_role("navigation")).to_have_count(0)
    for name in ("Code (python)", "Table"):
        await expect(page.get_by_role("group", name=name)).to_have_attribute("tabindex", "0")
    await check_widths(page, PHONE_VIEWPORT["width"])


async def check_widths(page: Page, viewport_width: int) -> None:
    """Check that a table has readable columns, and that nothing is wider than the window."""
    cell = await page.locator("td").first.bounding_box()
    assert cell is not None
    assert cell["width"] > 140
    right = await page.locator(".bubble, .table").evaluate_all(
        "all => Math.max(...all.map(each => each.getBoundingClientRect().right))"
    )
    assert right <= viewport_width
    assert await measure_overflow(page) == 0


async def get_top(locator: Locator) -> float:
    box = await locator.bounding_box()
    assert box is not None
    return box["y"]


async def wait_until_apart(page: Page) -> None:
    """Wait until no row begins above the end of the row before it: rows are measured in the frame after a change."""
    await page.wait_for_function("""() => {
        const boxes = [...document.querySelectorAll('.row')].map(each => each.getBoundingClientRect());
        boxes.sort((one, other) => one.top - other.top);
        return boxes.every((box, index) => index === 0 || box.top >= boxes[index - 1].bottom - 1);
    }""")


@pytest.mark.soak
async def test_long_messages_are_folded_until_the_reader_opens_them_but_not_before_the_readers_eyes(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    go_on = asyncio.Event()

    async def answer_in_two_parts(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"] == GROWING_QUESTION:
            yield TextDelta("This is all I know.\n\n")
            await go_on.wait()
        yield TextDelta(LONG_ANSWER)

    web = await start_web(ScriptedAgent(answer_in_two_parts))
    client = await web.sign_in()
    session = await web.create_conversation(client, LONG_MESSAGE, title="Long")
    events = (await client.get(f"/api/sessions/{session}/events")).json()["events"]
    question_seq = next(each["seq"] for each in events if each["kind"] == "message")
    page = await visitors.visit(web, path=f"/{session}")

    answer = page.locator(".answer")
    await expect(answer.locator(".folded")).to_be_visible()
    await expect(answer.get_by_text("Paragraph 119.")).not_to_be_in_viewport()
    top = await get_top(answer.locator(".fold"))
    await answer.get_by_role("button", name="Show all").click()
    await expect(answer.locator(".folded")).to_have_count(0)
    await wait_until_apart(page)
    assert abs(await get_top(answer.locator(".fold")) - top) < 2

    less = answer.get_by_role("button", name="Show less")
    await less.scroll_into_view_if_needed()
    await expect(answer.get_by_text("Paragraph 119.")).to_be_in_viewport()
    await less.click()
    await expect(answer.get_by_role("button", name="Show all")).to_be_in_viewport()
    await expect(answer.get_by_text("Paragraph 0.")).to_be_in_viewport()
    await wait_until_apart(page)
    await page.emulate_media(media="print")
    assert await answer.locator(".folded").evaluate("each => each.clientHeight") > 5000
    await page.emulate_media(media="screen")

    question = page.locator(".user-message")
    await question.scroll_into_view_if_needed()
    await expect(question.get_by_role("button", name="Show all")).to_be_visible()
    await page.evaluate("seq => { location.hash = seq }", str(question_seq))
    await expect(question.get_by_role("button", name="Show less")).to_be_attached()
    await expect(question.locator(".folded")).to_have_count(0)
    await wait_until_apart(page)

    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await send_message(page, GROWING_QUESTION)
    await expect(answer).to_contain_text("This is all I know.")
    go_on.set()
    await wait_for_answer(page)
    await expect(page.get_by_text("Paragraph 119.")).to_be_visible()
    await expect(
        answer.get_by_role("button", name="Show less")
    ).to_be_visible()  # it has grown before the reader's eyes
    await page.reload()
    await expect(answer.get_by_role("button", name="Show all")).to_be_visible()


async def test_an_image_from_another_site_is_loaded_when_the_reader_asks_for_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent(lambda _request: f"Here: ![A cat]({IMAGE_URL}) and ![B]({IMAGE_URL}?b)"))
    client = await web.sign_in()
    session = await web.create_conversation(client, "Show me a cat", title="Cat")
    shared = (await client.post(f"/api/sessions/{session}/shares")).json()

    referrers: list[str | None] = []

    async def serve_image(route: Route) -> None:
        referrers.append((await route.request.all_headers()).get("referer"))
        await route.fulfill(body=IMAGE, content_type="image/png")

    for path in (f"/{session}", shared["path"]):
        page = await visitors.visit(web, path=path)
        await page.route("https://images.example/**", serve_image)
        button = page.get_by_role("button", name="Load image A cat images.example")
        await expect(button).to_be_visible()
        assert visitors.problems == []
        await button.click()
        await expect(page.get_by_role("img", name="A cat")).to_be_visible()
        await page.wait_for_function("() => [...document.images].some(each => each.naturalWidth > 0)")
        assert visitors.problems == [f"request to another host: {IMAGE_URL}"]
        await expect(page.get_by_role("button", name="Load image B")).to_be_visible()
        visitors.problems.clear()
        await page.close()
    assert referrers == [None, None]

"""Checks that tests of several areas make on a page: accessibility, width, and the size of touch targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

AXE_SCRIPT = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
MIN_TARGET_PIXELS = 44  # CSS pixels; a finger needs that much

_FIND_SMALL_TARGETS = """minimum => [...document.querySelectorAll('button, a, input, textarea, summary')]
    .filter(each => each.checkVisibility({opacityProperty: true, visibilityProperty: true}))
    .filter(each => !each.closest('.markdown, .steps-list, .visually-hidden'))
    .filter(each => !each.matches('.skip-link, .sidebar-backdrop, .text-button'))
    .map(each => [each.getBoundingClientRect(), each])
    .filter(([box]) => box.width > 0 && (box.width < minimum || box.height < minimum))
    .map(([box, each]) => `${each.outerHTML.slice(0, 90)} ${box.width}x${box.height}`)"""


# Every rule of axe has a fixed impact. Those that are not serious are not run, which takes a quarter less time, except
# for the one about skip links: a skip link that leads nowhere is serious, though axe calls it moderate.
_RUN_SERIOUS_RULES = """async () => {
    const others = axe._audit.rules.filter(
        ({id, impact}) => ['minor', 'moderate'].includes(impact) && id !== 'skip-link')
    const rules = Object.fromEntries(others.map(({id}) => [id, {enabled: false}]))
    return (await axe.run({resultTypes: ['violations'], rules})).violations
}"""


async def find_violations(page: Page) -> list[str]:
    """Run axe and list the serious and critical violations with their places."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT.read_text("utf-8"))
    violations: list[dict[str, Any]] = await page.evaluate(_RUN_SERIOUS_RULES)
    return [
        f"{each['id']} at {node['target']}: {node['failureSummary']}" for each in violations for node in each["nodes"]
    ]


async def find_small_targets(page: Page) -> list[str]:
    """List visible controls that are too small for a finger."""
    found: list[str] = await page.evaluate(_FIND_SMALL_TARGETS, MIN_TARGET_PIXELS)
    return found


_FIND_OVERFLOWING_TEXTS = """() => [...document.querySelectorAll('main :is(button, .card-row-text)')]
    .filter(each => each.checkVisibility() && getComputedStyle(each).overflowX === 'visible')
    .filter(each => each.scrollWidth > each.clientWidth + 1)
    .map(each => each.textContent.slice(0, 90))"""


async def find_overflowing_texts(page: Page) -> list[str]:
    """List controls and rows whose text is wider than they are, so that it covers what is beside them."""
    found: list[str] = await page.evaluate(_FIND_OVERFLOWING_TEXTS)
    return found


async def measure_overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    pixels: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return pixels


# Six frames without a change: an animation changes something in every frame, and rows are measured in the one after.
_WAIT_UNTIL_STILL = """log => new Promise(resolve => {
    let last, unchangedFrames = 0
    const check = () => {
        const now = `${log.scrollTop} ${log.scrollHeight}`
        unchangedFrames = now === last ? unchangedFrames + 1 : 0
        last = now
        if (unchangedFrames === 6) resolve()
        else requestAnimationFrame(check)
    }
    check()
})"""


async def wait_until_still(log: Locator) -> None:
    """Wait until an element has stopped scrolling and growing."""
    await log.evaluate(_WAIT_UNTIL_STILL)


async def scroll_with_wheel(page: Page, log: Locator, pixels: int) -> None:
    """Turn the wheel above an element that can scroll, and wait until it has scrolled."""
    top = await log.evaluate("log => log.scrollTop")
    await page.mouse.wheel(0, pixels)
    await page.wait_for_function("([log, top]) => log.scrollTop !== top", arg=[await log.element_handle(), top])

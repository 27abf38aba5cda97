"""How much script a browser transfers when the page is opened with an empty cache.

What the page loads in advance counts, and so do the headers of responses. The transfers are compressed with gzip, as
over plain HTTP in a home network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from palaver.drivers.demo import DemoAgent
from support.gateway import wait_until

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

MAX_SCRIPT_BYTES = 250_000
QUIET_MILLISECONDS = 300  # nothing more is loaded in advance after the palette
CONVERSATION_PARTS = ("ConversationPage", "Markdown")
OWNER_PARTS = ("SetupSteps", "ServerPanel", "PlatformsPanel")


class ScriptMeter:
    """Records the scripts that a page transfers, without a cache."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._sizes: dict[str, int] = {}

    async def watch(self, page: Page) -> None:
        devtools = await page.context.new_cdp_session(page)
        devtools.on("Network.requestWillBeSent", self._record_request)
        devtools.on("Network.loadingFinished", self._record_end)
        devtools.on("Network.loadingFailed", self._forget_request)
        await devtools.send("Network.enable")
        await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})

    async def load(self, page: Page, url: str, ready: str, *, expected: tuple[str, ...] = ()) -> dict[str, int]:
        """Open an address as a new document; return the bytes of each script, by the name of its source."""
        await page.goto("about:blank")  # ends what the last page still loads
        self._names, self._sizes = {}, {}
        await page.goto(url)
        await expect(page.locator(ready).first).to_be_visible()
        await wait_until(lambda: self._has_loaded("Palette", *expected))
        await page.wait_for_timeout(QUIET_MILLISECONDS)
        await wait_until(self._has_loaded)
        return {self._names[request]: size for request, size in self._sizes.items()}

    def _forget_request(self, event: dict[str, Any]) -> None:
        self._names.pop(event["requestId"], None)  # of the last page

    def list_names(self) -> list[str]:
        return list(self._names.values())

    def _has_loaded(self, *names: str) -> bool:
        return set(names) <= set(self._names.values()) and self._names.keys() == self._sizes.keys()

    def _record_request(self, event: dict[str, Any]) -> None:
        file = event["request"]["url"].rpartition("/")[2]
        if file.endswith(".js"):
            self._names[event["requestId"]] = file.removesuffix(".js")[:-9] if "-" in file else file

    def _record_end(self, event: dict[str, Any]) -> None:
        if event["requestId"] in self._names:
            self._sizes[event["requestId"]] = event["encodedDataLength"]


def check_scripts(scripts: dict[str, int], *, language: str, unused: tuple[str, ...] = ()) -> None:
    assert sum(scripts.values()) < MAX_SCRIPT_BYTES, scripts
    assert {"en", "de"} & scripts.keys() == {language}  # the texts of one language
    assert not scripts.keys() & set(unused), scripts
    assert scripts["page"] > 100_000  # the meter sees them


async def test_the_first_load_is_small_for_the_owner(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    session = await web.create_conversation(await web.sign_in(), "hello")
    meter = ScriptMeter()
    page = await visitors.visit(web, path="/jobs", locale="de-DE")  # German texts are longer
    await meter.watch(page)

    home = await meter.load(page, web.url, ".setup-steps", expected=CONVERSATION_PARTS)  # opened next
    check_scripts(home, language="de", unused=("ProviderForm", "ServerPanel", "katex", "mermaid"))
    check_scripts(await meter.load(page, f"{web.url}/{session}", ".answer"), language="de", unused=OWNER_PARTS)
    for panel in ("server", "platforms", "settings"):  # the largest
        scripts = await meter.load(page, f"{web.url}/{panel}", ".panel .card")
        check_scripts(scripts, language="de", unused=("SetupSteps", *CONVERSATION_PARTS))
    await page.mouse.move(800, 400)
    await page.locator(".sidebar").hover()  # a conversation may be opened next
    await wait_until(lambda: set(CONVERSATION_PARTS) <= set(meter.list_names()))


async def test_the_first_load_is_small_for_a_member(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    meter = ScriptMeter()
    page = await visitors.visit(web, "eve", path="/jobs")
    await meter.watch(page)
    home = await meter.load(page, web.url, "#composer", expected=CONVERSATION_PARTS)
    check_scripts(home, language="en", unused=OWNER_PARTS)
    temporary = await meter.load(page, f"{web.url}/temporary", "#composer")
    check_scripts(temporary, language="en", unused=(*OWNER_PARTS, "ConversationPage"))

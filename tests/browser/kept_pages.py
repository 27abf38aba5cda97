"""Pages that stay open from one test to the next.

A new browser profile starts two processes and compiles the whole page again, which takes longer than most of what a
test does there. A page that is kept does neither, as long as it never leaves its site, and the page's files come from
the same address. What a test may have left behind is removed before the next one gets it.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from palaver.domain.errors import PortInUse
from palaver.web.server import open_socket

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page

MAX_KEPT_PAGES = 4
FIRST_PORT, LAST_PORT = 20_000, 30_000  # below those that the system gives to connections

_EMPTY_PAGE = b"<!doctype html><link rel=icon href='data:,'>"
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(_EMPTY_PAGE),
    _EMPTY_PAGE,
)


def find_free_port() -> int:
    """Find a port that is free now, another one in each process of the test suite."""
    port = FIRST_PORT + os.getpid() % (LAST_PORT - FIRST_PORT)
    while True:
        try:
            open_socket("127.0.0.1", port).close()
        except PortInUse:
            port += 1
        else:
            return port


@dataclass
class KeptPage:
    page: Page
    options: dict[str, Any]  # of its browser profile
    browser: Browser
    devtools: CDPSession

    @property
    def context(self) -> BrowserContext:
        return self.page.context


@dataclass
class KeptPages:
    """The pages that no test uses at the moment. They rest on an empty page of the same site."""

    free: list[KeptPage] = field(default_factory=list)
    port: int = field(default_factory=find_free_port)  # of the servers of all tests
    resting_url: str = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve_empty_page, "127.0.0.1", 0)
        self.resting_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def take(self, browser: Browser, options: dict[str, Any]) -> KeptPage | None:
        """Take a page whose browser profile has these options."""
        for kept in self.free:
            if kept.options == options and kept.browser is browser and not kept.page.is_closed():
                self.free.remove(kept)
                return kept
        return None

    async def put_back(self, kept: KeptPage) -> None:
        """Keep a page for another test; close it if it cannot be cleaned."""
        if kept.page.is_closed():
            await kept.context.close()
            return
        await self._clean(kept)
        self.free.append(kept)
        while len(self.free) > MAX_KEPT_PAGES:
            await self.free.pop(0).context.close()

    async def _clean(self, kept: KeptPage) -> None:
        page, context, options = kept.page, kept.context, kept.options
        for other in context.pages:
            if other is not page:
                await other.close()
        await context.set_offline(False)
        await page.unroute_all(behavior="ignoreErrors")
        url = page.url
        await page.goto(self.resting_url)
        await context.clear_cookies()
        await context.clear_permissions()
        await kept.devtools.send(
            "Storage.clearDataForOrigin",
            {"origin": "{0.scheme}://{0.netloc}".format(urlsplit(url)), "storageTypes": "all"},
        )
        await page.emulate_media(
            media="screen",
            color_scheme=options.get("color_scheme", "light"),
            reduced_motion=options.get("reduced_motion", "no-preference"),
        )
        await page.set_viewport_size(options["viewport"])
        await page.mouse.move(0, 0)

    @staticmethod
    async def _serve_empty_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_RESPONSE)
        await writer.drain()
        writer.close()

"""Access to the web whose libraries are loaded with the first page or search, in a thread: most servers read none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.config.agent_rules import WebToolRules
    from palaver.media.web.reader import WebReader
    from palaver.media.web.tools import SearchResult, WebPage


class ReaderOnDemand:
    """Reads pages and searches the web like `WebReader`, which it creates on first use."""

    def __init__(self, rules: WebToolRules) -> None:
        self._rules = rules
        self._reader: asyncio.Future[WebReader] | None = None

    @property
    def can_search(self) -> bool:
        return self._rules.search.provider is not None

    async def fetch_page(self, url: str, *, person: str) -> WebPage:
        return await (await self._get_reader()).fetch_page(url, person=person)

    async def search(self, query: str, count: int, *, person: str) -> Sequence[SearchResult]:
        return await (await self._get_reader()).search(query, count, person=person)

    async def _get_reader(self) -> WebReader:
        """Return the one reader: it bounds how many requests there are at the same time."""
        if self._reader is None:
            self._reader = asyncio.ensure_future(asyncio.to_thread(self._make_reader))
        return await asyncio.shield(self._reader)  # a caller that is canceled does not cancel it for the others

    def _make_reader(self) -> WebReader:
        from palaver.media.web.reader import WebReader

        return WebReader(self._rules)

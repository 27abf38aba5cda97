"""Reads pages and searches the web for the agent's tools, within the operator's rules and limits of size and time."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import field
from email.message import Message
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2

from palaver import __version__
from palaver.config.validators import SearchProvider
from palaver.core.dataclass import dataclass
from palaver.core.errors import ConnectionLost, InvalidInput
from palaver.core.fair_slots import FairSlots
from palaver.core.text import make_storable
from palaver.media.documents.extraction import DOCUMENT_TYPES, DocumentText, TextExtractor, find_archive_type
from palaver.media.documents.html_text import decode_page
from palaver.media.documents.limits import MAX_TEXT_CHARS
from palaver.media.web.requests import GuardedRequests, Resolve
from palaver.media.web.tools import SearchResult, WebPage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.config.agent_rules import WebToolRules


_BRAVE_URL: Final = "https://api.search.brave.com/res/v1/web/search"
_TAVILY_URL: Final = "https://api.tavily.com/search"
_MAX_TEXT_CHARS: Final = 2000  # of a title, an address or a snippet that is kept
MAX_PAGE_BYTES: Final = 5_000_000
MAX_DOCUMENT_BYTES: Final = 20_000_000
MAX_ANSWER_BYTES: Final = 2_000_000  # of a search provider
FETCH_SECONDS: Final = 30.0  # for a page with all its redirects
SEARCH_SECONDS: Final = 20.0
MAX_REQUESTS: Final = 8  # at the same time
MAX_REQUESTS_PER_PERSON: Final = 3
_HEADERS: Final = {
    "User-Agent": f"Palaver/{__version__}",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,application/pdf;q=0.8,*/*;q=0.5",
}
_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})
_ARCHIVE_TYPES: Final = frozenset({"application/zip", "application/octet-stream", "binary/octet-stream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapter:
    build_request: Callable[[WebToolRules, str, int], SearchRequest]
    list_path: tuple[str, ...]  # where the list of results is in the answer
    snippet_key: str


def parse_results(provider: SearchProvider, answer: object, count: int) -> list[SearchResult]:
    """Read a provider's answer. Raises ConnectionLost if it is not one."""
    adapter = _ADAPTERS[provider]
    entries = answer
    for key in adapter.list_path:
        entries = entries.get(key, []) if isinstance(entries, dict) else None
    if not isinstance(entries, list):
        raise ConnectionLost(f"The answer of the search provider {provider} can't be read.")
    results = (_parse_entry(entry, adapter.snippet_key) for entry in entries[: count * 3])
    return [result for result in results if result is not None][:count]


def _parse_entry(entry: object, snippet_key: str) -> SearchResult | None:
    if not isinstance(entry, dict):
        return None
    url, title, snippet = (entry.get(key) for key in ("url", "title", snippet_key))
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    return SearchResult(url=_clean(url), title=_clean(title), snippet=_clean(snippet))


def _clean(value: object) -> str:
    return " ".join(make_storable(value[:_MAX_TEXT_CHARS]).split()) if isinstance(value, str) else ""


def _build_searxng_request(rules: WebToolRules, query: str, count: int) -> SearchRequest:
    if rules.search.url is None:
        raise InvalidInput("Web search is not set up completely: web.search.url, the address of SearXNG, is missing.")
    base = rules.search.url.rstrip("/").removesuffix("/search")
    headers = {} if rules.search.api_key is None else {"Authorization": f"Bearer {rules.search.api_key}"}
    return SearchRequest(
        method="GET", url=f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers=headers
    )


def _build_brave_request(rules: WebToolRules, query: str, count: int) -> SearchRequest:
    url = f"{rules.search.url or _BRAVE_URL}?{urlencode({'q': query, 'count': count, 'text_decorations': 'false'})}"
    return SearchRequest(method="GET", url=url, headers={"X-Subscription-Token": _get_key(rules)})


def _build_tavily_request(rules: WebToolRules, query: str, count: int) -> SearchRequest:
    return SearchRequest(
        method="POST",
        url=rules.search.url or _TAVILY_URL,
        headers={"Authorization": f"Bearer {_get_key(rules)}"},
        body={"query": query, "max_results": count},
    )


def _get_key(rules: WebToolRules) -> str:
    if rules.search.api_key is None:
        raise InvalidInput("Web search is not set up completely: web.search.api_key is missing.")
    return rules.search.api_key


_ADAPTERS: Final[Mapping[SearchProvider, _Adapter]] = {
    SearchProvider.SEARXNG: _Adapter(
        build_request=_build_searxng_request, list_path=("results",), snippet_key="content"
    ),
    SearchProvider.BRAVE: _Adapter(
        build_request=_build_brave_request, list_path=("web", "results"), snippet_key="description"
    ),
    SearchProvider.TAVILY: _Adapter(build_request=_build_tavily_request, list_path=("results",), snippet_key="content"),
}


class WebReader:
    """Access to the web with the rules of one configuration."""

    def __init__(
        self,
        rules: WebToolRules,
        *,
        extractor: TextExtractor | None = None,
        resolve: Resolve | None = None,
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        self._rules = rules
        self._extractor = extractor or TextExtractor()
        self._pages = GuardedRequests(rules.fetch.private_hosts, resolve=resolve)
        search_host = urlsplit(rules.search.url or "").hostname  # the operator has named it: it may be private
        self._searches = GuardedRequests([search_host] if search_host else [], resolve=resolve)
        self._fetch_seconds = fetch_seconds
        self._slots = FairSlots(MAX_REQUESTS, per_key=MAX_REQUESTS_PER_PERSON)

    @property
    def can_search(self) -> bool:
        return self._rules.search.provider is not None

    async def fetch_page(self, url: str, *, person: str = "") -> WebPage:
        try:
            async with (
                self._slots.hold(person),
                asyncio.timeout(self._fetch_seconds),
                self._pages.get(url, _HEADERS) as response,
            ):
                if response.status_code != httpx2.codes.OK:
                    raise ConnectionLost(f"the server answered {response.status_code}")
                media_type, charset = _parse_content_type(response.headers.get("content-type", ""))
                is_page = media_type in _HTML_TYPES or _is_text(media_type)
                data = await _read_body(response, MAX_PAGE_BYTES if is_page else MAX_DOCUMENT_BYTES)
                final_url = str(response.extensions["final_url"])
        except TimeoutError:
            raise ConnectionLost(f"the server took longer than {self._fetch_seconds:.0f} seconds") from None
        result = await self._extract(data, media_type, charset, final_url, person)
        if result.problem is not None:
            raise InvalidInput(result.problem)
        return WebPage(url=final_url, title=result.title, text=result.text, is_cut=result.is_cut)

    async def _extract(self, data: bytes, media_type: str, charset: str, url: str, person: str) -> DocumentText:
        if media_type in _HTML_TYPES:
            return await self._extractor.read(data, "text/html", person=person, charset=charset, url=url)
        if _is_text(media_type):
            text = make_storable(await asyncio.to_thread(decode_page, data, charset))
            return DocumentText(text=text[:MAX_TEXT_CHARS], is_cut=len(text) > MAX_TEXT_CHARS)
        if media_type in _ARCHIVE_TYPES:
            media_type = find_archive_type(data) or media_type  # reads only the list of files, at most 2 MB
        if media_type not in DOCUMENT_TYPES:
            raise InvalidInput(f"it is of the type {media_type[:60]}, which has no text")
        return await self._extractor.read(data, media_type, person=person)

    async def search(self, query: str, count: int, *, person: str = "") -> list[SearchResult]:
        provider = self._rules.search.provider
        if provider is None:
            raise InvalidInput("Web search is not set up: web.search.provider is not set.")
        request = _ADAPTERS[provider].build_request(self._rules, query, count)
        headers = {**request.headers, "User-Agent": _HEADERS["User-Agent"], "Accept": "application/json"}
        try:
            async with (
                self._slots.hold(person),
                asyncio.timeout(SEARCH_SECONDS),
                self._searches.send(request.method, request.url, headers, request.body) as response,
            ):
                if response.status_code != httpx2.codes.OK:
                    raise ConnectionLost(f"it answered {response.status_code}{_explain_status(response.status_code)}")
                data = await _read_body(response, MAX_ANSWER_BYTES)
        except TimeoutError:
            raise ConnectionLost(
                f"The search provider {provider} took longer than {SEARCH_SECONDS:.0f} seconds."
            ) from None
        except (InvalidInput, ConnectionLost) as error:
            raise ConnectionLost(f"The search provider {provider} can't be reached: {error}.") from None
        try:
            answer = await asyncio.to_thread(json.loads, data)
        except (ValueError, RecursionError):
            raise ConnectionLost(f"The answer of the search provider {provider} can't be read.") from None
        return parse_results(provider, answer, count)


def _explain_status(status: int) -> str:
    if status in {401, 403}:
        return "; check web.search.api_key (SearXNG: allow the format json in its settings)"
    return "; its limit of requests is reached" if status == httpx2.codes.TOO_MANY_REQUESTS else ""


def _is_text(media_type: str) -> bool:
    if media_type in _HTML_TYPES:
        return False
    return media_type.startswith("text/") or media_type in _TEXT_TYPES or media_type.endswith(("+json", "+xml"))


def _parse_content_type(value: str) -> tuple[str, str]:
    """Return the media type and the charset that a server states; a page without a type is treated as HTML."""
    message = Message()
    message["Content-Type"] = value[:300] or "text/html"
    return message.get_content_type().lower(), str(message.get_param("charset") or "")[:40]


async def _read_body(response: httpx2.Response, max_bytes: int) -> bytes:
    """Read a body of at most `max_bytes`; one that is compressed although we did not ask for it, unpacked."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise InvalidInput("it is compressed in an unknown way")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding not in {"", "identity"} else None
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk if unpacker is None else unpacker.decompress(chunk, max_bytes + 1 - len(body))
            if len(body) > max_bytes:
                raise InvalidInput(f"it is too large (limit {max_bytes // 1_000_000} MB)")
    except httpx2.HTTPError as error:
        raise ConnectionLost("the download broke off") from error
    except zlib.error as error:
        raise ConnectionLost("it is compressed, and damaged") from error
    return bytes(body)

"""The services that search the web: what each is asked, and how its answer is read. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from palaver.config.web_page import SearchProvider, SearchResult
from palaver.core.errors import ConnectionLost, InvalidInput
from palaver.core.text import make_storable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.config.web_page import WebToolRules

_BRAVE_URL: Final = "https://api.search.brave.com/res/v1/web/search"
_TAVILY_URL: Final = "https://api.tavily.com/search"
_MAX_TEXT_CHARS: Final = 2000  # of a title, an address or a snippet that is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to send to a search provider."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapter:
    build_request: Callable[[WebToolRules, str, int], SearchRequest]
    list_path: tuple[str, ...]  # where the list of results is in the answer
    snippet_key: str


def build_search_request(rules: WebToolRules, query: str, count: int) -> SearchRequest:
    """Build the request for a search. Raises InvalidInput if the settings are incomplete."""
    if rules.search_provider is None:
        raise InvalidInput("Web search is not set up: web.search.provider is not set.")
    return _ADAPTERS[rules.search_provider].build_request(rules, query, count)


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
    if rules.search_url is None:
        raise InvalidInput("Web search is not set up completely: web.search.url, the address of SearXNG, is missing.")
    base = rules.search_url.rstrip("/").removesuffix("/search")
    headers = {} if rules.search_api_key is None else {"Authorization": f"Bearer {rules.search_api_key}"}
    return SearchRequest(
        method="GET", url=f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers=headers
    )


def _build_brave_request(rules: WebToolRules, query: str, count: int) -> SearchRequest:
    url = f"{rules.search_url or _BRAVE_URL}?{urlencode({'q': query, 'count': count, 'text_decorations': 'false'})}"
    return SearchRequest(method="GET", url=url, headers={"X-Subscription-Token": _get_key(rules)})


def _build_tavily_request(rules: WebToolRules, query: str, count: int) -> SearchRequest:
    return SearchRequest(
        method="POST",
        url=rules.search_url or _TAVILY_URL,
        headers={"Authorization": f"Bearer {_get_key(rules)}"},
        body={"query": query, "max_results": count},
    )


def _get_key(rules: WebToolRules) -> str:
    if rules.search_api_key is None:
        raise InvalidInput("Web search is not set up completely: web.search.api_key is missing.")
    return rules.search_api_key


_ADAPTERS: Final[Mapping[SearchProvider, _Adapter]] = {
    SearchProvider.SEARXNG: _Adapter(
        build_request=_build_searxng_request, list_path=("results",), snippet_key="content"
    ),
    SearchProvider.BRAVE: _Adapter(
        build_request=_build_brave_request, list_path=("web", "results"), snippet_key="description"
    ),
    SearchProvider.TAVILY: _Adapter(build_request=_build_tavily_request, list_path=("results",), snippet_key="content"),
}

"""What is read from the web: pages, results of a search, and the operator's rules for both."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class SearchProvider(StrEnum):
    """A service that searches the web."""

    SEARXNG = "searxng"
    BRAVE = "brave"
    TAVILY = "tavily"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A page as text."""

    url: str  # after redirects
    title: str
    text: str
    is_cut: bool = False  # the page has more text than was read


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A page that a search has found."""

    title: str
    url: str
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebToolRules:
    """What the agent's web tools may reach, and who searches for them."""

    private_hosts: frozenset[str] = frozenset()  # hosts in private networks that may be read
    search_provider: SearchProvider | None = None  # None: there is no search
    search_url: str | None = field(default=None, repr=False)  # may contain a password
    search_api_key: str | None = field(default=None, repr=False)

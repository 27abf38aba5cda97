"""Splits HTML into tags and text, in one pass.

Always true: every character is looked at a bounded number of times, so the time is in proportion to the page. No tree
is built: the rules of HTML for building one take quadratic time on pages that are made for it. As in a browser, what
is not closed, such as a comment or a quoted attribute, lasts to the end of the page.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ATTRIBUTES: Final = 40  # of one tag; the rest is skipped
_RAW_TEXT_TAGS: Final = frozenset({"script", "style", "iframe", "noembed", "noframes", "xmp", "textarea", "title"})
_RAW_TEXT_ENDS: Final = {tag: re.compile(f"</{tag}", re.IGNORECASE) for tag in _RAW_TEXT_TAGS}
_TAG_START: Final = re.compile(r"</?([a-zA-Z][^\s/>]{0,60})")
_ATTRIBUTE_GAP: Final = re.compile(r"[\s/]+")
_ATTRIBUTE_NAME: Final = re.compile(r"[^\s/>=][^\s/>=]*|=[^\s/>=]*")
_EQUALS: Final = re.compile(r"\s*=\s*")
_BARE_VALUE: Final = re.compile(r"[^\s>]*")


@dataclass(frozen=True, slots=True)
class Tag:
    """The start or the end of an element."""

    name: str
    is_end: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


def iterate_tokens(page: str) -> Iterator[Tag | str]:
    """Yield the tags of a page, and the text between them with its entities resolved."""
    position = 0
    while position < len(page):
        start = page.find("<", position)
        if start < 0:
            yield html.unescape(page[position:])
            return
        if start > position:
            yield html.unescape(page[position:start])
        match = _TAG_START.match(page, start)
        if match is None:
            if page.startswith(("<!", "<?", "</"), start):
                position = _skip_declaration(page, start)
            else:
                yield "<"
                position = start + 1
            continue
        attributes, position = _read_attributes(page, match.end())
        tag = Tag(match[1].lower(), page[start + 1] == "/", attributes)
        yield tag
        if not tag.is_end and tag.name in _RAW_TEXT_TAGS:
            end = _RAW_TEXT_ENDS[tag.name].search(page, position)
            text, position = page[position : end.start() if end else len(page)], end.start() if end else len(page)
            if tag.name in {"title", "textarea"}:
                yield html.unescape(text)


def _skip_declaration(page: str, start: int) -> int:
    """Return where a comment or declaration ends; one that is not closed lasts to the end of the page."""
    closing = "-->" if page.startswith("<!--", start) else ">"
    if page.startswith(("<!-->", "<!--->"), start):
        closing = ">"
    end = page.find(closing, start + 2)
    return len(page) if end < 0 else end + len(closing)


def _read_attributes(page: str, position: int) -> tuple[dict[str, str], int]:
    """Return the attributes of a tag, and where the tag ends."""
    attributes: dict[str, str] = {}
    while position < len(page):
        if gap := _ATTRIBUTE_GAP.match(page, position):
            position = gap.end()
        if position >= len(page):
            break
        if page[position] == ">":
            return attributes, position + 1
        name = _ATTRIBUTE_NAME.match(page, position)
        if name is None:
            break
        value, position = _read_value(page, name.end())
        if len(attributes) < MAX_ATTRIBUTES and len(name[0]) <= 60:
            attributes.setdefault(name[0].lower(), html.unescape(value) if "&" in value else value)
    return attributes, len(page)


def _read_value(page: str, position: int) -> tuple[str, int]:
    """Return the value of an attribute, empty if it has none, and where it ends."""
    equals = _EQUALS.match(page, position)
    if equals is None:
        return "", position
    position = equals.end()
    quote = page[position : position + 1]
    if quote and quote in "\"'":
        end = page.find(quote, position + 1)
        return (page[position + 1 : end], end + 1) if end >= 0 else ("", len(page))
    bare = _BARE_VALUE.match(page, position)
    return (bare[0], bare.end()) if bare else ("", position)

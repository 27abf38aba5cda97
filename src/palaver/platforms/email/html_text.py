"""Reads the text of an HTML mail: paragraphs, lists, quotes and links. Pure.

It builds no tree: parsers of HTML take time that grows with the square of the depth, and senders choose the depth. This
goes through the text once. The result is plain text, so nothing in it can do harm as HTML.
"""

from __future__ import annotations

import re
from html import unescape

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})([^<>]{0,5000})>")
_HREF = re.compile(r"\bhref\s{0,5}=\s{0,5}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_HUGE_NUMBER = re.compile(r"&#[0-9]{9,};?")  # of a character: Python refuses to read numbers of thousands of digits
_SPACES = re.compile(r"[ \t\n\r\f\xa0]+")
_DROPPED_TAGS = {"script", "style", "title", "head", "noscript", "template"}
_BLOCK_TAGS = {
    *("p", "div", "li", "ul", "ol", "blockquote", "pre", "table", "tr", "hr", "section", "article", "header", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6"),
}
_PARAGRAPH_TAGS = {"p", "blockquote", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6"}


def read_html(html: str) -> str:
    """Return the text of an HTML mail, without what is not shown."""
    writer = _TextWriter()
    lowered = html.lower() if len(html.lower()) == len(html) else html
    text_start = position = 0
    while (start := html.find("<", position)) >= 0:
        if html.startswith(("<!", "<?"), start):
            writer.add_text(html[text_start:start])
            is_comment = html.startswith("<!--", start)
            text_start = position = _find_end(html, "-->" if is_comment else ">", start + 2)
        elif (match := _TAG.match(html, start)) is not None:
            writer.add_text(html[text_start:start])
            text_start = position = _read_tag(html, lowered, match, writer)
        else:
            position = start + 1  # a sign of the text
    writer.add_text(html[text_start:])
    return writer.finish()


def _read_tag(html: str, lowered: str, match: re.Match[str], writer: _TextWriter) -> int:
    """Read a tag, and return where it ends; what is not shown ends with its closing tag."""
    tag = match[2].lower()
    if tag in _DROPPED_TAGS and not match[1]:
        return _find_end(html, ">", _find_end(lowered, f"</{tag}", match.end()))
    writer.add_tag(tag, match[3], is_end=bool(match[1]))
    return match.end()


def _find_end(text: str, sign: str, start: int) -> int:
    """Return the place after a sign; the end of the text if it does not come."""
    found = text.find(sign, start)
    return len(text) if found < 0 else found + len(sign)


def _unescape(text: str) -> str:
    return unescape(_HUGE_NUMBER.sub("\N{REPLACEMENT CHARACTER}", text))


class _TextWriter:
    """Collects the lines of a text."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._words: list[str] = []  # of the current line
        self._depth = 0  # of quotes
        self._preformatted = 0
        self._links: list[str] = []

    def add_text(self, escaped: str) -> None:
        text = _unescape(escaped)
        if self._preformatted:
            first, *others = text.split("\n")
            self._words.append(first)
            for line in others:
                self._end_line()
                self._words.append(line)
        else:
            self._words.append(_SPACES.sub(" ", text))

    def add_tag(self, tag: str, attributes: str, *, is_end: bool) -> None:
        if tag == "a":
            self._add_link(attributes, is_end=is_end)
        elif tag in {"td", "th"}:
            self._words.append(" ")
        elif tag == "br":
            self._end_line()
        elif tag in _BLOCK_TAGS:
            self._start_block(tag, is_end=is_end)

    def _start_block(self, tag: str, *, is_end: bool) -> None:
        self._finish_line()
        if tag in _PARAGRAPH_TAGS:
            self._add_blank()
        if tag == "blockquote":
            self._depth = max(0, self._depth + (-1 if is_end else 1))
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted + (-1 if is_end else 1))
        elif tag == "li" and not is_end:
            self._words.append("- ")

    def _add_link(self, attributes: str, *, is_end: bool) -> None:
        if not is_end:
            match = _HREF.search(attributes)
            self._links.append(_unescape(next(filter(None, match.groups()), "")) if match else "")
        elif self._links:
            address = self._links.pop()
            shown = "".join(self._words[-3:])
            if address.startswith(("http://", "https://")) and address not in shown:
                self._words.append(f" ({address[:500]})")

    def _finish_line(self) -> None:
        if "".join(self._words).strip():
            self._end_line()
        self._words = []

    def _end_line(self) -> None:
        text = "".join(self._words)
        self._words = []
        text = text.rstrip() if self._preformatted else text.strip()
        self._lines.append(f"{'> ' * min(self._depth, 5)}{text}".rstrip())

    def _add_blank(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def finish(self) -> str:
        self._finish_line()
        return "\n".join(self._lines).strip()

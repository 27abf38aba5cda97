"""Turns HTML into text that a model reads well: headings, links, lists and tables, like Markdown.

If the page marks its main content (`main`, `article`) and there is enough of it, only that is returned; otherwise
everything but navigation, asides and footers. Scripts and what is marked as hidden are left out.
"""

from __future__ import annotations

import codecs
import html
import re
from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


MAX_ATTRIBUTES: Final = 40  # of one tag; the rest is skipped
_RAW_TEXT_TAGS: Final = frozenset({"script", "style", "iframe", "noembed", "noframes", "xmp", "textarea", "title"})
_RAW_TEXT_ENDS: Final = {tag: re.compile(f"</{tag}", re.IGNORECASE) for tag in _RAW_TEXT_TAGS}
_TAG_START: Final = re.compile(r"</?([a-zA-Z][^\s/>]{0,60})")
_ATTRIBUTE_GAP: Final = re.compile(r"[\s/]+")
_ATTRIBUTE_NAME: Final = re.compile(r"[^\s/>=][^\s/>=]*|=[^\s/>=]*")
_EQUALS: Final = re.compile(r"\s*=\s*")
_HUGE_NUMBER: Final = re.compile(r"&#[0-9]{9,};?")  # of a character: Python refuses numbers of thousands of digits
_BARE_VALUE: Final = re.compile(r"[^\s>]*")
MIN_MAIN_CHARS: Final = 400  # with less in it, the part that is marked as the main content is not the content
MAX_LINK_CHARS: Final = 1000
MAX_LIST_DEPTH: Final = 8
_SKIPPED: Final = frozenset({"svg", "math", "template", "noscript", "object", "select", "datalist", "canvas", "audio"})
_HIDEABLE: Final = frozenset({"div", "section", "span", "aside", "article", "nav", "ul", "ol", "table", "form"})
_HIDDEN_STYLE: Final = re.compile(r"display:none|visibility:hidden", re.IGNORECASE)
_BOILERPLATE: Final = frozenset({"nav", "aside", "footer"})
_MAIN: Final = frozenset({"main", "article"})
_SPACES: Final = re.compile(r"[ \t\r\n\f\xa0]+")
_CHARSET_IN_PAGE: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_CHARSET_SCAN_BYTES: Final = 4096
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "main"),
        *("nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
        *("li", *_HEADINGS),
    }
)


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
            yield _unescape(page[position:])
            return
        if start > position:
            yield _unescape(page[position:start])
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
                yield _unescape(text)


def _unescape(text: str) -> str:
    return html.unescape(_HUGE_NUMBER.sub("\N{REPLACEMENT CHARACTER}", text))


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
            attributes.setdefault(name[0].lower(), _unescape(value) if "&" in value else value)
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


@dataclass
class _Block:
    text: str
    is_main: bool
    is_boilerplate: bool


@dataclass
class _List:
    is_numbered: bool
    count: int = 0


@dataclass
class _State:
    base_url: str
    title: str = ""
    blocks: list[_Block] = field(default_factory=list)
    line: list[str] = field(default_factory=list)  # of the block that is being read
    prefix: str = ""
    lists: list[_List] = field(default_factory=list)
    depths: dict[str, int] = field(default_factory=dict)  # of elements whose content is treated in a special way
    skipped_tag: str = ""
    skipped_depth: int = 0
    link: str = ""
    link_start: int = 0
    has_base: bool = False
    is_in_title: bool = False
    is_in_cell: bool = False


def decode_page(data: bytes, charset: str = "") -> str:
    """Return the text of a page; a byte order mark wins over the given charset, which wins over what the page says."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    in_page = _CHARSET_IN_PAGE.search(data[:_CHARSET_SCAN_BYTES])
    for name in (charset, in_page[1].decode("ascii", "replace") if in_page else "", "utf-8"):
        try:
            return data.decode(_choose_codec(name))
        except (LookupError, UnicodeError, ValueError):
            continue  # the charset is unknown, or the page is not in it
    return data.decode("windows-1252", "replace")


def _choose_codec(name: str) -> str:
    """Return the codec that browsers use for a charset. Raises LookupError."""
    codec = codecs.lookup(name)
    if not codec._is_text_encoding or codec.name in {
        "utf-7",
        "unicode_escape",
        "raw_unicode_escape",
        "idna",
        "punycode",
    }:
        raise LookupError(name)
    return "windows-1252" if codec.name in {"iso8859-1", "ascii"} else codec.name


def read_html(page: str, base_url: str = "") -> tuple[str, str]:
    """Return the title and the text of a page; links become absolute."""
    state = _State(base_url)
    for token in iterate_tokens(page):
        if state.skipped_tag:
            _skip(state, token)
        elif isinstance(token, str):
            _add_text(state, token)
        else:
            _handle_tag(state, token)
    _end_block(state)
    return _SPACES.sub(" ", state.title).strip()[:300], _choose_content(state.blocks)


def _choose_content(blocks: list[_Block]) -> str:
    main = [block.text for block in blocks if block.is_main and not block.is_boilerplate]
    if sum(map(len, main)) < MIN_MAIN_CHARS:
        main = [block.text for block in blocks if not block.is_boilerplate] or [block.text for block in blocks]
    return "\n".join(main).strip()


def _skip(state: _State, token: Tag | str) -> None:
    """Skip an element with everything in it."""
    if isinstance(token, Tag) and token.name == state.skipped_tag:
        state.skipped_depth += -1 if token.is_end else 1
        if state.skipped_depth <= 0:
            state.skipped_tag = ""


def _add_text(state: _State, text: str) -> None:
    if state.is_in_title:
        state.title += text[:1000]
    elif state.depths.get("pre"):
        state.line.append(text)
    else:
        clean = _SPACES.sub(" ", text)
        if clean != " " or (state.line and not state.line[-1].endswith(" ")):
            state.line.append(clean)


def _handle_tag(state: _State, tag: Tag) -> None:
    name = tag.name
    if name == "title":
        state.is_in_title = not tag.is_end and not state.title
    elif not tag.is_end and (name in _SKIPPED or (name in _HIDEABLE and _is_hidden(tag))):
        state.skipped_tag, state.skipped_depth = name, 1
    elif name == "br":
        state.line.append("\n" if not state.is_in_cell else " ")
    elif name == "a":
        _handle_link(state, tag)
    elif name == "img" and (alt := _SPACES.sub(" ", tag.attributes.get("alt", "")).strip()):
        state.line.append(f"(image: {alt[:300]})")
    elif name in {"td", "th"}:
        _handle_cell(state, is_end=tag.is_end)
    elif name == "code" and not state.depths.get("pre"):
        state.line.append("`")
    elif name == "base" and not state.has_base and tag.attributes.get("href"):
        state.base_url = _resolve_link(state.base_url, tag.attributes["href"]) or state.base_url
        state.has_base = True  # only the first one counts, as in a browser
    elif name in _BLOCKS and not (state.is_in_cell and name in {"p", "div"}):
        _handle_block(state, tag)


def _is_hidden(tag: Tag) -> bool:
    style = _SPACES.sub("", tag.attributes.get("style", "")[:2000])
    return "hidden" in tag.attributes or bool(style and _HIDDEN_STYLE.search(style))


def _handle_block(state: _State, tag: Tag) -> None:
    """Begin or end an element that stands on lines of its own."""
    name = tag.name
    if name == "pre" or not state.depths.get("pre"):
        _end_block(state)
    if name in _MAIN or name in _BOILERPLATE or name == "pre":
        state.depths[name] = max(state.depths.get(name, 0) + (-1 if tag.is_end else 1), 0)
    state.is_in_cell = state.is_in_cell and name not in {"tr", "table"}
    if name in {"ul", "ol"}:
        if tag.is_end:
            del state.lists[-1:]
        elif len(state.lists) < MAX_LIST_DEPTH:
            state.lists.append(_List(is_numbered=name == "ol"))
    elif not tag.is_end:
        state.prefix = _choose_prefix(state, name)


def _choose_prefix(state: _State, name: str) -> str:
    if name in _HEADINGS:
        return f"\n{_HEADINGS[name]} "
    if name == "li":
        if not state.lists:
            return "- "
        innermost = state.lists[-1]
        innermost.count += 1
        mark = f"{innermost.count}." if innermost.is_numbered else "-"
        return f"{'  ' * (len(state.lists) - 1)}{mark} "
    if name == "blockquote":
        return "> "
    return "\n" if name in {"p", "table", "pre"} else ""


def _handle_cell(state: _State, *, is_end: bool) -> None:
    if not is_end and any(piece.strip() for piece in state.line):
        state.line.append(" | ")
    state.is_in_cell = not is_end


def _handle_link(state: _State, tag: Tag) -> None:
    """Write a link as [text](address), once its text is known."""
    if state.link:
        text = "".join(state.line[state.link_start :]).strip()
        del state.line[state.link_start :]
        state.line.append(f"[{text}]({state.link})" if text else "")
        state.link = ""
    if not tag.is_end:
        state.link = _resolve_link(state.base_url, tag.attributes.get("href", ""))
        state.link_start = len(state.line)


def _resolve_link(base_url: str, target: str) -> str:
    """Return a link as an absolute address; empty for what does not lead to another page."""
    target = target.strip()
    if not target or target.startswith("#") or len(target) > MAX_LINK_CHARS:
        return ""
    try:
        link = urljoin(base_url, target)
        scheme = urlsplit(link).scheme
    except ValueError:
        return ""
    is_page = scheme in {"http", "https", "mailto"} or (not scheme and not base_url)
    return re.sub(r"[\s()<>]", lambda match: quote(match[0]), link) if is_page else ""


def _end_block(state: _State) -> None:
    if state.link:  # it is not closed in this block
        state.link = ""
    text = "".join(state.line)
    is_pre = bool(state.depths.get("pre"))
    state.line = []
    if not text.strip():
        return
    content = text.strip("\n") if is_pre else "\n".join(line.strip() for line in text.strip().split("\n"))
    if is_pre:
        content = f"```\n{content}\n```"
    state.blocks.append(
        _Block(
            text=state.prefix + content,
            is_main=any(state.depths.get(name) for name in _MAIN),
            is_boilerplate=any(state.depths.get(name) for name in _BOILERPLATE),
        )
    )
    state.prefix = ""

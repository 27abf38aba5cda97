"""Turns an answer into messages of Signal: a text and its styles (bold, italic, strikethrough, monospace). Pure.

A message is stored as JSON: `{"text": …, "styles": ["0:4:BOLD", …]}`. Its length is that of the formatted text. What
Signal has no style for becomes text: headings are bold, lists have bullets, quotes a bar, links their address behind
them, tables are monospaced or, if they are wide, lines. Styles count in UTF-16 units.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.delivery.model import LengthUnit, measure_length
from palaver.delivery.splitting import split_markdown
from palaver.platforms.common.markdown import draw_table, name_cells, read_rows
from palaver.platforms.signal.manifest import CAPABILITIES, MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from palaver.platforms.signal.inbound import MessageRef

MAX_QUOTE_CHARS: Final = 200
_LONG_FACTOR: Final = 3  # a text that is so many times longer than a message is not formatted to measure it
MAX_TABLE_COLUMNS: Final = 36  # in characters; what is wider breaks into pieces on a phone
MAX_STYLES: Final = 100  # of one message
MAX_INDENTS: Final = 8  # of lists in lists
MAX_BRACKETS: Final = 200  # with more of them, which are no links, the parser takes quadratic time to find none
_STYLES: Final = {"strong": "BOLD", "em": "ITALIC", "s": "STRIKETHROUGH"}
_MENTION_MARK: Final = "\ufffc"  # apps replace it by a name


@dataclass(frozen=True, slots=True)
class MessageBody:
    """A text, and where it has which style: `0:4:BOLD`, start and length in UTF-16 units."""

    text: str
    styles: Sequence[str] = ()

    def to_json(self) -> str:
        styles = {"styles": list(self.styles)} if self.styles else {}
        return json.dumps({"text": self.text, **styles}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> MessageBody:
        fields = json.loads(body)
        return cls(fields["text"], fields.get("styles", ()))

    def build_parameters(self) -> dict[str, Any]:
        styles = {"textStyles": list(self.styles[:MAX_STYLES])} if self.styles else {}
        return {"message": self.text, **styles}


def render_markdown(markdown: str) -> list[str]:
    return [_render(piece).to_json() for piece in split_markdown(markdown, CAPABILITIES, _measure)]


def build_quote(replied: MessageRef, text: str) -> dict[str, Any]:
    """Return the parameters of `send` that make a message the reply to another one."""
    shown = text[:MAX_QUOTE_CHARS]
    return {"quoteTimestamp": replied.timestamp, "quoteAuthor": replied.author, "quoteMessage": shown}


def _render(markdown: str) -> MessageBody:
    formatted = format_markdown(markdown)
    return formatted if formatted.text.strip() else MessageBody(markdown)  # only markup: shown as it was written


def _measure(markdown: str) -> int:
    size = measure_length(markdown, LengthUnit.BYTES)
    if size > _LONG_FACTOR * MAX_MESSAGE_BYTES:
        return size  # too long in any case: don't spend time on formatting the whole text
    return measure_length(_render(markdown).text, LengthUnit.BYTES)


def format_markdown(markdown: str) -> MessageBody:
    parser = _get_parser(has_links=markdown.count("[") <= MAX_BRACKETS)
    return _Writer().write(parser.parse(markdown.replace(_MENTION_MARK, "")))


@cache
def _get_parser(*, has_links: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser if has_links else parser.disable(["link", "image"])


class _Writer:
    def __init__(self) -> None:
        self._parts: list[str] = []
        self._units = 0  # written so far
        self._styles: list[tuple[int, int, str]] = []
        self._open_styles: list[tuple[str, int]] = []
        self._lists: list[int | None] = []  # the number of the next item; None: it has bullets
        self._quote_depth = 0
        self._gap = 0  # line breaks that are due before the next text
        self._marker = ""  # of the list item that begins

    def write(self, tokens: Sequence[Token]) -> MessageBody:
        stream = iter(tokens)
        for token in stream:
            if token.type == "table_open":
                self._write_table(list(read_rows(stream, _write_cell)))
            else:
                self._write_block(token)
        text = "".join(self._parts)
        return MessageBody(text, tuple(f"{start}:{length}:{style}" for start, length, style in self._styles))

    # ---- blocks ----------------------------------------------------------------------------------------------

    def _write_block(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._write_inline(token.children or [])
            case "paragraph_open":
                self._ask_for_gap(1 if token.hidden else 2)
            case "heading_open":
                self._ask_for_gap(2)
                self._start_block()
                self._open_style("BOLD")
            case "heading_close":
                self._close_style()
            case "fence" | "code_block":
                self._ask_for_gap(2)
                self._write_styled(token.content.rstrip("\n"), "MONOSPACE")
            case "hr":
                self._ask_for_gap(2)
                self._write_text("———")
            case _:
                self._write_container(token)

    def _write_container(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._ask_for_gap(1 if self._lists else 2)
                is_ordered = token.type == "ordered_list_open"
                self._lists.append(int(token.attrs.get("start", 1)) if is_ordered else None)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._open_item()
            case "list_item_close" if self._marker:
                self._start_block()  # an item without text
            case "blockquote_open":
                self._ask_for_gap(2)
                self._quote_depth += 1
            case "blockquote_close":
                self._quote_depth -= 1

    def _open_item(self) -> None:
        if self._marker:
            self._start_block()
        self._ask_for_gap(1)
        number = self._lists[-1]
        self._marker = "• " if number is None else f"{number}. "
        self._lists[-1] = None if number is None else number + 1

    def _ask_for_gap(self, breaks: int) -> None:
        if not self._marker:  # the first block of an item is on the line of its marker
            self._gap = max(self._gap, breaks if not (self._lists and breaks > 1) else 1)

    def _start_block(self) -> None:
        """Write the line breaks that are due, and the marker of a list item."""
        if self._parts and self._gap:
            self._append("\n" * self._gap)
            if self._gap > 1 or self._parts[-1].endswith("\n"):
                self._append(self._get_line_start())
        elif not self._parts:
            self._append(self._get_line_start())
        self._gap = 0
        self._append(self._marker)
        self._marker = ""

    def _get_line_start(self) -> str:
        depth = len(self._lists) if not self._marker else len(self._lists) - 1
        return "> " * min(self._quote_depth, 3) + "   " * min(depth, MAX_INDENTS)

    # ---- text ------------------------------------------------------------------------------------------------

    def _write_inline(self, tokens: Sequence[Token]) -> None:
        links: list[tuple[str, int]] = []  # address, and where its label starts
        for token in tokens:
            match token.type:
                case "text" | "text_special":
                    self._write_text(token.content)
                case "softbreak" | "hardbreak":
                    self._write_text("\n")
                case "code_inline":
                    self._write_styled(token.content, "MONOSPACE")
                case "image":
                    label, address = token.content, str(token.attrs.get("src", ""))
                    self._write_text(f"{label} ({address})" if label and address else label or address)
                case "link_open":
                    links.append((str(token.attrs.get("href", "")), len(self._parts)))
                case "link_close":
                    href, start = links.pop()
                    self._write_link_end(href, "".join(self._parts[start:]))
                case kind if kind.removesuffix("_open") in _STYLES:
                    self._start_block()
                    self._open_style(_STYLES[kind.removesuffix("_open")])
                case kind if kind.removesuffix("_close") in _STYLES:
                    self._close_style()

    def _write_link_end(self, href: str, label: str) -> None:
        plain = href.removeprefix("mailto:")
        if not label.strip():
            self._write_text(href)
        elif label.strip() not in {href, plain, plain.removesuffix("/")}:
            self._write_text(f" ({href})")

    def _write_text(self, text: str) -> None:
        if not text:
            return
        if self._gap or self._marker or not self._parts:
            self._start_block()
        line_start = self._get_line_start()
        self._append(text.replace("\n", f"\n{line_start}") if line_start else text)

    def _write_styled(self, text: str, style: str) -> None:
        self._start_block()
        self._open_style(style)
        self._write_text(text)
        self._close_style()

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._units += measure_length(text, LengthUnit.UTF16)

    def _open_style(self, style: str) -> None:
        self._open_styles.append((style, self._units))

    def _close_style(self) -> None:
        style, start = self._open_styles.pop()
        if self._units > start:
            self._styles.append((start, self._units - start, style))

    def _write_table(self, rows: list[list[str]]) -> None:
        self._ask_for_gap(2)
        drawn = draw_table(rows, MAX_TABLE_COLUMNS)
        if drawn is not None:
            self._write_styled(drawn, "MONOSPACE")
            return
        head = rows[0]
        for row in rows[1:] or rows[:1]:
            self._ask_for_gap(2)
            self._write_styled(row[0] or "–", "BOLD")
            for cell in name_cells(head[1:], row[1:]):
                self._write_text(f"\n{cell}")


def _write_cell(token: Token) -> str:
    writer = _Writer()
    writer._write_inline(token.children or [])
    return " ".join("".join(writer._parts).split())

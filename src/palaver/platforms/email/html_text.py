"""Turns the HTML of a mail into text, as people see it. Pure, and linear in the length of the HTML.

Left out is what mail programs do not show, such as the line that newsletters hide for the list of mails. The rows of a
table are lines with `|` between the cells. Newsletters use tables to place things: a row with long texts is not one
line, but its texts follow each other.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from palaver.core.dataclass import dataclass
from palaver.media.documents.html_text import Tag, iterate_tokens

MAX_TABLE_DEPTH: Final = 20  # of tables in tables; deeper ones are read as text
MAX_CELL_LINES: Final = 3  # of a cell that stands in one line with the others of its row
MAX_CELL_CHARS: Final = 200
MAX_QUOTE_DEPTH: Final = 5
MAX_LINK_CHARS: Final = 500
MAX_STYLE_CHARS: Final = 2000

_SPACES = re.compile(r"[ \t\n\r\f\xa0]+")
# An empty element that ends nowhere: nothing can be hidden in it.
_VOID_TAGS = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_SKIPPED_TAGS = {"script", "style", "title", "head", "noscript", "template"}
_BLOCK_TAGS = {
    *("p", "div", "li", "ul", "ol", "blockquote", "pre", "hr", "section", "article", "header", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6"),
}
_PARAGRAPH_TAGS = {"p", "blockquote", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6"}
_TABLE_TAGS = {"table", "tr", "td", "th"}
# Not a font of size 0: layouts have it around ordinary texts, which have a size of their own.
_HIDDEN_STYLE = re.compile(
    r"(?:^|;)(?:display:none|visibility:hidden|opacity:0(?:\.0+)?(?=[;!]|$)|max-height:0(?:px|pt)?(?=[;!]|$))"
)
_FILLERS = dict.fromkeys(map(ord, "\u00ad\u034f\u200b\u2060\ufeff"))  # invisible; they push texts out of a preview


def read_html(html: str) -> str:
    """Return the text of an HTML mail, without what is not shown."""
    writer = _TextWriter()
    hidden: list[Tag | str] = []  # since an element began that is not shown
    hidden_tag, depth = "", 0
    for token in iterate_tokens(html):
        if hidden_tag:
            hidden.append(token)
            if isinstance(token, Tag) and token.name == hidden_tag:
                depth += -1 if token.is_end else 1
                if not depth:
                    hidden_tag, hidden = "", []
        elif isinstance(token, Tag) and not token.is_end and _is_hidden(token):
            hidden_tag, depth = token.name, 1
        else:
            writer.add(token)
    for token in hidden:  # it ends nowhere: what follows it was hardly meant to be hidden
        writer.add(token)
    return writer.finish()


def _is_hidden(tag: Tag) -> bool:
    if tag.name in _VOID_TAGS:
        return False
    style = "".join(tag.attributes.get("style", "")[:MAX_STYLE_CHARS].lower().split())
    return "hidden" in tag.attributes or _HIDDEN_STYLE.search(style) is not None


@dataclass
class _Table:
    outer_lines: list[str]  # of what is around it
    depth: int  # of the quotes around it
    cells: list[list[str]] = field(default_factory=list)  # the lines of each cell of the current row
    has_columns: bool = False  # it had a row with several texts: it does not only place things


class _TextWriter:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._words: list[str] = []  # of the current line
        self._depth = 0  # of quotes
        self._preformatted = 0
        self._links: list[str] = []
        self._lists: list[int | None] = []  # the number of the last item; None: a list without numbers
        self._tables: list[_Table] = []
        self._deep_tables = 0  # that are too deep to be read as tables
        self._skipped_tag = ""  # up to its end

    def add(self, token: Tag | str) -> None:
        if self._skipped_tag:
            if isinstance(token, Tag) and token.is_end and token.name == self._skipped_tag:
                self._skipped_tag = ""
        elif isinstance(token, str):
            self._add_text(token)
        elif token.name in _SKIPPED_TAGS and not token.is_end:
            self._skipped_tag = token.name
        elif token.name == "a":
            self._add_link(token)
        elif token.name == "br":
            self._end_line()
        elif token.name in _TABLE_TAGS:
            self._handle_table(token)
        elif token.name in _BLOCK_TAGS:
            self._start_block(token)

    def finish(self) -> str:
        while self._tables:
            self._end_table()
        self._finish_line()
        return "\n".join(self._lines).strip()

    def _add_text(self, text: str) -> None:
        text = text.translate(_FILLERS)
        if self._preformatted:
            first, *others = text.split("\n")
            self._words.append(first)
            for line in others:
                self._end_line()
                self._words.append(line)
        else:
            self._words.append(_SPACES.sub(" ", text))

    def _start_block(self, tag: Tag) -> None:
        self._finish_line()
        if tag.name in _PARAGRAPH_TAGS and self._lines and self._lines[-1]:
            self._lines.append("")
        match tag.name:
            case "blockquote":
                self._depth = max(0, self._depth + (-1 if tag.is_end else 1))
            case "pre":
                self._preformatted = max(0, self._preformatted + (-1 if tag.is_end else 1))
            case "ol" | "ul" if tag.is_end:
                del self._lists[-1:]
            case "ol" | "ul":
                self._lists.append(_read_start(tag) - 1 if tag.name == "ol" else None)
            case "li" if not tag.is_end:
                self._words.append(self._make_bullet())

    def _make_bullet(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number + 1}. "

    def _add_link(self, tag: Tag) -> None:
        if not tag.is_end:
            self._links.append(tag.attributes.get("href", ""))
        elif self._links:
            address = self._links.pop()
            shown = "".join(self._words[-3:])
            if address.startswith(("http://", "https://")) and address not in shown:
                self._words.append(f" ({address[:MAX_LINK_CHARS]})")

    def _finish_line(self) -> None:
        if "".join(self._words).strip():
            self._end_line()
        self._words = []

    def _end_line(self) -> None:
        text = "".join(self._words)
        self._words = []
        text = text.rstrip() if self._preformatted else text.strip()
        outer_depth = self._tables[-1].depth if self._tables else 0
        self._lines.append(_quote(text, self._depth - outer_depth))

    # ---- tables ----------------------------------------------------------------------------------------------

    def _handle_table(self, tag: Tag) -> None:
        self._finish_line()
        if tag.name == "table":
            self._start_or_end_table(tag)
        elif self._deep_tables or not self._tables:
            return
        elif tag.name == "tr":
            self._end_row()
        elif tag.is_end:
            self._lines = self._tables[-1].outer_lines
        else:
            self._lines = []
            self._tables[-1].cells.append(self._lines)

    def _start_or_end_table(self, tag: Tag) -> None:
        if not tag.is_end and len(self._tables) < MAX_TABLE_DEPTH:
            self._tables.append(_Table(self._lines, self._depth))
        elif not tag.is_end or self._deep_tables:
            self._deep_tables += -1 if tag.is_end else 1
        elif self._tables:
            self._end_table()

    def _end_table(self) -> None:
        self._end_row()
        self._tables.pop()

    def _end_row(self) -> None:
        """Write the cells of a row: in one line, if they are short."""
        self._finish_line()
        table = self._tables[-1]
        cells, table.cells = table.cells, []
        self._lines = table.outer_lines
        depth = table.depth - (self._tables[-2].depth if len(self._tables) > 1 else 0)
        texts = [[line for line in cell if line] for cell in cells]
        is_short = all(len(each) <= MAX_CELL_LINES and sum(map(len, each)) <= MAX_CELL_CHARS for each in texts)
        table.has_columns = table.has_columns or (is_short and sum(map(bool, texts)) > 1)
        if is_short and table.has_columns and len(texts) > 1:
            lines = [" | ".join(" ".join(each) for each in texts)]
        else:
            lines = [line for cell in cells for line in cell]
        self._lines += [_quote(line, depth) for line in lines]


def _quote(text: str, depth: int) -> str:
    return f"{'> ' * min(max(depth, 0), MAX_QUOTE_DEPTH)}{text}".rstrip()


def _read_start(tag: Tag) -> int:
    start = tag.attributes.get("start", "")
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1
